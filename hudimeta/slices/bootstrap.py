"""Rows of tables that were bootstrapped by METADATA_ONLY: meta columns here, all other columns in the files of the source.

Such a base file is a skeleton of the five meta columns; its row i belongs to row i of one file of the source table, which
`table/bootstrap_index.py` names. A file group that was rewritten since has an ordinary base file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats.base_file import open_base_file
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.storage import absolute_location, open_storage
from hudimeta.table.bootstrap_index import BASE_PATH_KEY, METADATA_ONLY_INSTANT, BootstrapIndex
from hudimeta.types import META_COLUMNS

if TYPE_CHECKING:
    from hudimeta.snapshot.file_slice import FileSlice
    from hudimeta.storage import Storage

__all__ = ["BASE_PATH_KEY", "METADATA_ONLY_INSTANT", "BootstrapSource"]


def _scheme(location: str) -> str:
    return "" if location.startswith("/") else location.partition(":")[0]


class BootstrapSource:
    """The source of one bootstrapped table.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        options: Options that open the source's storage.
    """

    def __init__(self, storage: Storage, properties: Mapping[str, str], options: Mapping[str, str]) -> None:
        self._table = storage
        where = properties[BASE_PATH_KEY]
        # The table's files say where: secrets of the table's own store go to no other.
        same = _scheme(absolute_location(where)) == _scheme(storage.root)
        self._source = open_storage(where, options if same else None)
        self._index = BootstrapIndex(storage)

    def pieces(self, file_slice: FileSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Rows of a slice whose base file is a skeleton, in file order, one table per row group of the source.

        Args:
            file_slice: Has a base file.
            columns: Top-level columns; those that neither file has are passed over.

        Raises:
            CorruptFileError: The two files do not have the same rows, or the index does not know the slice.
        """
        path = file_slice.base_path or ""
        meta = self._skeleton(path, file_slice.base_size, columns)
        done = 0
        with open_base_file(self._source, self._index.source_path(file_slice.partition_path, file_slice.file_id)) as source:
            if source.num_rows != meta.num_rows:
                raise CorruptFileError(path, 0, f"as many rows as the source has ({source.num_rows})", meta.num_rows)
            for piece in source.pieces([name for name in columns if name not in META_COLUMNS]):
                rows = meta.slice(done, piece.num_rows)
                done += piece.num_rows
                for name in piece.column_names:
                    rows = rows.append_column(name, piece.column(name))
                yield rows

    def _skeleton(self, path: str, size: int, columns: Sequence[str]) -> pa.Table:
        """The meta columns; at least one, so that rows are counted."""
        wanted = [name for name in META_COLUMNS if name in set(columns)] or list(META_COLUMNS[:1])
        with open_base_file(self._table, path, size) as file:
            pieces = list(file.pieces(wanted))
            return pa.concat_tables(pieces) if pieces else no_rows(file.schema).select(wanted)
