"""Planned services: putting a plan on the timeline; or all at once: what died goes, what is planned is run, then a new plan."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from hudimeta.commit.liveness import HEARTBEAT_FOLDER
from hudimeta.commit.markers import MARKERS
from hudimeta.commit.planned_runs import is_being_run
from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.errors import IndexDropped
from hudimeta.reports import Report, Reports
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant

__all__ = ["put_plan", "run_plans"]

R = TypeVar("R", bound=Report)


def put_plan(session: WriteSession, action: Action, encoded: Callable[[Snapshot], bytes | None], *, to_run: bool) -> str | None:
    """Plan a service under the lock, and leave the plan on the timeline.

    Args:
        session: The table.
        action: Of the service.
        encoded: The plan for the table as it is; None where there is nothing to do.
        to_run: See `Coordinator.plan`.

    Returns:
        The instant; None where there is nothing to do.
    """
    with session.lock.held():
        snapshot = session.snapshot_now()
        if any(i.action is Action.INDEXING for i in snapshot.timeline.completed):
            # Of what was built before the plan its run is not told: the session may have read the properties before that.
            session.reload()
            snapshot = session.snapshot_at(snapshot.timeline)
        content = encoded(snapshot)
        return None if content is None else session.coordinator.plan(snapshot.timeline, action, content, to_run=to_run)


def run_plans(
    session: WriteSession,
    pending: Callable[[Timeline], Sequence[Instant]],
    schedule: Callable[..., str | None],
    execute: Callable[[WriteSession, str], R],
    *,
    after_a_write: bool,
) -> Reports[R]:
    """Run every plan of a service, then a new one.

    Args:
        session: The table.
        pending: The service's plans on a timeline, oldest first.
        schedule: Plans it, `to_run`; returns the instant, None when there is nothing to do.
        execute: Runs a plan.
        after_a_write: The session's write has just been published, and rolled dead ones back as it began.
    """
    reports: Reports[R] = Reports()
    if not after_a_write:
        _recover(session)
    for instant in _planned(session, pending, schedule, after_a_write):
        reports.append(_executed(session, instant, execute))
    return reports


def _executed(session: WriteSession, instant: str, execute: Callable[[WriteSession, str], R]) -> R:
    """Run a plan, and again where an index was dropped since the table was looked at, as often as after conflicts."""
    for _ in range(session.options.get(keys.CONFLICT_RETRIES)):
        with contextlib.suppress(IndexDropped):
            return execute(session, instant)
        session.reload()
    return execute(session, instant)


def _recover_after(session: WriteSession) -> None:
    """After the next run no later writer would look for what the write or run before it could not remove."""
    if any(session.storage.list(folder) for folder in (MARKERS, HEARTBEAT_FOLDER)):
        _recover(session)


def _recover(session: WriteSession) -> None:
    if session.concurrency.failed_writes == "EAGER":
        session.coordinator.recover()


def _planned(
    session: WriteSession,
    pending: Callable[[Timeline], Sequence[Instant]],
    schedule: Callable[..., str | None],
    after_a_write: bool,
) -> Iterator[str]:
    """What is pending, then, once that has run, a new plan, if there is anything to do.

    What another process runs is none of a writer's business; who asks for the service is told that it is not done.
    """
    timeline, patience = session.properties.load_timeline(session.storage), session.concurrency.patience_s
    after_another = after_a_write
    for planned in pending(timeline):
        if not after_a_write or not is_being_run(session.storage, timeline, planned, patience):
            if after_another:
                _recover_after(session)
            yield planned.time
            after_another = True
    if after_another:  # before the plan is begun, whose own heartbeat would look like something left
        _recover_after(session)
    instant = schedule(session, to_run=True)
    if instant is not None:
        yield instant
