"""Incremental reads: the rows that the commits of a range left.

A range is a pair of completion times (of requested times in tables of version 6), the beginning excluded and the end included.
What comes back is the state at the end of the range of rows whose newest commit lies in it; deletes are not reported. A
copy-on-write table is read as of the newest commit of the range. Of a merge-on-read table only the files that the commits of
the range wrote are merged with each other, and of the base files among them, which compactions and clusterings copied, only the
rows of these commits. So a late row that loses against an older row still comes back: that is what Apache Hudi answers. Updates
that log only the columns that they set are merged with all rows of their file group; Apache Hudi cannot read those.

Commits that were archived may be in the range. Where the files that they left are cleaned, the rows cannot be known any more:
then the read is refused, unless `hoodie.datasource.read.incr.fallback.fulltablescan.enable` asks for the rows of today's table.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.config.options import (
    AS_OF,
    INCREMENTAL_BEGIN,
    INCREMENTAL_END,
    INCREMENTAL_FALLBACK,
    INCREMENTAL_FORMAT,
    QUERY_TYPE,
    STREAM_START,
)
from hudimeta.errors import ConfigError, RangeLost, TableError
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.read.archived_range import archived_writes, first_unarchived
from hudimeta.read.chosen_partitions import in_chosen
from hudimeta.read.holes import end_before_holes
from hudimeta.read.range_files import copied_files, written_files
from hudimeta.read.range_moment import misses_files, moment_of
from hudimeta.table.slices import build_slices, slices_schema
from hudimeta.timeline import range_bound
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.types import COPYING_OPERATIONS, META_COLUMNS, Action, Instant, QueryType, TableType

if TYPE_CHECKING:
    from hudimeta.config import Options
    from hudimeta.predicate import Expr
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = [
    "EARLIEST",
    "IncrementalRange",
    "Moment",
    "ReadMoment",
    "is_lost",
    "only_move_rows",
    "range_of",
    "range_slices",
    "refuse_range",
    "with_commits",
]

EARLIEST = "earliest"
_BEFORE_ALL = "000"
COMMIT_TIME = META_COLUMNS[0]
_SERVICES = frozenset((Action.COMMIT, Action.REPLACE_COMMIT))


@dataclass(frozen=True)
class IncrementalRange:
    """The commits of a range.

    Attributes:
        begin, end: Bounds, the first excluded, the second included; `end` None for everything up to now.
        instants: Completed writes of the range, by requested time.
        archived: How many of them are archived.
        whole_table: The rows are looked for in today's table, because files of the range are cleaned.
        in_slices: The rows are looked for in the whole slices of the end of the range, because write stats of archived commits,
            which would name the files, are not read.
        by_time: Archived commits of the range are not known one by one, as in tables of version 6: commit times alone tell
            which rows are of the range.
    """

    begin: str
    end: str | None
    instants: tuple[Instant, ...]
    archived: int = 0
    whole_table: bool = False
    in_slices: bool = False
    by_time: bool = False

    @property
    def times(self) -> tuple[str, ...]:
        """Requested times of the commits."""
        return tuple(instant.time for instant in self.instants)

    @property
    def newest(self) -> str | None:
        """Requested time of the newest commit; None for an empty range."""
        return max(self.times, default=None)

    @property
    def since(self) -> str:
        """Its beginning, for people."""
        return EARLIEST if self.begin == _BEFORE_ALL else self.begin

    @property
    def until(self) -> str:
        """Its end, for people."""
        return "now" if self.end is None else self.end

    @property
    def lost(self) -> tuple[str, ...]:
        """What cleaning took from it, for people."""
        return ("cleaning removed files of the range",) if self.whole_table else ()

    @property
    def archived_shown(self) -> str:
        """How many archived commits it has, for people: "some" where they are not known one by one, "" for none."""
        if self.by_time:
            return "some"
        return str(self.archived) if self.archived else ""


@dataclass(frozen=True)
class Moment:
    """Where a scan stands.

    Attributes:
        snapshot: The table of that moment; of an incremental read, the table of now.
        changes: The commits of an incremental read.
        mark: Where the snapshot's request log stood when the scan was begun; None for where it stands now.
    """

    snapshot: Snapshot
    changes: IncrementalRange | None = None
    mark: int | None = None


class ReadMoment(abc.ABC):
    """Finds the moment of a scan when that is first used."""

    @abc.abstractmethod
    def __call__(self) -> Moment:
        """The moment; a read of now finds a later one each time."""

    @abc.abstractmethod
    def settled(self, found: Moment) -> ReadMoment:
        """What finds the same moment again, and no later one.

        Args:
            found: What this has found.
        """


def refuse_range(
    kind: QueryType, options: Options, begin: str | None = None, end: str | None = None, as_of: str | None = None
) -> None:
    """Refuse what says which changes to read where the query reads none: ignored, it would answer with the whole table.

    So is a moment, where the query is one of changes: ignored, it would answer with those that came later.

    Args:
        kind: Of the query.
        options: Of the read.
        begin: The bound that is excluded, if one was given.
        end: The bound that is included, if one was given.
        as_of: The moment, if one was given.

    Raises:
        ConfigError: The query is none of changes, and something says a range of them or their form; or it is one, of a moment.
    """
    if kind in (QueryType.INCREMENTAL, QueryType.CDC):
        moment = as_of or options.get(AS_OF)
        if moment is not None:
            hint = f"Let the range end there with {INCREMENTAL_END.key}, or leave {AS_OF.key} out."
            raise ConfigError(AS_OF.key, moment, f"nothing in a query of type {kind.value}", hint)
        return
    given = {
        INCREMENTAL_BEGIN.key: begin or options.get(INCREMENTAL_BEGIN),
        INCREMENTAL_END.key: end or options.get(INCREMENTAL_END),
    }
    if options.get(INCREMENTAL_FORMAT) == QueryType.CDC.value:
        given[INCREMENTAL_FORMAT.key] = QueryType.CDC.value
    for key, value in given.items():
        if value is not None:
            # Spark asks for the columns of a stream before anybody can tell that it is one.
            of_streams = f" A stream begins where {STREAM_START.key} says." if key == INCREMENTAL_BEGIN.key else ""
            hint = f"Set {QUERY_TYPE.key}=incremental to read changes, or leave {key} out.{of_streams}"
            raise ConfigError(key, value, f"nothing in a query of type {kind.value}", hint)


def range_of(
    snapshot: Snapshot, begin: str | None = None, end: str | None = None, *, of_files: bool = False
) -> IncrementalRange:
    """Find the commits of a range.

    Args:
        snapshot: The table of now.
        begin: Excluded; "earliest" and "000" are before everything; None takes the option
            `hoodie.datasource.read.begin.instanttime`.
        end: Included; None takes the option, and without one means now.
        of_files: What each commit wrote is read, not the rows that there were at the end: a file that is gone is missed then.

    Raises:
        ConfigError: No beginning, or a bound that is no time.
        RangeLost: Files of the range are cleaned.
        TableError: A write within it is still going on, in a table of version 6.
    """
    options = snapshot.options
    begin = begin if begin is not None else options.get(INCREMENTAL_BEGIN)
    end = end if end is not None else options.get(INCREMENTAL_END)
    if begin is None:
        raise ConfigError(
            INCREMENTAL_BEGIN.key,
            None,
            "a completion time, or earliest",
            "Say where the range begins; earliest is the first commit.",
        )
    low, high = (
        _bound(begin, snapshot, INCREMENTAL_BEGIN.key),
        None if end is None else _bound(end, snapshot, INCREMENTAL_END.key),
    )
    return _judged(snapshot, _commits(snapshot, low, end_before_holes(snapshot, low, high)), of_files)


def _commits(snapshot: Snapshot, low: str, high: str | None) -> IncrementalRange:
    active = snapshot.timeline.writes_between(low, high)
    oldest = first_unarchived(snapshot)
    archived: tuple[Instant, ...] = ()
    by_time = (oldest is None or low < oldest) and snapshot.timeline.history.has_old_logs
    if not by_time:
        archived = tuple(i for i in archived_writes(snapshot, low) if high is None or i.completed_at <= high)
    instants = tuple(sorted((*archived, *active), key=lambda i: i.time))
    return IncrementalRange(low, high, instants, len(archived), by_time=by_time)


def _bound(text: str, snapshot: Snapshot, key: str) -> str:
    given = str(text).strip()
    return _BEFORE_ALL if given.lower() == EARLIEST else range_bound(given, snapshot.properties.zone, key)


def _judged(snapshot: Snapshot, found: IncrementalRange, of_files: bool) -> IncrementalRange:
    """Refuse a range that lies wholly in the archive, or move it to today's table where that is asked for.

    The files that such a range left may be cleaned at any moment, which nobody could tell from the rows that come back.
    """
    oldest = snapshot.timeline.first_active_write or ""
    newest = found.newest or (found.end if found.by_time else None)
    is_active = newest is None or (newest >= oldest and newest >= snapshot.earliest_kept)
    lost = is_active and not of_files and misses_files(snapshot, found)
    if (is_active and not lost) or _ends_where_nothing_is_cleaned(snapshot, found.newest):
        return replace(found, in_slices=found.archived > 0 or found.by_time)
    if not found.by_time and only_move_rows(snapshot, found.instants):
        return replace(found, instants=(), archived=0)
    if not snapshot.options.get(INCREMENTAL_FALLBACK):
        otherwise = f"or set {INCREMENTAL_FALLBACK.key}=true to get the rows of the range that the table still has."
        if lost:
            raise RangeLost(
                f"cleaning removed files that the range {found.since} to {found.until} left",
                f"Give it a later end, {otherwise}",
            )
        kept = max(oldest, snapshot.earliest_kept)
        safe = min((i.completed_at for i in snapshot.timeline.writes if i.time >= kept), default=kept)
        is_archived = newest is None or newest < oldest
        where = "lies in the archived timeline" if is_archived else "ends before what the last clean keeps"
        raise RangeLost(
            f"the range {found.since} to {found.until} {where}: cleaning may have removed its files",
            f"The first instant that can end a range is {safe}; {otherwise}",
        )
    return replace(found, whole_table=True)


def is_lost(snapshot: Snapshot, begin: str, end: str | None) -> bool:
    """Whether a cleaner that keeps file versions removed rows of a range that is read as of its end.

    Args:
        snapshot: The table of now.
        begin: A time, excluded.
        end: Included; None means now.
    """
    found = _commits(snapshot, begin, end)
    return misses_files(snapshot, found) and not only_move_rows(snapshot, found.instants)


def _ends_where_nothing_is_cleaned(snapshot: Snapshot, newest: str | None) -> bool:
    """Is the newest write of a range the table's, or savepointed, so that no clean takes what it left, whatever it keeps?

    A clean that planned to keep less may be older than a restore, and speak of writes that are not there any more. Certain
    it is only where no write that was requested earlier was completed later: a savepoint need not name the files of such a one.
    """
    timeline = snapshot.timeline
    end = next((i for i in timeline.writes if i.time == newest), None)
    if end is None or timeline.history.has_old_logs:
        return False
    known = [*timeline.writes, *(i for i in timeline.history.instants() if i.action.writes_data)]
    before = [i for i in known if i.time <= end.time]
    if any(i.completed_at > end.completed_at for i in before):
        return False
    return end.time in timeline.savepoints or len(before) == len(known)


def only_move_rows(snapshot: Snapshot, instants: Sequence[Instant]) -> bool:
    """Are some writes compactions and clusterings alone? They bring no rows of their own.

    One that was planned long ago may complete after the newest write, and be archived before it.

    Args:
        snapshot: The table of now.
        instants: Of the active timeline and of the history, whose records are read only where their actions leave it open.
    """
    timeline = snapshot.timeline
    active = set(timeline.writes)
    archived = [i for i in instants if i not in active]
    services = {Action.REPLACE_COMMIT} if snapshot.properties.type is TableType.COPY_ON_WRITE else _SERVICES
    if any(i.action.completed_as not in services for i in archived):
        return False
    said = ArchivedRecords(timeline.history, services, min(i.time for i in archived)) if archived else timeline
    records = ((timeline if i in active else said).metadata(i) for i in instants)
    return all(record.get("operationType") in COPYING_OPERATIONS for record in records)


def with_commits(where: Expr | None, found: IncrementalRange) -> Expr:
    """A predicate that also asks for rows of the range's commits.

    The columns of a table without meta columns do not tell: see `range_slices`.
    """
    from hudimeta.predicate.tree import And

    in_range = _told_by_time(found) if found.by_time else _told_by_commits(found)
    return in_range if where is None else And((in_range, where))


def _told_by_commits(found: IncrementalRange) -> Expr:
    from hudimeta.predicate.tree import Column, In, literal

    return In(Column((COMMIT_TIME,)), tuple(literal(time) for time in found.times or ("",)))


def _told_by_time(found: IncrementalRange) -> Expr:
    from hudimeta.predicate.tree import And, Column, Compare, CompareOp, literal

    column = Column((COMMIT_TIME,))
    later = Compare(CompareOp.GT, column, literal(found.begin))
    return later if found.end is None else And((later, Compare(CompareOp.LE, column, literal(found.end))))


def range_slices(snapshot: Snapshot, found: IncrementalRange) -> pa.Table | None:
    """The slices that the commits of a range make, for a merge-on-read table; None where ordinary slices serve.

    Rows of a table without meta columns do not say which commit wrote them: there the files of the range are the answer.

    Raises:
        TableError: There are no meta columns, and nobody knows the files of the range.
    """
    tells_commits = snapshot.properties.populate_meta
    by_files = snapshot.properties.type is TableType.MERGE_ON_READ or not tells_commits
    if found.whole_table or found.in_slices:
        if tells_commits:
            return None
        raise TableError(
            f"the range {found.since} to {found.until} reaches into the archived timeline, and the rows of a table without "
            "meta columns do not say which commit wrote them",
            f"Begin at {first_unarchived(snapshot) or 'the newest commit'} or later.",
        )
    if not by_files:
        return None
    if not found.instants:
        return no_rows(slices_schema())
    copied = frozenset() if tells_commits else copied_files(snapshot, found.instants)
    written = in_chosen(snapshot, written_files(snapshot, found.instants, copied))
    return build_slices(written, moment_of(snapshot, found).visibility)
