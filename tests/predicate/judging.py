"""What we and Spark say of the same expressions over the same rows, held against each other."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import ConfigError
from hudimeta.predicate import Bound, ColumnBounds, FileStats, bind_value, evaluate, may_match, parse
from tests.predicate.all_types import plain
from tests.predicate.spark_answers import RAISED

_WORDS = "ISNAN|AND|OR|IF|CASE|COALESCE|NVL2?|IFNULL|IS|NULLIF|EQUAL_NULL|GREATEST|LEAST|NANVL|IN|CONCAT_WS|TRY_CAST|NEGATIVE"
SHIELDED = re.compile(rf"\b({_WORDS})\b|<=>", re.IGNORECASE)
"""Words beside which a part that Spark raises for need not make the whole null here."""
ROWS_A_FILE = 12


@dataclass
class Verdicts:
    """What came out, by kind.

    Attributes:
        counts: `same`, `refused by both`, `raised`, `refused here`, `accepted here`, `different`.
        different: A line each.
        refused: A line for each that only we refuse.
        accepted: Likewise for Spark.
    """

    counts: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    def judge(self, text: str, table: pa.Table, zone: str, theirs: list[Any] | str) -> Bound | None:
        """Compare one expression; returns it bound where we evaluate it."""
        try:
            bound = bind_value(parse(text), table.schema, timezone=zone)
            ours = plain(evaluate(bound, table))
        except ConfigError as error:
            self._refused(text, theirs, str(error))
            return None
        except Exception as error:  # not one of ours, which is a fault whatever Spark says
            self.counts["different"] += 1
            self.different.append(f"{text}: {type(error).__name__} {error}")
            return None
        if isinstance(theirs, str):
            # what stands in it twice is computed before, outside of what is tried, and constants are while Spark plans
            raised = theirs.startswith(("raised", "[CAST_"))
            self.counts["raised" if raised else "accepted here"] += 1
            self.accepted += [] if raised else [f"{text}: {theirs}"]
            return bound
        strict = not SHIELDED.search(text)
        if "BETWEEN" in text:  # Spark takes bounds that exclude each other for FALSE, of nulls too
            theirs = [None if a is None and b is False else b for a, b in zip(ours, theirs, strict=True)]
        pairs = enumerate(zip(ours, theirs, strict=True))
        wrong = [n for n, (a, b) in pairs if a != b and (b is not RAISED or (strict and a is not None))]
        if wrong:
            at = wrong[0]
            answer = "an error" if theirs[at] is RAISED else repr(theirs[at])
            said = f"of row {at} Spark says {answer}, we say {ours[at]!r}"
            self.different.append(f"{text}: {len(wrong)} rows, {said}: {_values(text, table, at)}")
        self.counts["different" if wrong else "same"] += 1
        return bound

    def _refused(self, text: str, theirs: list[Any] | str, why: str) -> None:
        if isinstance(theirs, str) or all(value is None or value is RAISED for value in theirs):
            self.counts["refused by both"] += 1
            return
        self.counts["refused here"] += 1
        self.refused.append(f"{text}: {why}")


def _values(text: str, table: pa.Table, at: int) -> dict[str, Any]:
    names = [name for name in table.column_names if re.search(rf"\b{re.escape(name)}\b", text)]
    return {name: plain(table[name].slice(at, 1))[0] for name in names}


def statistics(table: pa.Table) -> tuple[FileStats, np.ndarray[Any, Any]]:
    """Bounds as footers have them of every dozen rows, and the file that each row is in."""
    files = np.arange(table.num_rows) // ROWS_A_FILE
    slices = [table.slice(begin, ROWS_A_FILE) for begin in range(0, table.num_rows, ROWS_A_FILE)]
    columns: dict[str, ColumnBounds] = {}
    for name, t in _leaves(table.schema):
        if pa.types.is_nested(t):
            continue
        parts = [_leaf(part, name) for part in slices]
        low, high = [], []
        for part in parts:
            known = part.filter(pc.invert(pc.is_nan(part))) if pa.types.is_floating(t) else part  # footers leave NaN out
            bounds = pc.min_max(known.drop_null())
            low.append(bounds["min"])
            high.append(bounds["max"])
        nulls = pa.array([part.null_count for part in parts], pa.int64())
        counts = pa.array([len(part) for part in parts], pa.int64())
        columns[name] = ColumnBounds(_array(low, t), _array(high, t), nulls, counts)
    return FileStats(len(slices), columns), files


def _array(scalars: list[pa.Scalar], t: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.repeat(scalar, 1) for scalar in scalars]) if scalars else pa.array([], t)


def _leaves(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    found: list[tuple[str, pa.DataType]] = []

    def add(prefix: str, each: pa.Field) -> None:
        if pa.types.is_struct(each.type):
            for inner in each.type:
                add(f"{prefix}{each.name}.", inner)
        else:
            found.append((prefix + each.name, each.type))

    for each in schema:
        add("", each)
    return found


def _leaf(table: pa.Table, name: str) -> pa.Array:
    first, *rest = name.split(".")
    values = table[first].combine_chunks()
    for part in rest:
        values = pc.struct_field(values, part)
    return values


def lost_files(bound: Bound, table: pa.Table, known: tuple[FileStats, np.ndarray[Any, Any]]) -> bool:
    """Whether skipping by statistics leaves out a file with a row for which a predicate is true."""
    stats, files = known
    kept = may_match(bound, stats).keep
    true = np.asarray(evaluate(bound, table).combine_chunks().fill_null(False))
    return bool((~kept[files] & true).any())
