"""A metadata table is made anew beside the old one, or in its place: what was wrong is right, and no moment is untrue."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.errors import CorruptFileError, StorageError, TableError
from hudimeta.services.indexing import rebuild
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.conftest import Unpack
from tests.rotation import in_turn

ALL = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
}


class Death(FaultPlan):
    """Every mutating call fails from one on, as if the process were gone."""

    def __init__(self, at: int) -> None:
        super().__init__(None, Fault.ERROR_BEFORE)
        self._end = at

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        if len(self.calls) >= self._end and ".locks" not in name:
            raise StorageError(name, "the process is dead")
        return super().around(name, act)


def _table(folder: Path) -> ModelledTable:
    table = ModelledTable(str(folder / "t"), ALL)
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    metadata = hudimeta.Table(table.path).metadata
    metadata.create_index("by_ts", "secondary_index", "ts")
    metadata.create_index("up", "column_stats", "id", expression="upper")
    table.write(Operation.UPSERT, simple_rows(range(0, 40, 3), 3))
    return table


def _holds(table: ModelledTable) -> None:
    check_all(table.storage)
    report = hudimeta.Table(table.path).metadata.validate()
    assert report.holds, report
    table.model.check(table.read())


def test_the_recorded_table_with_stale_indexes_becomes_right(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("mdt_all_v9", fresh=True))
    rows = table.scan().to_table().num_rows
    assert not table.metadata.validate().holds
    report = table.metadata.rebuild()
    assert report.beside
    assert "record_index rebuilt" in str(report)
    assert table.metadata.validate().holds
    assert table.scan().to_table().num_rows == rows == 25
    scan = table.scan(where="id = 'ord-0001'")
    assert scan.to_table().num_rows == 1
    assert not any("nothing proves" in note for note in scan.report.notes), scan.report


@pytest.mark.parametrize("name", ["mdt_all_v8", "big_mor", "expr_index_v9"])
def test_recorded_tables_are_rebuilt_and_go_on(rich_table: Unpack, name: str) -> None:
    table = hudimeta.Table(rich_table(name, fresh=True))
    before = table.scan().to_table().num_rows
    report = table.metadata.rebuild()
    assert report.beside
    assert {part.partition for part in report.parts} == set(table.metadata.ready)
    assert table.metadata.validate().holds
    assert table.scan().to_table().num_rows == before


def test_indexes_stay_and_are_kept_after_a_rebuild(tmp_path: Path) -> None:
    table = _table(tmp_path)
    handle = hudimeta.Table(table.path, ALL)
    ready = handle.metadata.ready
    for step in range(3):
        report = handle.metadata.rebuild()
        assert report.beside
        assert handle.metadata.ready == ready
        _holds(table)
        table.write(Operation.UPSERT, simple_rows(range(step, 50, 4), 10 + step))
        _holds(table)
        handle.compact()
        _holds(table)


@pytest.mark.parametrize("lost", [".hoodie/metadata", ".hoodie/metadata/.hoodie", ".hoodie/metadata/record_index"])
def test_what_was_lost_is_made_anew(tmp_path: Path, lost: str) -> None:
    table = _table(tmp_path)
    ready = hudimeta.Table(table.path).metadata.ready
    shutil.rmtree(Path(table.path, lost))
    report = hudimeta.Table(table.path, ALL).metadata.rebuild()
    assert not report.beside
    assert hudimeta.Table(table.path).metadata.ready == ready
    _holds(table)
    table.write(Operation.UPSERT, simple_rows(range(0, 50, 4), 10))
    _holds(table)


def test_a_table_without_a_metadata_table_gets_the_indexes_of_the_options(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"})
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    handle = hudimeta.Table(table.path, {"hoodie.metadata.record.index.enable": "true"})
    handle.metadata.rebuild()
    assert handle.metadata.ready == ("column_stats", "files", "partition_stats", "record_index")
    _holds(table)


def test_writes_under_way_are_not_cut_off(tmp_path: Path) -> None:
    table = _table(tmp_path)
    session = table.session()
    timeline = session.properties.load_timeline(session.storage)
    with session.coordinator.writing(Operation.UPSERT, timeline), pytest.raises(TableError, match="under way"):
        hudimeta.Table(table.path).metadata.rebuild()


def test_a_planned_compaction_is_run_first(tmp_path: Path) -> None:
    """A rebuild ends in a compaction of the metadata table, after which Apache Hudi takes nothing back."""
    table = _table(tmp_path)
    table.write(Operation.UPSERT, simple_rows(range(4), 50))
    assert hudimeta.Table(table.path).schedule_compaction() is not None
    with pytest.raises(TableError, match=r"compaction \d+.*t\.compact\(\)"):
        hudimeta.Table(table.path).metadata.rebuild()
    hudimeta.Table(table.path).compact()
    hudimeta.Table(table.path).metadata.rebuild()
    _holds(table)


def test_a_death_at_any_request_leaves_a_true_table(tmp_path: Path) -> None:
    """While it is made in the place of one that is lost; the other way is among the crash tests."""
    deaths, template = 0, _table(tmp_path / "template")
    shutil.rmtree(Path(template.path, ".hoodie/metadata/.hoodie"))
    for number in in_turn(range(0, 200, 6), 2):
        table = template.copy(str(tmp_path / str(number)))
        try:
            rebuild(table.session(FaultyStorage(table.storage, Death(number))))
        except StorageError:
            deaths += 1
        else:
            break
        table.model.check(table.read())
        if hudimeta.Table(table.path).properties.has_metadata_table:
            continue  # nothing was done yet to the metadata table that is lost
        table.write(Operation.UPSERT, simple_rows(range(4), 50))
        hudimeta.Table(table.path).recover()
        _holds(table)
    assert deaths > 5


@pytest.mark.parametrize("beside", [True, False])
def test_files_without_a_column_hold_nulls_of_it(tmp_path: Path, beside: bool) -> None:
    """What is told of a partition holds of the rows of all its files."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0"})
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    more = simple_rows(range(10, 14), 2)
    hudimeta.Table(table.path, {"hoodie.parquet.small.file.limit": "0"}).insert(
        more.append_column("extra", pa.array([1, 2, 3, 4], pa.int64()))
    )
    if not beside:
        shutil.rmtree(tmp_path / "t/.hoodie/metadata")
    hudimeta.Table(table.path).metadata.rebuild()
    here = hudimeta.Table(table.path)
    assert here.metadata.validate().holds
    assert here.scan("extra IS NULL").count() == 6
    assert here.scan("extra > 2").count() == 2


