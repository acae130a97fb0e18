"""A table changes its type: no row or moment is lost, what fails leaves nothing in between, nobody writes as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitConflict, ConfigError, HudiError, TableError, UndoError, UnsupportedFeature
from hudimeta.services import compaction
from hudimeta.services.table_type import change_type
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation, TableType
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch
from tests.rotation import in_turn

INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.secondary.column": "ts",
}
UNINDEXED = {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"}
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
PARTS = 16
LOST_LOCK = pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left to a later write")


def written(path: Path, type: str, options: dict[str, str], version: str = "8") -> ModelledTable:
    given = {**options, "hoodie.datasource.write.table.type": type, "hoodie.write.table.version": version}
    table = ModelledTable(str(path), given)
    table.options = OPTIONS.read(options)
    table.write(Operation.UPSERT, simple_rows(range(8), 1))
    table.write(Operation.UPSERT, simple_rows(range(4), 2))
    table.write(Operation.BULK_INSERT, simple_rows(range(20, 24), 3))
    return table


def type_of(table: ModelledTable) -> str:
    return Table(table.path).properties.type.value


@pytest.mark.rotation(2)
@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("options", [INDEXED, UNINDEXED])
@pytest.mark.parametrize("first", [COW, MOR])
def test_there_and_back_again(tmp_path: Path, first: str, options: dict[str, str], version: str) -> None:
    table = written(tmp_path / "t", first, options, version)
    second = MOR if first == COW else COW
    for to in (second, first):
        shown = Table(table.path).change_type(to, dry_run=True)
        assert type_of(table) != to
        assert ("compact" in str(shown)) is (to == COW)
        report = Table(table.path).change_type(to)
        assert f"set the type to {to}" in str(report)
        assert type_of(table) == to
        table.check()
        if to == COW:
            slices = Table(table.path).file_slices().to_pylist()
            by_delta = {i.time for i in Table(table.path).timeline.writes if i.action is Action.DELTA_COMMIT}
            assert not any(one["log_files"] or one["base_instant"] in by_delta for one in slices)
        assert Table(table.path).scan(query_type="incremental", begin="000").count() == table.read().num_rows
        table.write(Operation.UPSERT, simple_rows(range(2, 10), 9))
        table.write(Operation.DELETE, simple_rows([3], 9))
        newest = Table(table.path).timeline.by_completion[-1]
        assert newest.action is (Action.COMMIT if to == COW else Action.DELTA_COMMIT)
        table.check()
        check_all(table.storage)
        if Table(table.path).properties.has_metadata_table:
            Table(table.path).metadata.validate(deep=True).raise_if_differs()
    assert str(Table(table.path).change_type(first)) == f"the table is {first}: nothing to do"


def test_an_empty_table_and_words(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    Table(table.path).change_type("mor")
    assert type_of(table) == MOR
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    table.check()
    with pytest.raises(ConfigError, match="COPY_ON_WRITE, MERGE_ON_READ"):
        Table(table.path).change_type("column")


def test_what_is_pending_is_run_or_refused(tmp_path: Path) -> None:
    table = written(tmp_path / "t", MOR, INDEXED)
    compaction.schedule(table.session())
    Table(table.path).change_type(COW)
    table.check()
    face = Table(table.path, {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"})
    assert face.services.clustering.schedule() is not None
    with pytest.raises(TableError, match="writes or services are pending"):
        face.change_type(MOR)
    assert type_of(table) == COW


def test_what_is_not_run_first_is_refused_before_anything_is_compacted(tmp_path: Path) -> None:
    table = written(tmp_path / "t", MOR, INDEXED)
    compaction.schedule(table.session())
    Table(table.path).services.indexing.schedule("secondary_index", "later", Table(table.path).properties.record_keys[0])
    before = list(Table(table.path).timeline)
    with pytest.raises(TableError, match=r"pending \(indexing "):
        Table(table.path).change_type(COW)
    assert list(Table(table.path).timeline) == before


def test_a_table_of_consistent_hashing_stays(tmp_path: Path) -> None:
    table = written(tmp_path / "t", MOR, UNINDEXED)
    (tmp_path / "t/.hoodie/.bucket_index/consistent_hashing_metadata/p0").mkdir(parents=True)
    with pytest.raises(UnsupportedFeature, match="consistent hashing"):
        Table(table.path).change_type(COW)


@pytest.mark.parametrize("options", [INDEXED, UNINDEXED])
def test_a_write_that_began_before_is_refused_at_its_end(tmp_path: Path, options: dict[str, str]) -> None:
    """Else its log files would lie in a copy-on-write table, where Apache Hudi does not look at them."""
    table = written(tmp_path / "t", MOR, options)
    Table(table.path).compact()
    late = table.session()
    files = TableFiles.now(late)
    assert late.coordinator is not None
    assert late.properties.type is TableType.MERGE_ON_READ
    Table(table.path).change_type(COW)

    def write() -> None:
        with late.coordinator.writing(Operation.UPSERT, files.snapshot.timeline) as (write, _):
            prepared = prepare(files, late, Operation.UPSERT, simple_rows(range(2), 7))
            outcome = write_batch(late, files, write, prepared, Timings())
            publish(late, files, write, prepared.schema, outcome, Timings())

    with pytest.raises(CommitConflict):
        write()
    table.model.check(table.read())
    table.write(Operation.UPSERT, simple_rows(range(2), 7))
    table.model.check(table.read())


@LOST_LOCK
@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
@pytest.mark.parametrize("number", in_turn(range(96), PARTS))
def test_one_that_fails_is_done_by_the_next(tmp_path: Path, number: int, fault: Fault) -> None:
    first, to = (MOR, COW) if number // PARTS % 2 else (COW, MOR)
    table = written(tmp_path / "t", first, INDEXED)
    faulty = FaultyStorage(table.storage, FaultPlan(number // 2 if to == MOR else number, fault))
    try:
        change_type(WriteSession(faulty, OPTIONS.read({}), engine=table.engine), to)
    except HudiError:
        table.check()
        Table(table.path).change_type(to)
    assert type_of(table) == to
    Table(table.path).recover()
    table.check()
    table.write(Operation.UPSERT, simple_rows(range(2, 10), 9))
    table.check()
    Table(table.path).metadata.validate().raise_if_differs()
    check_all(table.storage)


def test_log_files_do_not_come_back_to_a_copy_on_write_table(tmp_path: Path) -> None:
    """Its writers would leave out what they hold."""
    table = written(tmp_path / "t", MOR, UNINDEXED)
    before = Table(table.path).timeline.writes[-1].time
    Table(table.path).change_type(COW)
    with pytest.raises(UndoError, match=r"change_type\('MERGE_ON_READ'\)"):
        Table(table.path).restore(before)
    table.check()
    Table(table.path).change_type(MOR)
    Table(table.path).restore(before)
    table.model.restore(before)
    table.write(Operation.UPSERT, simple_rows([30], 9))
    table.check()


def test_a_table_gets_another_name(tmp_path: Path) -> None:
    table = written(tmp_path / "t", COW, INDEXED, "8")
    face = Table(table.path)
    face.rename(" trips ")
    assert Table(table.path).properties.name == "trips"
    with pytest.raises(ConfigError, match=r"hoodie\.table\.name"):
        face.rename("")
    with pytest.raises(ConfigError, match="trips"):
        table.write(Operation.UPSERT, simple_rows([1], 9))
    Table(table.path).upsert(simple_rows([1], 9))
    table.model.write(Operation.UPSERT, simple_rows([1], 9))
    table.model.check(table.read())
    check_all(table.storage)
