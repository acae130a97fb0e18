"""Building the metadata table of a table that exists already: its files from a listing, their statistics from their rows.

The listing is one of the few places where folders are read. Files of writes that are not completed are left out. Statistics are
computed file by file on an engine; log files get none, which costs skipping and never rows. The properties name the new
metadata table last, so that a bootstrap that died leaves nothing that anybody reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine
from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.parquet import column_bounds, read_footer
from hudimeta.metadata import column_stats, files, partition_stats
from hudimeta.metadata.index_definitions import DEFAULT_PATH, encode_definitions
from hudimeta.metadata.indexed_columns import column_type, indexed_columns, statistics_definition
from hudimeta.metadata.keys import ALL_PARTITIONS, to_key_partition
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.statistics import file_statistics, widened_partition_statistics
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.schema import with_meta_columns
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import list_table
from hudimeta.table.file_names import parse_names
from hudimeta.table.properties import TableProperties, update
from hudimeta.timeline.active import Timeline
from hudimeta.timeline.clock import InstantGenerator

__all__ = ["bootstrap_metadata"]


@dataclass(frozen=True, slots=True)
class _File:
    partition_path: str
    name: str


def bootstrap_metadata(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    schema: pa.Schema,
    options: Options,
    times: InstantGenerator,
    engine: Engine,
) -> TableProperties:
    """Build the metadata table. The caller holds the table lock.

    Args:
        storage: Rooted at the table. properties: Of the table, which has no metadata table. timeline: Listed under the lock.
        schema: Data columns. options: Say which indexes to build. times: Makes instants. engine: Reads the files.

    Returns:
        The properties, which name the new partitions.
    """
    listing = _committed(list_table(storage), timeline)
    storage.delete_folder(METADATA_ROOT)
    writer = MetadataWriter(storage, properties.version, times)
    content: dict[str, KeyValues] = {files.PARTITION: _file_records(listing, writer)}
    groups: dict[str, int] = {files.PARTITION: 1}
    changes: dict[str, str | None] = {}
    if options.get(keys.COLUMN_STATS):
        regime = "V2" if properties.version >= 9 else "V1"
        columns = indexed_columns(schema, options.get(keys.COLUMN_STATS_LIST), options.get(keys.COLUMN_STATS_MAX), regime)
        statistics = _statistics(storage, listing, columns, regime, engine)
        groups[column_stats.PARTITION] = options.get(keys.COLUMN_STATS_GROUPS)
        rows = pa.concat_tables([column_stats.SCHEMA.empty_table(), *(s for _, s in statistics)])
        content[column_stats.PARTITION] = column_stats.encode_values(rows, writer.layout)
        if properties.is_partitioned and options.get(keys.PARTITION_STATS):
            full = with_meta_columns(schema)
            types = {c: kind for c in columns if (kind := column_type(full, c)) is not None}
            groups[partition_stats.PARTITION] = 1
            widened, _ = widened_partition_statistics(statistics, {}, types, regime, existing=_with_logs(listing))
            content[partition_stats.PARTITION] = partition_stats.encode_values(widened, writer.layout)
        definition = statistics_definition(columns, properties.version)
        storage.put(DEFAULT_PATH, encode_definitions({definition.name: definition}))
        changes["hoodie.table.index.defs.path"] = DEFAULT_PATH
    writer.create(properties.name, groups, properties.database, _without_empty(content))
    changes["hoodie.table.metadata.partitions"] = ",".join(sorted(groups))
    changes["hoodie.table.metadata.partitions.inflight"] = ""
    return update(storage, changes)


def _without_empty(content: Mapping[str, KeyValues]) -> dict[str, KeyValues]:
    return {name: records for name, records in content.items() if len(records.keys)}


def _committed(listing: pa.Table, timeline: Timeline) -> pa.Table:
    """The files of committed instants, with a size: an empty file is what a dead writer left."""
    from hudimeta.table.text_arrays import instant_text

    parsed = parse_names(listing["name"].combine_chunks() if len(listing) else pa.array([], pa.string()))
    committed = timeline.are_committed(instant_text(parsed.instants))
    keep = pc.and_(pa.array(parsed.valid & committed), pc.greater(listing["size"], 0))
    return listing.filter(keep)


def _with_logs(listing: pa.Table) -> list[str]:
    """Partitions with log files, whose rows nobody looks at here: what is known of their base files bounds nothing."""
    names = listing["name"].combine_chunks() if len(listing) else pa.array([], pa.string())
    logs = listing["partition_path"].filter(pa.array(parse_names(names).is_log))
    paths: list[str] = logs.unique().to_pylist()
    return paths


def _file_records(listing: pa.Table, writer: MetadataWriter) -> KeyValues:
    partitions = [to_key_partition(p) for p in listing["partition_path"].unique().to_pylist()]
    keyed = pc.if_else(pc.equal(listing["partition_path"], ""), to_key_partition(""), listing["partition_path"])
    of_files = pa.table([keyed, listing["name"], listing["size"], pa.repeat(False, len(listing))], schema=files.SCHEMA)
    of_all = pa.table(
        {
            "key": [ALL_PARTITIONS] * len(partitions),
            "name": partitions,
            "size": [0] * len(partitions),
            "is_deleted": [False] * len(partitions),
        },
        schema=files.SCHEMA,
    )
    return files.encode_values(pa.concat_tables([of_all, of_files]), writer.layout, () if partitions else (ALL_PARTITIONS,))


def _statistics(
    storage: Storage, listing: pa.Table, columns: list[str], regime: str, engine: Engine
) -> list[tuple[str, pa.Table]]:
    """Partition path and statistics of each base file."""
    parsed = parse_names(listing["name"].combine_chunks() if len(listing) else pa.array([], pa.string()))
    base = listing.filter(pa.array(~parsed.is_log))
    work = [_File(p, n) for p, n in zip(base["partition_path"].to_pylist(), base["name"].to_pylist(), strict=True)]

    def read(file: _File) -> tuple[str, pa.Table]:
        import pyarrow.parquet as pq

        path = join(file.partition_path, file.name)
        with storage.open_input(path) as source:
            footer = read_footer(source, path)
            present = sorted({c.partition(".")[0] for c in columns} & set(footer.arrow_schema.names))
            rows = pq.ParquetFile(source, metadata=footer.metadata).read(present)
        bounds = column_bounds(rows, columns)
        return file.partition_path, file_statistics(bounds, file.partition_path, file.name, regime, footer.chunk_bytes)

    return engine.map(read, work)
