"""Recovery: what dead writers left is taken back, and what finished ones left besides their files is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hudimeta.commit import rollback
from hudimeta.commit.built_upon import refuse_built_upon
from hudimeta.commit.dead_indexing import begun_by_others, take_back_dead
from hudimeta.commit.leftovers import (
    remove_late_metadata,
    remove_temporary_files,
    remove_unfinished_metadata,
    remove_unnamed_history,
)
from hudimeta.commit.liveness import HEARTBEAT_FOLDER, Heartbeat, is_alive
from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.markers import MARKERS, STAGING, marker_folder, read_markers, remove_markers
from hudimeta.commit.restoring import Restorer, is_merged, pending_restores
from hudimeta.commit.service_runs import ACTIONS, is_ours, take_back
from hudimeta.commit.strays import delete_late_files, sweep_metadata
from hudimeta.errors import CommitError
from hudimeta.metadata.indexing import remove_unnamed
from hudimeta.metadata.rollback import METADATA_ROOT, take_back_delta
from hudimeta.snapshot.schema_commits import forget_schema_commits
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import at_once, files_at_once
from hudimeta.table.properties import TableProperties
from hudimeta.table.properties import load as load_properties
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.timeline.naming import pending_name
from hudimeta.timeline.restore_record import RestoreRecord, encode_restore_plan
from hudimeta.types import Action, Instant, State

__all__ = ["Recovery"]

_MOST_ROLLBACKS = 3
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_PLANS = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.CLEAN, Action.INDEXING)


class Recovery:
    """Takes back what dead writers of one table left.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        lock: The table's lock.
        times: Makes instants.
        restorer: Finishes restores that died.
        patience_s: See `is_alive`.
    """

    def __init__(
        self,
        storage: Storage,
        properties: TableProperties,
        lock: TableLock,
        times: InstantGenerator,
        restorer: Restorer | None = None,
        patience_s: float = 0.0,
    ) -> None:
        self._storage, self._properties, self._lock, self._times = storage, properties, lock, times
        self._restorer, self._patience_s = restorer, patience_s

    def everywhere(self, *, undoing: bool = False) -> tuple[str, ...]:
        """Roll every dead write back and remove every leftover; returns the instants. Doing it twice is doing it once.

        Args:
            undoing: The newest write is to be taken back, so its file may be empty.

        Raises:
            CorruptFileError: It is empty, and is not to be taken back.
        """
        with self._lock.held():
            timeline = self._load()
            if not undoing:
                _refuse_half_published(timeline)
            undone = [*self._finish_restores(timeline)]
            timeline = self._load() if undone else timeline
            timeline = self._load() if self._remove_plans_without_instant(timeline) else timeline
            undone += take_back_dead(self._storage, timeline, self._properties, self._patience_s)
            timeline = self._load() if undone else timeline
            while dead := self._dead(timeline):
                refuse_built_upon(timeline, dead[0])
                undone.append(self.undo(timeline, dead[0], None))
                if undone.count(undone[-1]) > _MOST_ROLLBACKS:
                    raise CommitError(f"instant {undone[-1]} is pending again after every rollback", "Stop the other writer.")
                timeline = self._load()
            for write in timeline.disowned:
                self.disown(timeline, write)
            for run in self._dead_runs(timeline):
                take_back(self._storage, timeline.folder, run)
            self._remove_half_savepoints(timeline)
            remove_unnamed(self._storage, timeline)
            self._sweep(timeline)
            remove_temporary_files(self._storage, timeline)
            remove_unnamed_history(self._storage, timeline)
            remove_unfinished_metadata(self._storage, load_properties(self._storage))
            sweep_metadata(self._storage, self._load)
            remove_late_metadata(self._storage, timeline)
            return tuple(undone)

    def _remove_half_savepoints(self, timeline: Timeline) -> None:
        """A savepoint is made and removed under the lock: one without its completed file is nobody's, and keeps no file."""
        for instant in timeline.pending:
            if instant.action is Action.SAVEPOINT:
                TimelineWriter(self._storage, timeline.folder).delete_pending(instant.time, Action.SAVEPOINT, State.INFLIGHT)

    def _remove_plans_without_instant(self, timeline: Timeline) -> bool:
        """True if there was one. Services are planned under the lock: a plan at an instant that another action has begun was
        left by a planner that had lost it, and could not take it back. Run, it would take the other one's files for its own.
        What was never written goes, too.
        """
        plans = [i for i in timeline.pending if i.state is State.REQUESTED and (i.pending_action or i.action) in _PLANS]
        strays = [i for i in plans if _shares_its_instant(timeline, i, begun=True)]
        strays += _unwritten(timeline)
        for stray in strays:
            action = stray.pending_action or stray.action
            TimelineWriter(self._storage, timeline.folder).delete_pending(stray.time, action, State.REQUESTED)
        return bool(strays)

    def _finish_restores(self, timeline: Timeline) -> tuple[str, ...]:
        """Finish restores that died: what runs one holds the lock, as the caller does now."""
        found = pending_restores(timeline)
        if not found:
            return ()
        if self._restorer is None:
            raise CommitError(f"the restore at {found[0].time} is not finished", "Run t.recover(), which finishes it.")
        return (*self._restorer.finish(timeline), *(i.time for i in found))

    def before_any_write(self, timeline: Timeline) -> tuple[str, ...]:
        """What must not wait even where failed writes are left alone; see `before_a_write`.

        Restores that died, and rollbacks of completed writes: on what they take back nobody builds any more.
        """
        return self.everywhere() if pending_restores(timeline) or timeline.undone else ()

    def after_tasks(self) -> tuple[str, ...]:
        """The same where tasks may have left something that were killed or failed after their write was over.

        Asks for four listings more than `before_a_write`, so only writes that have tasks of their own call it.
        """
        # A task that only took rows in has no marker yet, and one that began after its write was over has a heartbeat at most,
        # so any of the folders may be all that is left.
        folders = (MARKERS, STAGING, HEARTBEAT_FOLDER, join(METADATA_ROOT, MARKERS))
        return self.everywhere() if any(at_once(self._storage.list, folders, self._storage)) else ()

    def before_a_write(self, timeline: Timeline) -> tuple[str, ...]:
        """The same where the timeline shows a dead write; else only the last writer's leftovers are looked for.

        Args:
            timeline: The table's, listed just now.
        """
        indexing = self._properties.metadata_partitions_inflight or begun_by_others(timeline)
        if indexing or self.dead(timeline) or timeline.disowned or pending_restores(timeline):
            return self.everywhere()
        self._remove_unnamed_indexes(timeline)
        if timeline.writes:
            write = timeline.by_completion[-1]
            last = write.time
            beat = Heartbeat(self._storage, last).path
            looks: tuple[Callable[[], object], ...] = (
                lambda: self._storage.is_file(beat),
                lambda: self._storage.list(marker_folder(last)),
            )
            if any(files_at_once(lambda look: look(), looks, self._storage)) and not self._beats(last):
                self._remove_late_files_of_completed(timeline, write)
                self._remove_traces(last)
                sweep_metadata(self._storage, self._load)
        return ()

    def dead(self, timeline: Timeline) -> list[Instant]:
        """Pending writes, rollbacks and runs of services that nobody works on.

        Args:
            timeline: The table's, listed just now.
        """
        _refuse_half_published(timeline)
        # Whoever asks whether a writer lives must not meet one that is being rolled back, or is just beginning.
        with self._lock.alone_here():
            dead = [*_unwritten(timeline), *self._dead(timeline), *self._dead_runs(timeline)]
            if dead:
                # Beside many writers most of them were published since the timeline was listed: they are looked at once more.
                now = self._load()
                dead = [*_unwritten(now), *self._dead(now), *self._dead_runs(now)]
            return dead

    def _remove_unnamed_indexes(self, timeline: Timeline) -> None:
        """Where an index was made last, its maker may have died before the table's properties named it."""
        newest = max((i.completed_at for i in timeline.writes), default="")
        if any(i.action is Action.INDEXING and i.completed_at > newest for i in timeline.completed):
            with self._lock.held():
                remove_unnamed(self._storage, self._load())

    def _load(self) -> Timeline:
        return self._properties.load_timeline(self._storage)

    def _dead(self, timeline: Timeline) -> list[Instant]:
        """Pending rollbacks, and pending writes that nobody works on; plans of services wait for their executor."""
        dead = []
        for instant in timeline.pending:
            action = instant.pending_action or instant.action
            if action is Action.ROLLBACK or (action in _WRITES and not self._lives(timeline, instant)):
                dead.append(instant)
        # A rollback that died is finished first: what it undoes must not be undone twice.
        return sorted(dead, key=lambda i: i.action is not Action.ROLLBACK)

    def _dead_runs(self, timeline: Timeline) -> list[Instant]:
        """Pending services that a process of ours was running when it died: their plans wait on, what it wrote goes."""
        runs = [i for i in timeline.pending if i.action in ACTIONS and i.state is State.INFLIGHT]
        return [i for i in runs if is_ours(self._storage, i) and not self._lives(timeline, i)]

    def _lives(self, timeline: Timeline, instant: Instant) -> bool:
        action = instant.pending_action or instant.action
        requested = join(timeline.folder, pending_name(instant.time, action, State.REQUESTED))
        return is_alive(self._storage, instant.time, requested, patience_s=self._patience_s)

    def dead_cleans(self, timeline: Timeline) -> list[Instant]:
        """Pending cleans that nobody runs: whoever meets one finishes it, since its files are partly gone."""
        cleans = [i for i in timeline.pending if i.action is Action.CLEAN]
        if not cleans:
            return []
        with self._lock.alone_here():
            return [i for i in cleans if not self._lives(timeline, i)]

    def undo(self, timeline: Timeline, instant: Instant, partitions: Sequence[str] | None) -> str:
        """Roll one pending write back, or finish a rollback; the caller holds the lock. Returns the write's instant.

        Args:
            timeline: As listed under the lock.
            instant: The pending write or rollback.
            partitions: Where to look for files of a write without markers; None for everywhere.
        """
        shared = _shares_its_instant(timeline, instant)
        if shared and instant.state is State.REQUESTED:
            # It was about to choose another one: what else bears the instant is the other action's.
            TimelineWriter(self._storage, timeline.folder).delete_pending(instant.time, instant.action, State.REQUESTED)
            return instant.time
        if instant.action is Action.ROLLBACK:
            the_plan, time = rollback.pending_plan(timeline, instant), instant.time
            if self._restorer is not None and self._properties.has_metadata_table and self._is_merged(the_plan):
                return self._restored(self._restorer, timeline, the_plan)
        else:
            the_plan = rollback.plan(self._storage, instant, self._partitions() if partitions is None else partitions)
            time = None
        forget_schema_commits(self._storage, [the_plan.instant])
        has_metadata = self._properties.has_metadata_table and not _shares_its_instant(timeline, instant, begun=True)
        rollback.execute(self._storage, timeline, self._times, the_plan, time=time, has_metadata=has_metadata)
        return the_plan.instant

    def _is_merged(self, plan: rollback.RollbackPlan) -> bool:
        return is_merged(self._storage, self._properties, plan.instant)

    def _restored(self, restorer: Restorer, timeline: Timeline, plan: rollback.RollbackPlan) -> str:
        """Finish a rollback by a restore, which builds the metadata table anew. Returns the write's instant.

        Apache Hudi 1.2 compacts its metadata table before it rolls back, deletes the write's files, and then refuses to tell
        the metadata table of it: that lists them from then on.
        """
        stays = [i.time for i in timeline.by_completion if i.time != plan.instant]
        record = RestoreRecord(stays[-1] if stays else "", ((plan.instant, plan.action),))
        time = self._times.next(timeline.last_time)
        TimelineWriter(self._storage, timeline.folder).create_requested(time, Action.RESTORE, encode_restore_plan(record))
        restorer.finish(self._load())
        return plan.instant

    def _partitions(self) -> list[str]:
        """Every partition folder of the table, found on storage: a dead write may have made one that no index knows."""
        from hudimeta.table.discovery import partitions_on_storage

        return partitions_on_storage(self._storage)

    def disown(self, timeline: Timeline, write: Instant) -> None:
        """Remove what a write published after it had been rolled back; the caller holds the lock.

        Args:
            timeline: As listed under the lock.
            write: One of its `disowned`, or a completed write that is to be pending again.
        """
        TimelineWriter(self._storage, timeline.folder).delete_completed(write)
        if write in timeline.disowned:
            self.remove_late_files(timeline, write.time)

    # What is left besides data files

    def remove_late_files(self, timeline: Timeline, instant: str) -> None:
        """Remove what tasks wrote for a write that is not on the timeline any more: one that was rolled back, or archived."""
        if instant in timeline.archived_completions([instant]):
            if read_markers(self._storage, instant):
                archived = ArchivedRecords(timeline.history, _WRITES, since=instant)
                self._delete_all_but(instant, *(archived.metadata(i) for i in archived.instants if i.time == instant))
        else:
            delete_late_files(self._storage, instant)
            forget_schema_commits(self._storage, [instant])
            if self._properties.has_metadata_table:
                take_back_delta(self._storage, instant)
        self._remove_traces(instant)

    def tidy(self, timeline: Timeline, instants: Iterable[Instant]) -> None:
        """Remove what completed writes left whose processes died right after, before the timeline forgets the writes.

        Three listings, however many writes.

        Args:
            timeline: On which the instants are completed.
            instants: Which are about to leave it.
        """
        left = self._instants_with_traces()
        for instant in instants:
            if instant.time in left and not self._beats(instant.time):
                self._remove_late_files_of_completed(timeline, instant)
                self._remove_traces(instant.time)

    def _remove_late_files_of_completed(self, timeline: Timeline, write: Instant) -> None:
        """Remove what a second attempt at a task wrote after the write had been published without it.

        Where the write's file has lost its content everything stays.
        """
        if (
            write.action.writes_data
            and write not in timeline.empty_writes
            and read_markers(self._storage, write.time) is not None
        ):
            self._delete_all_but(write.time, timeline.metadata(write))

    def _delete_all_but(self, instant: str, *commits: Mapping[str, Any]) -> None:
        """Delete what is marked for a write and not named by its commit; nothing where the commit does not name its files."""
        stats = [stat for commit in commits for part in commit["partitionToWriteStats"].values() for stat in part]
        named = {path for stat in stats for path in (stat["path"], *(stat["cdcStats"] or ()))}
        if commits and None not in named:
            delete_late_files(self._storage, instant, named)

    def _instants_with_traces(self) -> set[str]:
        found = at_once(self._storage.list, (MARKERS, STAGING, HEARTBEAT_FOLDER), self._storage)
        names = {entry.name for entries in found for entry in entries}
        return {name for name in names if name.isdigit()}

    def _sweep(self, timeline: Timeline) -> None:
        names = sorted(self._instants_with_traces())
        if any(timeline.get(name) is None for name in names):
            timeline = self._load()  # writes begin without the lock: what leaves a trace now may have been requested since
        for name in names:
            found = timeline.get(name)
            if found is None and not self._beats(name):
                self.remove_late_files(timeline, name)
            elif found is not None and found.is_completed and not self._beats(name):
                self._remove_late_files_of_completed(timeline, found)
                self._remove_traces(name)

    def _beats(self, instant: str) -> bool:
        return is_alive(self._storage, instant, None, patience_s=self._patience_s)

    def _remove_traces(self, instant: str) -> None:
        Heartbeat(self._storage, instant).stop()
        remove_markers(self._storage, instant)


