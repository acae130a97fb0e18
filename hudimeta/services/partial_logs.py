"""Compacting partial updates before the columns of a table are altered for the first time.

From an ALTER on, commits carry a history of the columns. Readers of Apache Hudi that go by it leave out each row that an
earlier log block changes in some columns alone. So the file slices with blocks of that kind become base files first.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.commit.session import WriteSession
from hudimeta.errors import TableError
from hudimeta.services import compaction
from hudimeta.services.plan_runs import put_plan
from hudimeta.slices.log_damage import LogFileRules
from hudimeta.slices.slice_logs import LogFiles
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage.at_once import engine_of_files
from hudimeta.types import Action, FileGroupId, TableType

__all__ = ["compact_partial_logs"]


def compact_partial_logs(session: WriteSession, snapshot: Snapshot) -> bool:
    """Compact the file slices whose logs hold partial updates, if the next commit begins the history of the columns.

    Args:
        session: The table; its notes say what was compacted.
        snapshot: As it is now.

    Returns:
        Whether anything was.

    Raises:
        TableError: Such a slice is in the plan of a clustering or a log compaction.
    """
    if snapshot.history is not None or session.properties.type is not TableType.MERGE_ON_READ or snapshot.logs_name_base:
        return False  # tables of version 6 have no such blocks
    if not _slices_with_partial_logs(session, snapshot):
        return False
    timeline = session.properties.load_timeline(session.storage)
    done = [compaction.execute(session, planned.time) for planned in compaction.pending(timeline)]

    def encoded(now: Snapshot) -> bytes | None:
        slices = _slices_with_partial_logs(session, now)
        _refuse_planned(now, slices)
        return compaction.CompactionPlan(tuple(slices)).encode() if slices else None

    instant = put_plan(session, Action.COMPACTION, encoded, to_run=True)
    done += [compaction.execute(session, instant)] if instant is not None else []
    if not done:  # others compacted them meanwhile
        return False
    why = "logs of partial updates were compacted first: Apache Hudi leaves their rows out once columns have a history"
    session.notes.append(f"{why} ({', '.join(one.instant for one in done)})")
    return True


def _slices_with_partial_logs(session: WriteSession, snapshot: Snapshot) -> list[FileSlice]:
    """One task a file slice with logs; of large log files only the headers of blocks are read."""
    slices = [one for one in slices_of(snapshot.slices()) if one.log_files]
    engine = engine_of_files(session.engine, session.storage, [sum(one.log_sizes) for one in slices])
    rules = LogFileRules.of(session.storage, session.properties)
    partial = engine.map(_HoldsPartialUpdates(rules), slices)
    return [one for one, found in zip(slices, partial, strict=True) if found]


@dataclass(frozen=True)
class _HoldsPartialUpdates:
    """Looks into the logs of a file slice; a value, so that it can run in another process."""

    rules: LogFileRules

    def __call__(self, file_slice: FileSlice) -> bool:
        blocks = (block for log in LogFiles(self.rules, 0).of(file_slice) for block in log.scan.blocks)
        return any(block.is_partial for block in blocks)


def _refuse_planned(snapshot: Snapshot, slices: list[FileSlice]) -> None:
    taken = groups_in_plans(snapshot.timeline)
    group = next((one for one in slices if FileGroupId(one.partition_path, one.file_id) in taken), None)
    if group is not None:
        raise TableError(
            f"file group {group.file_id} has partial updates in its logs, and a planned service takes it: they cannot be "
            "compacted before columns are altered, and Apache Hudi would leave their rows out",
            "Run what is planned (`maintain`, `cluster`, `log_compact`), and try again.",
        )
