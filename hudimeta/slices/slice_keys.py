"""What a write must know of the rows of one file slice: their keys, and the ordering values of some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.log import BlockType
from hudimeta.formats.parquet import read_key_column
from hudimeta.keys import KeyGenerator
from hudimeta.schema import SchemaHistory, with_meta_columns
from hudimeta.slices.log_damage import LogFileRules, read_log_file
from hudimeta.slices.log_parts import deletes_of, rows_of
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.read_task import ReadTask, VisibleInstants
from hudimeta.slices.reader import SliceReader
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import parse_base_file
from hudimeta.table.key_file import KeyFile
from hudimeta.table.properties import TableProperties

__all__ = [
    "read_live_keys",
    "read_ordering",
    "read_slice_keys",
    "rows_may_be_in",
    "slice_of",
    "touched_keys",
    "with_virtual_keys",
]


def read_slice_keys(storage: Storage, file: KeyFile, wanted: pa.StringArray | None) -> pa.StringArray | None:
    """Keys of the base file and of all rows in log files; deleted ones may be among them, which does no harm.

    Args:
        storage: Rooted at the table.
        file: The slice.
        wanted: Keys that are looked for; None for all that are there.

    Returns:
        None when the footer of the base file excludes all wanted keys and there are no log files.
    """
    found = None
    if file.name:
        path = join(file.partition_path, file.name)
        with storage.open_input(path) as source:
            found = read_key_column(source, KEY_COLUMN, wanted, path, file.size)
    if not file.logs:
        return found
    parts = [found] if found is not None else []
    rules = LogFileRules(storage)
    for name, size in zip(file.logs, file.log_sizes, strict=True):
        path = join(file.partition_path, name)
        blocks = [block for block in read_log_file(rules, path, size).blocks if block.type.holds_records]
        parts += [rows_of(b, [KEY_COLUMN])[KEY_COLUMN].combine_chunks().cast(pa.string()) for b in blocks]
    return pa.concat_arrays([pa.array([], pa.string()), *parts])


def touched_keys(storage: Storage, path: str, size: int) -> pa.StringArray:
    """Keys of all rows that a log file changes or deletes.

    Args:
        storage: Rooted at the table, which stores record keys.
        path: Of the log file.
        size: Its bytes.
    """
    parts = [pa.array([], pa.string())]
    for block in read_log_file(LogFileRules(storage), path, size).blocks:
        if block.type is BlockType.DELETE:
            parts.append(deletes_of(block)["record_key"].combine_chunks().cast(pa.string()))
        elif block.type.holds_records:
            parts.append(rows_of(block, [KEY_COLUMN])[KEY_COLUMN].combine_chunks().cast(pa.string()))
    return pa.concat_arrays(parts)


def slice_of(file: KeyFile) -> FileSlice:
    """The file slice that a reader merges."""
    base = parse_base_file(file.name)
    began = base.instant if base is not None else ""
    return FileSlice(file.partition_path, file.file_id, began, file.name or None, file.size, file.logs, file.log_sizes)


def rows_may_be_in(files: Sequence[KeyFile]) -> Iterator[KeyFile]:
    """Where to look for any row: the base files first, each alone, and only then whole slices, whose logs must be merged."""
    yield from (replace(file, logs=(), log_sizes=()) for file in files if file.name)
    yield from (file for file in files if file.logs)


def read_live_keys(storage: Storage, rows: SliceRows, file: KeyFile, wanted: pa.StringArray | None) -> pa.StringArray | None:
    """As `read_slice_keys`, without keys that log files have deleted.

    Args:
        storage: Rooted at the table.
        rows: Merges slices; asked only where the slice has a wanted key and log files.
        file: The slice.
        wanted: Keys that are looked for; None for all that are there.
    """
    found = read_slice_keys(storage, file, wanted)
    if found is None or not file.logs:
        return found
    if wanted is not None and not pc.any(pc.is_in(wanted, value_set=found)).as_py():
        return found
    return rows.columns(slice_of(file), ())[KEY_COLUMN].combine_chunks()


def with_virtual_keys(rows: pa.Table, generator: KeyGenerator) -> pa.Table:
    """Rows with the record keys that their table does not store."""
    at = rows.schema.get_field_index(KEY_COLUMN)
    return rows.set_column(at, rows.schema.field(at), generator.record_keys(rows))


def read_ordering(
    storage: Storage,
    properties: TableProperties,
    schema: pa.Schema,
    instants: VisibleInstants,
    fields: Sequence[str],
    history: SchemaHistory | None,
    virtual: KeyGenerator | None,
    storage_options: Mapping[str, str],
    file: KeyFile,
    wanted: pa.StringArray,
) -> tuple[pa.Array, ...]:
    """Ordering values of keys in one file slice.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        schema: Its data columns.
        instants: Whose log blocks count.
        fields: Ordering fields; () gives ().
        history: Of a table that was altered.
        virtual: Makes keys that are not stored.
        storage_options: Open the source of a table that was bootstrapped.
        file: The slice.
        wanted: The keys.

    Returns:
        One array a field, in the order of `wanted`; null for a key that the slice does not have any more.
    """
    if not fields:
        return ()
    made_of = () if virtual is None else virtual.record_fields
    columns = tuple(dict.fromkeys([KEY_COLUMN, *(field.split(".")[0] for field in (*fields, *made_of))]))
    full, settings = with_meta_columns(schema), dict(properties)
    task = ReadTask(
        storage.root, settings, full, schema, columns, None, instants, history=history, storage_options=storage_options
    )
    pieces = [task.output_schema.empty_table(), *SliceReader(task, storage).tables(slice_of(file))]
    rows = pa.concat_tables(pieces)
    if virtual is not None:
        rows = with_virtual_keys(rows, virtual)
    at = pc.index_in(wanted, value_set=rows[KEY_COLUMN].combine_chunks())
    values = []
    for field in fields:
        head, *rest = field.split(".")
        column = pc.struct_field(rows[head], rest) if rest else rows[head]
        values.append(column.combine_chunks().take(at))
    return tuple(values)
