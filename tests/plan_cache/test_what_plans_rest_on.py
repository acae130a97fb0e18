"""Whatever becomes of what a kept plan rests on, rows with kept plans are those without, and the report says what was used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.config import HudiWarning
from hudimeta.errors import StorageError
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.timeline.clean_record import CleanPlan, encode_plan
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import write_rows
from tests.plan_cache.test_same_plans import keeping

Act: TypeAlias = Callable[[ModelledTable], object]

KEPT = "planned from a kept plan"
SINCE = "planned from a kept plan and {} commits that came since"
ANEW = "no kept plan: the metadata table was compacted, or laid out anew"
WITHOUT = "no kept plan: they rest on the metadata table, which is not asked"
EARLIER = "no kept plan: they are of the newest moment"
OPTIONS = {
    **SIMPLE_OPTIONS,
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.compact.max.delta.commits": "40",
    "hoodie.table.services.enabled": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def a_table(path: Path, type: str = "MERGE_ON_READ", **more: str) -> ModelledTable:
    """Three file groups in two partitions, with logs where there are any."""
    table = ModelledTable(str(path), {**OPTIONS, "hoodie.datasource.write.table.type": type, **more})
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    table.write(Operation.INSERT, simple_rows([7], 2))
    table.write(Operation.UPSERT, simple_rows(range(2), 3))
    return table


def face(table: ModelledTable) -> Table:
    """The table, whatever its name, version and type are by now."""
    settled = ("hoodie.table.name", "hoodie.write.table.version", "hoodie.datasource.write.table.type")
    return Table(table.path, {name: value for name, value in table.options.given.items() if name not in settled})


def told(path: str, options: dict[str, str], **request: Any) -> str:
    """The first word of a read's report on kept plans, once its rows were found to be those of a read without."""
    found, plain = Table(path, options).scan(**request), Table(path).scan(**request)
    assert sorted(map(repr, found.to_table().to_pylist())) == sorted(map(repr, plain.to_table().to_pylist()))
    return next((note for note in found.report.notes if "plan" in note), "")


def other_version(table: ModelledTable) -> None:
    _ = face(table).upgrade(9) if face(table).version == 8 else face(table).downgrade(8)


def upsert(table: ModelledTable) -> None:
    face(table).upsert(simple_rows(range(1, 4), 9))


def roll_back(table: ModelledTable) -> None:
    face(table).rollback(face(table).timeline.writes[-1].time)


def dies(table: ModelledTable) -> None:
    """A write that is left pending, its files written."""
    rows, counted = simple_rows(range(3), 8), FaultPlan(None, Fault.ERROR_BEFORE)
    copy = table.copy(f"{table.path}-copy")
    write_rows(copy.session(FaultyStorage(copy.storage, counted)), Operation.UPSERT, rows)
    last = max(at for at, call in enumerate(counted.calls) if call.startswith("put_if_absent .hoodie/timeline"))
    dead = FaultyStorage(table.storage, FaultPlan(last, Fault.ERROR_BEFORE, 99))
    with pytest.warns(HudiWarning, match="is left to the next writer"), pytest.raises(StorageError):
        write_rows(table.session(dead), Operation.UPSERT, rows)


def run_pending(table: ModelledTable) -> None:
    services, (pending,) = face(table).services, face(table).timeline.pending
    steps = services.clustering if pending.action is Action.CLUSTERING else services.compaction
    steps.execute(pending.time)


def foreign_clean(table: ModelledTable) -> None:
    """A clean that another writer planned wrongly: of a base file that counts."""
    counts = face(table).snapshot().slices().to_pylist()[0]
    instant = str(int(face(table).timeline.last_time) + 1)
    plan = CleanPlan("KEEP_LATEST_COMMITS", None, {counts["partition_path"]: (counts["base_file"],)}, (), "")
    at = Path(table.path) / ".hoodie/timeline" / f"{instant}.clean.requested"
    at.write_bytes(encode_plan(table.path, plan))
    face(table).services.cleaning.execute(instant)


def written(operation: Operation, *ids: int) -> Act:
    return lambda table: table.write(operation, simple_rows(ids, 9))


def restore(table: ModelledTable) -> None:
    face(table).restore(max(face(table).timeline.savepoints))


