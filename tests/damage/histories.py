"""Tables of ours that writes have made, of every sort, for damages: see `serviced` for what further services leave."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.damage.building import INDEXED, SHORT, Building, Step, begun, files_below, lay_out, rows, taken, usual

__all__ = ["WRITTEN"]

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


def _worn(made: Building) -> list[Step]:
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


def _cow_indexed(path: Path) -> Building:
    made = begun(path, INDEXED)
    steps = usual()
    steps.insert(1, lambda t: t.metadata.create_index("up", "column_stats", "note", expression="upper"))
    steps.insert(2, lambda t: t.metadata.create_index("low", "bloom_filters", "part", expression="lower"))
    return taken(made, steps)


def _mor_indexed(path: Path) -> Building:
    made = begun(path, INDEXED, type="MERGE_ON_READ")
    return taken(made, [*usual(), lambda t: t.metadata.create_index("up", "column_stats", "note", expression="upper")])


def _cow_worn(path: Path) -> Building:
    made = begun(path, {})
    return taken(made, [*usual(), *_worn(made)])


def _mor_worn(path: Path) -> Building:
    made = begun(path, INDEXED, type="MERGE_ON_READ")
    steps = [*usual(), lambda t: t.compact(), *_worn(made)]
    return taken(made, [*steps, lambda t: t.schedule_compaction(), lambda t: t.upsert(rows(range(4, 7), 16))])


def _dying(path: Path, type: str) -> Building:
    """A table with a write that died just before it completed: lock, markers, a pending instant, files that do not count."""
    made = taken(begun(path, INDEXED, type=type), usual())
    photograph = _Photograph(path)
    storage = FaultyStorage(open_storage(path), photograph)
    write_rows(WriteSession(storage, OPTIONS.read(made.options)), Operation.UPSERT, rows(range(4, 18), 5))
    made.now = photograph.files
    shutil.rmtree(path)
    lay_out(made.now, path)
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
            self.files = files_below(self._path)
        return super().around(name, act)


def _cow_flat(path: Path) -> Building:
    made = begun(path, {}, partition_by=())
    return taken(made, usual())


def _mor_flat_complex(path: Path) -> Building:
    made = begun(path, {}, key=("id", "part"), partition_by=(), ordering=(), type="MERGE_ON_READ")
    return taken(made, usual())


def _cow_nine(path: Path) -> Building:
    made = begun(
        path, {**INDEXED, "hoodie.write.table.version": "9", "hoodie.datasource.write.hive_style_partitioning": "true"}
    )
    return taken(made, usual())


def _mor_nine(path: Path) -> Building:
    made = begun(path, {"hoodie.write.table.version": "9"}, type="MERGE_ON_READ", ordering=("ts", "n"))
    return taken(made, [*usual(), lambda t: t.compact(), lambda t: t.upsert(rows(range(6), 6))])


def _cow_captured(path: Path) -> Building:
    made = begun(path, {"hoodie.table.cdc.enabled": "true"})
    return taken(made, usual())


def _mor_captured(path: Path) -> Building:
    made = begun(path, {"hoodie.table.cdc.enabled": "true"}, type="MERGE_ON_READ")
    return taken(made, usual())


def _altered(path: Path, type: str) -> Building:
    made = begun(path, {}, type=type)
    steps = [
        *usual(),
        lambda t: t.alter(add={"more": pa.int64()}, rename={"note": "remark"}, retype={"n": pa.int64()}),
        lambda t: t.upsert(rows(range(6), 5, wide=True).rename_columns(["id", "part", "ts", "n", "x", "remark", "more"])),
        lambda t: t.alter(drop="x"),
    ]
    return taken(made, steps)


def _mor_partial(path: Path) -> Building:
    made = begun(path, {"hoodie.datasource.write.payload.class": PARTIAL}, type="MERGE_ON_READ")
    return taken(made, usual())


def _cow_bare(path: Path) -> Building:
    made = begun(path, {"hoodie.metadata.enable": "false"})
    return taken(made, usual())


def _mor_buckets(path: Path) -> Building:
    made = begun(path, BUCKETS, type="MERGE_ON_READ")
    return taken(made, usual())


def _mor_rings(path: Path) -> Building:
    """Hash rings of which one was split, one overwritten, and one renewed by a delete."""
    ring = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.bucket.index.max.num.buckets": "4"}
    made = begun(path, {**BUCKETS, **ring}, type="MERGE_ON_READ")
    small = {**made.options, "hoodie.parquet.max.file.size": "500"}
    steps = [
        *usual(),
        lambda t: Table(t.path, small).cluster(),
        lambda t: t.delete_partition("p1"),
        lambda t: t.upsert(rows(range(8), 6)),
        lambda t: t.insert_overwrite(rows(range(0, 8, 2), 7)),
        lambda t: t.upsert(rows(range(8), 8)),
    ]
    return taken(made, steps)


def _cow_rules(path: Path) -> Building:
    made = begun(path, {**BUCKETS, "hoodie.bucket.index.partition.expressions": "p1,3"})
    return taken(made, [*usual(), lambda t: t.rescale_buckets("p0,4;.*,3"), lambda t: t.upsert(rows(range(8), 6))])


def _cow_replaced(path: Path) -> Building:
    made = begun(path, {})
    steps = [*usual(), lambda t: t.insert_overwrite(rows(range(0, 8, 2), 5)), lambda t: t.delete_partition("p1")]
    return taken(made, [*steps, lambda t: t.insert(rows(range(20, 26), 6))])


WRITTEN: Mapping[str, Callable[[Path], Building]] = {
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
    "mor_rings": _mor_rings,
    "cow_rules": _cow_rules,
    "cow_replaced": _cow_replaced,
    "cow_dying": lambda path: _dying(path, "COPY_ON_WRITE"),
    "mor_dying": lambda path: _dying(path, "MERGE_ON_READ"),
}
"""Tables that were written to, compacted, cleaned and archived at most, by name."""
