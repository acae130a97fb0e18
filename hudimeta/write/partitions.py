"""Partitions of the rows of a write: those that must not begin, and rows that only name partitions."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.formats.plain_arrays import single_array
from hudimeta.keys import KeyGenerator, check_new_partition, is_readable_by_hudi
from hudimeta.schema import conform
from hudimeta.slices.log_parts import deleted_rows
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import at_once
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.write.batch import KeyedBatch, with_unstored

__all__ = ["check_new_partitions", "partition_batch"]


def check_new_partitions(storage: Storage, batch: KeyedBatch) -> None:
    """Refuse rows for partitions that Apache Hudi could not read, while nothing is written yet.

    Raises:
        SchemaMismatch: See `check_new_partition`.
    """
    doubtful = {path for path in batch.partitions.unique().to_pylist() if not is_readable_by_hudi(path)}
    if doubtful:
        doubtful &= set(batch.partitions.filter(pa.array(~batch.deleted)).to_pylist())  # a delete begins no partition
    paths = sorted(doubtful)
    there = at_once(storage.is_file, [join(path, PARTITION_METAFILE) for path in paths], storage)
    for path, known in zip(paths, there, strict=True):
        if not known:
            check_new_partition(path)


def partition_batch(rows: pa.Table, generator: KeyGenerator, schema: pa.Schema, rules: MergeRules) -> KeyedBatch:
    """Rows that only say which partitions are meant: other columns than the partition's are not looked at.

    Raises:
        SchemaMismatch: A partition column is missing or does not fit.
    """
    tops = {field.name.partition(".")[0] for field in generator.partitions}
    kept = [place for place, name in enumerate(rows.column_names) if name in tops]
    fitted = conform(rows.select(kept), pa.schema([f for f in schema if f.name in tops]))
    fitted = with_unstored(fitted, rows, generator)
    if not generator.partitions:
        fitted = pa.table({"": pa.nulls(rows.num_rows)})
    paths = generator.partition_paths(fitted)
    one = single_array(paths)
    return KeyedBatch(fitted, None, one, deleted_rows(fitted, rules))
