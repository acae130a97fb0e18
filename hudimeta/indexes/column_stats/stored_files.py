"""Statistics of files that are stored already: those of before an index, and of writes that began before it was built."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudimeta.formats.base_file import damage_named
from hudimeta.formats.parquet import READ_INT96, BoundsOfColumns, column_bounds, read_footer
from hudimeta.formats.parquet.page_counts import check_counts
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.indexes.protocol import CommitChange, IndexSource
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.statistics import file_statistics
from hudimeta.schema import conform, with_meta_columns
from hudimeta.slices.read_task import ReadTask
from hudimeta.slices.single_files import SingleFile, file_part, held_by, parts_of, task_for
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.storage import Storage, join

__all__ = ["bounds_of_late_files", "file_bounds", "log_bounds"]


def file_bounds(source: IndexSource, definition: IndexDefinition) -> Sequence[tuple[str, pa.Table]]:
    """Partition path and rows of `column_stats.SCHEMA` of each base file, computed once for a source."""
    known = source.memory.get(definition.name)
    if known is None:
        base = source.base_files
        work = list(zip(base["partition_path"].to_pylist(), base["name"].to_pylist(), strict=True))
        known = source.of_each(_what(definition), lambda file: _of_base(source.storage, *file, definition), work)
        source.memory[definition.name] = known
    return known


def log_bounds(source: IndexSource, definition: IndexDefinition) -> Sequence[tuple[str, pa.Table]]:
    """The same of each log file of the newest file slices."""
    parts = [part for one in slices_of(source.slices) if one.log_files for part in parts_of(one) if part.is_log]
    if not parts:
        return []
    wanted = _wanted(source.schema, definition)
    task = task_for(source.storage, source.properties, source.timeline, wanted.names)
    return source.of_each(_what(definition), lambda part: _of_log(source.storage, part, task, wanted, definition), parts)


def bounds_of_late_files(change: CommitChange, definition: IndexDefinition) -> Sequence[pa.Table]:
    """Rows of `column_stats.SCHEMA` of the files of a write that came without statistics.

    Their writer did not know of the index. It may have been built before the write's instant, too: a service's plan, or a write
    that waited, has an instant that is younger than the properties that its writer has read.
    """
    parts = [file_part(f.partition_path, f.name, f.size) for f in change.written if f.rows and not len(f.statistics)]
    if not parts:
        return []
    storage, wanted = change.storage, _wanted(change.schema, definition)
    task = task_for(storage, change.properties, change.timeline, wanted.names, [change.instant])

    def stated(part: SingleFile) -> pa.Table:
        if part.is_log:
            return _of_log(storage, part, task, wanted, definition)[1]
        return _of_base(storage, part.partition_path, part.name, definition)[1]

    return change.engine.map(stated, parts)


def _what(definition: IndexDefinition) -> str:
    return f"bounds of {','.join(definition.source_fields)}"


def _regime(definition: IndexDefinition) -> str:
    return "V2" if definition.is_v2 else "V1"


def _wanted(schema: pa.Schema, definition: IndexDefinition) -> pa.Schema:
    """The columns of a table that an index looks at, with the types in which they are stored."""
    names = {name.partition(".")[0] for name in definition.source_fields}
    return pa.schema([field for field in with_meta_columns(schema) if field.name in names])


def _of_base(storage: Storage, partition_path: str, name: str, definition: IndexDefinition) -> tuple[str, pa.Table]:
    import pyarrow.parquet as pq

    path, columns = join(partition_path, name), list(definition.source_fields)
    with storage.open_input(path) as file:
        footer = read_footer(file, path)
        present = sorted({c.partition(".")[0] for c in columns} & set(footer.arrow_schema.names))
        with damage_named(path):
            how = {"coerce_int96_timestamp_unit": READ_INT96}
            opened = pq.ParquetFile(file, metadata=footer.metadata, page_checksum_verification=True, **how)
            rows = footer.moments.of(opened.read(present))
            check_counts(file, footer.metadata, range(footer.metadata.num_row_groups), None, path)
    bounds = column_bounds(rows, columns)
    return partition_path, file_statistics(bounds, partition_path, name, _regime(definition), footer.chunk_bytes)


def _of_log(
    storage: Storage, part: SingleFile, task: ReadTask, wanted: pa.Schema, definition: IndexDefinition
) -> tuple[str, pa.Table]:
    """As the writer of a log file states it: a file of deletes has records without bounds and with counts of 0."""
    found = BoundsOfColumns(list(definition.source_fields))
    found.add(no_rows(wanted))
    for piece in held_by(part, task, storage):
        found.add(conform(piece, wanted))
    path = part.partition_path
    return path, file_statistics(found.table(), path, part.name, _regime(definition), {}, keep_empty=True)
