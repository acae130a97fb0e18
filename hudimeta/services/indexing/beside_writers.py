"""Building an index beside writers, by a plan that is an `indexing` action on the timeline.

    1. the plan: requested on the timeline, with the definition where the kind has one; anybody may run it
    2. looks at the table, without its lock: the first makes the index, each later one reads the file slices that came since,
       until one is short
    3. under the lock: what came since the last look goes on top of what the first has made, and all of it is written

What is done under the lock is what making an index there always was (`commit.index_build`), but for the reading, finding and
encoding (`commit.index_ahead`). Writers that began before bring their files' entries along, or have to run again. A run
that died is run again from its plan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from hudimeta.commit.dead_indexing import take_back_dead
from hudimeta.commit.index_ahead import IndexAhead, changes_since, make_ahead
from hudimeta.commit.index_build import IndexReport, build_index, index_source, newest_write, refuse_planned, still_there
from hudimeta.commit.planned_runs import idle
from hudimeta.commit.session import WriteSession
from hudimeta.engine import LocalEngine
from hudimeta.engine.machine import monotonic
from hudimeta.errors import CommitError, IndexNotReady, NotFound, TableError, UnsupportedFeature
from hudimeta.indexes.lost_definitions import refuse_lost_definitions
from hudimeta.indexes.plan import PLANNERS, IndexPlan, plan_index
from hudimeta.indexes.protocol import IndexSource
from hudimeta.metadata import MetadataTable, files
from hudimeta.metadata.index_definitions import DEFAULT_PATH, encode_definitions
from hudimeta.metadata.indexing import (
    encode_index_plan,
    partitions_of,
    remove_index,
    take_back_build,
    waits,
    withdraw,
)
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.table.properties import update
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant, State

__all__ = ["cancel", "create_beside", "execute", "pending", "plan", "schedule"]

_SHORT_S = 0.5
"""A look that takes no longer is the last one: what comes after it is read under the lock."""
_MOST_LOOKS = 10


def pending(timeline: Timeline) -> list[Instant]:
    """Buildings of indexes that were planned and not completed, oldest first."""
    return [one for one, record in _planned(timeline) if waits(record)]


def _planned(timeline: Timeline) -> Iterator[tuple[Instant, Mapping[str, Any]]]:
    return timeline.plans(i for i in timeline.pending if i.action is Action.INDEXING)


def plan(session: WriteSession, **asked: Any) -> IndexPlan:
    """What would be built; writes nothing. See `plan_index` for the arguments."""
    return _plan(session, session.properties.load_timeline(session.storage), asked)


def _plan(session: WriteSession, timeline: Timeline, asked: Mapping[str, Any]) -> IndexPlan:
    if not session.properties.has_metadata_table:
        raise IndexNotReady(files.PARTITION, "not built: the first write, or t.metadata.rebuild(), builds it")
    snapshot = session.snapshot_at(timeline)
    known = {} if snapshot.metadata is None else snapshot.metadata.index_definitions
    return plan_index(session.properties, snapshot.file_schema, session.options, known, **asked)


def schedule(session: WriteSession, *, to_run: bool = False, **asked: Any) -> str:
    """Put the building of an index on the timeline, and its definition among those of the table; returns the instant.

    Args:
        session: The table.
        to_run: It is run next, see `Coordinator.plan`.
        asked: See `plan_index`.

    Raises:
        TableError: It is planned already.
        ConfigError, IndexNotReady: See `plan_index`.
    """
    with session.lock.held():
        session.reload()
        timeline = session.properties.load_timeline(session.storage)
        the_plan = _plan(session, timeline, asked)
        refuse_planned(timeline, the_plan.partition)
        if the_plan.definition is not None:
            table = MetadataTable.open(session.storage, session.properties, timeline)
            refuse_lost_definitions(table)
            known = table.index_definitions
            path = session.properties.index_defs_path or DEFAULT_PATH
            session.fenced.put(path, encode_definitions({**known, the_plan.partition: the_plan.definition}))
            if session.properties.index_defs_path is None:
                session.properties = update(session.fenced, {"hoodie.table.index.defs.path": path})
        content = encode_index_plan([the_plan.partition], newest_write(timeline))
        return session.coordinator.plan(timeline, Action.INDEXING, content, to_run=to_run)


def execute(session: WriteSession, instant: str) -> IndexReport:
    """Build an index by a plan on the timeline, whoever made it.

    Raises:
        CommitError: There is no such plan, or another process is running it.
        UnsupportedFeature: A plan for several indexes, or for one that is not known here.
    """
    begin = time.perf_counter()
    with session.coordinator.running(instant, Action.INDEXING) as (timeline, found):
        if found.state is State.INFLIGHT or {*partitions_of(timeline.plan(found))} & {*session.properties.metadata_partitions}:
            _begin_anew(session, instant)
        the_plan = _stored(session, timeline, found)
        kept: dict[str, dict[Any, Any]] = {}
        ahead = _make_ahead(session, the_plan, instant, kept)
        with session.lock.held():
            session.reload()
            timeline = session.properties.load_timeline(session.storage)
            if take_back_dead(session.fenced, timeline, session.properties, session.concurrency.patience_s, running=instant):
                session.reload()
                timeline = session.properties.load_timeline(session.storage)
            now = timeline.get(instant, Action.INDEXING)
            if now is None or now.is_completed:
                raise CommitError(f"there is no pending indexing at {instant} any more", "See t.timeline for what is pending.")
            schema = session.snapshot_at(timeline).file_schema
            return build_index(session, timeline, schema, the_plan, begin, planned=now, kept=kept, ahead=ahead)


def _begin_anew(session: WriteSession, instant: str) -> None:
    """Take back what a run of the plan left that died: an index that it named, too."""
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        take_back_dead(session.fenced, timeline, session.properties, session.concurrency.patience_s, running=instant)
        session.reload()


def _stored(session: WriteSession, timeline: Timeline, found: Instant) -> IndexPlan:
    names = partitions_of(timeline.plan(found))
    if len(names) != 1:
        what = f"building {', '.join(names) or 'nothing'} by one plan"
        raise UnsupportedFeature(what, "Run it with Apache Hudi, or cancel it and make one index after the other.")
    (name,) = names
    if name in session.properties.metadata_partitions:
        raise TableError(
            f"the table has the index {name} already", f"The plan at {found.time} was taken back: nothing is left to build."
        )
    known = MetadataTable.open(session.storage, session.properties, timeline).index_definitions.get(name)
    if known is not None:
        return IndexPlan(name, known)
    if name not in PLANNERS:
        raise UnsupportedFeature(f"building {name}, whose definition the table does not have")
    return _plan(session, timeline, {"kind": name})


def _make_ahead(session: WriteSession, the_plan: IndexPlan, instant: str, kept: dict[str, dict[Any, Any]]) -> IndexAhead | None:
    """Make the index without the lock, and read what has come since, again and again until there is little new."""
    writer = MetadataWriter(session.storage, session.properties.version, session.times, LocalEngine())
    ahead: IndexAhead | None = None
    for _ in range(_MOST_LOOKS):
        began = monotonic()
        try:
            source = _look(session, the_plan, writer, kept)
            if ahead is None or changes_since(ahead, source) is None:
                ahead = make_ahead(the_plan.partition, instant, source, writer)
        except NotFound:  # a cleaner was faster: the next look sees what took the file's place
            continue
        if monotonic() - began <= _SHORT_S:
            break
    return ahead


def _look(session: WriteSession, the_plan: IndexPlan, writer: MetadataWriter, kept: dict[str, dict[Any, Any]]) -> IndexSource:
    """The table as it is."""
    timeline = session.properties.load_timeline(session.storage)
    table = MetadataTable.open(session.storage, session.properties, timeline)
    definitions = {
        **table.index_definitions,
        **({} if the_plan.definition is None else {the_plan.partition: the_plan.definition}),
    }
    listing = still_there(table.files(), timeline)
    return index_source(session, timeline, session.snapshot_at(timeline).file_schema, writer, listing, definitions, kept=kept)


def cancel(session: WriteSession, instant: str) -> None:
    """Take the plan of a building back, with its definition and what a run that died wrote.

    Raises:
        CommitError: There is no such plan, or a process is running it.
    """
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        found = idle(session.storage, timeline, instant, Action.INDEXING, session.concurrency.patience_s)
        names = partitions_of(timeline.plan(found))
        take_back_dead(session.fenced, timeline, session.properties, session.concurrency.patience_s, running=instant)
        session.reload()
        take_back_build(session.fenced, timeline, instant, names)
        for name in names:
            if name not in session.properties.metadata_partitions:
                remove_index(session.fenced, session.properties, name)
        withdraw(session.fenced, timeline, instant)


def create_beside(session: WriteSession, **asked: Any) -> IndexReport:
    """Plan an index and build it beside writers; a plan for the same index that nobody runs is run instead of a new one."""
    timeline = session.properties.load_timeline(session.storage)
    wanted = _plan(session, timeline, asked).partition
    waiting = [one.time for one, record in _planned(timeline) if waits(record) and partitions_of(record) == [wanted]]
    return execute(session, waiting[0] if waiting else schedule(session, to_run=True, **asked))
