"""Commits of the metadata table whose file is empty, as a killed Apache Hudi leaves it: names tell what they made."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.types import Action, Operation

INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.clean.automatic": "false",
}
pytestmark = pytest.mark.filterwarnings("ignore:.* is empty:hudimeta.config.HudiWarning")


def written(path: Path, kind: str, version: str, writes: int) -> ModelledTable:
    options = {**INDEXED, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    table = ModelledTable(str(path), options)
    for ts in range(writes):
        table.write(Operation.UPSERT, simple_rows(range(ts, ts + 6), ts))
    return table


def inner(table: ModelledTable) -> Timeline:
    return Timeline.load(table.storage.sub(METADATA_ROOT), place=METADATA_ROOT)


def empty(table: ModelledTable, name: str, *, markers: bool = False) -> None:
    """Take the content of a file of the metadata table's timeline, long ago; with markers, as Apache Hudi leaves them then."""
    root = Path(table.path, METADATA_ROOT)
    file, time = root / ".hoodie/timeline" / name, name[:17]
    file.write_bytes(b"")
    os.utime(file, (1, 1))
    for base in root.glob(f"*/*_{time}.hfile") if markers else ():
        marker = root / ".hoodie/.temp" / time / base.parent.name / f"{base.name}.marker.CREATE"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def test_the_delta_commit_of_a_write_goes_that_was_rolled_back_before_it(tmp_path: Path) -> None:
    """Apache Hudi leaves that to its next write of the metadata table: here it has failed, and the table has no write yet."""
    table = written(tmp_path / "t", "COPY_ON_WRITE", "8", 0)
    dead = "20260101000000000"
    TimelineWriter(table.storage).create_requested(dead, Action.COMMIT)
    assert Table(table.path).recover() == (dead,)
    own = TimelineWriter(table.storage.sub(METADATA_ROOT))
    own.create_requested(dead, Action.DELTA_COMMIT)
    own.create_inflight(dead, Action.DELTA_COMMIT)
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    assert not inner(table).pending  # beyond which nothing would ever be archived
    is_sound(table)


def is_sound(table: ModelledTable) -> None:
    table.model.check(table.read())
    Table(table.path).metadata.validate().raise_if_differs()


@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "8")])
def test_the_table_is_read_and_written(tmp_path: Path, kind: str, version: str) -> None:
    """The newest delta commit, one before it, and the compaction on whose base files all rests."""
    table = written(tmp_path / "t", kind, version, 7)
    timeline = inner(table)
    compaction = [i for i in timeline.writes if i.action is Action.COMMIT][-1]
    deltas = [i for i in timeline.writes if i.action is Action.DELTA_COMMIT]
    lost = [compaction, *deltas[-2:]]
    for number, instant in enumerate(lost):
        copy = table.copy(str(tmp_path / str(number)))
        empty(copy, instant.file_name, markers=True)
        copy.model.check(copy.read())
        copy.write(Operation.UPSERT, simple_rows([2, 3, 40], 9))
        Table(copy.path).recover()
        is_sound(copy)
        check_all(copy.storage)
    for instant in lost:
        empty(table, instant.file_name)
    is_sound(table)
    Table(table.path).metadata.rebuild()
    is_sound(table)


def test_upkeep_goes_on(tmp_path: Path) -> None:
    """Compacted, cleaned and archived, though none of the last of these says what it did."""
    table = written(tmp_path / "t", "COPY_ON_WRITE", "8", 24)
    newest = {i.action: i for i in inner(table).completed}
    assert {Action.COMMIT, Action.CLEAN} <= newest.keys()
    for action in (Action.COMMIT, Action.CLEAN):
        empty(table, newest[action].file_name)
    before = Counter(i.action for i in inner(table).completed)
    table.options = table.options.having({"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"})
    for ts in range(30, 34):
        table.write(Operation.UPSERT, simple_rows(range(ts, ts + 3), ts))
    is_sound(table)
    after = Counter(i.action for i in inner(table).completed)
    assert after[Action.CLEAN] > before[Action.CLEAN], (before, after)
    Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    is_sound(table)
