"""A table opened for one write: its properties, options, lock and engine, and snapshots of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

from hudimeta.cached import cached_property
from hudimeta.commit.concurrency import Concurrency
from hudimeta.commit.coordinator import Coordinator
from hudimeta.commit.extra_metadata import RollingKeys
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.locks.fence import FencedLock, FencedStorage
from hudimeta.commit.metadata_bootstrap import bootstrap_metadata
from hudimeta.commit.metadata_commit import MetadataCommit
from hudimeta.commit.restoring import Restorer, pending_restores
from hudimeta.commit.stream_batches import StreamBatch
from hudimeta.commit.supported import check_supported
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine, LocalEngine
from hudimeta.metering import meter_of
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.snapshot.opened_ahead import properties_and_timeline
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.snapshot.table_schema import refuse_foreign_write
from hudimeta.storage import CountingStorage, Storage
from hudimeta.storage.at_once import reads_ahead
from hudimeta.table.modes import MetadataModes
from hudimeta.table.properties import TableProperties, update
from hudimeta.table.properties import load as load_properties
from hudimeta.timeline import Clock, InstantGenerator, SystemClock, Timeline
from hudimeta.types import Action

__all__ = ["WriteSession"]

R = TypeVar("R")


class WriteSession:
    """One table, opened for writing.

    Args:
        storage: Rooted at the table.
        options: Of the write.
        clock: The present.
        engine: Where file groups are written.
        in_task: This process runs a task of a write that another one began, and may end before the task does.
        with_timeline: The table is looked at next: of a far-away one the timeline is asked for beside the properties.

    Raises:
        TableNotFound, UnsupportedTableVersion, UnsupportedFeature: The table cannot be written by us, with the reason.
        ConfigError: An option contradicts the table.
    """

    def __init__(
        self,
        storage: Storage,
        options: Options,
        clock: Clock | None = None,
        engine: Engine | None = None,
        *,
        in_task: bool = False,
        with_timeline: bool = False,
    ) -> None:
        self.storage, self.options, self.in_task = storage, options, in_task
        self.engine: Engine = engine or LocalEngine()
        self.notes: list[str] = []
        self.requests_elsewhere: Counter[tuple[str, str]] = Counter()
        self._counted = storage if isinstance(storage, CountingStorage) else CountingStorage(storage)
        self.mark = self.request_mark()
        self.attempt = 1
        self._listed: Timeline | None = None
        if with_timeline and reads_ahead(storage):
            self.properties, self._listed = properties_and_timeline(storage)
        else:
            self.properties = load_properties(storage)
        check_supported(self.properties, options)
        self.concurrency = Concurrency.of(options, self.properties)
        clock = clock or SystemClock()
        self.times = InstantGenerator(clock, self.properties.zone)
        self.lock = FencedLock(table_lock(storage, options, self.properties.name), clock, storage)
        self.fenced = FencedStorage(storage, self.lock)
        """The storage for whoever holds the lock: nothing is changed through it when the lock was lost meanwhile."""
        self.rules = MergeRules.from_properties(self.properties, options.texts)

    @cached_property
    def coordinator(self) -> Coordinator:
        """Begins, publishes and aborts the writes of this session."""
        metadata = None
        if self.properties.has_metadata_table:
            metadata = MetadataCommit(self.fenced, self.properties, self.times, self.options, self.engine)
        return Coordinator(
            self.storage,
            self.properties,
            self.lock,
            self.times,
            metadata,
            concurrency=self.concurrency,
            restorer=self.restorer,
            rolling=RollingKeys.of(self.options),
        )

    @property
    def restorer(self) -> Restorer:
        """Runs restores."""
        return Restorer(self.fenced, self.lock, self.times, self.options, self.engine)

    def reload(self) -> None:
        """Look at the table's properties again, for another try after somebody else changed the table."""
        self._listed = None
        self.properties = load_properties(self.storage)
        check_supported(self.properties, self.options)
        self.concurrency = Concurrency.of(self.options, self.properties)
        self.__dict__.pop("coordinator", None)

    def change_properties(self, changes: Callable[[TableProperties], Mapping[str, str | None]]) -> None:
        """Change the table's properties, if its newest write knows it by those that there are; call it under the lock.

        Of an old copy of the file a change would make another whole one, which nobody could tell from the right one.

        Args:
            changes: From the properties that there are now to what changes; None takes a property out.

        Raises:
            CorruptFileError: The properties are those of another table, or of an earlier moment of this one.
        """
        now = load_properties(self.storage)
        refuse_foreign_write(now, now.load_timeline(self.storage))
        self.properties = update(self.fenced, changes(now))

    def ensure_metadata(self) -> bool:
        """Build the metadata table if the table lacks one, as Hudi's writers do at their first write; True when that was done.

        Call it when everything else about the write was checked: it is the first thing that changes the table.
        """
        if self.properties.has_metadata_table or not MetadataModes.of(self.options, self.properties).enabled:
            return False
        with self.lock.held():
            self.properties = load_properties(self.storage)
            if self.properties.has_metadata_table:
                return True
            timeline = self.properties.load_timeline(self.storage)
            restoring = pending_restores(timeline)
            if not restoring:
                schema = self.snapshot_at(timeline).file_schema
                self.properties = bootstrap_metadata(
                    self.fenced, self.properties, timeline, schema, self.options, self.times, self.engine
                )
        if restoring:  # which knows what indexes there were
            self.coordinator.recover()
            self.reload()
            return self.properties.has_metadata_table or self.ensure_metadata()
        self.notes.append("the table had no metadata table: it was built from a listing of its folders")
        return True

    def reported(self, report: R, action: Action) -> R:
        """Tell the table's meter of a report, and hand it on."""
        meter_of(self.storage).reported(report, action.value)
        return report

    def request_mark(self) -> int:
        """Where the log of requests stands now; 0 for a storage that counts none."""
        return self.storage.log.mark() if isinstance(self.storage, CountingStorage) else 0

    def requests_since(self, mark: int) -> Mapping[tuple[str, str], int]:
        """Requests since a mark, by (kind, purpose), those of tasks in other processes included."""
        own = self.storage.log.by_purpose(mark) if isinstance(self.storage, CountingStorage) else {}
        return dict(Counter(own) + self.requests_elsewhere)

    # What the table holds

    def snapshot_at(self, timeline: Timeline) -> Snapshot:
        """The table as a timeline shows it to a write."""
        return Snapshot.for_write(self._counted, self.properties, timeline, self.options, self.notes)

    def snapshot_now(self) -> Snapshot:
        """The table as it is: lists the timeline, unless that was done just now, with the properties."""
        listed, self._listed = self._listed, None
        return self.snapshot_at(self.properties.load_timeline(self.storage) if listed is None else listed)

    def extra_metadata(self) -> dict[str, str]:
        """Options that the user wants in the commit's metadata, and which batch of a stream the write is."""
        batch = StreamBatch.of(self.options)
        entries = {} if batch is None else batch.entries()
        prefix = self.options.get(keys.EXTRA_METADATA_PREFIX)
        if prefix:
            spelled = {name.lower(): name for name in self.options.get(keys.ROLLING_KEYS)}
            found = {k: v for k, v in self.options.texts.items() if k.startswith(prefix.lower())}
            entries |= {spelled.get(key, key): text for key, text in found.items()}
        return entries
