"""The order in which a bulk insert stores its rows (`hoodie.bulkinsert.sort.mode`): narrow key ranges make keys cheap to find.

Files never mix partitions, so the modes of Apache Hudi that only move rows of a partition together change nothing here. Rows
that arrive in several portions (the tasks of Spark, or the batches of a reader) are sorted within each portion.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.ordering import ordering_columns
from hudimeta.write.batch import KeyedBatch

__all__ = ["bulk_sort_columns", "sorted_for_bulk_insert"]

_BY_KEY = ("GLOBAL_SORT", "PARTITION_SORT")


def bulk_sort_columns(options: Options) -> tuple[str, ...]:
    """What the options sort a bulk insert by, within partitions: columns, or the record key; () for nothing."""
    return options.get(keys.BULK_SORT_COLUMNS) or ((KEY_COLUMN,) if options.get(keys.BULK_SORT_MODE) in _BY_KEY else ())


def sorted_for_bulk_insert(batch: KeyedBatch, options: Options) -> KeyedBatch:
    """The rows of a bulk insert in the order that the options ask for: within partitions, equal ones as given.

    Raises:
        ConfigError: A column to sort by that the rows do not have, or one without an order.
    """
    names = bulk_sort_columns(options)
    by_key = names == (KEY_COLUMN,)
    if not names or (by_key and batch.keys is None):
        return batch
    columns = {"key": batch.keys} if by_key else {f"column {name}": _column(batch.rows, name) for name in names}
    table = pa.table({"partition": batch.partitions, **columns})
    order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
    return batch.take(order.to_numpy())


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    kind = column_type(rows.schema, name)
    if kind is None or pa.types.is_nested(kind):
        allowed = "columns of the rows with a single value each"
        raise ConfigError(keys.BULK_SORT_COLUMNS.key, name, allowed, f"The rows have {', '.join(rows.column_names)}.")
    return ordering_columns(rows, (name,))[0]
