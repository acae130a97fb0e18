"""Trying a write again after a conflict: other writers may be first a few times before the user hears of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec

from hudimeta.commit.report import CommitReport
from hudimeta.commit.stream_batches import StreamBatch
from hudimeta.config import options as keys
from hudimeta.errors import CommitConflict, NotFound
from hudimeta.types import Operation
from hudimeta.write.session import WriteSession

__all__ = ["until_no_conflict"]

P = ParamSpec("P")

ATTEMPTS = 3
"""How often a write is tried before a conflict with other writers is the user's to know."""


def until_no_conflict(
    write: Callable[Concatenate[WriteSession, P], CommitReport], attempts: int = ATTEMPTS
) -> Callable[Concatenate[WriteSession, P], CommitReport]:
    """A write that is tried again after conflicts; the last attempt raises. Its report says what the last attempt cost.

    A batch of a stream that is in the table already is not written again. `WriteSession.attempt` numbers the attempts from 1.

    Args:
        write: One attempt: looks at the table, writes and publishes.
        attempts: How many there may be.
    """

    @wraps(write)
    def tried(session: WriteSession, /, *arguments: P.args, **named: P.kwargs) -> CommitReport:
        for session.attempt in range(1, attempts + 1):
            if (repeated := _repeated_batch(session)) is not None:
                return repeated
            mark = session.request_mark()
            try:
                report = write(session, *arguments, **named)
            except (CommitConflict, NotFound):  # a file that was planned with may have been replaced and cleaned meanwhile
                if session.attempt == attempts:
                    raise
                session.reload()
                continue
            if report.completion is None:
                return report
            return replace(report, attempts=session.attempt, requests=session.requests_since(mark))
        raise AssertionError("the last attempt returns or raises")

    return tried


def _repeated_batch(session: WriteSession) -> CommitReport | None:
    """What to answer when the write is a batch of a stream that is in the table already, see `StreamBatch`; else None."""
    batch = StreamBatch.of(session.options)
    if batch is None:
        return None
    operation = session.options.get(keys.OPERATION) or Operation.UPSERT.value
    return batch.report(session.properties.load_timeline(session.storage), operation)
