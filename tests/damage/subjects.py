"""Tables to be damaged: small ones of every sort, kept as bytes, with what is true of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.table_writer import write_rows
from tests.recorded_tables import CONFORMANCE, RICH

__all__ = ["OWN", "Subject", "own_subject", "recorded_names", "recorded_subject"]

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
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


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

    def lay_out(self, at: Path) -> None:
        """Write the files below a folder."""
        _lay_out(self.files, at)


@dataclass
class _Building:
    """A table while it is made; what every step leaves is kept."""

    path: Path
    options: Mapping[str, str]
    past: dict[str, list[bytes]] = field(default_factory=dict)
    now: dict[str, bytes] = field(default_factory=dict)

    def table(self, **more: str) -> Table:
        return Table(str(self.path), {**self.options, **{key.replace("__", "."): value for key, value in more.items()}})

    def keep(self) -> None:
        """Remember what changed since the last look."""
        found = _files_below(self.path)
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


Make = Callable[[Path], "tuple[_Building, bool]"]


def _building(path: Path, given: Mapping[str, Any], **create: Any) -> _Building:
    options = {**QUIET, **given}
    arguments = {"key": "id", "partition_by": "part", "ordering": "ts", **create}
    Table.create(str(path), rows(range(0), 0).schema, options=options, name="t", **arguments)
    made = _Building(path, options)
    made.keep()
    return made


def _histories(made: _Building, steps: list[Callable[[Table], Any]]) -> _Building:
    for step in steps:
        step(made.table())
        made.keep()
    return made


def _usual(made: _Building) -> list[Callable[[Table], Any]]:
    return [
        lambda t: t.insert(rows(range(12), 1)),
        lambda t: t.upsert(rows(range(3, 9), 2)),
        lambda t: t.delete(rows(range(10, 12), 3)),
        lambda t: t.upsert(rows(range(5, 14), 4)),
    ]


def _worn(made: _Building) -> list[Callable[[Table], Any]]:
    """Enough commits for cleans and archives, of which both run."""

    def short(table: Table) -> Table:
        return Table(table.path, {**made.options, **SHORT})

    return [
        *(lambda t, ts=ts: short(t).upsert(rows(range(ts % 4, ts % 4 + 3), ts)) for ts in range(5, 10)),
        lambda t: short(t).clean(),
        lambda t: short(t).archive(),
        *(lambda t, ts=ts: short(t).upsert(rows(range(ts % 4, ts % 4 + 3), ts)) for ts in range(10, 14)),
        lambda t: short(t).archive(),
        lambda t: short(t).upsert(rows(range(2), 15)),
    ]


def _cow_indexed(path: Path) -> _Building:
    made = _building(path, INDEXED)
    steps = _usual(made)
    steps.insert(1, lambda t: t.metadata.create_index("up", "column_stats", "note", expression="upper"))
    steps.insert(2, lambda t: t.metadata.create_index("low", "bloom_filters", "part", expression="lower"))
    return _histories(made, steps)


def _mor_indexed(path: Path) -> _Building:
    made = _building(path, INDEXED, type="MERGE_ON_READ")
    return _histories(
        made, [*_usual(made), lambda t: t.metadata.create_index("up", "column_stats", "note", expression="upper")]
    )


def _cow_worn(path: Path) -> _Building:
    made = _building(path, {})
    return _histories(made, [*_usual(made), *_worn(made)])


def _mor_worn(path: Path) -> _Building:
    made = _building(path, INDEXED, type="MERGE_ON_READ")
    steps = [*_usual(made), lambda t: t.compact(), *_worn(made)]
    return _histories(made, [*steps, lambda t: t.schedule_compaction(), lambda t: t.upsert(rows(range(4, 7), 16))])


def _dying(path: Path, type: str) -> _Building:
    """A table with a write that died just before it completed: lock, markers, a pending instant, files that do not count."""
    made = _histories(_building(path, INDEXED, type=type), _usual(_Building(path, {})))
    photograph = _Photograph(path)
    storage = FaultyStorage(open_storage(path), photograph)
    write_rows(WriteSession(storage, OPTIONS.read(made.options)), Operation.UPSERT, rows(range(4, 18), 5))
    made.now = photograph.files
    shutil.rmtree(path)
    _lay_out(made.now, path)
    return made


class _Photograph(FaultPlan):
    """Keeps the table's files as they are before a write completes."""

    def __init__(self, path: Path) -> None:
        super().__init__(None, Fault.KILL)
        self.files: dict[str, bytes] = {}
        self._path = path

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        target = name.split()[-1]
        if target.startswith(".hoodie/timeline/") and target.endswith(("commit", "deltacommit")):
            self.files = _files_below(self._path)
        return super().around(name, act)


def _cow_flat(path: Path) -> _Building:
    made = _building(path, {}, partition_by=())
    return _histories(made, _usual(made))


def _mor_flat_complex(path: Path) -> _Building:
    made = _building(path, {}, key=("id", "part"), partition_by=(), ordering=(), type="MERGE_ON_READ")
    return _histories(made, _usual(made))


