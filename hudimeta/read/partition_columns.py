"""Partition columns whose values the partition path states: they are taken from there, for pruning and for rows alike.

Hudi does so too, and it has a use: what a path says about a column is then exactly what rows say, so that leaving out a
partition never changes an answer. Only types whose text leads back to one value take part; other partition columns are read
from the files, and nothing is pruned by them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from hudimeta.keys import PartitionLayout
    from hudimeta.read.snapshot import Snapshot

__all__ = ["path_values", "unlike_files"]

_SLASHED_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"


def path_values(paths: pa.Array, layout: PartitionLayout, schema: pa.Schema, properties: Mapping[str, str]) -> pa.Table:
    """The values that partition paths state.

    Args:
        paths: Partition paths, strings without nulls. layout: See `PartitionLayout`. schema: Of the table.
        properties: Texts of `hoodie.properties`.

    Returns:
        One row per path; a column for each partition field whose value is certain, typed as in `schema`.
    """
    if properties.get(_SLASHED_DATES, "false").strip().lower() == "true":
        return pa.table({})
    values = layout.values(paths, schema)
    certain = [name for name in values.column_names if name in schema.names and _is_exact(schema.field(name).type)]
    return values.select(certain)


def unlike_files(snapshot: Snapshot, names: Collection[str]) -> frozenset[str]:
    """Those of some columns of which rows may show another value than their files hold, as statistics know it.

    Null and empty text have one partition, whose path states null.
    """
    from hudimeta.keys import PartitionLayout

    layout, schema = PartitionLayout.from_properties(snapshot.properties), snapshot.schema.arrow
    texts = frozenset(f for f in layout.fields if f in names and f in schema.names and pa.types.is_string(schema.field(f).type))
    if not texts:
        return texts
    import pyarrow.compute as pc

    from hudimeta.keys.partition_path import DEFAULT_PARTITION

    nulls = pc.match_substring(snapshot.listing.partitions(), DEFAULT_PARTITION)
    return texts if pc.any(nulls).as_py() else frozenset()


def _is_exact(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_integer(kind) or types.is_date32(kind) or types.is_boolean(kind))
