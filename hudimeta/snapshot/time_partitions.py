"""Partitions of time-based key generators that given values of the source column can lie in."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudimeta.errors import HudiError
from hudimeta.formats.plain_arrays import single_array
from hudimeta.keys import KeyGenerator

__all__ = ["partitions_of_values"]


def partitions_of_values(generator: KeyGenerator, values: pa.Array) -> pa.StringArray | None:
    """The partition paths of rows whose source column has one of some values.

    Args:
        generator: Of the table, with one partition field.
        values: Distinct values without nulls, typed as the column.

    Returns:
        Each path once; None when it is not certain: for timestamps, whose rendering depends on an option of the writer, and
        for values that the key generator cannot read.
    """
    if len(generator.partitions) != 1 or not (pa.types.is_integer(values.type) or pa.types.is_string(values.type)):
        return None
    only_partition = replace(generator, record_fields=())
    rows = pa.table({generator.partitions[0].name: values})
    try:
        paths = only_partition.partition_paths(rows)
    except HudiError:
        return None
    whole = single_array(paths)
    return whole.unique()
