"""The coordinator: one write from its instant to its publication, or back to where it began.

A write goes through four steps. *Begin* rolls dead writes back and puts a new instant on the timeline. *Work* writes data
files, a marker before each; the coordinator has no part in it. *Publish*, under the table lock, checks for conflicts, commits
the metadata table at the same instant, and then creates the completed file, the one moment at which the write becomes visible.
*Abort* takes everything back. A process that dies leaves the instant pending, and the next writer's begin does the abort.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from hudimeta.commit.approach import Approach, Ready
from hudimeta.commit.clean_run import CleanRunner
from hudimeta.commit.concurrency import Concurrency, ConcurrencyMode
from hudimeta.commit.conflicts import check_conflicts, check_schema, conflicts_metered
from hudimeta.commit.dead_indexing import take_back_dead
from hudimeta.commit.early_conflicts import give_way_to_writers
from hudimeta.commit.extra_metadata import RollingKeys, entries_of
from hudimeta.commit.late_publication import refuse_unpublished, settle_late
from hudimeta.commit.liveness import Heartbeat, show_outlasted
from hudimeta.commit.locks.fence import FencedLock, FencedStorage
from hudimeta.commit.markers import has_markers, remove_markers
from hudimeta.commit.metadata_commit import MetadataCommit, may_have_other_indexes
from hudimeta.commit.planned_runs import Begun, begin, running
from hudimeta.commit.publication import OpenWrite, Publication, Unsettled, check_still_ours, commit_record, requested_content
from hudimeta.commit.recovery import Recovery
from hudimeta.commit.restoring import Restorer, refuse_undone
from hudimeta.commit.strays import remove_metadata_markers
from hudimeta.commit.stream_batches import refuse_repeated
from hudimeta.config import HudiWarning
from hudimeta.errors import CommitConflict, CommitError, CommitOutcomeUnknown, HudiError, InstantExists, StorageError
from hudimeta.formats.avro.commit_metadata import encode_commit_metadata
from hudimeta.redaction import hidden
from hudimeta.snapshot.schema_commits import write_schema_commit
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import beside
from hudimeta.table.properties import TableProperties
from hudimeta.table.properties import load as load_properties
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Instant, Operation, State, TableType

__all__ = ["Coordinator", "OpenWrite", "Publication", "Unsettled"]

_MOST_COLLISIONS = 100


class Coordinator:
    """Begins, publishes and aborts the writes of one table.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        lock: The table's lock.
        times: Makes instants.
        metadata: Brings the metadata table along; None for a table that has none.
        concurrency: How writers get along.
        restorer: Finishes restores that died.
        rolling: Entries of metadata that go from commit to commit.
    """

    def __init__(
        self,
        storage: Storage,
        properties: TableProperties,
        lock: FencedLock,
        times: InstantGenerator,
        metadata: MetadataCommit | None,
        *,
        concurrency: Concurrency | None = None,
        restorer: Restorer | None = None,
        rolling: RollingKeys | None = None,
    ) -> None:
        self._storage, self._properties, self._lock, self._times = FencedStorage(storage, lock), properties, lock, times
        self._metadata, self._concurrency = metadata, concurrency or Concurrency()
        self._eager, self._patience_s = self._concurrency.failed_writes == "EAGER", self._concurrency.patience_s
        self._rolling, self._writer = rolling or RollingKeys(), TimelineWriter(self._storage, properties.timeline_folder)
        self._recovery = Recovery(self._storage, properties, lock, times, restorer, self._patience_s)
        self.notes: list[str] = []  # of the last publication
        self.published_on: Timeline | None = None  # as the last publication found it: its own instant is not completed there
        self._held, self._publishes, self._begun = contextlib.ExitStack(), False, dict[str, Begun]()

    @property
    def times(self) -> InstantGenerator:
        """The source of instants."""
        return self._times

    @property
    def compacted_metadata(self) -> bool:
        """True when a commit of this coordinator compacted the metadata table."""
        return self._metadata is not None and self._metadata.compacted

    # Begin

    def recover(self, *, undoing: bool = False) -> tuple[str, ...]:
        """As `Recovery.everywhere`, and finish cleans that died; idempotent. Returns the instants of the dead writers."""
        undone = self._recovery.everywhere(undoing=undoing)
        self._finish_cleans(self._properties.load_timeline(self._storage))
        if self._metadata is not None:
            try:
                self._metadata.finish_services(self._lock, lambda: self._properties.load_timeline(self._storage))
            except HudiError as error:
                warnings.warn(f"the upkeep of the metadata table is left to a later write: {error}", HudiWarning, stacklevel=2)
        return undone

    @property
    def recovery(self) -> Recovery:
        """Finds what dead writers left, and removes it."""
        return self._recovery

    def recover_from_tasks(self) -> tuple[str, ...]:
        """Remove what tasks of earlier writes left; see `Recovery.after_tasks`. Returns dead writes that were rolled back."""
        return self._recovery.after_tasks() if self._eager else ()

    def begin(
        self, operation: Operation, timeline: Timeline | None = None, *, heartbeat: bool = False
    ) -> tuple[OpenWrite, Timeline]:
        """Put a new instant on the timeline, after dead writes were rolled back.

        Args:
            operation: What will be done.
            timeline: The table's timeline where it was listed just now; None lists it.
            heartbeat: Keep the write alive by a heartbeat file instead of this process: for writes that pass through many.

        Returns:
            The write, and the timeline on which it began: what is completed there is what the write knows.
        """
        self._lock.look_at_store()
        timeline = self._properties.load_timeline(self._storage) if timeline is None else timeline
        undone = self._recovery.before_a_write(timeline) if self._eager else self._recovery.before_any_write(timeline)
        if (self._eager and self._finish_cleans(timeline)) or undone:
            timeline = self._properties.load_timeline(self._storage)
        plain = Action.DELTA_COMMIT if self._properties.type is TableType.MERGE_ON_READ else Action.COMMIT
        action = Action.REPLACE_COMMIT if operation.replaces_groups else plain
        with self._concurrency.choosing_an_instant(self._lock):
            instant = self._announce(timeline, action, heartbeat)
        write = OpenWrite(instant, action, operation, frozenset(timeline.completion_times), undone, heartbeat)
        try:
            self._writer.create_inflight(instant, action)
        except HudiError:
            self._give_up(write)
            raise
        return write, timeline

    def _announce(self, timeline: Timeline, action: Action, heartbeat: bool) -> str:
        """Create a fresh instant's requested file, and show that its writer lives."""
        for _ in range(_MOST_COLLISIONS):
            instant = self._times.next(timeline.last_time)
            with contextlib.suppress(InstantExists):
                self._claim(timeline.folder, instant, action, heartbeat)
                return instant
        raise _no_instant()

    def _claim(self, folder: str, instant: str, action: Action, heartbeat: bool) -> None:
        """Raises InstantExists: another writer has the instant."""
        guard = self._storage.guard(join(folder, pending_name(instant, action, State.REQUESTED)))
        beat = Heartbeat(self._storage, instant)
        if guard is None:
            beat.begin()
            if not heartbeat:
                self._held.enter_context(beat.going_on(self._concurrency.beat_s))
        try:
            self._writer.create_alone(instant, action, requested_content(action))
        except HudiError:
            self._held.close()
            if guard is None:
                with contextlib.suppress(StorageError):
                    beat.stop()
            raise
        if guard is not None and heartbeat:
            beat.beat()
        elif guard is not None:
            if self._concurrency.mode is not ConcurrencyMode.SINGLE_WRITER:
                self._held.enter_context(Heartbeat(self._storage, instant, for_others=True).beating(self._concurrency.beat_s))
            self._held.enter_context(guard)

    def plan(self, timeline: Timeline, action: Action, content: bytes, *, to_run: bool = False) -> str:
        """Put the plan of a service on the timeline; returns its instant. The caller holds the lock.

        Args:
            timeline: As listed under the lock.
            action: The pending word of the service.
            content: The plan.
            to_run: `running` comes next, so that no other process may run it.
        """
        for _ in range(_MOST_COLLISIONS):
            instant = self._times.next(timeline.last_time)
            with contextlib.suppress(InstantExists):
                self._writer.create_alone(instant, action, content)
                if to_run:
                    self._begun[instant] = begin(
                        self._storage, self._properties, instant, action, self._patience_s, just_planned=True
                    )
                return instant
        raise _no_instant()

    # Publish

    def publish(self, write: OpenWrite, publication: Publication) -> str:
        """Make a write visible; returns its completion time. After an error the caller aborts the write.

        Raises:
            CommitConflict: Another writer was first.
            CommitOutcomeUnknown: Storage failed at the last step and could not be asked what became of it.
            HudiError: Anything else that failed before the last step.
        """
        self.notes.clear()
        self._publishes = True
        approach, again = Approach(self._storage, self._properties, self._lock, self._metadata, self.notes), False
        while True:
            try:
                with approach.next_with(write, publication, again=again) as (ready, place), self._lock.held():
                    place.close()
                    completion, publication = self._publish_locked(write, ready)
                    lost = self._lock.was_lost()
                break
            except Unsettled as found:
                publication, again = found.settled(), True
        if lost and self.published_on is not None:
            settle_late(self._storage, self._properties, self._lock, self._recovery, write, publication, self.published_on)
        self._finish(write)
        if not lost and write.action is not Action.COMPACTION:
            # Two merges in one write would make the slowest writes slower yet: the next one compacts it.
            self._compact_metadata()
        return completion

    def _publish_locked(self, write: OpenWrite, ready: Ready) -> tuple[str, Publication]:
        timeline = self._listed_to_publish(write, ready)
        publication = self._beside_others(write, ready.publication, timeline)
        extra = entries_of(self._properties, publication, self._rolling, timeline, self.notes)
        if self._metadata is not None:
            extra |= self._metadata.commit(
                timeline,
                write.instant,
                publication.files,
                publication.schema,
                publication.known,
                replaced=publication.replaced,
                same_rows=write.runs_a_plan,
                renamed=publication.renamed,
                apart=publication.apart,
                prepared=ready.prepared,
                beside_others=ready.timeline is not None,
            )
            self.notes += self._metadata.notes
        self.published_on = timeline
        content = encode_commit_metadata(commit_record(write, publication, extra), replace=write.replaces)
        self._lock.check()
        # The time before the completion is left to the metadata table's own actions, see `metadata.own_instants`.
        completion = self._times.next(self._times.next(timeline.last_time, write.instant))
        if publication.decides is not None:
            publication.decides(timeline)
        if publication.history is not None:
            write_schema_commit(self._storage, timeline, write.instant, completion, publication.history)
        show_outlasted(self._storage, timeline, write.instant)
        try:
            self._writer.complete(write.instant, write.action, completion, content)
        except StorageError as error:
            refuse_unpublished(self._storage, self._properties, write, error)
        return completion, publication

    def _listed_to_publish(self, write: OpenWrite, ready: Ready) -> Timeline:
        """The timeline under the lock, on which the write may still be published."""
        timeline, known = self._properties.load_timeline(self._storage), ready.publication.known
        earlier = ready.timeline if ready.timeline is not None or known is None else known.data_timeline
        if earlier is not None:
            timeline.following(earlier)
        dead = take_back_dead(self._storage, timeline, self._properties, self._patience_s)
        if dead:
            self.notes.append(f"builds of indexes that died were taken back: {', '.join(dead)}")
            timeline = self._properties.load_timeline(self._storage)
        check_still_ours(timeline, write)
        refuse_undone(timeline, write)
        if dead or self._metadata is None or may_have_other_indexes(timeline, known):
            self._check_metadata_is_known(write)
        refuse_repeated(ready.publication.extra, timeline, write.operation.value)
        return timeline

    def _beside_others(self, write: OpenWrite, publication: Publication, timeline: Timeline) -> Publication:
        """What is published beside what others have published meanwhile; refused where it contradicts that."""
        name = write.operation.value
        if write.action is not Action.COMPACTION:
            # What others add to a file group meanwhile lies on top of a compaction's base file.
            with conflicts_metered(self._storage):
                if publication.settling is not None:
                    publication = publication.settling.under_lock(timeline)
                else:
                    keyed = None if write.operation is Operation.INSERT_OVERWRITE_TABLE else publication.keyed_partitions
                    check_conflicts(timeline, write.seen, name, publication.changed, keyed, own=write.instant)
            if not write.runs_a_plan:
                check_schema(timeline, write.seen, name, publication.avro_schema, write.instant)
        if write.runs_a_plan and self._concurrency.prefers_writers:
            give_way_to_writers(self._storage, timeline, name, publication.changed, alone=True, patience_s=self._patience_s)
        return publication

    def running(self, instant: str, action: Action) -> contextlib.AbstractContextManager[tuple[Timeline, Instant]]:
        """Run a planned service alone; see `commit.planned_runs.running`."""
        begun = self._begun.pop(instant, None)
        return begun or running(self._storage, self._properties, self._lock, instant, action, self._patience_s)

    @property
    def cleans(self) -> CleanRunner:
        """Runs planned cleans."""
        return CleanRunner(self._storage, self._properties, self._lock, self._times, self._metadata, self._patience_s)

    def _finish_cleans(self, timeline: Timeline) -> bool:
        """Finish the cleans that died; True when there were any."""
        found = self._recovery.dead_cleans(timeline)
        self.cleans.finish(found)
        return bool(found)

    def _check_metadata_is_known(self, write: OpenWrite) -> None:
        """A metadata table, or an index, that another writer built meanwhile would never hear of this write, and one that was
        dropped would come back with files that nobody owns.
        """
        properties = load_properties(self._storage)
        if properties.type is not self._properties.type:
            raise CommitConflict(write.operation.value, (), "another process", what="the table's type")
        if (self._metadata is not None) is not properties.has_metadata_table:
            did = "built meanwhile" if properties.has_metadata_table else "removed meanwhile"
            raise CommitConflict(write.operation.value, (), "another process", what="the metadata table", did=did)
        if self._metadata is not None:
            self._metadata.properties = properties

    def _compact_metadata(self) -> None:
        """The write is published: whatever happens here may delay upkeep, but not turn success into an error."""
        if self._metadata is not None:
            try:
                self._metadata.compact_when_due(self._lock)
            except Exception as error:  # a damaged file of the metadata table raises what its decoder raises
                why = error if isinstance(error, HudiError) else f"{type(error).__name__}: {error}"
                self.notes.append(f"the upkeep of the metadata table is left to a later write: {why}")

    def _finish(self, write: OpenWrite) -> None:
        """Tidy up; nothing here may turn a published write into an error."""
        with contextlib.suppress(HudiError, OSError):
            self._held.close()
        with contextlib.suppress(StorageError, OSError):
            beat, staged = Heartbeat(self._storage, write.instant), write.by_many or write.runs_a_plan
            beside(beat.stop, lambda: remove_markers(self._storage, write.instant, staged=staged), self._storage)
            if write.by_many:
                remove_metadata_markers(self._storage, write.instant)

    # Abort

    def withdraw(self, write: OpenWrite) -> None:
        """Take back a write that has begun and written nothing, as if it had never begun: no rollback tells of it."""
        with self._lock.held():
            remove_markers(self._storage, write.instant)
            self._held.close()
            with contextlib.suppress(StorageError):
                Heartbeat(self._storage, write.instant).stop()
            for state in (State.INFLIGHT, State.REQUESTED):
                self._writer.delete_pending(write.instant, write.action, state)

    def abort(self, write: OpenWrite) -> None:
        """Roll a write back, unless it is completed already: then nothing happens."""
        self._held.close()
        with self._lock.held():
            timeline = self._properties.load_timeline(self._storage)
            found = timeline.get(write.instant, write.action)
            if found is None:
                # Another writer rolled it back. Late files go, unless another action bears the instant: they may be its own.
                if timeline.get(write.instant) is None:
                    self._recovery.remove_late_files(timeline, write.instant)
            elif not found.is_completed:
                self._recovery.undo(timeline, found, ())

    def _give_up(self, write: OpenWrite, *, refused: bool = False) -> None:
        """Abort after an error, which matters more than one of the abort: then the next writer does it."""
        try:
            without_files = refused and not has_markers(self._storage, write.instant)
            (self.withdraw if without_files else self.abort)(write)
        except HudiError as error:
            text = f"instant {write.instant} is left to the next writer: {hidden(str(error))}"
            warnings.warn(text, HudiWarning, stacklevel=2)
        finally:
            with contextlib.suppress(HudiError, OSError):
                self._held.close()  # else the write would pass for alive as long as this process is

    @contextlib.contextmanager
    def writing(self, operation: Operation, timeline: Timeline) -> Iterator[tuple[OpenWrite, Timeline]]:
        """Begin a write; an exception inside the with block aborts it, unless its outcome cannot be known. See `begin`."""
        write, begun = self.begin(operation, timeline)
        self._publishes = False
        try:
            yield write, begun
        except CommitOutcomeUnknown:
            self._held.close()
            raise
        except BaseException:
            self._give_up(write, refused=not (self._publishes or operation.replaces_groups))  # else hash rings stay
            raise


def _no_instant() -> CommitError:
    return CommitError(f"{_MOST_COLLISIONS} instants in a row were taken by other writers", "Run it again.")
