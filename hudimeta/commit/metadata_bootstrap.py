"""Building the metadata table of a table that exists already: its files from a listing, their statistics from their rows.

The listing is one of the few places where folders are read. Files of writes that are not completed are left out. Statistics are
computed file by file on an engine; log files get none, which costs skipping and never rows. The properties name the new
metadata table last, so that a bootstrap that died leaves nothing that anybody reads.
"""

from __future__ import annotations

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.engine import Engine, LocalEngine
from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.indexes.planned import (
    PlannedIndex,
    definitions_of,
    index_properties,
    indexes_of_table,
    store_definitions,
)
from hudimeta.indexes.protocol import IndexSource
from hudimeta.indexes.registry import maintainer_for
from hudimeta.metadata import indexing
from hudimeta.metadata.completeness import knows_whole_table
from hudimeta.metadata.index_definitions import DEFAULT_PATH, IndexDefinition, decode_definitions
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.metering import Metric, meter_of, timed
from hudimeta.storage import Storage
from hudimeta.storage.at_once import reads_ahead, waiting_engine
from hudimeta.table.discovery import committed_files, list_table
from hudimeta.table.properties import TableProperties, update
from hudimeta.table.stated_sizes import listed_as_stated, refuse_lost_files
from hudimeta.timeline import InstantGenerator, Timeline
from hudimeta.types import Action

__all__ = ["bootstrap_metadata", "lay_out_indexes"]


def bootstrap_metadata(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    schema: pa.Schema,
    options: Options,
    times: InstantGenerator,
    engine: Engine,
    planned: list[PlannedIndex] | None = None,
) -> TableProperties:
    """Build the metadata table. The caller holds the table lock.

    Args:
        storage: Rooted at the table.
        properties: Of the table, which has no metadata table.
        timeline: Listed under the lock.
        schema: Data columns.
        options: Say which indexes to build.
        times: Makes instants.
        engine: Reads the files.
        planned: Which indexes; None for those that the options ask for.

    Returns:
        The properties, which name the new partitions.

    Raises:
        CorruptFileError: Storage lacks a file that commits name, or has it with another size.
    """
    with timed(meter_of(storage), Metric.INITIALIZE_DURATION, Metric.INITIALIZE_COUNT):
        if planned is None:
            planned = indexes_of_table(properties, schema, options)
        listing = committed_files(listed_as_stated(list_table(storage), timeline), timeline)
        refuse_lost_files(listing, timeline)
        update(storage, {}, anew=True)  # what names the folder that goes, and is still under way, must not arrive later
        storage.delete_folder(METADATA_ROOT)
        complete = lay_out_indexes(storage, properties, planned, schema, options, times, engine, timeline, listing)
        changed = update(storage, dict(index_properties(planned)))
        if complete:
            instant, upto = times.next(timeline.last_time), max((i.time for i in timeline.writes), default="")
            indexing.announce(storage, timeline, instant, complete, upto)
            indexing.complete(storage, timeline, times, instant, complete, upto, properties.version)
        return changed


def lay_out_indexes(
    storage: Storage,
    properties: TableProperties,
    planned: list[PlannedIndex],
    schema: pa.Schema,
    options: Options,
    times: InstantGenerator,
    engine: Engine | None = None,
    timeline: Timeline | None = None,
    listing: pa.Table | None = None,
) -> dict[str, bool]:
    """Make a metadata table with some partitions, each at its own first instant (0000…0, 0000…1 and so on).

    Nothing refers to it until the data table's properties name its partitions, so one that died is simply repeated after its
    folder was removed.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        planned: The indexes to make, in this order.
        schema: Data columns of the table.
        options: Of whoever makes them.
        times: Makes instants.
        engine: Reads its files.
        timeline: Of a table that exists already.
        listing: Its committed files.

    Returns:
        Of the indexes that speak of the whole table, whether they lack no row.
    """
    engine = engine or LocalEngine()
    writer = MetadataWriter(storage, properties.version, times, LocalEngine())
    definitions = definitions_of(planned)
    timeline = timeline or properties.load_timeline(storage)
    times.next(timeline.last_time)  # so that all that follows is later than what the table holds, whatever the clock says
    store_definitions(storage, {**_waiting(storage, properties, timeline), **definitions})
    source = IndexSource(
        storage,
        properties,
        engine,
        options,
        schema,
        writer.layout,
        timeline,
        _no_files() if listing is None else listing,
        definitions,
    )
    writer.create(properties.name)

    def lay_out(one: PlannedIndex) -> bool:
        built = maintainer_for(one.partition).build(one.partition, source)
        writer.initialise(one.partition, f"{planned.index(one):017d}", built.file_ids(one.partition), built.content)
        return built.complete

    if len(source.listing) or not reads_ahead(storage):
        complete = [lay_out(one) for one in planned]
    else:  # of a table without files they are nothing but requests, which wait for a store side by side
        complete = waiting_engine(LocalEngine(), storage).map(lay_out, planned)
    found = zip(planned, complete, strict=True)
    return {one.partition: known for one, known in found if knows_whole_table(one.partition)}


def _waiting(storage: Storage, properties: TableProperties, timeline: Timeline) -> dict[str, IndexDefinition]:
    """The definitions of indexes that are planned: whoever runs a plan finds them nowhere else."""
    plans = [timeline.plan(i) for i in timeline.pending if i.action is Action.INDEXING]
    names = {name for plan in plans if indexing.waits(plan) for name in indexing.partitions_of(plan)}
    path = properties.index_defs_path or DEFAULT_PATH
    try:
        known = decode_definitions(storage.read(path), path) if names else {}
    except (NotFound, CorruptFileError):
        return {}
    return {name: definition for name, definition in known.items() if name in names}


def _no_files() -> pa.Table:
    return no_rows(pa.schema([("partition_path", pa.string()), ("name", pa.string()), ("size", pa.int64())]))
