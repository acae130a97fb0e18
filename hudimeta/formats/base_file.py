"""Rows of base files: Parquet (and ORC, see `orc_file`), one row group at a time, only the columns that are wanted.

Three layouts of lists occur and are read alike: `repeated group array` (two levels, Avro's), `bag.array` (Spark's legacy
writer) and `list.element`. Pages that carry a checksum are verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError, HudiError, StorageError, UnsupportedFeature
from hudimeta.formats.orc_file import OrcFile
from hudimeta.formats.parquet import READ_INT96, coded_texts, texts_of_codes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hudimeta.formats.parquet import ParquetFooter
    from hudimeta.formats.parquet.page_index import PageIndex
    from hudimeta.formats.parquet.quick_columns import QuickColumns
    from hudimeta.storage import Storage

__all__ = ["BaseFile", "damage_named", "open_base_file", "pages_named", "schema_of_base_file"]


_LARGE_GROUP, _PORTION_ROWS = 1 << 18, 1 << 14
"""Row groups of more rows than the first are read in portions: what repeats takes no room in a file, but does in memory."""
_HOW = {"coerce_int96_timestamp_unit": READ_INT96}
_WORTH_CODES = 1 << 12
"""Rows of a file whose texts are read as codes: of fewer, making texts of codes takes as long as it saves."""
_WORTH_A_FILE = 1 << 13
"""Rows of a row group of which some columns are read apart, for which a small file is made."""
_PAGE_ROWS, _PAGE_BYTES = 1 << 13, 1 << 20
"""A row group of no more has one page a column, see `ParquetSettings`, unless somebody asked for smaller ones."""
_MAPPED_GAP = 4 << 10
"""As `MAX_GAP`, of a file in memory: no request is saved by reading what is not needed."""


class BaseFile:
    """An open base file.

    Attributes:
        path: Relative to the storage.
        schema, names: Its columns.
        num_rows: Its rows.
    """

    def __init__(self, content: _ParquetFile | OrcFile) -> None:
        self._content = content
        self.path, self.schema, self.names, self.num_rows = content.path, content.schema, content.names, content.num_rows

    @property
    def row_groups(self) -> int:
        """How many row groups it has; 0 in a file whose rows were all deleted."""
        return self._content.row_groups

    def groups_of(self, share: int, shares: int) -> list[int]:
        """Numbers of the row groups whose middle, by compressed bytes, lies in a part of the file (see `FileSlice`)."""
        if shares == 1:
            return list(range(self.row_groups))
        sizes = self._content.group_sizes
        total, found, passed = max(sum(sizes), 1), [], 0
        for number, size in enumerate(sizes):
            if (2 * passed + size) * shares // (2 * total) == share:
                found.append(number)
            passed += size
        return found

    @property
    def footer(self) -> ParquetFooter | None:
        """What its end says; read already. None for a format whose end says nothing that is of use."""
        return self._content.footer

    @property
    def page_index(self) -> PageIndex | None:
        """Where its pages lie and between which values they are; None where the file does not tell, or cannot be relied on."""
        return self._content.page_index

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Its rows in file order, one `piece` per row group."""
        return (self.piece(number, columns) for number in range(self.row_groups))

    def piece(self, number: int, columns: Sequence[str]) -> pa.Table:
        """The rows of one row group.

        Args:
            number: From 0.
            columns: Columns, or fields of structs by dotted paths; those that the file lacks are passed over. Without any, rows
                have no column.

        Raises:
            CorruptFileError: Bytes that cannot be what they claim.
        """
        wanted = self._known(columns)
        with damage_named(self.path):
            if not wanted:
                return _without_columns(self._content.rows_of(number))
            piece = self._content.read_group(number, wanted)
        found = self._in_order(piece, columns)
        # Of a struct, the file may have none of the fields that are asked for.
        return _without_columns(self._content.rows_of(number)) if found is None else found

    def portions(self, number: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of one row group, those of a large one in portions. Arguments are those of `piece`."""
        wanted, content = self._known(columns), self._content
        if isinstance(content, OrcFile) or not wanted or content.rows_of(number) <= _LARGE_GROUP:
            yield self.piece(number, columns)
            return
        with damage_named(self.path):
            for rows in content.read_portions(number, wanted):
                found = self._in_order(rows, columns)
                yield _without_columns(rows.num_rows) if found is None else found

    def matching(self, number: int, columns: Sequence[str], matches: npt.NDArray[np.bool_]) -> tuple[pa.Table, int] | None:
        """Some rows of one row group, unpacked together with those on the same pages, so that other pages are not.

        Args:
            number: Of the row group, from 0.
            columns: Columns, or fields of structs, as of `piece`.
            matches: For each row whether it is among them.

        Returns:
            The rows, texts as dictionaries where the file has them so, and how many were unpacked for them. None where reading
            them all takes hardly longer.

        Raises:
            CorruptFileError: Bytes that cannot be what they claim.
        """
        wanted = self._known(columns)
        with damage_named(self.path):
            found = self._content.read_matching(number, wanted, matches) if wanted else None
        piece = None if found is None else self._in_order(found[0], columns)
        return None if found is None or piece is None else (piece, found[1])

    def _known(self, columns: Sequence[str]) -> list[str]:
        known = set(self.names)
        return [name for name in columns if name in known or name.partition(".")[0] in known]

    def _in_order(self, piece: pa.Table, columns: Sequence[str]) -> pa.Table | None:
        """The columns in the order of the file; None when it has none of them."""
        known = set(self.names)
        heads = {name if name in known else name.partition(".")[0] for name in columns}
        heads &= set(piece.column_names)
        found = [name for name in self.names if name in heads]
        return piece.select(found).replace_schema_metadata(None) if found else None


class _ParquetFile:
    """An open Parquet file; see `BaseFile`."""

    def __init__(self, path: str, file: Any) -> None:
        from hudimeta.formats.parquet import footer_of
        from hudimeta.formats.parquet.verified import read_end

        self.path, self._file = path, file
        self._metadata, self._end = read_end(file, path)
        self.footer: ParquetFooter = footer_of(self._metadata, path)
        self.schema: pa.Schema = self.footer.arrow_schema
        self.names: tuple[str, ...] = tuple(self.schema.names)
        self.num_rows: int = self._metadata.num_rows
        self._readers: dict[tuple[str, ...], Any] = {}

    def _parquet(self, columns: Sequence[str]) -> Any:
        """What reads some columns; texts that stand in the file as codes are read as such, which takes a third of the time."""
        import pyarrow.parquet as pq

        known = self._readers.get(tuple(columns))
        if known is None:
            coded = coded_texts(self._metadata, self._texts(columns)) if self.num_rows >= _WORTH_CODES else []
            how: dict[str, Any] = {"read_dictionary": coded, "page_checksum_verification": True, "pre_buffer": True, **_HOW}
            known = self._readers[tuple(columns)] = pq.ParquetFile(self._file, metadata=self._metadata, **how)
        return known

    @property
    def row_groups(self) -> int:
        return int(self._metadata.num_row_groups)

    @property
    def group_sizes(self) -> list[int]:
        groups = [self._metadata.row_group(number) for number in range(self.row_groups)]
        return [sum(group.column(at).total_compressed_size for at in range(group.num_columns)) for group in groups]

    @cached_property
    def page_index(self) -> PageIndex | None:
        from hudimeta.formats.parquet.page_index import page_index_of

        return page_index_of(self._metadata, self._end, self.path)

    def rows_of(self, number: int) -> int:
        return int(self._metadata.row_group(number).num_rows)

    def read_group(self, number: int, columns: Sequence[str]) -> pa.Table:
        from hudimeta.formats.parquet.quick_columns import read_group

        quick = self._quick(number, columns)
        with pages_named(self.path, self._file, self._metadata, [number], columns):
            rows = texts_of_codes(read_group(self._parquet(columns), number, columns, quick))
            self._check_counts(number, columns)
            return self.footer.moments.of(_as_many(rows, self.rows_of(number), self.path))

    def read_portions(self, number: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        from hudimeta.formats.parquet.quick_columns import portions_of_group

        quick, left = self._quick(number, columns), self.rows_of(number)
        with pages_named(self.path, self._file, self._metadata, [number], columns):
            for portion in portions_of_group(self._parquet(columns), number, columns, quick, _PORTION_ROWS):
                left -= portion.num_rows
                yield self.footer.moments.of(texts_of_codes(portion))
            self._check_counts(number, columns)
        if left:
            raise CorruptFileError(
                self.path, 0, f"{self.rows_of(number)} rows in row group {number}", self.rows_of(number) - left
            )

    @cached_property
    def _schema_bytes(self) -> bytes:
        from hudimeta.formats.parquet.small_file import schema_bytes

        return schema_bytes(self._metadata)

    def _quick(self, number: int, columns: Sequence[str]) -> QuickColumns:
        """Those columns of a row group that are decoded sooner in another form. Of a far-away file, where they would be asked
        for apart, there are none."""
        from hudimeta.formats.parquet.quick_columns import QuickColumns, quick_columns

        if not isinstance(self._file, pa.MemoryMappedFile) or self.rows_of(number) < _WORTH_A_FILE:
            return QuickColumns()
        return quick_columns(self._metadata, number, columns, self._read, self.schema, lambda: self._schema_bytes)

    def _read(self, offset: int, length: int) -> bytes:
        return bytes(self._file.read_at(length, offset))

    def _check_counts(self, number: int, columns: Sequence[str]) -> None:
        """Compare what headers of pages count. Pages were read before: one after the other they are slow to come from a disk.

        A row group that has one page a column, as small ones do, needs it where rows have lists: of other columns Arrow reads
        no more values than there are rows.
        """
        group = self._metadata.row_group(number)
        if (
            group.num_rows > _PAGE_ROWS
            or group.total_byte_size > _PAGE_BYTES
            or any(map(pa.types.is_nested, self.schema.types))
        ):
            from hudimeta.formats.parquet.page_counts import check_counts

            check_counts(self._file, self._metadata, [number], self._leaves(columns), self.path)

    def _leaves(self, columns: Sequence[str]) -> list[int]:
        """Numbers of the leaf columns that some columns, or fields of structs, have."""
        places = {name: at for at, name in enumerate(self.names)}
        if len(self.names) == self._metadata.num_columns and all(name in places for name in columns):
            return [places[name] for name in columns]
        whole, parts = frozenset(columns), tuple(f"{name}." for name in columns)
        return [at for at, path in enumerate(self.footer.leaf_paths) if path in whole or path.startswith(parts)]

    def read_matching(self, number: int, columns: Sequence[str], matches: npt.NDArray[np.bool_]) -> tuple[pa.Table, int] | None:
        import pyarrow.parquet as pq

        from hudimeta.formats.parquet.page_counts import miscounted
        from hudimeta.formats.parquet.pages import MAX_GAP, pages_around
        from hudimeta.formats.parquet.quick_decimals import decimals_of

        gap = _MAPPED_GAP if isinstance(self._file, pa.MemoryMappedFile) else MAX_GAP
        pages = pages_around(self._metadata, number, columns, matches, self._read, self.page_index, gap)
        if pages is None:
            return None
        coded = self._coded(number, columns)
        file = pq.ParquetFile(pa.BufferReader(pages.content), page_checksum_verification=True, read_dictionary=coded, **_HOW)
        with pages_named(self.path, self._file, self._metadata, [number], columns):
            # So little is done sooner than handed to threads.
            rows = _as_many(file.read_row_group(0, columns=columns, use_threads=False), int(pages.kept.sum()), self.path)
            for _, expected, actual in miscounted(memoryview(pages.content), file.metadata, 0, None):
                raise CorruptFileError(self.path, 0, expected, actual)
        found = decimals_of(rows.filter(pa.array(matches[pages.kept])), self.schema)
        return self.footer.moments.of(found), rows.num_rows

    def _texts(self, columns: Sequence[str]) -> set[str]:
        return {name for name in columns if name in self.names and pa.types.is_string(self.schema.field(name).type)}

    def _coded(self, number: int, columns: Sequence[str]) -> list[str]:
        """Texts that stand in a row group as codes: few of them are made texts."""
        texts = self._texts(columns)
        group, paths = self._metadata.row_group(number), self.footer.leaf_paths
        found = [at for at, path in enumerate(paths) if path in texts and group.column(at).has_dictionary_page]
        return [paths[at] for at in found]


def _without_columns(rows: int) -> pa.Table:
    """A table of so many rows and no column; Arrow keeps the count beside the columns."""
    return pa.table({"none": pa.nulls(rows)}).select([])


_FORMATS: dict[str, Callable[[str, Any], _ParquetFile | OrcFile]] = {"parquet": _ParquetFile, "orc": OrcFile}


@contextmanager
def open_base_file(storage: Storage, path: str, size: int = 0) -> Iterator[BaseFile]:
    """Open a base file, and close it after the block.

    Args:
        storage: Holds it.
        path: Of the file.
        size: Bytes that it has as the table states; 0 when unknown.

    Raises:
        NotFound: It is gone.
        CorruptFileError: It is not of its format.
        UnsupportedFeature: Neither Parquet nor ORC.
    """
    extension = path.rpartition(".")[2]
    if extension not in _FORMATS:
        raise UnsupportedFeature(f"base file format .{extension} ({path})", "Read the table with Apache Hudi.")
    with storage.open_input(path, size) as file:
        try:
            with damage_named(path):
                _refuse_other_size(path, size, int(file.size()))
                content = _FORMATS[extension](path, file)
        except (CorruptFileError, StorageError):
            if size and (found := storage.stat(path)) is not None:
                _refuse_other_size(path, size, found.size)  # a store may have taken the size at our word
            raise
        yield BaseFile(content)


def _refuse_other_size(path: str, size: int, actual: int) -> None:
    if size and actual != size:
        raise CorruptFileError(path, min(size, actual), f"a file of {size} bytes", f"{actual} bytes")


def schema_of_base_file(storage: Storage, path: str) -> pa.Schema:
    """Columns of a base file, meta columns included. Raises as `open_base_file` does."""
    with open_base_file(storage, path) as file:
        return file.schema


def _as_many(rows: pa.Table, count: int, path: str) -> pa.Table:
    """Rows, if they are as many as they should be: headers of pages count values, and no checksum covers them."""
    if rows.num_rows != count:
        raise CorruptFileError(path, 0, f"{count} rows", rows.num_rows)
    return rows


@contextmanager
def pages_named(path: str, file: Any, metadata: Any, groups: Sequence[int], columns: Sequence[str] | None) -> Iterator[None]:
    """As `damage_named`, with the place of the page that is damaged, if that can be known.

    Args:
        path: Of a Parquet file.
        file: The file, open.
        metadata: Its footer.
        groups: Row groups that are read.
        columns: Columns that are read; all when None.
    """
    from hudimeta.formats.parquet.verified import damaged_page

    try:
        with damage_named(path):
            yield
    except CorruptFileError as error:
        found = damaged_page(metadata, lambda at, length: bytes(file.read_at(length, at)), groups, columns)
        if found is not None:
            raise CorruptFileError(path, *found) from error
        raise


@contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Arrow's complaints about bytes, with the path of the file. Raises CorruptFileError."""
    try:
        yield
    except HudiError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        what = str(error).strip().split("\n")[0]
        kind = "ORC" if path.endswith(".orc") else "Parquet"
        raise CorruptFileError(path, 0, f"a readable {kind} file", what) from error
