"""Trying a write again after a conflict: other writers may be first a few times before the user hears of it.

So is a write whose lock was lost: nothing of it was published. And one that read the metadata table at a later moment than the
timeline, when a restore or another write had changed both: it looks out of step then, and is not. Where it looks the same
again, it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec

from hudimeta.commit.planned_runs import cancel
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.stream_batches import StreamBatch
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import machine
from hudimeta.errors import ClusteringPending, CommitConflict, CommitError, IndexDropped, LockLost, MetadataOutOfSync, NotFound
from hudimeta.types import Action, Operation

__all__ = ["until_no_conflict", "wait_before_retry"]

_TRIED_AGAIN = (CommitConflict, IndexDropped, LockLost, NotFound)
"""Not found: cleaned since the write was planned."""

P = ParamSpec("P")
_DOUBLINGS = 32
"""After so many every wait is the longest."""


def until_no_conflict(
    write: Callable[Concatenate[WriteSession, P], CommitReport], attempts: int | None = None
) -> Callable[Concatenate[WriteSession, P], CommitReport]:
    """A write that is tried again after conflicts; the last attempt raises. Its report says what the last attempt cost.

    A batch of a stream that is in the table already is not written again. `WriteSession.attempt` numbers the attempts from 1.

    Args:
        write: One attempt: looks at the table, writes and publishes.
        attempts: How many there may be; None for as many as the options of the write say.
    """

    @wraps(write)
    def tried(session: WriteSession, /, *arguments: P.args, **named: P.kwargs) -> CommitReport:
        most = session.options.get(keys.CONFLICT_RETRIES) + 1 if attempts is None else attempts
        lacking = ""
        for session.attempt in range(1, most + 1):
            if (repeated := _repeated_batch(session)) is not None:
                return repeated
            mark = session.request_mark()
            try:
                try:
                    report = write(session, *arguments, **named)
                except ClusteringPending as error:
                    if not _goes_first(session, error.instant):
                        raise
                    session.reload()
                    report = write(session, *arguments, **named)
            except _TRIED_AGAIN as error:
                if session.attempt == most:
                    raise _conflict_of(error, session) from error
                machine.pause(wait_before_retry(session.options, session.attempt, machine.machine().new_id().int / 2**128))
                session.reload()
                continue
            except MetadataOutOfSync as error:
                if str(error) == lacking:
                    raise
                if session.attempt == most:
                    raise _conflict_of(error, session) from error
                lacking = str(error)
                session.reload()
                continue
            if report.completion is None:
                return report
            return replace(report, attempts=session.attempt, requests=session.requests_since(mark))
        raise AssertionError("the last attempt returns or raises")

    return tried


def _goes_first(session: WriteSession, instant: str) -> bool:
    """Take a pending clustering back, where the options of the write say so; False when it may not be, or somebody runs it."""
    options = session.options
    if options.get(keys.CLUSTER_UPDATES) != "SparkAllowUpdateStrategy" or not options.get(keys.CLUSTER_ROLLBACK):
        return False
    try:
        patience = session.concurrency.patience_s
        cancel(session.fenced, session.properties, session.lock, session.times, instant, Action.CLUSTERING, patience)
    except CommitError:
        return False
    session.notes.append(f"the pending clustering {instant} was taken back: this write changes rows that it was to move")
    return True


def _conflict_of(
    error: CommitConflict | LockLost | MetadataOutOfSync | NotFound, session: WriteSession
) -> CommitConflict | LockLost:
    """What the error says at last."""
    if isinstance(error, (CommitConflict, LockLost)):
        return error
    if isinstance(error, NotFound):
        what, winner, did = f"the file {error.path}", "a clean or a rollback", "removed meanwhile"
        lost = "nobody cleans, a file is lost"
    else:
        what, winner = f"metadata partition {error.partition!r}", "another write or a restore"
        did = f"changed meanwhile: it lacks {error.missing}"
        lost = "nobody else writes, the metadata table is out of step"
    cure = f"Nothing was published; run the write again. If it fails so again though {lost}: t.metadata.validate() tells."
    operation = session.options.get(keys.OPERATION) or Operation.UPSERT.value
    return CommitConflict(operation, (), winner, cure, what=what, did=did)


def wait_before_retry(options: Options, retry: int, chance: float) -> float:
    """Seconds to wait before a retry, so that writers which met once do not meet again at once.

    Args:
        options: Of the write.
        retry: 1 for the first.
        chance: At least 0 and less than 1.
    """
    first, longest = options.get(keys.CONFLICT_WAIT_MS), options.get(keys.CONFLICT_MAX_WAIT_MS)
    whole = min(longest, first << min(retry - 1, _DOUBLINGS))
    return whole * (1 + chance) / 2 / 1000


def _repeated_batch(session: WriteSession) -> CommitReport | None:
    """What to answer when the write is a batch of a stream that is in the table already, see `StreamBatch`; else None."""
    batch = StreamBatch.of(session.options)
    if batch is None:
        return None
    operation = session.options.get(keys.OPERATION) or Operation.UPSERT.value
    return batch.report(session.properties.load_timeline(session.storage), operation)
