"""Asks a reader every recorded query of a table, and says which answers are right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudimeta.types import META_COLUMNS
from tests.recorded_tables import TableSet, checker

Read = Callable[[str, str, dict[str, Any]], pa.Table]


@dataclass
class Tally:
    """Right and wrong answers by reader and kind, over the whole run."""

    right: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, reader: str, kind: str, is_right: bool) -> None:
        """Count one answer."""
        (self.right if is_right else self.wrong)[reader, kind] += 1

    def lines(self) -> list[str]:
        """One line for each reader and kind."""
        return [
            f"{reader:8} {kind:15} {self.right[reader, kind]:5} right {self.wrong[reader, kind]:5} wrong"
            for reader, kind in sorted({*self.right, *self.wrong})
        ]


def wrong_answers(
    tables: TableSet, name: str, path: Path, read: Read, kinds: Collection[str], note: Callable[[str, bool], None]
) -> list[str]:
    """Every query of the given kinds that the reader answers wrongly, in words.

    Args:
        tables: The set that the table is of.
        name: The table.
        path: Where it is unpacked.
        read: The reader.
        kinds: Which kinds to ask.
        note: Called with the kind and the verdict of each query.
    """
    check, recorded, wrong = checker(), tables.answer(name), []
    for kind, label, options, acceptable in check.queries(recorded):
        if kind not in kinds or not acceptable:
            continue
        try:
            answer = read(str(path), kind, {**options, "record": recorded})
            difference = check.judge(kind, recorded, answer, acceptable, False)
        except Exception as error:  # the reader's failure is its answer, and is reported as one
            difference = f"{type(error).__name__}: {error}"[:600]
        is_right = difference in ("", "soft")
        note(kind, is_right)
        if not is_right:
            wrong.append(f"{kind} {label}: {difference}")
    return wrong


def type_text(kind: pa.DataType) -> str:
    """A type in the words of the recorded schemas, whatever the width of offsets and the names of list and map entries."""
    if pa.types.is_dictionary(kind):
        return type_text(kind.value_type)
    if pa.types.is_struct(kind):
        inner = (kind.field(number) for number in range(kind.num_fields))
        return "struct<" + ", ".join(f"{column.name}: {type_text(column.type)}" for column in inner) + ">"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{type_text(kind.value_type)}>"
    return str(kind).removeprefix("large_")


def schema_difference(recorded: dict[str, Any], schema: pa.Schema) -> str:
    """Empty where names, order and types equal the recorded schema, else what differs.

    A table that keeps no meta columns may show them, empty, or leave them out.
    """
    if not recorded["populate_meta_fields"]:
        recorded = {"schema": [c for c in recorded["schema"] if c["name"] not in META_COLUMNS]}
        schema = pa.schema([column for column in schema if column.name not in META_COLUMNS])
    expected = [(c["name"], re.sub(r"list<(?:element|item|array): ", "list<", c["type"])) for c in recorded["schema"]]
    found = [(column.name, type_text(column.type)) for column in schema]
    if found == expected:
        return ""
    return f"only here {sorted(set(found) - set(expected))}, only expected {sorted(set(expected) - set(found))}" + (
        "" if sorted(found) != sorted(expected) else f"; the order is {[n for n, _ in found]}"
    )
