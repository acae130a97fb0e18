"""Which metadata partitions a table gets when its metadata table is made, and the definitions that say what they index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError
from hudimeta.metadata import bloom_filters, column_stats, files, partition_stats
from hudimeta.metadata.index_definitions import DEFAULT_PATH, IndexDefinition, encode_definitions
from hudimeta.metadata.indexed_columns import indexed_columns, statistics_definition
from hudimeta.read.merge_rules import KEY_COLUMN
from hudimeta.storage import Storage

__all__ = ["PlannedIndex", "definitions_of", "index_properties", "planned_indexes", "store_definitions"]


@dataclass(frozen=True)
class PlannedIndex:
    """A metadata partition to make, and its definition; None where the kind has none."""

    partition: str
    definition: IndexDefinition | None = None


def planned_indexes(schema: pa.Schema, options: Options, version: int, partitioned: bool) -> list[PlannedIndex]:
    """The metadata partitions that options ask for, in the order in which they are laid out.

    Args:
        schema: Data columns of the table. options: Of whoever makes them. version: Of the table.
        partitioned: The table has partitions.

    Raises:
        ConfigError: An option that does not fit the table.
    """
    planned = [PlannedIndex(files.PARTITION)]
    if options.get(keys.COLUMN_STATS):
        regime = "V2" if version >= 9 else "V1"
        columns = indexed_columns(schema, options.get(keys.COLUMN_STATS_LIST), options.get(keys.COLUMN_STATS_MAX), regime)
        planned.append(PlannedIndex(column_stats.PARTITION, statistics_definition(columns, version)))
        if partitioned and options.get(keys.PARTITION_STATS):
            planned.append(PlannedIndex(partition_stats.PARTITION))
    if options.get(keys.BLOOM_FILTERS):
        _check_filtered(options)
        planned.append(PlannedIndex(bloom_filters.PARTITION))
    return planned


def _check_filtered(options: Options) -> None:
    known = {KEY_COLUMN, *options.get(keys.RECORD_KEY)}
    for name in options.get(keys.BLOOM_COLUMNS):
        if name not in known:
            hint = "Another column gets filters by t.metadata.create_index(name, 'bloom_filters', name, expression='identity')."
            raise ConfigError(keys.BLOOM_COLUMNS.key, name, "columns of the record key", hint)


def definitions_of(planned: list[PlannedIndex]) -> dict[str, IndexDefinition]:
    """The definitions of those that have one, by metadata partition."""
    return {one.partition: one.definition for one in planned if one.definition is not None}


def index_properties(planned: list[PlannedIndex]) -> dict[str, str]:
    """What the table's properties say of complete indexes."""
    found = {
        "hoodie.table.metadata.partitions": ",".join(sorted(one.partition for one in planned)),
        "hoodie.table.metadata.partitions.inflight": "",
    }
    return found | ({"hoodie.table.index.defs.path": DEFAULT_PATH} if definitions_of(planned) else {})


def store_definitions(storage: Storage, definitions: Mapping[str, IndexDefinition], path: str = DEFAULT_PATH) -> None:
    """Write the table's index definitions, unless there are none."""
    if definitions:
        storage.put(path, encode_definitions(definitions))
