"""Rows inside log blocks: Avro, Parquet and HFile content to Arrow tables and back.

Avro data (also of CDC blocks): int version, int number of rows, then per row int length and an Avro datum of the schema in the
block's header. Integers are big-endian. Versions 1 to 3 differ in nothing that shows here; 3 is written.

Parquet and HFile data: the content is the whole file, with nothing before or after it. The values of an HFile are Avro datums.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hudimeta.errors import ConfigError, CorruptFileError, SchemaError, UnsupportedFeature
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.log.block import BlockType, HeaderKey, LogBlock

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.formats.hfile import HFileReader, RawCells

__all__ = [
    "CONTENT_VERSION",
    "AvroDatums",
    "avro_datums",
    "decode_data_block",
    "encode_avro_content",
    "encode_hfile_content",
    "encode_parquet_content",
    "open_hfile_block",
]

CONTENT_VERSION: Final = 3
PARQUET_CODECS: Final = ("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed")
_READABLE_VERSIONS: Final = (1, 2, 3)
_HEAD: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class AvroDatums:
    """Where the rows of an Avro block lie: int64 offsets in `data` and lengths, without the length fields."""

    data: memoryview
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


def decode_data_block(block: LogBlock, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of an Avro, Parquet, HFile or CDC block, as stored.

    Args:
        block: What `read_blocks` cut out.
        columns: Top-level columns to decode, those that the block lacks are passed over; None for all.

    Returns:
        Table in the block's own schema and column order.

    Raises:
        CorruptFileError: Content that is not what the block's type and schema say, with the offset in the log file.
        UnsupportedFeature: A content version that is unknown.
    """
    if block.type is BlockType.PARQUET_DATA:
        return _decode_parquet(block, columns)
    if block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
        return _decode_datums(block, avro_datums(block), columns)
    if block.type is BlockType.HFILE_DATA:
        return _decode_hfile(block, columns)
    raise UnsupportedFeature(f"reading rows from a {block.type.name} block")


def avro_datums(block: LogBlock) -> AvroDatums:
    """Find the rows of an Avro block without decoding them.

    Raises:
        CorruptFileError: The count or a length contradicts the content's size.
        UnsupportedFeature: An unknown content version.
    """
    content = block.content
    if len(content) < _HEAD.size:
        raise block.damaged("a version and a number of rows", f"{len(content)} bytes", at=0)
    version, count = _HEAD.unpack_from(content)
    if version not in _READABLE_VERSIONS:
        raise UnsupportedFeature(f"Avro log block of version {version} at byte {block.offset} of {block.path or '<memory>'}")
    if not 0 <= count <= (len(content) - _HEAD.size) // _LENGTH.size:
        raise block.damaged("a number of rows that the content can hold", count, at=4)
    offsets, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
    at, size = _HEAD.size, len(content)
    for row in range(count):
        length = _LENGTH.unpack_from(content, at)[0] if at + _LENGTH.size <= size else -1
        at += _LENGTH.size
        if not 0 <= length <= size - at:
            raise block.damaged(f"the length of row {row} within the content", length, at=at - _LENGTH.size)
        offsets[row], lengths[row] = at, length
        at += length
    if at != size:
        raise block.damaged(f"the content's end after {count} rows", f"{size - at} more bytes", at=at)
    return AvroDatums(content, offsets, lengths)


def open_hfile_block(block: LogBlock) -> HFileReader:
    """A reader over the HFile that the block holds, for look-ups that do not decode everything."""
    from hudimeta.formats.hfile import HFileReader

    return HFileReader(block.content, path=block.path)


def encode_avro_content(rows: pa.Table, schema_json: str) -> bytes:
    """Content of an Avro data block; the inverse of `decode_data_block`.

    Args:
        rows: Has the schema's fields by name.
        schema_json: Avro record schema, the same that goes into the block's header.

    Raises:
        SchemaMismatch: Rows that do not fit the schema.
    """
    from hudimeta.formats.avro.rows import encode_rows

    data, _ = encode_rows(rows, schema_json, length_prefix=True)
    return _HEAD.pack(CONTENT_VERSION, rows.num_rows) + bytes(data)