def _shares_its_instant(timeline: Timeline, instant: Instant, *, begun: bool = False) -> bool:
    """True when another action has the instant of a pending write.

    Args:
        timeline: As listed under the lock.
        instant: The pending write, or a rollback, which never does.
        begun: Only another one that has begun, so that what the metadata table holds of the instant may be the other's.
    """
    own = (instant.action, instant.pending_action, Action.SAVEPOINT)
    others = [i for i in timeline if i.time == instant.time and i.action not in own]
    return instant.action is not Action.ROLLBACK and any(not begun or i.state is not State.REQUESTED for i in others)


def _unwritten(timeline: Timeline) -> list[Instant]:
    """Plans of services and rollbacks whose file is empty, and of which nothing was begun.

    Apache Hudi 1.0 makes a file before it writes it. Who planned died in between: what was to be done is found anew.
    """
    asked = [i for i in timeline.pending if i.state is State.REQUESTED and i.size == 0]
    return [i for i in asked if (i.pending_action or i.action) in (*_PLANS, Action.ROLLBACK)]


def _refuse_half_published(timeline: Timeline) -> None:
    """Refuse to go on over the newest write when its completed file is there but empty: its maker died, or is yet to fill it.

    Apache Hudi goes by the name and takes such a write for completed, so whether to take it back is for a person to say. When
    somebody has gone on over it that is decided: its rows count, and the metadata table knows its files.

    Raises:
        CorruptFileError: With the path of the empty file.
    """
    if timeline.empty_writes and timeline.by_completion[-1] in timeline.empty_writes:
        raise timeline.lost_content(timeline.by_completion[-1])
