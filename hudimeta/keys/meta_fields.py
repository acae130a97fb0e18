"""The five meta columns of new or changed rows, as array work.

`_hoodie_commit_time` is the instant that wrote the row, `_hoodie_commit_seqno` is `<instant>_<task>_<counter>`, then record
key, partition path and the name of the file that the row sits in (in log blocks: its file id). Rows copied forward keep
the first four and change the file name alone.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.schema import META_FIELDS, OPERATION_COLUMN
from hudimeta.types import META_COLUMNS

__all__ = [
    "FILE_NAME_COLUMN",
    "add_meta_columns",
    "drop_meta_columns",
    "hide_meta_columns",
    "sequence_numbers",
    "with_file_name",
]

FILE_NAME_COLUMN = META_COLUMNS[4]


def sequence_numbers(instant: str, task: int, count: int, first: int = 0) -> pa.StringArray:
    """`<instant>_<task>_<n>` for n from `first` on: unique within the instant when every task has its own number."""
    import numpy as np
    import pyarrow.compute as pc

    numbers = pc.cast(array_of(np.arange(first, first + count, dtype=np.int64)), pa.string())
    return pc.binary_join_element_wise(scalar_of(f"{instant}_{task}"), numbers, scalar_of("_"))


def add_meta_columns(
    rows: pa.Table,
    *,
    instant: str,
    task: int,
    record_keys: Any,
    partition_path: Any,
    file_name: str,
    first: int = 0,
    populate: bool = True,
    coded: bool = False,
) -> pa.Table:
    """Put the five meta columns in front of data columns.

    Args:
        rows: Data columns; meta columns among them are replaced.
        instant: Requested time of the write.
        task: First number of the write token.
        first: Counter of the first row.
        record_keys: Strings, one per row.
        partition_path: One text for all rows, or strings, one per row.
        file_name: Name of the base file, or the file id for rows of a log block.
        populate: False (`hoodie.populate.meta.fields=false`) leaves the first four null; the file name is always filled.
        coded: Columns of one text are dictionaries of it, which are written sooner.

    Returns:
        Table with the five meta columns, all strings, then the data columns.
    """
    count, constant = rows.num_rows, _constant_code if coded else _constant
    empty = pa.nulls(count, pa.string())
    if populate:
        paths = constant(partition_path, count) if isinstance(partition_path, str) else partition_path
        meta = [constant(instant, count), sequence_numbers(instant, task, count, first), record_keys, paths]
    else:
        meta = [empty, empty, empty, empty]
    meta.append(constant(file_name, count))
    data = drop_meta_columns(rows)
    fields = zip(META_FIELDS, (column.type for column in meta), strict=True)
    meta_fields = [field.with_type(kind) if pa.types.is_dictionary(kind) else field for field, kind in fields]
    schema = pa.schema([*meta_fields, *data.schema], metadata=rows.schema.metadata)
    return pa.Table.from_arrays([*meta, *data.columns], schema=schema)


def with_file_name(rows: pa.Table, file_name: str) -> pa.Table:
    """Rows that already have meta columns, moved to another file: only the file name changes."""
    at = rows.schema.get_field_index(FILE_NAME_COLUMN)
    kind = rows.schema.field(at).type
    if pa.types.is_dictionary(kind):
        return rows.set_column(at, rows.schema.field(at), _constant_code(file_name, rows.num_rows))
    return rows.set_column(at, META_FIELDS[4], _constant(file_name, rows.num_rows))


def hide_meta_columns(rows: pa.Table, *, file_name: bool) -> pa.Table:
    """Rows as a table with virtual keys stores them: meta columns null, but for the file name in base files.

    Args:
        rows: With meta columns.
        file_name: True to keep the file name.
    """
    for name in META_COLUMNS[:4] if file_name else META_COLUMNS:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.string()))
    return rows


def drop_meta_columns(rows: pa.Table) -> pa.Table:
    """Data columns only."""
    return rows.drop_columns([c for c in (*META_COLUMNS, OPERATION_COLUMN) if c in rows.column_names])


def _constant_code(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(scalar_of(0, pa.int32()), count), array_of([text], pa.string()))


def _constant(text: str, count: int) -> pa.Array:
    return pa.repeat(scalar_of(text, pa.string()), count)
