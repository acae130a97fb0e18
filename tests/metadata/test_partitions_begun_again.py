"""Metadata partitions that another writer dropped and built anew, as Apache Hudi does after a restore, at any commit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.index_build import index_source
from hudimeta.errors import HudiError
from hudimeta.indexes.registry import maintainer_for
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.table.properties import update
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.archiving import move_to_history
from hudimeta.types import Operation

METADATA = ".hoodie/metadata"
OPTIONS = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "100",
}
BUILT_ANEW = ("partition_stats", "bloom_filters", "record_index", "column_stats")


def begin_again(table: ModelledTable, partition: str, before_all_time: str, *, leave_out: bool = False) -> None:
    """Drop a metadata partition and build it anew as Apache Hudi does: the folder goes, no instant of the table tells.

    Args:
        table: Whose partition it is.
        partition: Which one.
        before_all_time: The instant at which it begins.
        leave_out: Build it with no record at all.
    """
    session = table.session()
    timeline = session.properties.load_timeline(table.storage)
    metadata = hudimeta.Table(table.path).metadata
    listing = metadata.files()
    shutil.rmtree(Path(table.path, METADATA, partition))
    writer = MetadataWriter(table.storage, session.properties.version, session.times)
    schema = session.snapshot_at(timeline).file_schema
    source = index_source(session, timeline, schema, writer, listing, metadata.index_definitions)
    built = maintainer_for(partition).build(partition, source)
    content = [] if leave_out else [(group, records) for group, records in built.content if len(records)]
    ids = built.file_ids(partition)
    writer.initialise(partition, before_all_time, ids, content, after=metadata.timeline.last_time)


def grown(path: Path, more: dict[str, str] | None = None) -> ModelledTable:
    table = ModelledTable(str(path), {**OPTIONS, **(more or {})})
    for number in range(4):
        table.write(Operation.UPSERT, simple_rows(range(number * 5, number * 5 + 10), number))
    return table


def assert_sound(table: ModelledTable) -> None:
    """Rows, statistics and every index are as the table says, and filters leave the right rows."""
    table.check()
    check_all(table.storage)
    opened = hudimeta.Table(table.path)
    for row in table.model.all_rows()[::6]:
        assert opened.scan(f"id = '{row['id']}' AND x >= {row['x']}").to_table().num_rows == 1


@pytest.mark.rotation(3)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("empty", [False, True], ids=["with records", "empty"])
def test_writes_and_reads_use_no_file_of_before(tmp_path: Path, kind: str, empty: bool) -> None:
    table = grown(tmp_path / "t", {"hoodie.datasource.write.table.type": kind})
    names = BUILT_ANEW[:2] if empty else BUILT_ANEW
    for number, name in enumerate(names):
        begin_again(table, name, f"{90 + number:017d}", leave_out=empty)
    if not empty:
        assert_sound(table)
    table.write(Operation.UPSERT, simple_rows(range(3, 12), 9))
    table.write(Operation.DELETE, simple_rows([4, 17], 10))
    table.check()
    if not empty:
        assert_sound(table)


def test_compactions_take_no_file_of_before(tmp_path: Path) -> None:
    """Neither while commits tell of the new beginning, nor when the instant that did it is archived."""
    more = {"hoodie.metadata.compact.max.delta.commits": "3", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = grown(tmp_path / "t", more)
    for number, name in enumerate(BUILT_ANEW):
        begin_again(table, name, f"{90 + number:017d}")
        table.write(Operation.UPSERT, simple_rows([number, 40 + number], 9 + number))
        assert_sound(table)
    timeline = hudimeta.Table(table.path).metadata.timeline
    move_to_history(table.storage.sub(METADATA), timeline, [i for i in timeline.completed if i.time < "1"])
    for number in range(4):
        table.write(Operation.UPSERT, simple_rows([number, 50 + number], 20 + number))
        assert_sound(table)


def test_a_later_index_hides_no_file_group_of_before(tmp_path: Path) -> None:
    """Apache Hudi lays it out at the first instant that is free, before those of older indexes where they are archived."""
    table = grown(tmp_path / "t", {"hoodie.metadata.record.index.min.filegroup.count": "40"})
    timeline = hudimeta.Table(table.path).metadata.timeline
    move_to_history(table.storage.sub(METADATA), timeline, [i for i in timeline.completed if i.time < "1"])
    begin_again(table, "column_stats", "0" * 17)
    assert_sound(table)
    table.write(Operation.UPSERT, simple_rows(range(3, 30), 9))
    assert_sound(table)


@pytest.mark.parametrize("written", [False, True], ids=["before any write", "after writes"])
def test_a_metadata_table_that_apache_hudi_laid_out_once_more(tmp_path: Path, written: bool) -> None:
    """Over one that a process had not built to its end, or not deleted to its end: the commits of that one are still there."""
    table = grown(tmp_path / "t", {} if written else {"hoodie.metadata.enable": "false"})
    if not written:
        hudimeta.Table(table.path, OPTIONS).metadata.rebuild()
    kept = ("files", "column_stats", "partition_stats")
    for number, name in enumerate(kept):
        begin_again(table, name, f"{90 + number:017d}")
    for name in ("bloom_filters", "record_index"):
        shutil.rmtree(Path(table.path, METADATA, name))
    update(table.storage, {"hoodie.table.metadata.partitions": ",".join(kept)})
    assert_sound(table)
    table.write(Operation.UPSERT, simple_rows(range(3, 12), 9))
    assert_sound(table)


def test_a_lost_file_is_no_new_beginning(tmp_path: Path) -> None:
    table = grown(tmp_path / "t")
    lost = sorted(Path(table.path, METADATA, "partition_stats").glob(".*.log.*"))[-1]
    lost.unlink()
    with pytest.raises(HudiError, match=lost.name.replace(".", r"\.")):
        hudimeta.Table(table.path).metadata.partition_stats({"ts": pa.int64()})
    with pytest.raises(HudiError):
        table.write(Operation.UPSERT, simple_rows([1], 9))


def test_an_index_that_another_built_anew_is_not_proven(tmp_path: Path) -> None:
    """It may lack a row: reads keep every file then, and the keys of a write are sought elsewhere."""
    table = grown(tmp_path / "t")
    assert "record_index" in proven_indexes(hudimeta.Table(table.path).snapshot().metadata)
    begin_again(table, "record_index", f"{90:017d}", leave_out=True)
    opened = hudimeta.Table(table.path)
    assert "record_index" not in proven_indexes(opened.snapshot().metadata)
    assert opened.scan("id = 'k0003'").to_table().num_rows == 1
    report = table.write(Operation.UPSERT, simple_rows([3], 9))
    assert (report.updated, report.inserted) == (1, 0)
    table.check()


def test_an_index_is_not_proven_in_a_table_of_another_version(tmp_path: Path) -> None:
    """What upgrades and downgrades make of an index is not known."""
    table = grown(tmp_path / "t")
    update(table.storage, {"hoodie.table.version": "9"})
    assert not proven_indexes(hudimeta.Table(table.path).snapshot().metadata)
