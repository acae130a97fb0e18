"""Which metadata partitions a table gets when its metadata table is made, and the definitions that say what they index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.metadata import bloom_filters, column_stats, files, partition_stats, record_index, secondary_index
from hudimeta.metadata.index_definitions import DEFAULT_PATH, IndexDefinition, encode_definitions
from hudimeta.metadata.indexed_columns import column_type, indexed_columns, statistics_definition
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties

__all__ = [
    "FIRST_WITH_INDEX_VERSIONS",
    "OF_STORED_COLUMNS",
    "PlannedIndex",
    "definitions_of",
    "index_properties",
    "is_by_partition",
    "indexes_of_table",
    "planned_indexes",
    "record_index_definition",
    "refuse_long_name",
    "refuse_without_keys",
    "secondary_index_definition",
    "store_definitions",
]

OF_STORED_COLUMNS = (column_stats.PARTITION, partition_stats.PARTITION)
"""Indexes of what base files hold, which of a table bootstrapped by METADATA_ONLY is nothing but meta columns."""

_OF_KEYS = (record_index.PARTITION, bloom_filters.PARTITION, "secondary_index")
"""Indexes of record keys as files store them, by their kind or their partition."""

_BY_PARTITION = "RECORD_LEVEL_INDEX"
_RECORD_TYPES = ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", _BY_PARTITION)
"""Values of `hoodie.index.type` by which writes need a record index."""

_LONGEST_NAME = 128
"""Bytes: files of an index have its name in theirs, which may have 255."""

FIRST_WITH_INDEX_VERSIONS = 9
"""Tables of this version say in their definitions which form an index has."""


@dataclass(frozen=True)
class PlannedIndex:
    """A metadata partition to make, and its definition; None where the kind has none."""

    partition: str
    definition: IndexDefinition | None = None


def planned_indexes(schema: pa.Schema, options: Options, version: int, partitioned: bool) -> list[PlannedIndex]:
    """The metadata partitions that options ask for, in the order in which they are laid out.

    Args:
        schema: Data columns of the table.
        options: Of whoever makes them.
        version: Of the table.
        partitioned: The table has partitions.

    Raises:
        ConfigError: An option that does not fit the table.
    """
    planned, last = [PlannedIndex(files.PARTITION)], []
    if options.get(keys.COLUMN_STATS):
        regime = "V2" if version >= 9 else "V1"
        columns = indexed_columns(schema, options.get(keys.COLUMN_STATS_LIST), options.get(keys.COLUMN_STATS_MAX), regime)
        planned.append(PlannedIndex(column_stats.PARTITION, statistics_definition(columns, version)))
        if partitioned and options.get(keys.PARTITION_STATS):
            last = [PlannedIndex(partition_stats.PARTITION)]
    if options.get(keys.BLOOM_FILTERS):
        _check_filtered(options)
        planned.append(PlannedIndex(bloom_filters.PARTITION))
    if options.get(keys.RECORD_INDEX) or options.get(keys.RECORD_INDEX_BY_PARTITION) or _is_asked_by_type(options):
        by_partition = is_by_partition(options, version, partitioned)
        planned.append(PlannedIndex(record_index.PARTITION, record_index_definition(version, by_partition)))
    planned += [PlannedIndex(one.name, one) for one in _secondary_indexes(schema, options, version)]
    return [*planned, *last]


def indexes_of_table(properties: TableProperties, schema: pa.Schema, options: Options) -> list[PlannedIndex]:
    """The metadata partitions that options ask for, as far as a table that is there can have them.

    Args:
        properties: Of the table.
        schema: Data columns of the table.
        options: Of whoever makes them.

    Raises:
        ConfigError: An option that does not fit the table.
        UnsupportedFeature: See `refuse_without_keys`.
    """
    planned = planned_indexes(schema, options, properties.version, properties.is_partitioned)
    refuse_without_keys(properties, [one.partition for one in planned])
    if properties.bootstrap_base_path is None:
        return planned
    return [one for one in planned if one.partition not in OF_STORED_COLUMNS]


def refuse_without_keys(properties: TableProperties, names: Iterable[str]) -> None:
    """Refuse indexes of record keys where files store none.

    Args:
        properties: Of the table.
        names: Of metadata partitions, or kinds of indexes.

    Raises:
        UnsupportedFeature: With the names of those that cannot be.
    """
    by_key = [] if properties.populate_meta else [name for name in names if name.startswith(_OF_KEYS)]
    if by_key:
        raise UnsupportedFeature(f"{', '.join(by_key)} on a table with virtual keys", "Leave the index out.")


def is_by_partition(options: Options, version: int, partitioned: bool) -> bool:
    """Whether the record index that options ask for is one for each partition.

    Args:
        options: Of whoever makes it.
        version: Of the table.
        partitioned: The table has partitions.

    Raises:
        ConfigError: Both kinds are asked for, or the table cannot have one for each partition.
    """
    key, value = keys.RECORD_INDEX_BY_PARTITION.key, "true"
    if _is_asked_by_type(options) and _type(options) == _BY_PARTITION:
        key, value = keys.INDEX_TYPE.key, _BY_PARTITION
    elif not options.get(keys.RECORD_INDEX_BY_PARTITION):
        return False
    if options.get(keys.RECORD_INDEX):
        raise ConfigError(key, value, f"one kind of record index, this or {keys.RECORD_INDEX.key}", "Leave out one of them.")
    if version < FIRST_WITH_INDEX_VERSIONS or not partitioned:
        hint = f"Set {keys.RECORD_INDEX.key}=true instead."
        if key == keys.INDEX_TYPE.key:
            hint = f"Set {key}=RECORD_INDEX, whose keys are unique in the whole table."
        raise ConfigError(key, value, f"partitioned tables of version {FIRST_WITH_INDEX_VERSIONS}", hint)
    return True


def _type(options: Options) -> str:
    return (options.get(keys.INDEX_TYPE) or "").strip().upper()


def _is_asked_by_type(options: Options) -> bool:
    """Whether writes shall look keys up by the record index, and nothing else says if there is one."""
    stated = any(options.is_set(key) for key in (keys.RECORD_INDEX, keys.RECORD_INDEX_BY_PARTITION))
    return not stated and _type(options) in _RECORD_TYPES


def record_index_definition(version: int, by_partition: bool = False) -> IndexDefinition | None:
    """The definition of a record index; tables of version 8 have none.

    Args:
        version: Of the table.
        by_partition: Each partition has an index for itself.
    """
    if version < FIRST_WITH_INDEX_VERSIONS:
        return None
    options = {"isPartitioned": str(by_partition).lower()}
    return IndexDefinition(record_index.PARTITION, record_index.PARTITION, "", (), options, "V1")


def _secondary_indexes(schema: pa.Schema, options: Options, version: int) -> Iterator[IndexDefinition]:
    columns, name = options.get(keys.SECONDARY_INDEX_COLUMNS), options.get(keys.INDEX_NAME)
    if columns and not options.get(keys.RECORD_INDEX):
        hint = f"Set {keys.RECORD_INDEX.key}=true as well."
        raise ConfigError(keys.SECONDARY_INDEX_COLUMNS.key, ",".join(columns), "columns of a table with a record index", hint)
    if name is not None and len(columns) > 1:
        raise ConfigError(keys.INDEX_NAME.key, name, "a name for one column", "Leave it out: indexes are named after columns.")
    for column in columns:
        yield secondary_index_definition(schema, column, version, name)


def secondary_index_definition(schema: pa.Schema, column: str, version: int, name: str | None = None) -> IndexDefinition:
    """The definition of a secondary index.

    Args:
        schema: Data columns of the table.
        column: To index, a dotted path inside structs.
        version: Of the table.
        name: Of the index, with or without its prefix; the column's when None.

    Raises:
        ConfigError: No such column, or one of a type that Hudi does not index, or a name that no folder can have.
    """
    kind = column_type(schema, column)
    if kind is None or not _can_be_secondary(kind):
        raise ConfigError(
            keys.SECONDARY_INDEX_COLUMNS.key,
            column,
            "columns of text, whole numbers, dates or times",
            f"Choose another column: {column} is {'not there' if kind is None else kind}.",
        )
    short = (name or column.replace(".", "_")).removeprefix(secondary_index.PREFIX)
    if not short or not all(c.isalnum() or c in "_-" for c in short):
        raise ConfigError(keys.INDEX_NAME.key, short, "letters, digits and underscores", "Choose another name for the index.")
    refuse_long_name(keys.INDEX_NAME.key, short)
    form = "V2" if version >= FIRST_WITH_INDEX_VERSIONS else None
    partition = secondary_index.PREFIX + short
    return IndexDefinition(partition, "secondary_index", "identity", (column,), {}, form)


def refuse_long_name(key: str, name: str) -> None:
    """Refuse a name of an index that names of files, and those of their markers, cannot hold.

    Raises:
        ConfigError: It has more than 128 bytes.
    """
    if len(name.encode()) > _LONGEST_NAME:
        raise ConfigError(key, name, f"at most {_LONGEST_NAME} bytes", "Give the index a shorter name.")


def _can_be_secondary(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp)
    return any(test(kind) for test in (*tests, pa.types.is_time))


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
