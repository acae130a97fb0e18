"""What the metadata table answers about an index: one function a question, in the types of the table.

column_stats, partition_stats              bounds and counts of columns, by file and by partition
expression_stats, expression_partition_stats    the same of an expression
record_locations                           where record keys live
keys_with_values                           record keys that have some values of a column
file_filters                               bloom filters of files
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, scalar_of, single_array
from hudimeta.metadata import bloom_filters, record_index
from hudimeta.metadata import column_stats as by_file
from hudimeta.metadata import partition_stats as by_partition
from hudimeta.metadata.keys import PARTITION_STAT, bloom_filter_keys, column_id, secondary_prefixes
from hudimeta.metadata.metadata_table import paths_of
from hudimeta.metadata.record import RecordType

if TYPE_CHECKING:
    from hudimeta.metadata.metadata_table import MetadataTable

__all__ = [
    "column_stats",
    "expression_partition_stats",
    "expression_stats",
    "file_filters",
    "keys_with_values",
    "partition_stats",
    "partitions_of_anything",
    "record_locations",
]


def column_stats(
    metadata: MetadataTable, columns: Mapping[str, pa.DataType], partitions: Sequence[str] | None = None
) -> dict[str, pa.Table]:
    """Minimum, maximum and counts per file of some columns; only the blocks that hold those columns are read.

    Args:
        metadata: The metadata table.
        columns: Name (dotted when nested) and Arrow type of each.
        partitions: Only files of these; None for all.

    Returns:
        By column: file_name string, min, max of the column's type (None: unknown), value_count, null_count, total_size,
        total_uncompressed_size int64, is_tight_bound bool. A file without a row is not indexed and may hold anything.

    Raises:
        IndexNotReady: The table has no such index.
    """
    prefixes = by_file.prefixes(columns, partitions)
    pieces = metadata.prefixed_pieces(by_file.PARTITION, prefixes, lambda rows: by_file.typed_columns(rows, columns))
    return {name: pa.concat_tables([piece[name] for piece in pieces]) for name in columns}


def partition_stats(
    metadata: MetadataTable, columns: Mapping[str, pa.DataType], partitions: Sequence[str] | None = None
) -> dict[str, pa.Table]:
    """As `column_stats`, of whole partitions: the first column is partition_path.

    Values may be wider than the rows of today, never narrower. A partition without a row may hold anything. Bounds of
    floating columns are always unknown: Java leaves NaN out of them, which is the greatest value. So are those that are stored
    as wide as Spark's types, beyond which Arrow has values.

    Args:
        metadata: The metadata table.
        columns: Name (dotted when nested) and Arrow type of each.
        partitions: Paths of those wanted; None for all.

    Raises:
        IndexNotReady: The table has no such index.
    """
    from hudimeta.metadata.statistics import without_limits

    prefixes = by_file.prefixes(columns, partitions)
    rows = metadata.prefixed(by_partition.PARTITION, prefixes)
    tables = by_file.typed_columns(rows, columns)
    for name, kind in columns.items():
        table = tables[name].set_column(0, "partition_path", paths_of(tables[name].column("file_name")))
        if pa.types.is_floating(kind):
            unknown = pa.nulls(len(table), kind)
            table = table.set_column(1, "min", unknown).set_column(2, "max", unknown)
        tables[name] = without_limits(table, kind)
    return tables


def partitions_of_anything(
    metadata: MetadataTable, columns: Mapping[str, pa.DataType], partitions: Sequence[str]
) -> dict[str, set[str]]:
    """Which of some partitions are stated to hold any value of each column: their records are as wide as its type.

    Args:
        metadata: The metadata table.
        columns: Name (dotted when nested) and Arrow type of each.
        partitions: Paths.
    """
    from hudimeta.metadata.statistics import is_unlimited

    if not columns:
        return {}
    rows = metadata.prefixed(by_partition.PARTITION, by_file.prefixes(columns, partitions))
    tables = by_file.typed_columns(rows, columns)
    wide = {name: table.filter(is_unlimited(table, columns[name])) for name, table in tables.items()}
    return {name: set(paths_of(table.column("file_name")).to_pylist()) for name, table in wide.items()}


def expression_stats(
    metadata: MetadataTable, name: str, wanted: pa.DataType, partitions: Sequence[str] | None = None
) -> pa.Table:
    """Statistics of an expression index of kind column_stats, per file; see `column_stats`.

    Args:
        metadata: The metadata table.
        name: Metadata partition, `expr_index_…`.
        wanted: Arrow type of the expression's result.
        partitions: Partition paths to ask for; all when None.

    Raises:
        IndexNotReady: The table has no such index.
    """
    import pyarrow.compute as pc

    metadata.require(name)
    (column,) = metadata.index_definitions[name].source_fields
    rows = metadata.prefixed(name, by_file.prefixes({column: wanted}, partitions))
    of_files = rows.filter(pc.equal(rows.column("type"), scalar_of(int(RecordType.COLUMN_STATS))))
    found = by_file.typed(of_files, wanted)
    # Apache Hudi counts the values without the nulls here, and with them everywhere else. Records of ours are tight.
    values, nulls = found.column("value_count"), found.column("null_count")
    counts = pc.if_else(found.column("is_tight_bound"), values, pc.add(values, nulls))
    return found.set_column(found.schema.get_field_index("value_count"), "value_count", counts)


def expression_partition_stats(
    metadata: MetadataTable, name: str, wanted: pa.DataType, partitions: Sequence[str] | None = None
) -> pa.Table:
    """Statistics of an expression index of kind column_stats, per partition; see `partition_stats`.

    Args:
        metadata: The metadata table.
        name: Metadata partition, `expr_index_…`.
        wanted: Arrow type of the expression's result.
        partitions: Partition paths to ask for; all when None.

    Raises:
        IndexNotReady: The table has no such index.
    """
    from hudimeta.metadata.statistics import without_limits

    metadata.require(name)
    (column,) = metadata.index_definitions[name].source_fields
    head = column_id(column) + column_id(PARTITION_STAT)
    prefixes = [head] if partitions is None else [head + column_id(path) for path in partitions]
    found = by_file.typed(metadata.prefixed(name, prefixes, every=True), wanted)
    return without_limits(found.set_column(0, "partition_path", paths_of(found.column("file_name"))), wanted)


def record_locations(metadata: MetadataTable, keys: pa.Array | Sequence[str]) -> pa.Table:
    """Where some record keys live.

    Args:
        metadata: The metadata table.
        keys: Record keys, each once.

    Returns:
        record_key string, partition_path string, file_id dictionary of string, instant_ms int64, position int64; one row
        for each key that the index knows (for each partition, where the index is kept by partition).

    Raises:
        IndexNotReady: The table has no record index.
        MetadataOutOfSync: It was dropped, or built anew, meanwhile.
    """
    wanted = keys if isinstance(keys, pa.Array) else array_of(keys, pa.string())
    return metadata.of_index(record_index.PARTITION, lambda: metadata.lookup(record_index.PARTITION, wanted))


def keys_with_values(metadata: MetadataTable, name: str, values: pa.Array | Sequence[str | None]) -> pa.Table:
    """Record keys that have some values.

    Args:
        metadata: The metadata table.
        name: Metadata partition, `secondary_index_…`.
        values: Texts as Java spells the column's values; None for null.

    Returns:
        secondary string, record_key string.

    Raises:
        IndexNotReady: The table has no such index.
    """
    given = values if isinstance(values, pa.Array) else array_of(values, pa.string())
    prefixes = secondary_prefixes(given.unique())
    found = metadata.of_index(name, lambda: metadata.prefixed(name, prefixes))
    return found.select(["secondary", "record_key"])


def file_filters(metadata: MetadataTable, of_files: Sequence[tuple[str, str]], name: str = bloom_filters.PARTITION) -> pa.Table:
    """Bloom filters of some files: of their record keys, or of the values of an expression.

    Args:
        metadata: The metadata table.
        of_files: (partition path, file name) of each.
        name: Metadata partition: `bloom_filters`, or an `expr_index_…` of that kind.

    Returns:
        partition_path, file_name, type_code string, bloom large_binary (base64 text of the filter); one row for each file
        that has one.

    Raises:
        IndexNotReady: The table has no bloom filters.
    """
    import pyarrow.compute as pc

    paths = array_of([p for p, _ in of_files], pa.string())
    names = array_of([n for _, n in of_files], pa.string())
    keys = bloom_filter_keys(paths, names).cast(pa.string())
    found = metadata.lookup(name, keys)
    at = single_array(pc.index_in(found.column("key"), keys))
    return pa.table(
        {
            "partition_path": paths.take(at),
            "file_name": names.take(at),
            "type_code": found.column("type_code"),
            "bloom": found.column("bloom"),
        }
    )
