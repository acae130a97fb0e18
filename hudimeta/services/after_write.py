"""What a writer does for its table after it has published: compaction of slices and of logs, clustering, expiry, cleaning,
archival, each when due.

What options want beside writers (`hoodie.clustering.async.enabled` and its likes) runs in a thread of this process instead.

The write is visible by then, so whatever fails here is a warning and never an error: an error would make the caller write the
same rows again. The next write tries what failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.engine.machine import machine
from hudimeta.services import archival, clean, clustering, compaction, log_compaction, ttl
from hudimeta.services.in_thread import FAILED, run_beside, warn_of
from hudimeta.storage import open_storage
from hudimeta.timeline import Timeline
from hudimeta.types import TableType

__all__ = ["run_due_services"]

_AFTER = "the write is published, but the services after it failed"

_OF_LOGS = (keys.COMPACT_INLINE, keys.COMPACT_SCHEDULE, keys.COMPACT_ASYNC, keys.LOG_COMPACT_INLINE)

_Service = Callable[[WriteSession], list[str]]
"""Runs a service and says what it did, a line each; nothing where it found nothing to do."""


def run_due_services(session: WriteSession, report: CommitReport) -> CommitReport:
    """Run the services that are due; the report with a note for each.

    Args:
        session: Of the write.
        report: Of the write, as published.
    """
    timeline = session.coordinator.published_on
    if timeline is None or report.completion is None or not session.options.get(keys.SERVICES):
        return report
    notes = _of_no_effect(session)

    def fresh() -> WriteSession:
        return WriteSession(session.storage, session.options, engine=session.engine)

    try:
        notes += _all_run(_due(session, timeline), fresh, _AFTER)
        if any(True for _ in _due(session, timeline, beside=True)):
            notes.append(_go_on_beside(session))
    except Exception as error:  # whatever it is, the rows are in the table
        warn_of(error, _AFTER)
    return replace(report, notes=(*report.notes, *notes))


def _of_no_effect(session: WriteSession) -> list[str]:
    """What options ask for in vain: it would be silent otherwise."""
    if session.properties.type is TableType.MERGE_ON_READ:
        return []
    asked = [option for option in _OF_LOGS if session.options.is_set(option) and session.options.get(option)]
    return [f"{option.key} has no effect: the table is copy on write, and has no logs" for option in asked]


def _all_run(due: Iterable[_Service], fresh: Callable[[], WriteSession], failed: str) -> Iterator[str]:
    """Run services one after the other and hand on what they say: what one fails at keeps no other from its work."""
    for run in due:
        try:
            yield from run(fresh())
        except Exception as error:  # an option that does not fit the table would fail after every write
            warn_of(error, failed)


def _go_on_beside(session: WriteSession) -> str:
    """Run what is due in the thread of the table, on storage of its own: requests are counted for who makes them."""
    root, options, engine = session.storage.root, session.options, session.engine

    def work() -> None:
        def fresh() -> WriteSession:
            return WriteSession(open_storage(root, options.texts), options, engine=engine)

        looking = fresh()
        due = list(_due(looking, looking.properties.load_timeline(looking.storage), beside=True))
        for _ in _all_run(due, fresh, FAILED):
            pass

    if not machine().threads:
        work()
        return "ran the services that were to run in a thread, where there is none"
    run_beside(root, work)
    return "services go on in a thread: table.services.wait() waits for them"


def _due(session: WriteSession, timeline: Timeline, *, beside: bool = False) -> Iterator[_Service]:
    """The services that are due on a timeline: that of the publication, so that asking costs no listing.

    It lacks the write itself, which delays cleaning and archival by one write; a compaction counts exactly.

    Args:
        session: Of the write.
        timeline: See above.
        beside: Those that options want in a thread, instead of those that the write waits for. What is wanted both ways is not.
    """
    options = session.options
    runs, plans = options.get(keys.COMPACT_INLINE), options.get(keys.COMPACT_SCHEDULE)
    if beside:
        runs, plans = options.get(keys.COMPACT_ASYNC) and not runs, False
    if session.properties.type is TableType.MERGE_ON_READ and (runs or plans) and compaction.may_be_due(session, timeline):
        timeline = session.properties.load_timeline(session.storage)
        if compaction.is_due(session, timeline):
            yield _compact if runs else _plan_compaction
    is_log = session.properties.type is TableType.MERGE_ON_READ
    if is_log and not beside and options.get(keys.LOG_COMPACT_INLINE) and log_compaction.may_be_due(session, timeline):
        timeline = session.properties.load_timeline(session.storage)
        if log_compaction.is_due(session, timeline):
            yield _merge_logs
    runs, plans = options.get(keys.CLUSTER_INLINE), options.get(keys.CLUSTER_SCHEDULE)
    if beside:
        runs, plans = options.get(keys.CLUSTER_ASYNC) and not runs, False
    if (runs or plans) and clustering.may_be_due(session, timeline):
        timeline = session.properties.load_timeline(session.storage)
        if clustering.is_due(session, timeline):
            yield _cluster if runs else _plan_clustering
    if not beside and ttl.is_due(session):
        yield _expire
    if options.get(keys.CLEAN_AUTOMATIC) and options.get(keys.CLEAN_ASYNC) is beside and clean.is_due(session, timeline):
        yield _clean
    if options.get(keys.ARCHIVE_AUTOMATIC) and options.get(keys.ARCHIVE_ASYNC) is beside and archival.is_due(session, timeline):
        yield _archive


def _compact(session: WriteSession) -> list[str]:
    return [f"compacted at {report.instant}" for report in compaction.compact(session, after_a_write=True)]


def _plan_compaction(session: WriteSession) -> list[str]:
    instant = compaction.schedule(session)
    return [] if instant is None else [f"planned a compaction at {instant}"]


def _merge_logs(session: WriteSession) -> list[str]:
    return [f"logs merged at {report.instant}" for report in log_compaction.log_compact(session, after_a_write=True)]


def _cluster(session: WriteSession) -> list[str]:
    return [f"clustered at {report.instant}" for report in clustering.cluster(session, after_a_write=True)]


def _plan_clustering(session: WriteSession) -> list[str]:
    instant = clustering.schedule(session)
    return [] if instant is None else [f"planned a clustering at {instant}"]


def _expire(session: WriteSession) -> list[str]:
    report = ttl.expire(session)
    return [str(report)] if report.plan.expired else []


def _clean(session: WriteSession) -> list[str]:
    report = clean.clean(session, after_a_write=True)
    return [] if report.instant is None else [f"cleaned at {report.instant}: {report.deleted:,} files deleted"]


def _archive(session: WriteSession) -> list[str]:
    report = archival.archive(session)
    if not report.archived:
        return []
    if session.concurrency.failed_writes == "EAGER":
        # Writers look for what the timeline shows. Whatever else dead processes left takes twenty listings to find, so seldom.
        session.coordinator.recover()
    return [str(report)]