LACKS = "no kept plan: the metadata table lacks a delta commit that was there"
HISTORIES: dict[str, tuple[list[Act], list[Act], str]] = {
    "a clean of a file that counts": (
        [],
        [foreign_clean],
        "no kept plan: what came since is not plain: a clean that removed a file of a newest slice",
    ),
    "a clean": ([], [lambda table: face(table).compact(), upsert, lambda table: face(table).clean()], SINCE.format(3)),
    "insert_overwrite": ([], [written(Operation.INSERT_OVERWRITE, 1, 3)], SINCE.format(1)),
    "insert_overwrite_table": ([], [written(Operation.INSERT_OVERWRITE_TABLE, 1)], SINCE.format(1)),
    "delete_partition": ([], [lambda table: face(table).delete_partition("p1")], SINCE.format(1)),
    "a compaction that was pending": (
        [lambda table: face(table).services.compaction.schedule()],
        [upsert, run_pending],
        SINCE.format(2),
    ),
    "a clustering that was pending": (
        [lambda table: face(table).services.clustering.schedule()],
        [run_pending],
        SINCE.format(1),
    ),
    "a clustering that was pending and is cancelled": (
        [lambda table: face(table).services.clustering.schedule()],
        [lambda table: face(table).services.clustering.cancel(face(table).timeline.pending[0].time)],
        KEPT,
    ),
    "a clustering that is rolled back": ([lambda table: face(table).cluster()], [roll_back], LACKS),
    "a write that is rolled back": ([], [roll_back], LACKS),
    "a delete_partition that is rolled back": ([lambda table: face(table).delete_partition("p1")], [roll_back], LACKS),
    "a write that came since and is rolled back": ([], [upsert, roll_back], KEPT),
    "a write that died": ([dies], [lambda table: face(table).recover()], KEPT),
    "a restore to before": ([lambda table: face(table).savepoint(face(table).timeline.writes[1].time)], [restore], LACKS),
    "a restore to then": ([lambda table: face(table).savepoint()], [upsert, restore], KEPT),
    "a savepoint": ([], [lambda table: face(table).savepoint()], KEPT),
    "a metadata table that was built anew": ([], [lambda table: face(table).indexes.rebuild()], ANEW),
    "a metadata table that was deleted and made": (
        [],
        [lambda table: face(table).metadata.delete(), lambda table: face(table).metadata.create()],
        ANEW,
    ),
    "no metadata table": ([], [lambda table: face(table).metadata.delete()], WITHOUT),
    "reads without it": ([], [lambda table: face(table).metadata.set(enable=False)], WITHOUT),
    "another name": ([], [lambda table: face(table).services.rename("other")], KEPT),
    "the other version": ([], [other_version], "no kept plan: the table has another version"),
    "the other type": ([], [lambda table: face(table).services.change_type("COW")], SINCE.format(2)),
    "other columns": (
        [],
        [lambda table: face(table).alter(add={"y": pa.int32()}), lambda table: face(table).alter(drop="y")],
        SINCE.format(2),
    ),
}


@pytest.fixture(scope="module", params=["8", "9"])
def written_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelledTable:
    return a_table(tmp_path_factory.mktemp("once") / "t", **{"hoodie.write.table.version": request.param})


@pytest.mark.rotation(4)
@pytest.mark.parametrize("what", HISTORIES)
def test_rows_are_those_without(tmp_path: Path, what: str, written_once: ModelledTable) -> None:
    before, acts, expected = HISTORIES[what]
    table = written_once.copy(str(tmp_path / "t"))
    for act in before:
        act(table)
    options = keeping(tmp_path / "plans")
    told(table.path, options)
    for act in acts:
        act(table)
    assert told(table.path, options) == expected
    told(table.path, options)
    upsert(table)
    told(table.path, options)
    told(table.path, options)


def after_archival(path: Path, type: str) -> ModelledTable:
    """Writes of which the first is savepointed and the next are archived; of the last there are active ones."""
    options = {"hoodie.metadata.compact.max.delta.commits": "3", "hoodie.archive.beyond.savepoint": "true"}
    table = ModelledTable(str(path), {**OPTIONS, **options, "hoodie.datasource.write.table.type": type})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    face(table).savepoint()
    for ts in range(2, 7):
        table.write(Operation.INSERT, simple_rows(range(ts * 10, ts * 10 + 3), ts))
    return table


def test_a_plan_lasts_when_its_writes_are_archived(tmp_path: Path) -> None:
    table, options = after_archival(tmp_path / "t", "COPY_ON_WRITE"), keeping(tmp_path / "plans")
    told(table.path, options)
    assert face(table).archive().archived
    assert told(table.path, options) == KEPT


def test_writes_stop_counting_with_a_savepoint(tmp_path: Path) -> None:
    """Apache Hudi takes files for committed that are older than all writes but savepointed ones: without it, fewer are."""
    table, options = after_archival(tmp_path / "t", "COPY_ON_WRITE"), keeping(tmp_path / "plans")
    face(table).archive()
    told(table.path, options)
    assert told(table.path, options) == KEPT
    for savepoint in (tmp_path / "t/.hoodie/timeline").glob("*.savepoint*"):
        savepoint.unlink()
    assert "does not count any more" in told(table.path, options)
    assert Table(table.path).scan().count() < 19, "else this test shows nothing"


def test_logs_of_archived_writes(tmp_path: Path) -> None:
    table, options = after_archival(tmp_path / "t", "MERGE_ON_READ"), keeping(tmp_path / "plans")
    for ts in range(7, 12):
        face(table).upsert(simple_rows(range(4), ts))
    told(table.path, options)
    assert face(table).archive().archived
    assert told(table.path, options).startswith("no kept plan: log files of the archived write at")


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_queries_of_every_kind(tmp_path: Path, type: str) -> None:
    table = a_table(tmp_path / "t", type, **{"hoodie.table.cdc.enabled": "true"})
    options, writes = keeping(tmp_path / "plans"), face(table).timeline.writes
    told(table.path, options)
    for step in range(2):
        assert told(table.path, options, query_type="read_optimized") == (SINCE.format(1) if step else KEPT)
        told(table.path, options, query_type="incremental", begin=writes[0].completed_at)
        told(table.path, options, query_type="incremental", begin=writes[0].completed_at, end=writes[1].completed_at)
        told(table.path, options, query_type="cdc", begin=writes[0].completed_at)
        assert told(table.path, options, as_of=writes[1].time) == EARLIER
        newest = face(table).timeline.writes[-1].time
        assert told(table.path, options, as_of=newest) == KEPT, "as the plain door of Spark reads"
        upsert(table)