def test_a_table_without_a_write_is_built_anew_in_its_place(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", partition_by="part")
    names = table.properties.metadata_partitions
    assert not table.metadata.rebuild().beside
    table.metadata.rebuild()
    assert table.properties.metadata_partitions == names
    table.insert(simple_rows(range(4), 1))
    assert table.metadata.rebuild().beside
    assert hudimeta.Table(tmp_path / "t").scan("id = 'k0001'").count() == 1


def _without_newest_file(table: ModelledTable) -> tuple[Path, bytes]:
    """Remove the last file of the first slice; where it was, and what it held."""
    slice = hudimeta.Table(table.path).file_slices().to_pylist()[0]
    file = Path(table.path, slice["partition_path"], (slice["log_files"] or [slice["base_file"]])[-1])
    content = file.read_bytes()
    file.unlink()
    return file, content


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_metadata_table_is_not_made_over_lost_files(type: str, tmp_path: Path) -> None:
    bare = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": type, "hoodie.metadata.enable": "false"}
    table = ModelledTable(str(tmp_path / "t"), bare)
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    table.write(Operation.UPSERT, simple_rows(range(8), 2))
    file, content = _without_newest_file(table)
    for verb in (lambda t: t.metadata.create(), lambda t: t.upsert(simple_rows(range(3), 3))):
        with pytest.raises(CorruptFileError, match=f"{file.name} is damaged at byte 0: expected the file that a commit names"):
            verb(hudimeta.Table(table.path))
    file.write_bytes(content)
    table.check()
    hudimeta.Table(table.path).metadata.create()
    table.check()


@pytest.mark.parametrize("beside", [True, False])
def test_a_rebuild_tells_of_lost_files(beside: bool, tmp_path: Path) -> None:
    table = _table(tmp_path)
    file, content = _without_newest_file(table)
    lost = file.relative_to(table.path).as_posix()
    if not beside:
        shutil.rmtree(tmp_path / "t/.hoodie/metadata/column_stats")
    with pytest.warns(HudiWarning, match=f"storage lacks files that commits name, so their rows are gone: {lost}"):
        report = hudimeta.Table(table.path).metadata.rebuild()
    assert (report.lost, report.beside) == ((lost,), beside)
    assert f"lost: {lost}" in str(report)
    file.write_bytes(content)
    assert not hudimeta.Table(table.path).metadata.rebuild().lost
    _holds(table)
