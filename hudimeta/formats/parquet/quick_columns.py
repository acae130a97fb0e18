"""The columns of a row group that Arrow decodes sooner in another form than that in which they stand in a file.

These are decimals (see `quick_decimals`). They are read from a small file of their own, whose pages are those of the original.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.formats.parquet.page_headers import read_strictly
from hudimeta.formats.parquet.pages import Read, chunk_span
from hudimeta.formats.parquet.quick_decimals import decimals_of, is_slow, quicker
from hudimeta.formats.parquet.small_file import ColumnPages, small_file

__all__ = ["QuickColumns", "portions_of_group", "quick_columns", "read_group"]

_FEW_CELLS = 1 << 15
"""So few are decoded sooner than handed to threads."""


@dataclass(frozen=True)
class QuickColumns:
    """Such columns of a row group.

    Attributes:
        names: Of the columns; none where there is none, and then nothing can be read.
        content: The file that they are in.
        schema: Has the types of the columns.
    """

    names: tuple[str, ...] = ()
    content: bytes = b""
    schema: pa.Schema | None = None

    def rows(self) -> pa.Table:
        """All rows, with these columns."""
        return decimals_of(self._file().read_row_group(0), self.schema)

    def portions(self, rows: int) -> Iterator[pa.Table]:
        """The same in portions of so many rows."""
        for batch in self._file().iter_batches(rows):
            yield decimals_of(pa.Table.from_batches([batch]), self.schema)

    def _file(self) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(pa.BufferReader(self.content), page_checksum_verification=True)


def quick_columns(
    metadata: Any, group: int, columns: Collection[str], read: Read, schema: pa.Schema, begin: Callable[[], bytes]
) -> QuickColumns:
    """Find them, and read their pages.

    Args:
        metadata: pyarrow's `FileMetaData`.
        group: Number of the row group.
        columns: Names to choose from.
        read: Bytes of the file from an offset, a length.
        schema: The columns of the file.
        begin: How its footer begins, see `schema_bytes`; asked for with every row group, so made once a file.
    """
    found: dict[int, ColumnPages] = {}
    row_group, leaves = metadata.row_group(group), metadata.schema
    for at in range(metadata.num_columns):
        column = leaves.column(at)
        if is_slow(column) and column.path in columns and not row_group.column(at).file_path:
            pages = _whole_chunk(row_group.column(at), read)
            quick = pages if pages is None else quicker(pages, column, row_group.num_rows)
            if quick is not None and quick is not pages:
                found[at] = quick
    content = small_file(begin(), found, row_group, row_group.num_rows) if found else None
    if content is None:
        return QuickColumns()
    return QuickColumns(tuple(leaves.column(at).path for at in found), content, schema)


def read_group(file: Any, group: int, columns: Sequence[str], quick: QuickColumns) -> pa.Table:
    """The rows of a row group; the quick columns come last.

    Args:
        file: Pyarrow's `ParquetFile`.
        group: Number of the row group.
        columns: Names, or dotted paths.
        quick: Those of the columns that are read in another form.
    """
    others = _without(columns, quick)
    if not others:
        return quick.rows()
    cells = file.metadata.row_group(group).num_rows * len(others)
    rows = file.read_row_group(group, columns=others, use_threads=cells > _FEW_CELLS)
    return _side_by_side(rows, quick.rows()) if quick.names else rows


def portions_of_group(file: Any, group: int, columns: Sequence[str], quick: QuickColumns, rows: int) -> Iterator[pa.Table]:
    """The same in portions of so many rows. See `read_group` for the arguments."""
    others = _without(columns, quick)
    if not others:
        yield from quick.portions(rows)
        return
    more, pending = quick.portions(rows) if quick.names else None, list[pa.Table]()
    for batch in file.iter_batches(rows, row_groups=[group], columns=others):
        portion = pa.Table.from_batches([batch])
        if more is not None:
            while sum(part.num_rows for part in pending) < portion.num_rows and (part := next(more, None)) is not None:
                pending.append(part)
            beside = pa.concat_tables(pending)
            portion, pending = _side_by_side(portion, beside.slice(0, portion.num_rows)), [beside.slice(portion.num_rows)]
        yield portion


def _without(columns: Sequence[str], quick: QuickColumns) -> list[str]:
    return [name for name in columns if name not in quick.names]


def _side_by_side(left: pa.Table, right: pa.Table) -> pa.Table:
    return pa.table([*left.columns, *right.columns], schema=pa.schema([*left.schema, *right.schema]))


def _whole_chunk(chunk: Any, read: Read) -> ColumnPages | None:
    """All pages of a column; None where they do not begin as the footer says, of which Arrow tells when it reads them."""
    first, length = chunk_span(chunk)
    data = memoryview(read(first, length)).cast("B")
    if not chunk.has_dictionary_page:
        return ColumnPages(chunk, (data,), 0)
    try:
        header = read_strictly(data, 0)
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    end = header.start + header.packed
    return ColumnPages(chunk, (data[:end], data[end:]), end) if header.start <= end <= len(data) else None
