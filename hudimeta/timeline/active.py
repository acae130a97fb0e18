"""The active timeline: what happened to a table, and which files of it may be seen.

A file belongs to the table when the instant in its name is committed: completed here, or older than the first write that is
still on the active timeline (then it was completed and archived). Savepointed writes are left out when that first write is
looked for, because archiving steps over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timezone, tzinfo
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hudimeta.cached import cached_property
from hudimeta.engine.machine import pause
from hudimeta.errors import NotFound
from hudimeta.storage import FileInfo, Storage, join, kept_by
from hudimeta.timeline import content
from hudimeta.timeline.disowned import disowned_writes
from hudimeta.timeline.display import timeline_text
from hudimeta.timeline.history import History
from hudimeta.timeline.instant_files import InstantFiles
from hudimeta.timeline.listing import TimelineListing, list_instants
from hudimeta.timeline.naming import LAYOUT_V1, pending_name
from hudimeta.timeline.restore_record import being_undone
from hudimeta.types import Action, Instant, State

if TYPE_CHECKING:
    import pyarrow as pa
    from sortedcontainers import SortedKeyList

    from hudimeta.errors import CorruptFileError

__all__ = ["DEFAULT_FOLDER", "Timeline"]

DEFAULT_FOLDER = ".hoodie/timeline"
_LAST = "~"  # greater than the text of any time
_REMOVALS = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)


class Timeline:
    """The instants of one table (or of its metadata table) at the moment of listing; never changes.

    Make one with `Timeline.load`. Iterating gives the instants, oldest first; `disowned` are writes that do not count, and
    neither does what is `undone` by a pending restore or rollback."""

    def __init__(
        self,
        listing: TimelineListing,
        storage: Storage,
        folder: str,
        layout: int,
        zone: tzinfo | None,
        history: History,
        place: str = "",
    ) -> None:
        self.instants: tuple[Instant, ...] = listing.instants
        self.disowned: tuple[Instant, ...] = ()
        self.undone: tuple[Instant, ...] = ()
        self.folder, self.layout, self.zone, self.history = folder, layout, zone, history
        self._file_names = listing.file_names
        self._place = place
        ages = {i.file_name: (i.size, i.modified_ms) for i in listing.instants if i.is_completed}
        self._files = InstantFiles(storage, folder, history, place, ages)

    @classmethod
    def load(
        cls,
        storage: Storage,
        folder: str = DEFAULT_FOLDER,
        layout: int = 2,
        *,
        history_folder: str | None = None,
        zone: tzinfo | None = timezone.utc,
        sleep: Callable[[float], None] = pause,
        place: str = "",
        history_in_order: bool = True,
        listed: Sequence[FileInfo] = (),
    ) -> Timeline:
        """List the timeline: one request, unless somebody is writing an instant just now.

        Small files that were read for the last listing by the same storage, and have not changed, are not read again.

        Args:
            storage: Rooted at the table (for the metadata table at `.hoodie/metadata`).
            folder: The timeline's folder, relative to that root.
            layout: 2 for table versions 8 and 9, 1 for version 6.
            history_folder: Where archived instants lie; None for the default place of the layout.
            zone: The table's zone, None for the machine's. Only completion times that no name tells depend on it.
            sleep: Waits so many seconds.
            place: Where the root is within the user's table, for errors; "" for the table itself.
            history_in_order: See `History`.
            listed: What is in the folder, where that was asked for just now; then there is no request.
        """
        default = join(folder, "archived" if layout == LAYOUT_V1 else "history")
        history = History(storage, history_folder or default, layout, in_order=history_in_order)
        listing = list_instants(storage, folder, layout, zone, sleep, place, listed)
        timeline = cls(listing, storage, folder, layout, zone, history, place)
        timeline._follow_kept(storage)
        timeline.disowned = disowned_writes(timeline, listing.bare)
        timeline.undone = being_undone(timeline)
        if timeline.disowned or timeline.undone:
            gone = (*timeline.disowned, *timeline.undone)
            timeline.instants = tuple(i for i in listing.instants if i not in gone)
        return timeline

    def following(self, earlier: Timeline) -> Timeline:
        """This timeline; what an earlier listing of the same folder has read of completed instants is not read again."""
        self._files.follow(earlier._files)
        return self

    def _follow_kept(self, storage: Storage) -> None:
        kept, name = kept_by(storage), f"timeline {join(self._place, self.folder)}"
        if name in kept:
            self._files.follow(kept[name], small=True)
        kept[name] = self._files

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    def __repr__(self) -> str:
        return timeline_text(f"Timeline {self.folder} (layout {self.layout})", self.instants)

    # Groups of instants

    @cached_property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants of every action, by requested time."""
        return tuple(instant for instant in self.instants if instant.is_completed)

    @cached_property
    def pending(self) -> tuple[Instant, ...]:
        """Requested and inflight instants of every action, by requested time."""
        return tuple(instant for instant in self.instants if not instant.is_completed)

    @cached_property
    def writes(self) -> tuple[Instant, ...]:
        """Completed commits, deltacommits and replacecommits (services included), by requested time."""
        return tuple(instant for instant in self.completed if instant.action.writes_data)

    @cached_property
    def by_completion(self) -> SortedKeyList:
        """`writes` by completion time, of which ranges are taken as well (`irange_key`)."""
        from sortedcontainers import SortedKeyList

        return SortedKeyList(self.writes, key=attrgetter("completion_order"))

    @cached_property
    def pending_writes(self) -> tuple[Instant, ...]:
        """Commits, deltacommits, replacecommits and services that are not completed, by requested time."""
        return tuple(instant for instant in self.pending if instant.action.writes_data)

    @cached_property
    def empty_writes(self) -> tuple[Instant, ...]:
        """Completed writes whose file has lost its content: `metadata` refuses them, and no write may go on over them.

        None in layout 1, where a commit without content was legal.
        """
        return () if self.layout == LAYOUT_V1 else tuple(instant for instant in self.writes if instant.size == 0)

    def path_of(self, instant: Instant) -> str:
        """The file of the instant's highest state, relative to the user's table."""
        return join(self._place, self.folder, instant.file_name)

    @cached_property
    def savepoints(self) -> frozenset[str]:
        """Requested times of savepointed writes."""
        return frozenset(instant.time for instant in self.instants if instant.action is Action.SAVEPOINT)

    @cached_property
    def first_active_write(self) -> str | None:
        """Requested time of the oldest write, pending ones included and savepointed ones left out; None without any.

        Whatever is older was archived, hence committed. Where all writes are savepointed, as after a restore, it is the newest.
        """
        times = [i.time for i in (*self.instants, *self.undone) if i.action.writes_data]
        unsaved = [time for time in times if time not in self.savepoints]
        return min(unsaved, default=max(times, default=None))

    @cached_property
    def last_time(self) -> str:
        """The greatest requested or completion time of any instant, "" on an empty timeline: the next must exceed it."""
        return max(
            (t for i in (*self.instants, *self.disowned, *self.undone) for t in (i.time, i.completion or "")), default=""
        )

    def get(self, time: str, action: Action | None = None) -> Instant | None:
        """The instant of a requested time; where a savepoint shares it, the write, unless `action` says otherwise."""
        candidates = self._by_time.get(time, ())
        for instant in candidates:
            if action is None or instant.action.completed_as is action.completed_as:
                return instant
        return None

    def writes_between(self, begin: str, end: str | None = None) -> tuple[Instant, ...]:
        """Completed writes whose completion time lies after `begin` and not after `end`, by completion time.

        Args:
            begin: Exclusive; "000" is before everything.
            end: Inclusive; None for all.
        """
        return tuple(self.by_completion.irange_key((begin, _LAST), None if end is None else (end, _LAST)))

    @cached_property
    def _by_time(self) -> dict[str, tuple[Instant, ...]]:
        groups: dict[str, tuple[Instant, ...]] = {}
        for instant in self.instants:
            groups[instant.time] = (*groups.get(instant.time, ()), instant)
        return groups

    # Which files may be seen

    @cached_property
    def completion_times(self) -> Mapping[str, str]:
        """Completion time by requested time of the completed writes on the active timeline, in order."""
        return {instant.time: instant.completed_at for instant in self.writes}

    def is_committed(self, time: str) -> bool:
        """True when files written by the instant of this requested time belong to the table."""
        first = self.first_active_write
        return time in self.completion_times or (first is not None and time < first)

    def completion_of(self, time: str) -> str | None:
        """Completion time of a write, None when it is not committed.

        Of an archived write the history tells it, which is read on the first such question; where the history does not know
        it either, the requested time stands in.
        """
        found = self.completion_times.get(time)
        if found is not None or not self.is_committed(time):
            return found
        return self._archived_completion.get(time, time)

    def archived_completions(self, times: Iterable[str]) -> Mapping[str, str]:
        """Completion times, by requested time, of those writes that the history knows; reads the files that may hold them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = list(times)
        if not wanted:
            return {}
        rows = self.history.times(min(wanted))
        rows = rows.filter(pc.is_in(rows["instant_time"], value_set=pa.array(wanted, pa.string())))
        columns = (rows[name].to_pylist() for name in ("instant_time", "completion_time", "action"))
        return {time: done or time for time, done, action in zip(*columns, strict=True) if Action(action).writes_data}

    @cached_property
    def _archived_completion(self) -> Mapping[str, str]:
        return {i.time: i.completed_at for i in self.history.instants() if i.action.writes_data}

    def archived_writes(self, after: str, completed_after: str | None = None) -> list[str]:
        """Requested times of the writes that only the history has, oldest first.

        Not those that an archival which died has left active, and not those that a restore took back before the next one.

        Args:
            after: Those that were requested after this time.
            completed_after: And those that were completed after this one, which takes the whole history to find; None for not.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        writes = pa.array([action.value for action in Action if action.writes_data])
        rows = self.history.times(after if completed_after is None else "")
        is_later = pc.greater(rows["instant_time"], after)
        if completed_after is not None:
            done = pc.coalesce(rows["completion_time"], rows["instant_time"])
            is_later = pc.or_(is_later, pc.greater(done, completed_after))
        later = rows.filter(pc.and_(is_later, pc.is_in(rows["action"], value_set=writes)))
        active = pa.array(list(self.completion_times), pa.string())
        gone = later.filter(pc.invert(pc.is_in(later["instant_time"], value_set=active)))["instant_time"].to_pylist()
        return [time for time in gone if time not in self.rolled_back] if gone else []

    # What the files say

    def files_of(self, instant: Instant) -> tuple[str, ...]:
        """Names of all files of an instant, requested first and completed last."""
        return self._file_names.get((instant.time, instant.action.completed_as), ())

    def read(self, instant: Instant) -> bytes:
        """The bytes of the file of the instant's highest state, read once. Raises NotFound when it was rolled back."""
        return self._files.read(instant.file_name)

    def pending_bytes(self, instant: Instant, state: State = State.REQUESTED) -> bytes:
        """The bytes of an instant's requested or inflight file: its plan. Raises NotFound when there is none."""
        return self._files.read(pending_name(instant.time, instant.pending_action or instant.action, state))

    def metadata(self, instant: Instant) -> dict[str, Any]:
        """The record in the file of the instant's highest state, with Hudi's field names.

        Of commits, deltacommits and replacecommits the shape is that of `formats.avro.commit_metadata`, whatever the table's
        version; other records are {} when the file is empty. The answer is shared: do not change it.

        Raises:
            CorruptFileError: the file cannot be decoded, or is empty though its action is completed (see `empty_writes`).
            NotFound: the instant was rolled back meanwhile.
        """
        must_say = instant.is_completed and (
            instant.action is Action.SAVEPOINT or (self.layout != LAYOUT_V1 and instant.action in _REMOVALS)
        )
        if instant.size == 0 and (must_say or instant in self.empty_writes):
            raise self.lost_content(instant)
        is_commit = instant.action is instant.action.completed_as and instant.action.writes_data
        return self._files.decoded(instant.file_name, is_commit and instant.state is not State.REQUESTED)

    def lost_content(self, instant: Instant) -> CorruptFileError:
        """The error for one of `empty_writes`, of which only a person can tell what happened."""
        newest = instant.action.writes_data and instant == self.by_completion[-1]
        return content.lost_content(self.path_of(instant), self._way_out(instant, newest))

    def _way_out(self, instant: Instant, newest: bool) -> str:
        """What helps where a completed instant has lost its content."""
        if self._place:
            return "t.metadata.rebuild() builds the metadata table anew"
        if instant.action is Action.CLEAN:
            return "t.repair.cleans() writes it anew"
        if not instant.action.writes_data:
            return ""
        if newest:
            return f"t.rollback({instant.time!r}) takes the write back, as is right where its maker was killed"
        before = [i for i in self.by_completion if i.completion_order < instant.completion_order]
        to = repr(before[-1].time) if before else "…"
        return f"t.restore({to}) takes the table back to before it, with whatever came later"

    def plan(self, instant: Instant) -> dict[str, Any]:
        """The record in the instant's requested file: of a compaction, clustering, clean, rollback, restore or indexing.

        {} when the file is empty. Raises NotFound, CorruptFileError.
        """
        return self._files.decoded(pending_name(instant.time, instant.pending_action or instant.action, State.REQUESTED), False)

    def plans(self, instants: Iterable[Instant]) -> Iterator[tuple[Instant, dict[str, Any]]]:
        """The records of several planned instants; those are left out that were taken back since this timeline was listed."""
        for instant in instants:
            try:
                yield instant, self.plan(instant)
            except NotFound:  # who looks without the table lock meets others who take plans back
                continue

    def prefetch(self, instants: Iterable[Instant]) -> None:
        """Read the files of several instants at once, so that `read` and `metadata` need not wait for each."""
        self._files.prefetch(instant.file_name for instant in instants)

    def is_read(self, instant: Instant) -> bool:
        """Whether the file of the instant's highest state was read already, so that `metadata` costs no request."""
        return self._files.is_read(instant.file_name)

    def replaced_file_groups(self, as_of: str | None = None) -> pa.Table:
        """File groups that insert-overwrites, deleted partitions and clustering hid.

        Args:
            as_of: Only those replaced by instants requested up to this time; None for all.

        Returns:
            Arrow table `partition_path: string, file_id: string, instant: string` (the replacing instant).
        """
        replacing = [i for i in self.writes if i.action is Action.REPLACE_COMMIT and (as_of is None or i.time <= as_of)]
        self.prefetch(replacing)
        return content.replaced_groups_table(replacing, self)

    @cached_property
    def rolled_back(self) -> frozenset[str]:
        """Requested times of the instants that completed rollbacks and restores took back."""
        undoing = [i for i in self.completed if i.action in (Action.ROLLBACK, Action.RESTORE)]
        self.prefetch(undoing)
        return content.undone_instants(undoing, self)

    def latest_schema(self, as_of: str | None = None) -> tuple[Instant, str] | None:
        """The newest Avro schema (JSON text) that a completed write carries, with that write; None when none does.

        Args:
            as_of: Only writes requested up to this time; None for all.
        """
        newest_first = (i for i in reversed(self.writes) if as_of is None or i.time <= as_of)
        return content.latest_schema(newest_first, self)
