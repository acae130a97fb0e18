"""Damaged cleans on the timeline: nobody can run their plans, or tell what they did, and writers trip over them.

A pending clean whose plan is empty, cannot be decoded, or names what no clean deletes, is removed: what it may have deleted
belongs to no retained moment, and the next clean plans it again. A completed one stays, since the metadata table has a commit
of its instant: its record is written anew from its plan, or as one that says nothing, after which the next clean looks at the
whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hudimeta.commit.clean_run import refuse_other_files
from hudimeta.commit.liveness import is_alive
from hudimeta.commit.session import WriteSession
from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.avro.container import sealed_container
from hudimeta.services.repair.findings import Finding, RepairReport
from hudimeta.storage import Storage, join
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.timeline.clean_record import CleanPlan, decode_plan, encode_metadata
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["repair_cleans"]

_NOTHING = CleanPlan("KEEP_LATEST_COMMITS", None, {}, (), "")
"""What is recorded of a clean of which nothing can be read any more."""


@dataclass(frozen=True)
class _Damage:
    finding: Finding
    repair: Callable[[Storage, Timeline], object]


def repair_cleans(session: WriteSession, *, dry_run: bool) -> RepairReport:
    """Remove damaged plans of cleans, and write damaged records of cleans anew.

    Args:
        session: The table.
        dry_run: Only look.
    """
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        damages = list(_damages(session.storage, timeline, session.concurrency.patience_s))
        if not dry_run:
            for one in damages:
                one.repair(session.fenced, timeline)
    return RepairReport(tuple(one.finding for one in damages), not dry_run)


def _damages(storage: Storage, timeline: Timeline, patience_s: float) -> Iterator[_Damage]:
    for instant in timeline:
        if instant.action is not Action.CLEAN:
            continue
        if instant.is_completed:
            why = _wrong_record(timeline, instant)
            if why:
                plan, source = _what_it_planned(timeline, instant)
                cure = f"its record is written anew from {source}"
                yield _Damage(Finding(timeline.path_of(instant), why, cure), _rewriting(instant, plan))
            continue
        requested = join(timeline.folder, pending_name(instant.time, Action.CLEAN, State.REQUESTED))
        why = _wrong_plan(timeline, instant, requested)
        if why and not is_alive(storage, instant.time, requested, patience_s=patience_s):
            cure = "the plan is removed, and the next clean plans anew"
            yield _Damage(Finding(requested, why, cure), _removing(instant))


def _wrong_record(timeline: Timeline, instant: Instant) -> str:
    try:
        timeline.metadata(instant)
    except CorruptFileError as error:
        return f"the record of a completed clean is damaged ({error.message})"
    return ""


def _wrong_plan(timeline: Timeline, instant: Instant, path: str) -> str:
    try:
        record = timeline.plan(instant)
        if not record:
            return "the plan of a pending clean is empty"
        refuse_other_files(decode_plan(record), instant.time, path)
    except CorruptFileError as error:
        return f"the plan of a pending clean is damaged ({error.message})"
    except NotFound:
        return "a pending clean has no plan"
    return ""


def _what_it_planned(timeline: Timeline, instant: Instant) -> tuple[CleanPlan, str]:
    try:
        record = timeline.plan(instant)
        return (decode_plan(record), "its plan") if record else (_NOTHING, "nothing, for its plan is empty")
    except (CorruptFileError, NotFound):
        return _NOTHING, "nothing, for its plan is damaged or gone"


def _removing(instant: Instant) -> Callable[[Storage, Timeline], object]:
    def remove(storage: Storage, timeline: Timeline) -> None:
        writer = TimelineWriter(storage, timeline.folder)
        for state in (State.INFLIGHT, State.REQUESTED):  # without its plan an inflight file would be nobody's
            writer.delete_pending(instant.time, Action.CLEAN, state)

    return remove


def _rewriting(instant: Instant, plan: CleanPlan) -> Callable[[Storage, Timeline], object]:
    def rewrite(storage: Storage, timeline: Timeline) -> None:
        content = encode_metadata(instant.time, plan, plan.n_files)
        storage.put(join(timeline.folder, instant.file_name), sealed_container(content, instant.file_name))

    return rewrite
