"""A table's commits as a stream: how far it was read, and which commits make the next batch.

A position is a completion time (a requested time in tables of version 6, see `as_of_now` for their upgrade): everything that
completed by then was read. A batch is a range of an incremental or a CDC query from one position to another: it consists of
whole commits, and can be read again.

What cleaning and archival took cannot be known any more. A stream of rows can still go on: a batch that reaches up to what is
kept has every row that is still there, in its newest version; versions in between, and rows that came and went, are lost to it.
A stream of changes has to leave the changes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudimeta.config.options import (
    AS_OF,
    FAIL_ON_DATA_LOSS,
    INCREMENTAL_BEGIN,
    INCREMENTAL_END,
    INCREMENTAL_FORMAT,
    MAX_BYTES_PER_TRIGGER,
    MAX_FILES_PER_TRIGGER,
    QUERY_TYPE,
    STREAM_START,
)
from hudimeta.errors import ConfigError, StreamDataLoss
from hudimeta.read.archived_range import archived_writes
from hudimeta.read.cdc_plan import known_changes
from hudimeta.read.holes import first_hole
from hudimeta.read.incremental import is_lost, only_move_rows
from hudimeta.timeline import one_earlier, range_bound
from hudimeta.timeline.naming import LAYOUT_V1
from hudimeta.types import Instant, QueryType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hudimeta.config import Options
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.timeline import Timeline

__all__ = [
    "BEFORE_ALL",
    "StreamBatchRange",
    "StreamSettings",
    "as_of_now",
    "doubt_of",
    "first_position",
    "newest_position",
    "next_batch",
]

BEFORE_ALL = "000"
_EARLIEST, _LATEST = "earliest", "latest"


@dataclass(frozen=True)
class StreamSettings:
    """How a stream is read.

    Attributes:
        changes: It is one of changes with their images (CDC), else of rows.
        start: "earliest", "latest", or a time.
        most_files, most_bytes: Limits of one batch; 0 for none.
        fails: Where commits are lost, the stream fails.
    """

    changes: bool = False
    start: str = _EARLIEST
    most_files: int = 0
    most_bytes: int = 0
    fails: bool = True

    @staticmethod
    def of(options: Options) -> StreamSettings:
        """As the options of a read say.

        Raises:
            ConfigError: Options that belong to no stream.
        """
        kind = QueryType(options.get(QUERY_TYPE))
        if options.is_set(QUERY_TYPE) and kind not in (QueryType.INCREMENTAL, QueryType.CDC):
            hint = f"A stream reads what commits bring. Leave {QUERY_TYPE.key} out."
            raise ConfigError(QUERY_TYPE.key, kind.value, "incremental or cdc in a stream", hint)
        for option in (INCREMENTAL_BEGIN, INCREMENTAL_END, AS_OF):
            if options.is_set(option):
                hint = f"Say where the stream begins with {STREAM_START.key}: earliest, latest or a completion time."
                raise ConfigError(option.key, options.get(option), "nothing in a stream", hint)
        changes = kind is QueryType.CDC or options.get(INCREMENTAL_FORMAT) == QueryType.CDC.value
        return StreamSettings(
            changes,
            (options.get(STREAM_START) or _EARLIEST).strip(),
            options.get(MAX_FILES_PER_TRIGGER),
            options.get(MAX_BYTES_PER_TRIGGER),
            options.get(FAIL_ON_DATA_LOSS),
        )


@dataclass(frozen=True)
class StreamBatchRange:
    """The commits of one batch.

    Attributes:
        begin: Position before it; later than the stream's own where changes had to be left out.
        end: Position after it.
        lost: What the stream does not see, and why, for a warning; "" when it sees everything.
        larger: Why it ends later than was asked for though the stream sees everything, for a warning; "" when it does not.
    """

    begin: str
    end: str
    lost: str = ""
    larger: str = ""


def first_position(snapshot: Snapshot, settings: StreamSettings) -> str:
    """Where a stream begins that has no checkpoint.

    Args:
        snapshot: The table of now.
        settings: Of the stream.

    Raises:
        ConfigError: The start is no time.
    """
    start = settings.start.lower()
    if start == _LATEST:
        return newest_position(snapshot.timeline) or BEFORE_ALL
    if start == _EARLIEST:
        return _first_of_changes(snapshot) if settings.changes else BEFORE_ALL
    try:
        return range_bound(settings.start, snapshot.properties.zone, STREAM_START.key)
    except ConfigError as error:
        raise ConfigError(error.key, settings.start, f"{_EARLIEST}, {_LATEST}, or {error.allowed}") from None


def _first_of_changes(snapshot: Snapshot) -> str:
    """The earliest position from which all changes are known. Cleaning by file versions names no commit as the first kept."""
    begin = _Kept.of(snapshot, BEFORE_ALL).begin_of_changes
    gone = known_changes(snapshot, snapshot.timeline.writes_between(begin))[1]
    return gone[-1].completed_at if gone else begin


def newest_position(timeline: Timeline) -> str | None:
    """The position after the last commit that can be read; None where there is none.

    In tables of version 6 positions are requested times, so that a write which is still going on would be passed by: what was
    requested after it has to wait.
    """
    writes = timeline.by_completion
    if timeline.layout != LAYOUT_V1:
        return writes[-1].completed_at if writes else None
    waiting = first_hole(timeline)
    return max((i.completed_at for i in writes if waiting is None or i.time < waiting), default=None)


def as_of_now(timeline: Timeline, position: str) -> str:
    """A position at which a batch ended, as the table counts now: as a completion time where it is a requested time.

    That it is where the batch was read before the table was upgraded from version 6. What was requested by then was read, and
    completed later than that: it would come again. A write does so only where it completed after one that was not read, so
    that nothing is passed over.
    """
    if timeline.layout == LAYOUT_V1 or any(i.completed_at == position for i in timeline.writes):
        return position
    own = timeline.completion_of(position)
    if own is None or own == position:
        return position
    unread = min((i.completed_at for i in timeline.writes if i.time > position), default=None)
    read = [own, *(i.completed_at for i in timeline.writes if i.time <= position)]
    return max((end for end in read if unread is None or end < unread), default=position)


def doubt_of(snapshot: Snapshot, position: str, *, is_start: bool) -> str:
    """Why a position is none of the table as it is, for a warning; "" where it may be one.

    Args:
        snapshot: The table of now.
        position: Of the stream.
        is_start: No batch ended there: a stream may begin at any time.
    """
    timeline = snapshot.timeline
    if not position.strip("0") or (is_start and position <= max((i.completed_at for i in timeline.writes), default="")):
        return ""
    # Apache Hudi's own stream ends batches at actions of any kind.
    known = (*timeline.completed, *archived_writes(snapshot, one_earlier(position) or ""))
    if any(i.completed_at == position for i in known):
        return ""
    if position < (timeline.first_active_write or "") and timeline.history.has_old_logs:
        return ""
    taken_back = "what was read since is taken back, or the checkpoint is that of another table"
    return f"the table has no commit that ended then: {taken_back}"


def next_batch(
    snapshot: Snapshot, after: str, settings: StreamSettings, until: str | None = None, *, limited: bool = True
) -> StreamBatchRange | None:
    """The commits of the batch that follows a position.

    Args:
        snapshot: The table of now.
        after: The stream's position.
        settings: Of the stream.
        until: The stream ends at this position; None for none.
        limited: The limits of the settings hold.

    Returns:
        None when there is nothing new.

    Raises:
        StreamDataLoss: Commits that follow the position are gone, and the settings say that the stream fails.
    """
    newest = newest_position(snapshot.timeline)
    last = newest if until is None or newest is None else min(newest, until)
    if last is None or last <= after:
        return None
    kept = _Kept.of(snapshot, after)
    lost = ""
    if kept.lost and not (after == BEFORE_ALL and not settings.changes):
        if settings.fails:
            raise StreamDataLoss(after, kept.end, kept.lost)
        lost = kept.lost
    begin = max(after, kept.begin_of_changes) if lost and settings.changes else after
    commits = [i for i in snapshot.timeline.writes_between(begin) if i.completed_at <= last]
    if not commits:
        return StreamBatchRange(begin, max(begin, last), lost) if begin > after else None
    taken = _admitted(snapshot.timeline, commits, settings) if limited else commits
    if settings.changes and (gone := known_changes(snapshot, taken)[1]):
        which = _gone(gone, "cleaned")
        if settings.fails:
            rest = commits[1 + commits.index(known_changes(snapshot, commits)[1][-1]) :]
            raise StreamDataLoss(after, rest[0].completed_at if rest else None, which)
        lost = " and ".join(filter(None, (lost, which)))
    asked = end = taken[-1].completed_at
    if kept.lost and not settings.changes:
        end = max(end, min(kept.end, last))  # nobody can read the table as it was before that
    if not settings.changes:
        end = _readable_end(snapshot, begin, (end, last))
    larger = end > asked and not lost
    return StreamBatchRange(begin, end, lost, f"cleaning took what the table was at {asked}" if larger else "")


def _readable_end(snapshot: Snapshot, begin: str, ends: Sequence[str]) -> str:
    """Where a batch of rows ends: at the first of some positions of which all rows are there, or after the last commit.

    A cleaner that keeps file versions may have removed what the table was in between. Its newest rows it never removes.
    """
    for end in ends:
        if not is_lost(snapshot, begin, end):
            return end
    return newest_position(snapshot.timeline) or begin


@dataclass(frozen=True)
class _Kept:
    """What cleaning and archival have left to a stream that stands somewhere.

    Attributes:
        end: Completion time of the earliest commit at which a batch of rows can end.
        begin_of_changes: The earliest position from which all changes can be known.
        lost: Which commits after the stream's position are gone, in words; "" for none.
    """

    end: str
    begin_of_changes: str
    lost: str = ""

    @staticmethod
    def of(snapshot: Snapshot, after: str) -> _Kept:
        timeline = snapshot.timeline
        archived = archived_writes(snapshot, after)
        cleaned = [i for i in timeline.writes_between(after) if i.time < snapshot.earliest_kept]
        # A service that was planned long ago may complete later than what is kept.
        if only_move_rows(snapshot, [*archived, *cleaned]):
            return _Kept("", BEFORE_ALL)
        floor = max(snapshot.earliest_kept, timeline.first_active_write or "")
        left = [i.completed_at for i in timeline.writes if i.time >= floor]
        end = min(left, default=newest_position(timeline) or BEFORE_ALL)
        which = [_gone(group, how) for group, how in ((archived, "archived"), (cleaned, "cleaned")) if group]
        # A cleaner spares the files on which the first commit that it keeps was written: its changes can be known.
        return _Kept(end, one_earlier(end) or end, " and ".join(which))


def _gone(commits: Sequence[Instant], how: str) -> str:
    return f"{len(commits)} later commit{'s were' if len(commits) > 1 else ' was'} {how}"


def _admitted(timeline: Timeline, commits: Sequence[Instant], settings: StreamSettings) -> Sequence[Instant]:
    """As many commits as the limits let through, at least one; those that completed together stay together."""
    if not settings.most_files and not settings.most_bytes:
        return commits
    files = size = taken = 0
    for number, commit in enumerate(commits):
        stats = [s for part in timeline.metadata(commit)["partitionToWriteStats"].values() for s in part]
        files, size = files + len(stats), size + sum(s["fileSizeInBytes"] or 0 for s in stats)
        over = (settings.most_files and files > settings.most_files) or (settings.most_bytes and size > settings.most_bytes)
        if over and taken and commit.completed_at != commits[number - 1].completed_at:
            break
        taken = number + 1
    return commits[:taken]
