"""Moments between cleans that keep file versions: read whole, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.errors import TableError
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import SAVEPOINT_METADATA
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.timeline.archiving import move_to_history
from hudimeta.types import Action, Operation


def written(path: Path, writes: int) -> ModelledTable:
    """A table of two partitions whose every row was written `writes` times."""
    table = ModelledTable(str(path), dict(SIMPLE_OPTIONS))
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(10), ts))
    return table


def test_moments_whose_file_versions_are_gone_are_refused(tmp_path: Path) -> None:
    """Such a cleaner names no earliest commit, and a moment without its files must not look like an empty table."""
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"}
    table = written(tmp_path / "t", 3)
    table.write(Operation.UPSERT, simple_rows([0], 4))  # one file group alone has a fourth version
    Table(table.path, options).clean()
    first, second, third, fourth = sorted(table.model.past)
    for moment in (first, second):
        with pytest.raises(TableError, match="cleaning removed"):
            table.read(moment)
    for moment in (third, fourth):
        table.model.check(table.read(moment), moment)


def test_moments_after_a_replacement_stay_readable_once_its_file_groups_are_gone(tmp_path: Path) -> None:
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = written(tmp_path / "t", 1)
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(20, 24), 2))
    Table(table.path, options).clean()
    table.write(Operation.INSERT, simple_rows([30], 3))
    first, *later = sorted(table.model.past)
    with pytest.raises(TableError, match="cleaning removed"):
        table.read(first)
    for moment in later:
        table.model.check(table.read(moment), moment)


def archived(table: ModelledTable, clean: dict[str, str]) -> list[str]:
    """Clean, write more, and archive the clean and the writes before it; returns the moments written before the cleaning."""
    moments = sorted(table.model.past)
    Table(table.path, clean).clean()
    for ts in range(50, 56):
        table.write(Operation.UPSERT, simple_rows(range(10), ts))
    Table(table.path, {**clean, "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}).archive()
    timeline = Table(table.path).timeline
    assert (timeline.first_active_write or "") > moments[-1]
    # Ours keeps the newest clean, Apache Hudi's archival takes it along.
    move_to_history(table.storage, timeline, [instant for instant in timeline.completed if instant.action is Action.CLEAN])
    return moments


def test_moments_are_refused_when_the_clean_is_archived_too(tmp_path: Path) -> None:
    """Nothing on the active timeline speaks of cleaning then, and the moment looked like an empty table."""
    table = written(tmp_path / "t", 5)
    *gone, kept, last = archived(table, {"hoodie.clean.commits.retained": "2"})
    for moment in gone:
        with pytest.raises(TableError, match=f"can be read is {kept}"):
            table.read(moment)
    for moment in (kept, last):
        table.model.check(table.read(moment), moment)


def test_file_groups_that_were_replaced_and_archived_are_missed_before_their_replacement(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 2)
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(20, 24), 3))
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    first, second, replaced = archived(table, options)
    for moment in (first, second):
        with pytest.raises(TableError, match="had then"):
            table.read(moment)
    table.model.check(table.read(replaced), replaced)


@pytest.mark.parametrize("version", ["8", "9"])
def test_moments_stay_readable_whose_replacement_is_archived_and_its_clean_is_not(tmp_path: Path, version: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.write.table.version": version})
    table.write(Operation.UPSERT, simple_rows(range(10), 1))
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(20, 24), 2))
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "6"}
    Table(table.path, options).clean()
    for ts in range(3, 7):
        table.write(Operation.UPSERT, simple_rows(range(20, 30), ts))
    first, *_ = sorted(table.model.past)
    Table(table.path, {**options, "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}).archive()
    timeline = Table(table.path).timeline
    assert [one.action for one in timeline.completed].count(Action.CLEAN) == 1
    assert Action.REPLACE_COMMIT not in {one.action for one in timeline.completed}
    for moment in sorted(table.model.past):
        if moment == first:
            with pytest.raises(TableError, match="had then"):
                table.read(moment)
        else:
            table.model.check(table.read(moment), moment)


def test_what_an_earlier_clean_by_another_policy_removed_is_missed(tmp_path: Path) -> None:
    """The newest clean names an instant from which on it keeps everything; that of before kept two versions of each file."""
    table = written(tmp_path / "t", 1)
    for number, ts in ((1, 2), (1, 3), (0, 4), (0, 5), (0, 6), (0, 7)):
        table.write(Operation.UPSERT, simple_rows([number], ts))
    Table(table.path, {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"}).clean()
    table.write(Operation.UPSERT, simple_rows([0], 8))
    Table(table.path, {"hoodie.clean.commits.retained": "4"}).clean()
    *before, fifth, sixth, seventh, eighth = sorted(table.model.past)
    for moment in before:
        with pytest.raises(TableError, match=f"can be read is {fifth}"):
            table.read(moment)
    with pytest.raises(TableError, match="had then"):
        table.read(fifth)
    for moment in (sixth, seventh, eighth):
        table.model.check(table.read(moment), moment)


def savepoint(table: ModelledTable, moment: str) -> None:
    """Save what the table showed at a moment, as Apache Hudi's savepoints do."""
    slices = Table(table.path).file_slices(as_of=moment)
    saved: dict[str, dict[str, list[str]]] = {}
    for partition, base in zip(slices["partition_path"].to_pylist(), slices["base_file"].to_pylist(), strict=True):
        saved.setdefault(partition, {"partitionPath": partition, "savepointDataFile": []})["savepointDataFile"].append(base)
    record = {"savepointedBy": "me", "savepointedAt": 1, "comments": "", "partitionMetadata": saved, "version": 1}
    name = f".hoodie/timeline/{moment}_{moment}.savepoint"
    table.storage.put(name, encode_container(SAVEPOINT_METADATA, [record], b"0123456789abcdef"))


def test_a_savepoint_stays_readable_before_the_earliest_commit_that_cleaning_keeps(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 5)
    first, second, *_ = sorted(table.model.past)
    savepoint(table, second)
    Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    with pytest.raises(TableError, match="cleaning removed"):
        table.read(first)
    table.model.check(table.read(second), second)


def test_a_slice_whose_base_file_alone_a_savepoint_spared_is_refused_with_the_logs_that_are_gone(tmp_path: Path) -> None:
    """Without them the rows that they changed would come back as they were before."""
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    pinned = table.write(Operation.INSERT, simple_rows(range(10), 1)).instant
    services = Table(table.path, options)
    services.savepoint(pinned)
    table.write(Operation.DELETE, simple_rows([0, 2], 1))
    later = table.write(Operation.UPSERT, simple_rows(range(1, 10, 2), 2)).instant
    services.compact()
    assert services.clean().deleted
    table.model.check(table.read(pinned), pinned)
    table.model.check(table.read())
    with pytest.raises(TableError, match="cleaning removed"):
        table.read(sorted(table.model.past)[1])
    with pytest.raises(TableError, match="cleaning removed"):
        Table(table.path).scan(as_of=later).to_table()
