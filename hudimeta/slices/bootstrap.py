"""Rows of tables that were bootstrapped by METADATA_ONLY: meta columns here, all other columns in the files of the source.

Such a base file is a skeleton of the five meta columns; its row i belongs to row i of one file of the source table. Which file
that is stands in an HFile, `.hoodie/.aux/.bootstrap/.fileids/…_00000000000001.hfile`: key `part=<partition>;fileid=<file id>`,
value an Avro container with the file's status. A file group that was rewritten since has an ordinary base file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.base_file import open_base_file
from hudimeta.storage import absolute_location, join, open_storage
from hudimeta.types import META_COLUMNS

if TYPE_CHECKING:
    from hudimeta.formats.hfile import HFileReader
    from hudimeta.snapshot.file_slice import FileSlice
    from hudimeta.storage import Storage

__all__ = ["METADATA_ONLY_INSTANT", "BootstrapSource"]

METADATA_ONLY_INSTANT: Final = "00000000000001"
"""Instant of every skeleton."""

BASE_PATH_KEY: Final = "hoodie.bootstrap.base.path"
_INDEX_FILE: Final = ".hoodie/.aux/.bootstrap/.fileids/00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"


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
        self._index: HFileReader | None = None

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
        with open_base_file(self._source, self._source_path(file_slice)) as source:
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
            return pa.concat_tables(pieces) if pieces else file.schema.empty_table().select(wanted)

    def _source_path(self, file_slice: FileSlice) -> str:
        """The source file, relative to the source: a table that moved together with its source is still read."""
        from hudimeta.formats.avro.container import decode_container

        key = f"part={file_slice.partition_path};fileid={file_slice.file_id}".encode()
        found = self._open_index().lookup([key]).values
        if len(found) != 1:
            raise CorruptFileError(_INDEX_FILE, 0, f"an entry {key.decode()!r}", "none")
        (record,) = decode_container(found[0].as_py(), _INDEX_FILE)
        uri = record["bootstrapFileStatus"]["path"]["uri"]
        return join(record["bootstrapPartitionPath"] or "", posixpath.basename(uri))

    def _open_index(self) -> HFileReader:
        if self._index is None:
            from hudimeta.formats.hfile import HFileReader

            try:
                self._index = HFileReader(self._table.read(_INDEX_FILE), _INDEX_FILE)
            except NotFound as error:
                raise CorruptFileError(_INDEX_FILE, 0, "the index of the bootstrapped files", "no file") from error
        return self._index
