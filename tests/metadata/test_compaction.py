"""Compaction of the metadata table beside writers whose clocks differ, and beside views from before it."""

from __future__ import annotations

from pathlib import Path

from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS
from hudimeta.metadata import compaction
from hudimeta.storage import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch, write_rows

COMPACT_ALWAYS = OPTIONS.read({**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"})


class RunningClock:
    """Goes on by some milliseconds whenever it is asked."""

    def __init__(self, start_ms: int, step_ms: int) -> None:
        self.now, self.step = start_ms, step_ms

    def now_ms(self) -> int:
        """The present."""
        self.now += self.step
        return self.now


def test_a_writer_whose_clock_is_behind_writes_on_top_of_the_base_files(tmp_path: Path) -> None:
    """The completion of its delta commit must lie after the compaction, or its files are taken for older than the base."""
    table = ModelledTable(str(tmp_path / "t"))
    ahead, behind = RunningClock(2_000_000_000_000, 5_000), RunningClock(1_900_000_000_000, 1)
    for clock, ids in ((ahead, range(4)), (behind, range(4, 8)), (ahead, range(8, 12)), (behind, range(12, 16))):
        rows = simple_rows(ids, 1)
        write_rows(WriteSession(open_storage(table.path), COMPACT_ALWAYS, clock), Operation.INSERT, rows)
        table.model.write(Operation.INSERT, rows)
        table.model.check(table.read())
        check_all(table.storage)


def test_a_compaction_that_went_on_meanwhile_is_not_run_again(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    inner = tmp_path / "t" / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    (completed,) = inner.glob("*.commit")
    rows = simple_rows(range(4, 8), 2)
    session = table.session()
    # The snapshot of a write that began while the compaction before it had not yet been completed.
    content = completed.read_bytes()
    completed.unlink()
    files = TableFiles.at(session, session.properties.load_timeline(session.storage))
    with session.coordinator.writing(Operation.INSERT, files.snapshot.timeline) as (write, _):
        outcome = write_batch(session, files, write, prepare(files, session, Operation.INSERT, rows), Timings())
        assert files.snapshot.metadata is not None
        completed.write_bytes(content)
        publish(session, files, write, files.snapshot.file_schema, outcome, Timings())
    table.model.write(Operation.INSERT, rows)
    instants = [path.name.split("_")[0] for path in inner.glob("*.commit")]
    assert len(instants) == len(set(instants))
    table.model.check(table.read())
    check_all(table.storage)


def test_beside_others_one_writer_merges() -> None:
    alone = [fresh for fresh in range(40) if compaction.falls_to(fresh, 10, pending=False)]
    assert alone == list(range(10, 40)), "whoever is alone merges as soon as there is enough"
    beside = [fresh for fresh in range(40) if compaction.falls_to(fresh, 10, pending=True)]
    assert beside == [30, *range(35, 40)], "the one whose commit makes it due; all, when that one must have died"
    assert [fresh for fresh in range(6) if compaction.falls_to(fresh, 1, pending=True)] == [3, 4, 5]
