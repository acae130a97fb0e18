"""A table while its history is made: rows, options, steps, and the bytes that every step leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudimeta.api.table import Table

__all__ = ["INDEXED", "SHORT", "Building", "Step", "begun", "files_below", "lay_out", "rows", "taken", "usual"]

SHORT = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.index.secondary.column": "n",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.expression.file.group.count": "1",
}


Step = Callable[[Table], object]
"""Something that is done to a table on its way."""


@dataclass
class Building:
    """A table while it is made; what every step leaves is kept."""

    path: Path
    options: Mapping[str, str]
    past: dict[str, list[bytes]] = field(default_factory=dict)
    now: dict[str, bytes] = field(default_factory=dict)

    def table(self, **more: str) -> Table:
        return Table(str(self.path), {**self.options, **{key.replace("__", "."): value for key, value in more.items()}})

    def keep(self) -> None:
        """Remember what changed since the last look."""
        found = files_below(self.path)
        for path, content in self.now.items():
            if path in found and found[path] != content and content not in self.past.setdefault(path, []):
                self.past[path].append(content)
        self.now = found


def rows(ids: range, ts: int, *, wide: bool = False) -> pa.Table:
    """Rows of a key, a partition, an ordering value and some columns of other types."""
    numbers = list(ids)
    columns: dict[str, Any] = {
        "id": pa.array([f"k{n:03d}" for n in numbers], pa.string()),
        "part": pa.array([f"p{n % 2}" for n in numbers], pa.string()),
        "ts": pa.array([ts] * len(numbers), pa.int64()),
        "n": pa.array([n * 10 + ts for n in numbers], pa.int32()),
        "x": pa.array([n + ts / 16 for n in numbers], pa.float64()),
        "note": pa.array([None if n % 5 == 0 else f"note {n} of {ts}" for n in numbers], pa.string()),
    }
    if wide:
        columns["more"] = pa.array([n + ts for n in numbers], pa.int64())
    return pa.table(columns)


def begun(path: Path, given: Mapping[str, Any], **create: Any) -> Building:
    """An empty table in two partitions with an ordering column, unless the arguments of `Table.create` say otherwise."""
    options = {**QUIET, **given}
    arguments = {"key": "id", "partition_by": "part", "ordering": "ts", **create}
    Table.create(str(path), rows(range(0), 0).schema, options=options, name="t", **arguments)
    made = Building(path, options)
    made.keep()
    return made


def taken(made: Building, steps: Iterable[Step]) -> Building:
    """Take one step after the other, each by a table that is opened anew."""
    for step in steps:
        step(made.table())
        made.keep()
    return made


def usual() -> list[Step]:
    """Four writes: inserts, updates, a delete, both."""
    return [
        lambda t: t.insert(rows(range(12), 1)),
        lambda t: t.upsert(rows(range(3, 9), 2)),
        lambda t: t.delete(rows(range(10, 12), 3)),
        lambda t: t.upsert(rows(range(5, 14), 4)),
    ]


def lay_out(files: Mapping[str, bytes], at: Path) -> None:
    """Write files below a folder."""
    for path, content in files.items():
        target = at / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def files_below(path: Path) -> dict[str, bytes]:
    """All files below a folder, but the checksums of Hadoop's local file system."""
    found = (one for one in sorted(path.rglob("*")) if one.is_file() and not one.name.endswith(".crc"))
    return {one.relative_to(path).as_posix(): one.read_bytes() for one in found}