def _cow_nine(path: Path) -> _Building:
    made = _building(
        path, {**INDEXED, "hoodie.write.table.version": "9", "hoodie.datasource.write.hive_style_partitioning": "true"}
    )
    return _histories(made, _usual(made))


def _mor_nine(path: Path) -> _Building:
    made = _building(path, {"hoodie.write.table.version": "9"}, type="MERGE_ON_READ", ordering=("ts", "n"))
    return _histories(made, [*_usual(made), lambda t: t.compact(), lambda t: t.upsert(rows(range(6), 6))])


def _cow_captured(path: Path) -> _Building:
    made = _building(path, {"hoodie.table.cdc.enabled": "true"})
    return _histories(made, _usual(made))


def _mor_captured(path: Path) -> _Building:
    made = _building(path, {"hoodie.table.cdc.enabled": "true"}, type="MERGE_ON_READ")
    return _histories(made, _usual(made))


def _altered(path: Path, type: str) -> _Building:
    made = _building(path, {}, type=type)
    steps = [
        *_usual(made),
        lambda t: t.alter(add={"more": pa.int64()}, rename={"note": "remark"}, retype={"n": pa.int64()}),
        lambda t: t.upsert(rows(range(6), 5, wide=True).rename_columns(["id", "part", "ts", "n", "x", "remark", "more"])),
        lambda t: t.alter(drop="x"),
    ]
    return _histories(made, steps)


def _mor_partial(path: Path) -> _Building:
    made = _building(path, {"hoodie.datasource.write.payload.class": PARTIAL}, type="MERGE_ON_READ")
    return _histories(made, _usual(made))


def _cow_bare(path: Path) -> _Building:
    made = _building(path, {"hoodie.metadata.enable": "false"})
    return _histories(made, _usual(made))


def _mor_buckets(path: Path) -> _Building:
    given = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    made = _building(path, given, type="MERGE_ON_READ")
    return _histories(made, _usual(made))


def _cow_replaced(path: Path) -> _Building:
    made = _building(path, {})
    steps = [*_usual(made), lambda t: t.insert_overwrite(rows(range(0, 8, 2), 5)), lambda t: t.delete_partition("p1")]
    return _histories(made, [*steps, lambda t: t.insert(rows(range(20, 26), 6))])


OWN: Mapping[str, Callable[[Path], _Building]] = {
    "cow_indexed": _cow_indexed,
    "mor_indexed": _mor_indexed,
    "cow_worn": _cow_worn,
    "mor_worn": _mor_worn,
    "cow_flat": _cow_flat,
    "mor_flat_complex": _mor_flat_complex,
    "cow_nine": _cow_nine,
    "mor_nine": _mor_nine,
    "cow_captured": _cow_captured,
    "mor_captured": _mor_captured,
    "cow_altered": lambda path: _altered(path, "COPY_ON_WRITE"),
    "mor_altered": lambda path: _altered(path, "MERGE_ON_READ"),
    "mor_partial": _mor_partial,
    "cow_bare": _cow_bare,
    "mor_buckets": _mor_buckets,
    "cow_replaced": _cow_replaced,
    "cow_dying": lambda path: _dying(path, "COPY_ON_WRITE"),
    "mor_dying": lambda path: _dying(path, "MERGE_ON_READ"),
}
"""Tables of ours by name."""


def own_subject(name: str) -> Subject:
    """Make a table of ours."""
    home = Path(tempfile.mkdtemp(prefix="hudimeta-damage-"))
    try:
        made = OWN[name](home / "t")
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
        shutil.rmtree(home)


def _renamed(names: list[str]) -> list[str]:
    note = "remark" if "remark" in names else "note"
    return ["id", "part", "ts", "n", "x", note, *(["more"] if "more" in names else [])]


def recorded_names() -> list[str]:
    """Tables by Apache Hudi that are at hand."""
    return [*RICH.names(), *CONFORMANCE.names()]


def recorded_subject(name: str) -> Subject:
    """A table that Apache Hudi wrote; the rows that are written are some of its own."""
    home = Path(tempfile.mkdtemp(prefix="hudimeta-damage-"))
    try:
        path = (RICH if RICH.archive(name) is not None else CONFORMANCE).unpack(name, home / "t")
        table = Table(str(path))
        found = table.scan().to_table()
        later = found.drop_columns([column for column in META_COLUMNS if column in found.column_names]).slice(0, 3)
        cdc = table.properties.cdc_enabled
        return _subject(name, _files_below(path), {}, {**QUIET, **SHORT}, later, table, (), cdc)
    finally:
        shutil.rmtree(home)


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


def _lay_out(files: Mapping[str, bytes], at: Path) -> None:
    for path, content in files.items():
        target = at / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _files_below(path: Path) -> dict[str, bytes]:
    found = (one for one in sorted(path.rglob("*")) if one.is_file() and not one.name.endswith(".crc"))
    return {one.relative_to(path).as_posix(): one.read_bytes() for one in found}
