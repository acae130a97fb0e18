"""Writing base files: the Parquet settings that Hudi's Java readers take in every step, and Hudi's footer keys.

The five meta columns come first. Decimals are fixed-length bytes, timestamps keep the unit of their column (microseconds in new
tables), lists have three levels, Arrow's own schema is left out, pages carry checksums. The footer's bloom filter and smallest
and greatest key are known only after the last row, so they are made at the end.

Row groups are small, 131,072 rows: a scan of one percent of two million rows reads 1/16 of the file then instead of all of it,
in a thirtieth of the time, and the file grows by 2 %. Pages are small too, 8,192 rows, and have an index, by which Spark's
reader skips, and decodes whole pages. With Arrow's 20,000 rows a scan of one percent decodes ten rows for each that it keeps;
with 4,096 it gains no more than a full scan loses, a tenth.

A column has a dictionary where its values come again often, or come again so far from each other that compression, which sees
one page, does not find them (see `_without_dictionary`). Any other dictionary costs more bytes than it saves, and time as well:
for each comparison that is pushed down, Java's reader makes a set of all values of a dictionary before it reads the rows.

A floating column that holds NaN has no statistics in the footer, as in files of Java: pyarrow would leave NaN out of them, and
Spark, for which NaN is above every number, would pass over the row group with `x > 5`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.formats.parquet.bounds import BoundsOfColumns, text_bounds, texts_in_statistics
from hudimeta.formats.parquet.footer import ParquetFooter
from hudimeta.formats.parquet.footer_entries import BloomSettings, footer_entries
from hudimeta.formats.parquet.known_keys import KnownKeys
from hudimeta.formats.parquet.seal import blank_entries, sealed_end
from hudimeta.formats.parquet.sink import CountingSink
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.formats.required_fields import without_hidden_nulls
from hudimeta.types import META_COLUMNS

__all__ = ["BaseFileSummary", "ParquetFileWriter", "ParquetSettings", "columns_anew", "write_base_file"]

CODECS = ("zstd", "snappy", "gzip", "uncompressed")
RECORD_KEY = META_COLUMNS[2]
REPEATED_COLUMNS = (META_COLUMNS[0], META_COLUMNS[3], META_COLUMNS[4])
"""All rows of a write, a partition or a file have the same value here, which takes no bytes of a file."""
UNIQUE_COLUMNS = (META_COLUMNS[1], RECORD_KEY)
"""Every row has its own value here: a dictionary would be tried and thrown away."""
_GATHERED_BYTES = 1 << 18
_PAGE_ROWS, _ROW_GROUP_ROWS = 1 << 13, 1 << 17
_OFTEN, _AGAIN = 1 / 8, 1 / 4
"""Distinct values per row of a row group: at most so many and a dictionary is worth it; if they lie far apart, so many."""
_SURELY = 0.95
"""The same in the first page: values drawn evenly that are so distinct there are above `_AGAIN` in the row group as well."""

_LEVELS = {"gzip": 6}
"""Where Arrow's default is not what others write: its 9 takes five times as long as Java's 6, for one percent of size."""
_LEAST_PAGE = 64
"""Bytes. An encoder of codes counts up to 7 when it holds none; Arrow makes a page of that, and reads no row after it."""


@dataclass(frozen=True)
class ParquetSettings:
    """How base files are laid out.

    Attributes:
        compression: `hoodie.parquet.compression.codec`.
        level: Of the codec, None for the usual one.
        row_group_bytes: Arrow bytes of a row group at most, see `_content_bytes` (`hoodie.parquet.block.size`).
        row_group_rows: Its rows at most; None for as many as there are.
        page_bytes: `hoodie.parquet.page.size`; less than 64 are taken for 64.
        page_rows: Rows of a page at most; an older pyarrow knows only bytes.
        dictionary: `hoodie.parquet.dictionary.enabled`, for columns whose values come again.
        bloom: None writes no filter: then writers that use Hudi's BLOOM index cannot update the file.
    """

    compression: str = "zstd"
    level: int | None = None
    row_group_bytes: int = 120 * 1024 * 1024
    row_group_rows: int | None = _ROW_GROUP_ROWS
    page_bytes: int = 1024 * 1024
    page_rows: int = _PAGE_ROWS
    dictionary: bool = True
    bloom: BloomSettings | None = field(default_factory=BloomSettings)


@dataclass(frozen=True)
class BaseFileSummary:
    """What was written.

    Attributes:
        size: Bytes of the file.
        rows: Rows.
        footer: As a reader would decode it; `footer.chunk_bytes` has the column sizes.
        bounds: `column_bounds` of the rows, meta columns included.
        min_key, max_key: None without rows or keys.
    """

    size: int
    rows: int
    footer: ParquetFooter
    bounds: pa.Table
    min_key: str | None
    max_key: str | None

    @property
    def column_bytes(self) -> dict[str, tuple[int, int]]:
        """Compressed and uncompressed bytes of each leaf column, by dotted path."""
        return self.footer.chunk_bytes


class ParquetFileWriter:
    """Writes one base file to a stream; closing the stream stays with the caller.

    Args:
        stream: Has `write(bytes)`, such as `Storage.open_output` gives.
        schema: Columns of the file, the meta columns first.
        avro_schema: Avro JSON of the same columns, for the footer; None leaves it out.
        settings: Layout.
        bounds_of: Dotted columns to keep bounds of; None is all, () none.
        known: A filter over the keys of the rows, where there is one; None to hash them all.
        name: Of the file, without its folder; readers refuse its content under another one. None when it is not known.

    Raises:
        SchemaMismatch: The meta columns do not lead.
        ConfigError: An unknown codec.
    """

    def __init__(
        self,
        stream: Any,
        schema: pa.Schema,
        *,
        avro_schema: str | None = None,
        settings: ParquetSettings | None = None,
        bounds_of: Sequence[str] | None = None,
        known: KnownKeys | None = None,
        name: str | None = None,
    ) -> None:
        if tuple(schema.names[: len(META_COLUMNS)]) != META_COLUMNS:
            raise SchemaMismatch(RECORD_KEY, f"not among the first columns ({schema.names[:5]})", "Hudi's meta columns first")
        self._settings = settings or ParquetSettings()
        self._schema = schema.remove_metadata()
        self._avro_schema = avro_schema
        self._sink = CountingSink(stream)
        self._gathered: Any = None
        self._file: Any = None
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._bounds = BoundsOfColumns(bounds_of)
        self._stated: Sequence[str] = ()
        self._known = known
        self._name = name
        self._keys: list[pa.ChunkedArray] = []
        self._rows = 0

    def _open(self, first: pa.Table, without_statistics: Collection[str]) -> Any:
        # Arrow writes the head of each page and its content apart, which are some thousand small writes.
        self._gathered = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), _GATHERED_BYTES)
        return _writer_to(self._gathered, self._schema, first, without_statistics, self._settings)

    def write(self, rows: pa.Table, keys: Any = None, *, whole: bool = False) -> None:
        """Append rows; small batches are gathered into whole row groups.

        Args:
            rows: In the file's schema.
            keys: Their record keys, where they are not in `_hoodie_record_key`.
            whole: They are all rows of the file.

        Raises:
            SchemaMismatch: Other columns.
        """
        if not rows.schema.equals(self._schema):
            odd = next((f for f, g in zip(rows.schema, self._schema, strict=False) if f != g), "fewer or more columns")
            raise SchemaMismatch(str(getattr(odd, "name", "*")), odd, "the columns of the file", "Call conform first.")
        if not rows.num_rows:
            return
        if whole:
            self._stated = texts_in_statistics(rows, self._bounds.names(rows.schema))
        self._bounds.add(rows, without=self._stated)
        self._keys.append(rows[RECORD_KEY] if keys is None else keys)
        self._rows += rows.num_rows
        self._pending.append(rows.replace_schema_metadata(None))
        self._pending_bytes += _content_bytes(rows)
        if self._pending_bytes >= self._settings.row_group_bytes:
            self._flush()

    def _flush(self, last: bool = False) -> None:
        rows = pa.concat_tables(self._pending) if self._pending else no_rows(self._schema)
        if self._file is None:
            # Which columns have statistics is settled here for all row groups: rows that are yet to come may hold NaN.
            unknown = [name for name, column in _floating_leaves(rows) if not last or _has_nan(column)]
            self._file = self._open(rows, unknown)
        if not rows.num_rows:
            return
        by_bytes = round(self._pending_bytes / self._settings.row_group_bytes)
        by_rows = -(-rows.num_rows // (self._settings.row_group_rows or rows.num_rows))
        groups = max(by_bytes, by_rows)
        self._file.write_table(without_hidden_nulls(rows), row_group_size=max(1, -(-rows.num_rows // groups)))
        self._pending, self._pending_bytes = [], 0

    def close(self) -> BaseFileSummary:
        """Write what is left and the footer. The stream stays open."""
        self._flush(last=True)
        keys = pa.chunked_array([c for k in self._keys for c in getattr(k, "chunks", [k])], pa.string())
        entries, low, high = footer_entries(lambda: keys, self._avro_schema, self._settings.bloom, self._known)
        self._file.add_key_value_metadata(entries | blank_entries(self._name))
        self._gathered.flush()
        self._sink.hold()
        self._file.close()
        self._gathered.flush()
        self._sink.release(sealed_end)
        metadata = self._file.writer.metadata
        for name, bounds in text_bounds(metadata, self._stated).items():
            self._bounds.tell(name, *bounds)
        footer = ParquetFooter(self._rows, entries, metadata)
        return BaseFileSummary(self._sink.written, self._rows, footer, self._bounds.table(), low, high)


def _writer_to(
    sink: Any, schema: pa.Schema, first: pa.Table, without_statistics: Collection[str], settings: ParquetSettings
) -> Any:
    """The writer of pyarrow for a file.

    Args:
        sink: Where it goes.
        schema: Its columns.
        first: Its first rows, which show what columns hold.
        without_statistics: Columns whose bounds would leave something out.
        settings: How it is laid out.
    """
    import pyarrow.parquet as pq

    codec = settings.compression.lower()
    if codec not in CODECS:
        raise ConfigError("hoodie.parquet.compression.codec", settings.compression, ", ".join(CODECS))
    leaves = _leaf_paths(schema)
    plain = {*UNIQUE_COLUMNS, *_without_dictionary(first)} if settings.dictionary else ()
    return pq.ParquetWriter(
        sink,
        schema,
        compression="none" if codec == "uncompressed" else codec,
        compression_level=settings.level if settings.level is not None else _LEVELS.get(codec),
        use_dictionary=[n for n in leaves if n not in plain] if settings.dictionary else False,
        write_statistics=[n for n in leaves if n not in without_statistics],
        data_page_size=max(settings.page_bytes, _LEAST_PAGE),
        max_rows_per_page=settings.page_rows,
        write_page_checksum=True,
        write_page_index=True,
        store_schema=False,
    )


def columns_anew(rows: pa.Table, sizes: Sequence[int], settings: ParquetSettings) -> pa.Buffer:
    """A Parquet file of some columns of a base file, for `stitched`: laid out as in a base file, without Hudi's entries.

    Args:
        rows: The columns.
        sizes: Rows of each row group; together all of them.
        settings: How it is laid out.
    """
    sink = pa.BufferOutputStream()
    unknown = [name for name, column in _floating_leaves(rows) if _has_nan(column)]
    with _writer_to(sink, rows.schema.remove_metadata(), rows, unknown, settings) as file:
        first = 0
        for size in sizes:
            file.write_table(without_hidden_nulls(rows.slice(first, size).replace_schema_metadata(None)), row_group_size=size)
            first += size
    return sink.getvalue()


def _content_bytes(rows: pa.Table) -> int:
    """Arrow bytes of rows, without those meta columns that repeat a value: as texts they outweigh narrow rows."""
    return sum(
        column.nbytes for name, column in zip(rows.column_names, rows.columns, strict=True) if name not in REPEATED_COLUMNS
    )


def write_base_file(
    stream: Any,
    rows: pa.Table,
    *,
    avro_schema: str | None = None,
    keys: Any = None,
    settings: ParquetSettings = ParquetSettings(),
    bounds_of: Sequence[str] | None = (),
    known: KnownKeys | None = None,
    name: str | None = None,
) -> BaseFileSummary:
    """Write all rows of a base file in one go.

    Args:
        stream: Has `write(bytes)`; closing it stays with the caller.
        rows: Meta columns first.
        avro_schema: For the footer.
        keys: Record keys, where they are not in `_hoodie_record_key`.
        settings: How it is laid out.
        bounds_of: Dotted columns to compute bounds of, None for all; none by default.
        known: A filter over the keys of the rows, where there is one; None to hash them all.
        name: Of the file, without its folder; None when it is not known.

    Raises:
        SchemaMismatch: The meta columns do not lead.
        ConfigError: An unknown codec.
    """
    file = ParquetFileWriter(
        stream, rows.schema, avro_schema=avro_schema, settings=settings, bounds_of=bounds_of, known=known, name=name
    )
    file.write(rows, keys, whole=True)
    return file.close()


def _floating_leaves(rows: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Floating columns, and floating fields in structs: those that predicates are pushed down to."""
    import pyarrow.compute as pc

    columns = [(name, rows[name]) for name in rows.column_names]
    while columns:
        name, column = columns.pop()
        if pa.types.is_struct(column.type):
            columns += [(f"{name}.{f.name}", pc.struct_field(column, i)) for i, f in enumerate(column.type)]
        elif pa.types.is_floating(column.type):
            yield name, column


