"""What the faces call to merge logs: from plain arguments to a plan or report."""

from __future__ import annotations

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.engine import Engine
from hudimeta.reports import Reports
from hudimeta.services import log_compaction
from hudimeta.storage import Storage

__all__ = ["cancel", "execute", "log_compact", "plan", "schedule"]


def log_compact(storage: Storage, options: Options, engine: Engine | None) -> Reports[CommitReport]:
    """Run what is planned, then plan and run; see `hudimeta.Table.log_compact`."""
    return log_compaction.log_compact(WriteSession(storage, options, engine=engine))


def plan(storage: Storage, options: Options, engine: Engine | None) -> log_compaction.LogCompactionPlan:
    """What a log compaction would merge; nothing is written."""
    session = WriteSession(storage, options, engine=engine)
    return log_compaction.plan(session, session.snapshot_now())


def schedule(storage: Storage, options: Options, engine: Engine | None) -> str | None:
    """Plan a log compaction and leave it to be run."""
    return log_compaction.schedule(WriteSession(storage, options, engine=engine))


def execute(storage: Storage, options: Options, engine: Engine | None, instant: str) -> CommitReport:
    """Run a log compaction that is on the timeline."""
    return log_compaction.execute(WriteSession(storage, options, engine=engine), instant)


def cancel(storage: Storage, options: Options, instant: str) -> None:
    """Take a log compaction off the timeline."""
    log_compaction.cancel(WriteSession(storage, options), instant)
