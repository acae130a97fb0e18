"""Tables to be damaged: small ones of every sort, kept as bytes, with what is true of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.types import META_COLUMNS
from tests.damage.building import QUIET, SHORT, Building, files_below, rows
from tests.damage.histories import WRITTEN
from tests.damage.serviced import SERVICED
from tests.recorded_tables import CONFORMANCE, RICH

__all__ = ["OWN", "Subject", "own_subject", "recorded_names", "recorded_subject"]

OWN: Mapping[str, Callable[[Path], Building]] = {**WRITTEN, **SERVICED}
"""Tables of ours by name."""


@dataclass(frozen=True)
class Subject:
    """A table as bytes.

    Attributes:
        name: Of the table.
        files: Content by path.
        past: Contents that stood at a path earlier, each once.
        options: To open it with.
        later: Rows of a write that is tried on it.
        moments: Instants to travel to.
        predicates: What is asked of it beside everything.
        cdc: Whether changes can be asked for.
    """

    name: str
    files: Mapping[str, bytes]
    past: Mapping[str, list[bytes]]
    options: Mapping[str, str]
    later: pa.Table
    moments: tuple[str, ...]
    predicates: tuple[str, ...]
    cdc: bool = False


def own_subject(name: str, home: Path) -> Subject:
    """Make a table of ours.

    Args:
        name: In `OWN`.
        home: Where; what a bootstrapped table refers to stays there.
    """
    path = home / f"made {name}" / "t"
    try:
        made = OWN[name](path)
        table = made.table()
        names = table.scan(columns=["id"]).to_table().num_rows and table.schema.names
        predicates = ["id IN ('k004', 'k007')", "n > 70", "n = 74 AND part = 'p1'"]
        if "note" in names:
            predicates.append("upper(note) = 'NOTE 6 OF 4'")
        later = rows(range(4, 16), 20, wide="more" in names).rename_columns(_renamed(names))
        later = later.select([column for column in later.column_names if column in names])
        cdc = "captured" in name
        return _subject(name, made.now, made.past, {**made.options, **SHORT}, later, table, tuple(predicates), cdc)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _renamed(names: list[str]) -> list[str]:
    note = "remark" if "remark" in names else "note"
    return ["id", "part", "ts", "n", "x", note, *(["more"] if "more" in names else [])]


def recorded_names() -> list[str]:
    """Tables by Apache Hudi that are at hand."""
    return [*RICH.names(), *CONFORMANCE.names()]


def recorded_subject(name: str, home: Path) -> Subject:
    """A table that Apache Hudi wrote; the rows that are written are some of its own.

    Args:
        name: In `recorded_names`.
        home: Where it is unpacked, for as long as it takes to look at it.
    """
    place = home / f"unpacked {name}"
    try:
        path = (RICH if RICH.archive(name) is not None else CONFORMANCE).unpack(name, place)
        table = Table(str(path))
        found = table.scan().to_table()
        later = found.drop_columns([column for column in META_COLUMNS if column in found.column_names]).slice(0, 3)
        cdc = table.properties.cdc_enabled
        return _subject(name, files_below(path), {}, {**QUIET, **SHORT}, later, table, (), cdc)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _subject(
    name: str,
    files: Mapping[str, bytes],
    past: Mapping[str, list[bytes]],
    options: Mapping[str, str],
    later: pa.Table,
    table: Table,
    predicates: tuple[str, ...],
    cdc: bool,
) -> Subject:
    writes = [instant.time for instant in table.timeline.writes]
    moments = tuple(writes[at] for at in sorted({0, len(writes) // 2, len(writes) - 2}) if 0 <= at < len(writes))
    return Subject(name, files, past, options, later, moments, predicates, cdc)
