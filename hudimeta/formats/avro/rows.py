"""Rows of log blocks: bare Avro datums in, Arrow tables out, and back.

Data blocks of log files hold one datum for each row, without a container around them; their schema stands in the block's
header. Here only the datums are known. Arrow types are those of `hudimeta.schema.avro_to_arrow`: string, binary, fixed-size
binary, decimal128, date32, time32[ms], time64[us], timestamps in the unit of the schema (zone UTC, none for local
timestamps), list, map, struct; an enum is a string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import CorruptFileError, SchemaMismatch
from hudimeta.formats.avro.nodes import SchemaNode, parse_record
from hudimeta.formats.avro.positions import SPARE_BYTES, Walker
from hudimeta.formats.avro.row_decoder import RowDecoder
from hudimeta.formats.avro.row_encoder import borders_of, encode_record, join_pieces

__all__ = ["MAX_DATUM_BYTES", "decode_rows", "encode_rows"]

CHUNK_ROWS = 16_384
"""Rows that are decoded together: their positions and bytes fit the processor's cache."""
CHUNK_BYTES = 16 << 20
MAX_DATUM_BYTES = (1 << 31) - 1
"""A log block states a datum's length in 31 bits."""
ENCODE_ROWS = 65_536

Longs = npt.NDArray[np.int64]


def decode_rows(
    schema_json: str,
    data: Any,
    offsets: npt.NDArray[Any],
    lengths: npt.NDArray[Any],
    *,
    columns: Sequence[str] | None = None,
    path: str = "",
) -> pa.Table:
    """Datums to a table.

    Args:
        schema_json: Avro record schema with which the datums were written.
        data: Bytes, memoryview or anything with the buffer protocol.
        offsets: Where each datum begins; ascending.
        lengths: Bytes of each datum.
        columns: Fields to decode, in any order; None for all. Others are only stepped over.
        path: For error messages.

    Returns:
        A table with the schema's fields in the schema's order, one row for each datum.

    Raises:
        CorruptFileError: A datum does not fit the schema or its length.
        UnsupportedFeature: The schema has a union of several types, or nests without end.
        ValueError: The offsets overlap or descend; that is the caller's mistake, no file can cause it.
    """
    node = parse_record(schema_json)
    wanted = None if columns is None else frozenset(columns)
    fields = [f for f in node.arrow if wanted is None or f.name in wanted]
    schema = pa.schema(fields)
    content = np.frombuffer(data, np.uint8)
    begin = np.asarray(offsets, np.int64)
    end = begin + np.asarray(lengths, np.int64)
    _check_bounds(begin, end, len(content), path)
    batches = [_decode_chunk(node, content, begin[rows], end[rows], wanted, path, schema) for rows in _chunks(begin, end)]
    return pa.Table.from_batches(batches, schema)


def encode_rows(table: pa.Table, schema_json: str, *, length_prefix: bool = False) -> tuple[memoryview, Longs]:
    """A table to datums.

    Args:
        table: Has every field of the schema by name, in any order; other columns are left out. Types that convert without loss
            are converted.
        schema_json: Avro record schema.
        length_prefix: Put the length of each datum before it, as four big-endian bytes; log blocks want that.

    Returns:
        The bytes, and the n + 1 offsets between which each row (its prefix included) lies.

    Raises:
        SchemaMismatch: A field is missing, has another type, or is null where the schema allows no null.
    """
    node = parse_record(schema_json)
    for name, child in zip(node.names, node.children, strict=True):
        if name not in table.column_names:
            raise SchemaMismatch(name, "not there", child.arrow)
    chunks = [
        _encode_chunk(node, batch, length_prefix)
        for batch in table.select(list(node.names)).to_batches(max_chunksize=ENCODE_ROWS)
    ]
    if not chunks:
        return memoryview(b""), np.zeros(1, np.int64)
    return _concatenate(chunks)


def _check_bounds(begin: Longs, end: Longs, size: int, path: str) -> None:
    if len(begin) == 0:
        return
    if len(end) != len(begin) or (begin[1:] < end[:-1]).any():
        raise ValueError("offsets and lengths must name datums one after the other")
    longest = int((end - begin).max())
    if (end < begin).any() or longest > MAX_DATUM_BYTES:
        raise CorruptFileError(path, int(begin[0]), f"datums of 0 to {MAX_DATUM_BYTES} bytes", longest)
    if begin[0] < 0 or end[-1] > size:
        raise CorruptFileError(path, int(begin[-1]), f"datums within {size} bytes", f"an end at {int(end[-1])}")


def _chunks(begin: Longs, end: Longs) -> Iterator[slice]:
    """Runs of rows that are small enough to be decoded together."""
    row = 0
    while row < len(begin):
        fits = int(np.searchsorted(end, begin[row] + CHUNK_BYTES, side="right"))
        stop = min(max(fits, row + 1), row + CHUNK_ROWS, len(begin))
        yield slice(row, stop)
        row = stop


def _decode_chunk(
    node: SchemaNode,
    content: npt.NDArray[np.uint8],
    begin: Longs,
    end: Longs,
    wanted: frozenset[str] | None,
    path: str,
    schema: pa.Schema,
) -> pa.RecordBatch:
    origin, stop = int(begin[0]), int(end[-1])
    scratch = np.zeros(stop - origin + SPARE_BYTES, np.uint8)
    scratch[: stop - origin] = content[origin:stop]
    decoder = RowDecoder(Walker(scratch, path, origin))
    columns = decoder.record(node, begin - origin, end - origin, wanted)
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(begin), pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _encode_chunk(node: SchemaNode, batch: pa.RecordBatch, length_prefix: bool) -> pa.Array:
    rows = encode_record(node, batch.columns, batch.num_rows)
    if not length_prefix:
        return rows
    sizes = np.diff(borders_of(rows))
    if int(sizes.max(initial=0)) > MAX_DATUM_BYTES:
        raise SchemaMismatch(node.names[0], f"in a row of {int(sizes.max())} bytes", f"rows of at most {MAX_DATUM_BYTES} bytes")
    prefixes = pa.py_buffer(sizes.astype(">i4"))
    borders = pa.py_buffer(np.arange(len(sizes) + 1, dtype=np.int64) * 4)
    heads = pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, borders, prefixes])
    return join_pieces([heads, rows], len(rows))


def _concatenate(chunks: list[pa.Array]) -> tuple[memoryview, Longs]:
    rows = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    borders = borders_of(rows)
    content = rows.buffers()[2]
    whole = memoryview(content if content is not None else b"")
    return whole[int(borders[0]) : int(borders[-1])], borders - borders[0]
