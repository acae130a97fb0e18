"""What a commit does to the metadata table, under the table lock: the delta commit before, compaction after it is published."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.prepared_delta import PreparedDelta
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine, LocalEngine
from hudimeta.errors import CommitConflict, CommitError, HudiError
from hudimeta.indexes.apart import IndexesApart
from hudimeta.indexes.built_meanwhile import refuse_built_anew
from hudimeta.indexes.column_stats.columns import reordered, statistics_after
from hudimeta.indexes.expression_index.facts import index_timezone
from hudimeta.indexes.lost_definitions import refuse_lost_definitions
from hudimeta.indexes.protocol import CleanChange, CommitChange, IndexDelta
from hudimeta.indexes.registry import maintainer_for
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, compaction, files, record_index, upkeep
from hudimeta.metadata.completeness import proof_of, proven_indexes
from hudimeta.metadata.delta import MetadataDelta
from hudimeta.metadata.index_definitions import DEFAULT_PATH, IndexDefinition, encode_definitions
from hudimeta.metadata.rollback import METADATA_ROOT, take_back_delta
from hudimeta.metadata.stated_files import encode_stated
from hudimeta.metadata.strays import half_laid_out, strays
from hudimeta.metadata.writer import EncodedLog, MetadataWriter, WrittenLog
from hudimeta.metering import Metric, meter_of, timed
from hudimeta.slices.read_task import storage_options_of
from hudimeta.snapshot.opened_ahead import properties_and_timeline
from hudimeta.snapshot.table_schema import file_schema
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties
from hudimeta.table.stated_keys import Stated, stated
from hudimeta.timeline import InstantGenerator, Timeline
from hudimeta.timeline.clean_record import CleanPlan
from hudimeta.types import Action

__all__ = ["MetadataCommit", "Upkeep", "may_have_other_indexes"]


@dataclass(frozen=True)
class Upkeep:
    """What stays of the metadata table's past, after the options of the data table.

    As in Apache Hudi its writers clean and archive it, also where they leave that to somebody else for the data table.

    Attributes:
        retained: Commits that the data table's cleaning retains.
        least, most: Commits that stay, and above how many an archival begins.
    """

    retained: int
    least: int
    most: int

    @staticmethod
    def of(options: Options) -> Upkeep:
        """As the options of a write say."""
        least = max(1, options.get(keys.ARCHIVE_MIN))
        most = max(least, options.get(keys.ARCHIVE_MAX))
        return Upkeep(options.get(keys.CLEAN_COMMITS), least, most)


class MetadataCommit:
    """Brings the metadata table along with the commits of its data table.

    Attributes:
        properties: Of the data table, as they are under the lock: they say which indexes there are.

    Args:
        storage: Rooted at the data table.
        properties: Of the data table.
        times: Makes instants.
        options: Of the write.
        engine: Where index updates are computed; threads of this process when None.
    """

    def __init__(
        self,
        storage: Storage,
        properties: TableProperties,
        times: InstantGenerator,
        options: Options,
        engine: Engine | None = None,
    ) -> None:
        self._storage, self.properties, self._times, self._options = storage, properties, times, options
        self._compact_after, self._upkeep = options.get(keys.METADATA_COMPACT_AFTER), Upkeep.of(options)
        self._engine = engine or LocalEngine()
        self._writer = MetadataWriter(storage, properties.version, times, LocalEngine())
        self.notes: list[str] = []  # of the last commit
        self.compacted = self._may_be_due = False

    def commit(
        self,
        timeline: Timeline,
        instant: str,
        written: Sequence[WrittenFile],
        schema: pa.Schema,
        known: MetadataTable | None = None,
        *,
        replaced: Mapping[str, Sequence[str]] | None = None,
        same_rows: bool = False,
        renamed: frozenset[str] = frozenset(),
        apart: IndexesApart | None = None,
        prepared: PreparedDelta | None = None,
        beside_others: bool = False,
    ) -> dict[str, str]:
        """Commit the changes of a data commit at the same instant.

        Args:
            timeline: Of the data table, as listed under the lock.
            instant: Of the data commit.
            written: Its new files.
            schema: Data columns of the table.
            known: The metadata table as the write saw it. It is used again when no instant was completed since and the indexes
                are the same: whoever changes the metadata table else completes an instant of the table under the same lock.
            replaced: File ids that leave the table, by partition path.
            same_rows: True for a compaction or clustering.
            renamed: Columns that older files hold under other names; dotted.
            apart: Writes some of the indexes instead; None for none.
            prepared: See `prepare`.
            beside_others: Other writers were at work meanwhile, who may have compacted the metadata table, too.

        Returns:
            Entries for the data commit's extraMetadata, which spare readers requests.

        Raises:
            CommitConflict: An index cannot take this commit any more; a write with a new instant can do it.
        """
        with timed(meter_of(self._storage), Metric.SYNC_DURATION, Metric.SYNC_COUNT):
            table = self._current(timeline, known if prepared is None else prepared.change.table, beside_others)
            if known is not None or not same_rows:
                refuse_built_anew(table, instant, written, known)
            change = self._change(table, timeline, instant, written, schema, replaced or {}, same_rows, renamed)
            groups = self._groups(table)
            made = prepared.holding(change, groups) if prepared is not None else {}
            elsewhere = [name for name in table.ready if apart is not None and apart.keeps(name)]
            deltas = dict(made)
            fresh = [name for name in table.ready if name not in elsewhere and name not in made]
            deltas |= {name: maintainer_for(name).delta(name, change) for name in fresh}

            def write_apart(groups: Mapping[str, int]) -> Sequence[WrittenLog]:
                if apart is None or not elsewhere:
                    return ()
                written = apart.write(change, elsewhere, groups)
                deltas.update(written.deltas)
                return written.logs

            self._define(table, change.statistics)
            encoded = [log for name in made for log in prepared.logs[name]] if prepared is not None else []
            named = self._write(instant, table, groups, {name: deltas[name] for name in fresh}, encoded, prepared, write_apart)
            self.notes = [f"{name} is not proven any more: {found.note}" for name, found in deltas.items() if found.note]
            proof = proof_of((name for name in change.proven if deltas[name].complete), table.version)
            return named | proof | ({} if record_index.PARTITION in elsewhere else _stated_keys(deltas))

    def _define(self, table: MetadataTable, statistics: IndexDefinition | None) -> None:
        """Name the columns that have statistics from this commit on, where it adds some.

        Before the commit: a definition that names a column too many does no harm, statistics that it does not name do.
        """
        if statistics is not None and statistics != table.index_definitions.get(statistics.name):
            definitions = {**table.index_definitions, statistics.name: statistics}
            self._storage.put(self.properties.index_defs_path or DEFAULT_PATH, encode_definitions(definitions))

    def prepare(
        self,
        instant: str,
        written: Sequence[WrittenFile],
        schema: pa.Schema,
        known: MetadataTable,
        replaced: Mapping[str, Sequence[str]],
        same_rows: bool,
        renamed: frozenset[str],
        timeline: Timeline | None = None,
    ) -> PreparedDelta | None:
        """Make what `commit` needs before the lock is taken; None where that fails, as it may for what is not of today.

        Arguments are those of `commit`; without a timeline everything is as the write saw it.
        """
        try:
            table = known
            if timeline is not None and timeline.completed != known.data_timeline.completed:
                table = MetadataTable.open(self._storage, self.properties, timeline, known, to_write=True)
            change = self._change(table, table.data_timeline, instant, written, schema, replaced, same_rows, renamed)
            return PreparedDelta.of(change, self._groups(table), self._writer)
        except HudiError:  # under the lock it is made again, and its errors count
            return None

    def _change(
        self,
        table: MetadataTable,
        timeline: Timeline,
        instant: str,
        written: Sequence[WrittenFile],
        schema: pa.Schema,
        replaced: Mapping[str, Sequence[str]],
        same_rows: bool,
        renamed: frozenset[str],
    ) -> CommitChange:
        refuse_lost_definitions(table)
        before = file_schema(self.properties, timeline)
        statistics = statistics_after(table, before, schema, self._options.get(keys.COLUMN_STATS_MAX))
        return CommitChange(
            storage=self._storage,
            properties=self.properties,
            engine=self._engine,
            table=table,
            layout=self._writer.layout,
            instant=instant,
            schema=schema,
            written=written,
            replaced=replaced,
            same_rows=same_rows,
            timezone=index_timezone(self._options, self.properties),
            proven=proven_indexes(table),
            proof_limit=self._options.get(keys.INDEX_PROOF_KEYS),
            statistics=statistics,
            storage_options=storage_options_of(self._options.texts),
            least_groups=self._options.get(keys.RECORD_INDEX_LEAST_OF_PARTITION),
            added=frozenset(schema.names) - frozenset(schema.names if before is None else before.names) - renamed,
            unbounded=renamed | reordered(statistics, before, schema),
        )

    def clean(self, timeline: Timeline, instant: str, the_plan: CleanPlan) -> dict[str, str]:
        """Take files that a clean deleted out of the metadata table; returns entries for its record, as `commit` does.

        Args:
            timeline: Of the data table, as listed under the lock.
            instant: Of the clean.
            the_plan: Names the deleted files, and the partitions that have no file any more.
        """
        table = self._current(timeline, None)
        change = CleanChange(table, self._writer.layout, the_plan.files, the_plan.emptied)
        deltas = {name: maintainer_for(name).cleaned(name, change) for name in table.ready}
        return self._write(instant, table, self._groups(table), deltas)

    def finish_services(self, lock: TableLock, load: Callable[[], Timeline]) -> None:
        """Finish or cancel what died while it tended the metadata table; the lock is taken only where something may have.

        Args:
            lock: The table's.
            load: Lists the timeline of the data table.
        """
        timeline = load()
        inner = Timeline.load(self._storage.sub(METADATA_ROOT), zone=self.properties.zone, place=METADATA_ROOT)
        if _died(inner, timeline) or strays(inner, timeline):
            with lock.held():
                self._current(load(), None)

    def _current(self, timeline: Timeline, known: MetadataTable | None, beside_others: bool = False) -> MetadataTable:
        """The metadata table of now, after a compaction of it that died was finished, and taken back what has no writer.

        A writer compacts it after it has published, which no instant of the table tells: beside others it is always opened.
        """
        same = known is not None and known.ready == tuple(sorted(self.properties.metadata_partitions))
        # A rollback that died may have come to the metadata table, and not to its own end.
        same = same and not any(i.action is Action.ROLLBACK for i in timeline.pending)
        if known is not None and same and not beside_others and known.data_timeline.completed == timeline.completed:
            table = known
        else:
            table = MetadataTable.open(self._storage, self.properties, timeline, known, to_write=True)
        if _died(table.timeline, timeline) and table is known:
            # A writer compacts after it has published: when the view was made it may have been just about that.
            table = MetadataTable.open(self._storage, self.properties, timeline)
        late = strays(table.timeline, timeline)
        for instant in late:
            take_back_delta(self._storage, instant.time)
        if late or _died(table.timeline, timeline):
            if (begun := compaction.pending_compaction(table)) is not None:
                self.compacted = compaction.resume(self._storage, table, self._writer, self._times, begun, self._engine)
            upkeep.take_back_dead(self._storage, table)
            table = MetadataTable.open(self._storage, self.properties, timeline)
        return table

    def _write(
        self,
        instant: str,
        table: MetadataTable,
        groups: Mapping[str, int],
        deltas: Mapping[str, IndexDelta],
        encoded: Sequence[EncodedLog] = (),
        prepared: PreparedDelta | None = None,
        apart: Callable[[Mapping[str, int]], Sequence[WrittenLog]] = lambda _: (),
    ) -> dict[str, str]:
        for other in (i for i in table.timeline if i.time == instant and i.action is not Action.DELTA_COMMIT):
            what, winner = f"the instant {instant}", f"a {other.action.value} of the metadata table"
            raise CommitConflict("commit", (), winner, what=what, did="has taken")
        if table.timeline.get(instant, Action.DELTA_COMMIT) is not None:
            # An earlier run of the same service died after this step: what it wrote is taken back and written again.
            take_back_delta(self._storage, instant)
        # The delta commit that is about to be written counts, and its write is pending until it is published.
        beside_others = any(i.time != instant for i in table.data_timeline.pending_writes)
        self._may_be_due = compaction.falls_to(len(compaction.fresh_deltas(table)) + 1, self._compact_after, beside_others)
        delta = MetadataDelta([part for found in deltas.values() for part in found.parts])
        ready: Sequence[WrittenLog] = ()
        if prepared is not None:
            ready = self._writer.begin_staged(instant, prepared.staged, encoded)
        else:
            self._writer.begin(instant)
        logs = [*ready, *self._writer.write_logs(instant, delta, groups), *apart(groups)]
        # A compaction that this table does not know of may bear the time at which a write was completed.
        record = prepared.record_of(logs) if prepared is not None else None
        after = max(table.timeline.last_time, table.data_timeline.last_time)
        self._writer.complete(instant, record or self._writer.record(instant, logs), after)
        known = table.index_definitions
        counts = {name: count for name, count in groups.items() if name not in known or not known[name].is_partitioned}
        return encode_stated([(log.partition, log.name) for log in logs], counts)

    def compact_when_due(self, lock: TableLock) -> None:
        """Compact the metadata table when it is time; the write has been published, and its lock let go.

        Raises:
            HudiError: It failed; the next commit finishes it.
        """
        if not self._may_be_due:
            return
        table = self._now()
        if not compaction.is_due(table, self._compact_after):
            return
        for last in (False, True):
            with contextlib.ExitStack() as made:
                prepared = made.enter_context(self._compaction(table))
                made.enter_context(lock.held())
                table = self._now(table)
                if not compaction.is_due(table, self._compact_after):
                    return  # another writer has done it, or a write began
                fits = prepared.fits(table)
                if not fits and not last:
                    continue  # the table changed just when the merge began: once more while nobody waits
                if not fits:
                    prepared = made.enter_context(self._compaction(table))
                compaction.compact(self._storage, table, self._writer, self._times, prepared, self._engine)
                break
        self.compacted = True
        self._tidy(table, lock)

    def _compaction(self, table: MetadataTable) -> contextlib.closing[compaction.PreparedCompaction]:
        return contextlib.closing(compaction.prepare(self._storage, table, self._writer, self._times))

    def _now(self, earlier: MetadataTable | None = None) -> MetadataTable:
        """The metadata table as it is, without indexes that were dropped meanwhile.

        Raises:
            CommitError: It has another version now, in which this write cannot keep it.
        """
        properties, timeline = properties_and_timeline(self._storage)
        if properties.version != self.properties.version:
            raise CommitError(f"the table has version {properties.version} now, and had {self.properties.version}")
        self.properties = properties
        if earlier is not None:
            timeline.following(earlier.data_timeline)
        return MetadataTable.open(self._storage, self.properties, timeline, earlier)

    def _tidy(self, table: MetadataTable, lock: TableLock) -> None:
        """Clean what the compactions of the metadata table superseded, and archive its old instants, when that is due.

        The lock is held for each by itself, and let go before files are deleted: others publish in between.
        """
        kept = self._upkeep
        with lock.held():
            table = self._now(table)
            gone = [*upkeep.left_behind(self._storage, table), *upkeep.clean(self._storage, table, self._times, kept.retained)]
        upkeep.delete(self._storage, gone)
        if upkeep.is_long(table, kept.most + 1):
            with lock.held():
                upkeep.archive(self._storage, self._now(table), kept.least + 1, kept.most + 1)

    def _groups(self, table: MetadataTable) -> dict[str, int]:
        """How many file groups each metadata partition has: as our newest commit says, else by one listing each."""
        return {name: 1 if name == files.PARTITION else table.group_count(name) for name in table.ready}


def _died(inner: Timeline, data: Timeline) -> bool:
    """True when a process died while it tended the metadata table: only who holds the table lock does, as we do now."""
    return any(i.action in upkeep.SERVICES for i in inner.pending) or bool(half_laid_out(inner, data))


def _stated_keys(deltas: Mapping[str, IndexDelta]) -> dict[str, str]:
    """What a commit states of the keys of which it tells the record index."""
    found = deltas.get(record_index.PARTITION)
    if found is None:
        return {}
    return stated(Stated.INDEXED, [keys for part in found.parts for keys in (part.records.keys, part.removed)])


def may_have_other_indexes(timeline: Timeline, known: MetadataTable | None) -> bool:
    """False when nothing was completed since a write saw the table, and no index was made or dropped: a request is spared.

    Indexes change with writes of Apache Hudi, whose options ask for other ones, and by actions of their own. Whether one of
    these was completed before the write read the table's properties nobody knows.
    """
    if known is None or known.data_timeline.completed != timeline.completed:
        return True
    return any(i.action is Action.INDEXING for i in timeline.completed)
