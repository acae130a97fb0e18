"""Partition columns whose values the partition path states: they are taken from there, for pruning and for rows alike.

Hudi does so too, and it has a use: what a path says about a column is then exactly what rows say, so that leaving out a
partition never changes an answer. Only types whose text leads back to one value take part; other partition columns are read
from the files, and nothing is pruned by them. Where the table leaves partition columns out of its files
(`hoodie.datasource.write.drop.partition.columns`), the path is all there is: every type takes part, and a value that cannot be
read back is an error, never NULL. Some files of such a table can hold the column all the same (Hudi writes it into logs).

What files hold in such a column may differ from what the path says: an empty text, a row that stayed in its partition when the
column changed. So nothing that is known of files (statistics, secondary indexes) is used for it: `path_bounds` is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudimeta.errors import HudiError, UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, single_array

if TYPE_CHECKING:
    from hudimeta.keys import KeyGenerator, PartitionLayout
    from hudimeta.predicate import ColumnBounds
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["is_slashed", "partitions_of_values", "path_bounds", "path_values", "stated_columns"]

_SLASHED_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
_DROPPED = "hoodie.datasource.write.drop.partition.columns"


def path_values(paths: pa.Array, layout: PartitionLayout, schema: pa.Schema, properties: Mapping[str, str]) -> pa.Table:
    """The values that partition paths state.

    Args:
        paths: Partition paths, strings without nulls.
        layout: See `PartitionLayout`.
        schema: Of the table.
        properties: Texts of `hoodie.properties`.

    Returns:
        One row per path; a column for each partition field whose value is certain, typed as in `schema`.

    Raises:
        UnsupportedFeature: A column that no file holds, and a path that does not state its value.
    """
    dropped = _dropped(properties, layout, schema)
    if is_slashed(properties):
        _refuse_lost(dropped)
        return pa.table({})
    values = layout.values(paths, schema)
    _refuse_lost([name for name in dropped if name not in values.column_names])
    shown = [name for name in values.column_names if name in schema.names]
    return values.select([name for name in shown if name in dropped or _is_exact(schema.field(name).type)])


def stated_columns(snapshot: Snapshot) -> frozenset[str]:
    """The columns whose values readers of a table take from partition paths, wherever these state them."""
    from hudimeta.keys import PartitionLayout

    layout, schema = PartitionLayout.from_properties(snapshot.properties), snapshot.schema.arrow
    none = array_of([], pa.string())
    return frozenset(path_values(none, layout, schema, snapshot.properties).column_names) if layout.fields else frozenset()


def path_bounds(snapshot: Snapshot, names: Collection[str], paths: pa.Array) -> dict[str, ColumnBounds]:
    """What partition paths prove about columns, in the form in which statistics prove it.

    Args:
        snapshot: The table.
        names: Columns asked for; those that paths do not state are left out.
        paths: The partition path of each file, or each partition.

    Returns:
        Bounds with one element a path: the one value that all rows have, or that all are null.
    """
    from hudimeta.keys import PartitionLayout
    from hudimeta.predicate import ColumnBounds

    if not any(name in names for name in snapshot.properties.partition_fields):
        return {}
    coded = paths.dictionary_encode()
    layout = PartitionLayout.from_properties(snapshot.properties)
    values = path_values(coded.dictionary, layout, snapshot.schema.arrow, snapshot.properties)
    one = array_of(np.ones(len(paths), np.int64))
    found = {}
    for name in (name for name in values.column_names if name in names):
        column = single_array(values.column(name)).take(coded.indices)
        found[name] = ColumnBounds(column, column, column.is_null().cast(pa.int64()), one, nan_aware=True)
    return found


def _dropped(properties: Mapping[str, str], layout: PartitionLayout, schema: pa.Schema) -> list[str]:
    """The columns that are nowhere but in partition paths."""
    return [name for name in layout.fields if name in schema.names] if _is_on(properties, _DROPPED) else []


def _refuse_lost(names: Collection[str]) -> None:
    if names:
        raise UnsupportedFeature(
            f"partition column {min(names)} that is nowhere but in partition paths, which do not state its values",
            "Read the table with Apache Hudi.",
        )


def is_slashed(properties: Mapping[str, str]) -> bool:
    """Whether folders are dates with slashes, which columns have with dashes."""
    return _is_on(properties, _SLASHED_DATES)


def _is_on(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "false").strip().lower() == "true"


def _is_exact(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_integer(kind) or types.is_date32(kind) or types.is_boolean(kind))


def partitions_of_values(generator: KeyGenerator, values: pa.Array) -> pa.StringArray | None:
    """The partition paths of rows whose source column has one of some values.

    Args:
        generator: Of the table, with one partition field.
        values: Distinct values without nulls, typed as the column.

    Returns:
        Each path once; None when it is not certain: for timestamps, whose rendering depends on an option of the writer, where
        nobody names the zone of the writer, and for values that the key generator cannot read.
    """
    if len(generator.partitions) != 1 or generator.lacks_zone:
        return None
    if not (pa.types.is_integer(values.type) or pa.types.is_string(values.type)):
        return None
    only_partition = replace(generator, record_fields=())
    rows = pa.table({generator.partitions[0].name: values})
    try:
        paths = only_partition.partition_paths(rows)
    except HudiError:
        return None
    whole = single_array(paths)
    return whole.unique()