def encode_hfile_content(rows: pa.Table, schema_json: str, key_column: str) -> bytes:
    """Content of an HFile data block: rows as Avro datums, sorted by their keys.

    Args:
        rows: Has the schema's fields by name.
        schema_json: See `encode_avro_content`.
        key_column: A string column, no null.

    Raises:
        SchemaMismatch: Rows that do not fit the schema.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from hudimeta.formats.avro.rows import encode_rows
    from hudimeta.formats.hfile import HFileInfo, write_hfile

    keys = rows[key_column].cast(pa.large_binary())
    order = pc.sort_indices(keys)
    data, offsets = encode_rows(rows.take(order), schema_json)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(data)]
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), rows.num_rows, buffers)
    return write_hfile(keys.take(order).combine_chunks(), values, HFileInfo(schema_json), unique=False)


def encode_parquet_content(rows: pa.Table, *, compression: str = "zstd", entries: Mapping[str, str] | None = None) -> bytes:
    """Content of a Parquet data block: a whole file with a checksum in every page, which readers verify.

    Args:
        rows: With all columns of the block.
        compression: Of the pages.
        entries: What its footer says besides; such a footer is sealed, since it is read without the block.

    Raises:
        ConfigError: An unknown codec.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hudimeta.formats.parquet import blank_entries, sealed_file
    from hudimeta.formats.required_fields import without_hidden_nulls

    if compression.lower() not in PARQUET_CODECS:
        raise ConfigError("hoodie.parquet.compression.codec", compression, ", ".join(PARQUET_CODECS))
    codec = compression.lower().replace("uncompressed", "none")
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, compression=codec, store_schema=False, write_page_checksum=True) as file:
        file.write_table(without_hidden_nulls(rows))
        if entries:
            file.add_key_value_metadata(dict(entries) | blank_entries(None))
    content: bytes = sink.getvalue().to_pybytes()
    return sealed_file(content) if entries else content


def _decode_parquet(block: LogBlock, columns: Sequence[str] | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hudimeta.formats.parquet import READ_INT96, Moments
    from hudimeta.formats.parquet.page_counts import miscounted

    how = {"coerce_int96_timestamp_unit": READ_INT96}
    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(block.content)), page_checksum_verification=True, **how)
        names = file.schema_arrow.names
        _check_names(block, names)
        wanted = set(names if columns is None else columns)
        chosen = None if columns is None else [name for name in names if name in wanted]
        table = Moments(file.metadata, block.path).of(file.read(columns=chosen))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise block.damaged("a Parquet file", str(error).strip().split("\n")[0], at=0) from error
    if table.num_rows != file.metadata.num_rows:
        raise block.damaged(f"{file.metadata.num_rows} rows", table.num_rows, at=0)
    for group in range(0 if block.is_sealed else file.metadata.num_row_groups):
        for offset, expected, actual in miscounted(memoryview(block.content), file.metadata, group, None):
            raise block.damaged(expected, actual, at=offset)
    return table.replace_schema_metadata(None)


def _check_names(block: LogBlock, names: Sequence[str]) -> None:
    """Names are what no checksum of a Parquet file covers; the block's header has them a second time."""
    schema = block.header.get(HeaderKey.SCHEMA)
    if schema is None:
        return
    try:
        stated = [field["name"] for field in parse_json(schema)["fields"]]
    except (ValueError, KeyError, TypeError):
        raise block.damaged("an Avro record schema in the block's header", repr(schema[:80])) from None
    if sorted(stated) != sorted(names):
        odd = sorted(set(stated) ^ set(names))
        raise block.damaged("a Parquet file with the columns of the header's schema", f"a difference in {odd[:3]}", at=0)


def _decode_datums(block: LogBlock, datums: AvroDatums, columns: Sequence[str] | None) -> pa.Table:
    from hudimeta.formats.avro.rows import decode_rows

    schema = _schema_of(block)
    try:
        return decode_rows(schema, datums.data, datums.offsets, datums.lengths, columns=columns, path=block.path)
    except CorruptFileError as error:
        raise block.damaged(error.expected, error.actual, at=error.offset) from error


def _schema_of(block: LogBlock) -> str:
    """The Avro schema in the block's header, which has to be one: without a seal no checksum covers it."""
    from hudimeta.formats.avro.nodes import parse_record

    text = block.schema_json
    try:
        parse_record(text)
    except SchemaError as error:
        raise block.damaged("an Avro record schema in the block's header", error.message) from error
    except UnsupportedFeature as error:
        where = f"in the header of the block at byte {block.offset} of {block.path or '<memory>'}"
        raise UnsupportedFeature(f"{error.feature}, {where},", error.hint) from error
    return text


def _decode_hfile(block: LogBlock, columns: Sequence[str] | None) -> pa.Table:
    import pyarrow as pa

    from hudimeta.formats.avro.rows import decode_rows
    from hudimeta.formats.hfile import RawCells

    schema = _schema_of(block)

    def rows(cells: RawCells) -> pa.Table:
        return decode_rows(schema, cells.buffer, cells.value_start, cells.value_len, columns=columns, path=block.path)

    parts = [rows(cells) for cells in _hfile_cells(block)]
    return pa.concat_tables(parts) if parts else rows(RawCells.empty())


def _hfile_cells(block: LogBlock) -> Iterator[RawCells]:
    """Some records at a time: unpacked, they can be many times the block."""
    try:
        yield from open_hfile_block(block).scan_cell_batches()
    except CorruptFileError as error:
        raise block.damaged(error.expected, error.actual, at=error.offset) from error