def _without_dictionary(rows: pa.Table) -> Iterator[str]:
    """Flat columns that are smaller, and read faster, without a dictionary; `UNIQUE_COLUMNS` are not looked at.

    Values that come again lie beside each other (then as large a part of a page is distinct as of a row group, and compression
    finds them by itself) or anywhere. Each size is one of 131,072 rows with zstd, in kB, with a dictionary and without:

        order keys, sorted, 3.4 rows each      208   50        supplier keys, 11 rows each, anywhere         213  212
        UUIDs, 4 rows each, together           797  648        UUIDs, 4 rows each, anywhere                 2048 2426
        UUIDs, 8 rows each, together           354  331        UUIDs, 8 rows each, anywhere                  538 2338
    """

    def share(column: pa.ChunkedArray) -> float:
        # Arrow makes an array of distinct values in half the time in which it counts them.
        return float((len(column.unique()) - bool(column.null_count)) / max(len(column), 1))

    for name, column in zip(rows.column_names, rows.columns, strict=True):
        kind = column.type
        if name in UNIQUE_COLUMNS or pa.types.is_nested(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind):
            continue
        near = share(column[:_PAGE_ROWS])  # a cheap glance: most columns show it there
        if near <= _OFTEN:
            continue
        if near < _SURELY:
            far = near if len(column) <= _PAGE_ROWS else share(column[:_ROW_GROUP_ROWS])
            if far <= _OFTEN or (far <= _AGAIN and near >= 2 * far):
                continue
        yield name


def _has_nan(column: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.is_nan(column)).as_py())


@lru_cache(maxsize=32)
def _leaf_paths(schema: pa.Schema) -> tuple[str, ...]:
    """Paths of the leaf columns as Parquet spells them; asked for with every file of a write, and with each small commit."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as empty:
        pass
    columns = empty.writer.metadata.schema
    return tuple([columns.column(i).path for i in range(len(columns))])
