"""Building an index over a table that has rows, under the table lock.

    1. `indexing` requested and inflight on the data timeline
    2. the file groups in the metadata table, every one with a base file at that instant, by a delta commit of its own
    3. the definition, where the kind has one
    4. `indexing` completed
    5. the properties name the partition: from here on readers use it, and every commit keeps it

A process that dies before the last step leaves an index that nobody knows of; the next indexing or recovery removes it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hudimeta.commit.dead_indexing import take_back_dead
from hudimeta.commit.index_ahead import IndexAhead, changes_since, every_group
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config.options import INDEX_TIMEZONE
from hudimeta.engine import LocalEngine
from hudimeta.errors import HudiError, IndexNotReady, TableError
from hudimeta.formats.hfile import KeyValues
from hudimeta.indexes.expression_index.facts import stated_timezone
from hudimeta.indexes.lost_definitions import refuse_lost_definitions
from hudimeta.indexes.plan import IndexPlan, plan_index
from hudimeta.indexes.protocol import IndexSource
from hudimeta.indexes.registry import maintainer_for
from hudimeta.metadata import MetadataTable, files
from hudimeta.metadata.completeness import knows_whole_table
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.group_files import file_group_ids
from hudimeta.metadata.index_definitions import DEFAULT_PATH, IndexDefinition, encode_definitions
from hudimeta.metadata.indexing import (
    announce,
    begin_run,
    complete,
    discard_dead,
    indexing_instant,
    partitions_of,
    remove_index_files,
    take_back_build,
    waits,
)
from hudimeta.metadata.writer import EncodedBase, MetadataWriter
from hudimeta.reports import Report
from hudimeta.storage import Storage
from hudimeta.table.properties import update
from hudimeta.timeline import Timeline
from hudimeta.timeline.clean_record import being_cleaned
from hudimeta.types import Action, Instant, State

__all__ = [
    "IndexReport",
    "build_index",
    "create_index",
    "index_source",
    "newest_write",
    "planned_at",
    "ready_property",
    "record_proof",
    "refuse_planned",
    "still_there",
]


@dataclass(frozen=True, repr=False)
class IndexReport(Report):
    """What became of an index.

    Attributes:
        partition: Metadata partition.
        action: What was done.
        instant: Of the action, "" where it needs none.
        groups: File groups.
        records: In them.
        seconds: What it took.
    """

    partition: str
    action: str
    instant: str = ""
    groups: int = 0
    records: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        size = f": {self.records:,} records in {self.groups:,} file groups" if self.groups else ""
        return f"{self.partition} {self.action}{f' at {self.instant}' if self.instant else ''}{size}, {self.seconds:.2f} s"


def create_index(
    session: WriteSession,
    *,
    kind: str,
    name: str | None = None,
    columns: Sequence[str] = (),
    expression: str | None = None,
    index_options: Mapping[str, str] | None = None,
) -> IndexReport:
    """Build an index; see `plan_index` for the arguments.

    Args:
        session: The table.
        kind: One of `indexes.plan.PLANNERS`.
        name: Of a secondary or expression index.
        columns: What is indexed.
        expression: Spark function over the column; None for the column itself.
        index_options: Further arguments of the function, and of filters.

    Raises:
        IndexNotReady: The table has no metadata table.
        ConfigError, TableError, UnsupportedFeature: See `plan_index`.
    """
    begin = time.perf_counter()
    with session.lock.held():
        session.reload()
        properties = session.properties
        if not properties.has_metadata_table:
            raise IndexNotReady(files.PARTITION, "not built: the first write, or t.metadata.rebuild(), builds it")
        timeline = properties.load_timeline(session.storage)
        if take_back_dead(session.fenced, timeline, properties, session.concurrency.patience_s):
            session.reload()
            properties = session.properties
            timeline = properties.load_timeline(session.storage)
        snapshot = session.snapshot_at(timeline)
        schema = snapshot.file_schema
        plan = plan_index(
            properties,
            schema,
            session.options,
            {} if snapshot.metadata is None else snapshot.metadata.index_definitions,
            kind=kind,
            name=name,
            columns=columns,
            expression=expression,
            index_options=index_options,
        )
        refuse_planned(timeline, plan.partition)
        return build_index(session, timeline, schema, plan, begin)


def refuse_planned(timeline: Timeline, partition: str) -> None:
    """Refuse an index that somebody has planned to build beside writers."""
    planned = planned_at(timeline, partition)
    if planned is not None:
        hint = f"Run that plan, t.services.indexing.execute({planned!r}), or cancel it."
        raise TableError(f"the index {partition} is planned at {planned} and not built", hint)


def planned_at(timeline: Timeline, partition: str) -> str | None:
    """The instant of a plan for an index that waits for whoever runs it; None without one."""
    plans = ((i.time, timeline.plan(i)) for i in timeline.pending if i.action is Action.INDEXING)
    return next((time for time, plan in plans if waits(plan) and partition in partitions_of(plan)), None)


def build_index(
    session: WriteSession,
    timeline: Timeline,
    schema: pa.Schema,
    plan: IndexPlan,
    begin: float,
    *,
    planned: Instant | None = None,
    kept: dict[str, dict[Any, Any]] | None = None,
    ahead: IndexAhead | None = None,
) -> IndexReport:
    """Build an index; the caller holds the table lock.

    Args:
        session: The table.
        timeline: Of the table, listed under the lock.
        schema: Data columns of the table.
        plan: What to build.
        begin: When the work began.
        planned: The plan on the timeline that is run; None announces the building as it begins.
        kept: See `IndexSource`.
        ahead: What was made of it before the lock; only what has changed since is made now, where that can be known.
    """
    storage, properties, times = session.fenced, session.properties, session.times
    table = MetadataTable.open(storage, properties, timeline)
    refuse_lost_definitions(table)
    definitions = {**table.index_definitions, **({plan.partition: plan.definition} if plan.definition is not None else {})}
    writer = MetadataWriter(storage, properties.version, times, LocalEngine())
    source = index_source(session, timeline, schema, writer, still_there(table.files(), timeline), definitions, kept=kept)
    content = _Content.of(plan.partition, source, ahead)
    instant = planned.time if planned is not None else indexing_instant(storage, timeline, times)
    upto = newest_write(timeline)
    path = properties.index_defs_path or DEFAULT_PATH
    zone = None if plan.definition is None else stated_timezone(plan.definition, schema, session.options, properties)
    proven = knows_whole_table(plan.partition) and content.complete
    _begin_building(storage, timeline, instant, plan.partition, planned)
    try:
        update(storage, {}, anew=True)  # what names the partition that goes, and is still under way, must not arrive later
        remove_index_files(storage, plan.partition)
        content.write(writer, plan.partition, instant, max(table.timeline.last_time, timeline.last_time))
        if plan.definition is not None:
            storage.put(path, encode_definitions(definitions))
        complete(storage, timeline, times, instant, {plan.partition: proven}, upto, properties.version)
    except HudiError:
        with contextlib.suppress(HudiError):  # whoever holds the lock next does it else
            discard_dead(storage, properties.load_timeline(storage))
        raise
    ready = {"hoodie.table.metadata.partitions": ready_property({*properties.metadata_partitions, plan.partition})}
    named = {INDEX_TIMEZONE.key: zone} if zone is not None else {}
    session.properties = update(storage, ready | named | ({"hoodie.table.index.defs.path": path} if definitions else {}))
    if all(i.time <= instant for i in timeline.completed):
        # Where the newest action is an indexing, Apache Hudi lays its next index out at the very instant of that, and takes
        # back what the metadata table has there. So the newest must not be the one at which this index was built.
        record_proof(session, {plan.partition: proven}, newest=True)
    return IndexReport(plan.partition, "built", instant, len(content.ids), content.records, time.perf_counter() - begin)


def _begin_building(storage: Storage, timeline: Timeline, instant: str, partition: str, planned: Instant | None) -> None:
    if planned is None:
        announce(storage, timeline, instant, [partition], newest_write(timeline))
    elif planned.state is State.INFLIGHT:  # of a run of Apache Hudi that died
        take_back_build(storage, timeline, instant, [partition])
    else:
        begin_run(storage, timeline, instant)


def record_proof(session: WriteSession, indexes: Mapping[str, bool], *, newest: bool = False) -> None:
    """Say of indexes whether they lack no row, by an action that builds nothing; the caller holds the table lock.

    Args:
        session: The table.
        indexes: Metadata partitions, and whether each is known to be complete.
        newest: Let the action be the newest one.
    """
    if not indexes:
        return
    timeline = session.properties.load_timeline(session.storage)
    upto = newest_write(timeline)
    instant = session.times.next(timeline.last_time) if newest else indexing_instant(session.storage, timeline, session.times)
    announce(session.fenced, timeline, instant, indexes, upto)
    complete(session.fenced, timeline, session.times, instant, indexes, upto, session.properties.version)


def index_source(
    session: WriteSession,
    timeline: Timeline,
    schema: pa.Schema,
    writer: MetadataWriter,
    listing: pa.Table,
    definitions: Mapping[str, IndexDefinition],
    options: Options | None = None,
    kept: dict[str, dict[Any, Any]] | None = None,
) -> IndexSource:
    """The table as builders of indexes see it.

    Args:
        session: The table.
        timeline: Of the table.
        schema: Data columns of the table.
        writer: Of its metadata table.
        listing: All its files; only committed ones count.
        definitions: Of the indexes that it has.
        options: Of the build; the session's when None.
        kept: See `IndexSource`.
    """
    from hudimeta.table.discovery import committed_files

    return IndexSource(
        session.storage,
        session.properties,
        session.engine,
        options or session.options,
        schema,
        writer.layout,
        timeline,
        committed_files(listing, timeline),
        definitions,
        kept=kept,
    )


def still_there(listing: pa.Table, timeline: Timeline) -> pa.Table:
    """The files of a listing without those that a clean which died may have deleted already."""
    import pyarrow.compute as pc

    gone = [f"{partition}/{name}" for partition, name in being_cleaned(timeline)]
    if not gone:
        return listing
    paths = pc.binary_join_element_wise(listing["partition_path"], listing["name"], "/")
    return listing.filter(pc.invert(pc.is_in(paths, pa.array(gone, pa.string()))))


def ready_property(partitions: Iterable[str]) -> str:
    """The property that names the metadata partitions."""
    return ",".join(sorted(partitions))


@dataclass
class _Content:
    """What an index begins with: made now, or before, with what has changed since.

    Attributes:
        ids: Of its file groups.
        complete: See `BuiltIndex`.
        records: How many, as far as they are written.
        made: Content of the file groups, as it is made.
        ready, changes: See `MetadataWriter.initialise`.
    """

    ids: Sequence[str]
    complete: bool
    records: int = 0
    made: Iterable[tuple[int, KeyValues]] = ()
    ready: Sequence[EncodedBase] = ()
    changes: Mapping[int, PartitionDelta] = field(default_factory=dict)

    @classmethod
    def of(cls, partition: str, source: IndexSource, ahead: IndexAhead | None) -> _Content:
        later = None if ahead is None else changes_since(ahead, source)
        if ahead is not None and later is not None:
            ids = file_group_ids(partition, ahead.groups)
            return cls(ids, ahead.complete, ahead.records + later.more, ready=ahead.files, changes=later.groups)
        built = maintainer_for(partition).build(partition, source)
        return cls(built.file_ids(partition), built.complete, made=every_group(built.groups, built.content))

    def write(self, writer: MetadataWriter, partition: str, instant: str, after: str) -> None:
        writer.initialise(partition, instant, self.ids, self._counted(), after=after, ready=self.ready, changes=self.changes)

    def _counted(self) -> Iterator[tuple[int, KeyValues]]:
        for group, records in self.made:
            self.records += len(records)
            yield group, records


def newest_write(timeline: Timeline) -> str:
    """The newest write that an index over the table covers; "" without any."""
    return max((i.time for i in timeline.writes), default="")
