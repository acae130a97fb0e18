"""Changing a table from copy-on-write to merge-on-read and back; no row changes.

The other way back everything is compacted first: a copy-on-write table has no log files, and Apache Hudi passes over base
files that a deltacommit wrote, unless it is older than the first commit. So the last compaction takes every slice that has log
files, or whose base file is a deltacommit's.

One request decides, which replaces the properties. It is made inside the publication of a commit without files, under the table
lock, with nothing else pending: whoever began to write to the table as it was finds that commit at his end, looks at the
properties again, and has to begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.session import WriteSession
from hudimeta.errors import CommitConflict, ConfigError, TableError, UnsupportedFeature
from hudimeta.indexes.bucket.consistent_hashing import FOLDER as HASHING_FOLDER
from hudimeta.reports import Report
from hudimeta.services import compaction
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.table.properties import update
from hudimeta.table.remembered import TYPE_SINCE_KEY
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Operation, TableType

__all__ = ["TypePlan", "TypeReport", "change_type"]

_TYPE_KEY = "hoodie.table.type"
_TRIES = 3
"""So often log files that other writers added meanwhile are compacted once more."""
_SHORT = {"COW": TableType.COPY_ON_WRITE, "MOR": TableType.MERGE_ON_READ}


@dataclass(frozen=True, repr=False)
class TypePlan(Report):
    """What a change of the type will do; prints as a list.

    Attributes:
        type: Of the table now.
        to: The type that it will have.
        slices: Those that are compacted first.
    """

    type: TableType
    to: TableType
    slices: tuple[FileSlice, ...] = ()

    def __str__(self) -> str:
        if self.type is self.to:
            return f"the table is {self.to.value}: nothing to do"
        lines = [f"{self.type.value} -> {self.to.value}"]
        if self.slices:
            logs, size = sum(len(one.log_files) for one in self.slices), sum(one.size for one in self.slices)
            lines.append(f"  compact {len(self.slices):,} file slices with {logs:,} log files, {size:,} bytes")
        return "\n".join([*lines, "  set the type in hoodie.properties"])


@dataclass(frozen=True, repr=False)
class TypeReport(Report):
    """What a change of the type did.

    Attributes:
        plan: What it was going to do.
        done: What was done, in order, in words; nothing of a dry run.
    """

    plan: TypePlan
    done: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.done:
            return str(self.plan)
        return "\n".join([f"{self.plan.type.value} -> {self.plan.to.value}", *(f"  {one}" for one in self.done)])


def change_type(session: WriteSession, to: str, *, dry_run: bool = False) -> TypeReport:
    """Change the type of a table.

    Args:
        session: The table.
        to: COPY_ON_WRITE or MERGE_ON_READ; COW and MOR are short for them.
        dry_run: Only plan.

    Raises:
        ConfigError: No such type.
        UnsupportedFeature: The table's index needs the type that it has.
        TableError: Writes or services are pending, or come as fast as they are compacted.
    """
    wanted = _type_of(to)
    if wanted is TableType.COPY_ON_WRITE and session.storage.list(HASHING_FOLDER):
        hint = "Write the rows to a new table with another index."
        raise UnsupportedFeature("a copy-on-write table in consistent hashing buckets", hint)
    plan = _plan(session, session.snapshot_now(), wanted)
    if dry_run or plan.type is wanted:
        return TypeReport(plan)
    done: list[str] = []
    for _ in range(_TRIES):
        session.coordinator.recover()
        if wanted is TableType.COPY_ON_WRITE:
            done += _compacted(session)
        try:
            return TypeReport(plan, (*done, _switched(session, wanted)))
        except (_NotYet, CommitConflict):
            session.reload()
    raise TableError("other writers add files as fast as they are compacted", "Stop them, and try again.")


class _NotYet(Exception):
    """Log files came since the compaction; never leaves this module."""


def _type_of(text: str) -> TableType:
    word = text.strip().upper()
    if word in _SHORT:
        return _SHORT[word]
    if word not in TableType.__members__:
        raise ConfigError("change_type", text, ", ".join(TableType.__members__))
    return TableType[word]


def _plan(session: WriteSession, snapshot: Snapshot, to: TableType) -> TypePlan:
    now = session.properties.type
    compacts = now is not to and to is TableType.COPY_ON_WRITE
    return TypePlan(now, to, tuple(_to_compact(snapshot)) if compacts else ())


def _to_compact(snapshot: Snapshot) -> Iterator[FileSlice]:
    by_delta = {i.time for i in snapshot.timeline.writes if i.action is Action.DELTA_COMMIT}
    return (one for one in slices_of(snapshot.slices()) if one.log_files or one.base_instant in by_delta)


def _compacted(session: WriteSession) -> Iterator[str]:
    """Run the compactions that are pending, then one of all that is left."""
    timeline = session.properties.load_timeline(session.storage)
    planned = compaction.pending(timeline)
    _refuse_pending(timeline, {instant.time for instant in planned})
    for instant in planned:
        yield f"compacted: {compaction.execute(session, instant.time)}"
    with session.lock.held():
        snapshot = session.snapshot_now()
        _refuse_pending(snapshot.timeline)
        slices = tuple(_to_compact(snapshot))
        if not slices:
            return
        content = compaction.CompactionPlan(slices).encode()
        own = session.coordinator.plan(snapshot.timeline, Action.COMPACTION, content, to_run=True)
    yield f"compacted: {compaction.execute(session, own)}"


def _refuse_pending(timeline: Timeline, own: Collection[str] = ()) -> None:
    others = [i for i in timeline.pending if i.time not in own]
    if others:
        named = ", ".join(f"{i.action.value} {i.time}" for i in others)
        raise TableError(
            f"writes or services are pending ({named}), and they rest on the type that the table has",
            "Wait for their end, or roll them back; run what is only planned.",
        )


def _switched(session: WriteSession, to: TableType) -> str:
    """The step that decides."""
    snapshot = session.snapshot_now()
    _refuse_pending(snapshot.timeline)
    changes = {_TYPE_KEY: to.value}
    if not snapshot.timeline.writes:
        with session.lock.held():
            update(session.fenced, changes)
        return f"set the type to {to.value}"
    with session.coordinator.writing(Operation.ALTER_SCHEMA, snapshot.timeline) as (write, begun):
        now = snapshot if begun is snapshot.timeline else session.snapshot_at(begun)

        def decide(timeline: Timeline) -> None:
            _refuse_pending(timeline, {write.instant})
            if to is TableType.COPY_ON_WRITE and any(True for _ in _to_compact(session.snapshot_at(timeline))):
                raise _NotYet
            update(session.fenced, {**changes, TYPE_SINCE_KEY: write.instant})

        _publish(session, now, write, decide)
    return f"set the type to {to.value} at {write.instant}"


def _publish(session: WriteSession, snapshot: Snapshot, write: OpenWrite, decide: Callable[[Timeline], None]) -> None:
    stated = published_schema(snapshot.file_schema, session.properties.name, snapshot.history, write.instant)
    publication = Publication(
        (),
        snapshot.file_schema,
        stated.avro,
        extra=stated.extra,
        known=snapshot.metadata,
        history=stated.history,
        decides=decide,
    )
    session.coordinator.publish(write, publication)
