"""Arrow columns to Avro datums, one column at a time over all rows.

Each field becomes one or more pieces: binary arrays with the bytes that it adds to each row. Joining the pieces element by
element (Arrow's own kernel) makes the rows. Numbers are laid out as a matrix of bytes, of which each row's share is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import SchemaMismatch
from hudimeta.formats.avro.nodes import SchemaNode, ValueKind
from hudimeta.formats.avro.varint import Bytes, Longs, encode_longs
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of, spread
from hudimeta.formats.vectors import bytes_of

__all__ = ["Piece", "borders_of", "encode_record", "encode_value", "join_pieces"]

DECIMAL_BYTES = 16
_NOTHING = scalar_of(b"", pa.large_binary())

Piece = Any
"""A large_binary array with one element for each row, or a large_binary scalar that all rows share. A null adds nothing."""
Mask = npt.NDArray[np.bool_]


def encode_record(node: SchemaNode, columns: list[pa.Array], rows: int) -> pa.Array:
    """Records from the columns of their fields, in the schema's order.

    Returns:
        large_binary, one datum a row.

    Raises:
        SchemaMismatch: A column has another type, or nulls where the schema allows none.
    """
    pieces: list[Piece] = []
    for child, column in zip(node.children, columns, strict=True):
        pieces += encode_value(child, column)
    return join_pieces(pieces, rows)


def join_pieces(pieces: list[Piece], rows: int) -> pa.Array:
    """The pieces of each row in one, as large_binary."""
    if not any(isinstance(piece, pa.Array) for piece in pieces):
        pieces = [*pieces, array_of([b""] * rows, pa.large_binary())]
    return pc.binary_join_element_wise(*pieces, _NOTHING, null_handling="replace", null_replacement=b"")


def encode_value(node: SchemaNode, column: pa.Array) -> list[Piece]:
    """The pieces of one column.

    Raises:
        SchemaMismatch: As `encode_record`.
    """
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.null_count and not node.nullable:
        raise SchemaMismatch(node.path, "null in some rows", "never null")
    if not node.branches:
        return _VALUES[node.kind](node, column, None)
    if column.null_count == len(column) and len(column):
        return [_scalar(_branch(node.null_branch))]
    return _VALUES[node.kind](node, column, _valid(column))


# Each of the following gets its node, the column, and None where there is no union, or else which rows have a value.


def _number(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    """Ints, longs and what is stored as such."""
    column = _cast(node, column)
    width = pa.int32() if node.kind is ValueKind.INT else pa.int64()
    matrix, sizes = encode_longs(_numpy(column.view(width), 0))
    return [_with_branch(node, matrix, sizes, valid)]


def _enum(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    column = _cast(node, column)
    index = pc.index_in(column, array_of(node.names, pa.string()))
    if index.null_count > column.null_count:
        odd = column.filter(pc.and_(pc.is_null(index), pc.is_valid(column)))[0].as_py()
        raise SchemaMismatch(node.path, repr(odd), f"one of {', '.join(node.names[:10])}")
    matrix, sizes = encode_longs(_numpy(index, 0))
    return [_with_branch(node, matrix, sizes, valid)]


def _boolean(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    values = _numpy(_cast(node, column), False).astype(np.uint8)
    return [_with_branch(node, values[:, None], None, valid)]


def _float(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    values = np.ascontiguousarray(_numpy(_cast(node, column), 0.0))
    return [_with_branch(node, values.view(np.uint8).reshape(len(values), node.width), None, valid)]


def _text(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    column = _cast(node, column)
    matrix, sizes = encode_longs(_numpy(pc.binary_length(column), 0))
    return [_with_branch(node, matrix, sizes, valid), column.cast(pa.large_binary())]


def _fixed(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    return _sized(node, _cast(node, column), valid)


def _vector(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    return _sized(node, bytes_of(_cast(node, column), node.size), valid)


def _sized(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    column = column.cast(pa.binary()).cast(pa.large_binary())
    if valid is None:
        return [column]
    return [_with_branch(node, np.empty((len(column), 0), np.uint8), None, valid), column]


def _decimal(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    """The fewest bytes of big-endian two's complement that keep the sign."""
    big_endian = _big_endian(node, column)
    sign = _signs(big_endian[:, :1])
    significant = big_endian != sign
    leading = np.where(significant.any(axis=1), significant.argmax(axis=1), DECIMAL_BYTES - 1)
    first = big_endian[np.arange(len(leading)), leading]
    sizes = DECIMAL_BYTES - leading + (_signs(first) != sign[:, 0])
    kept = np.arange(DECIMAL_BYTES) >= (DECIMAL_BYTES - sizes)[:, None]
    aligned = np.zeros_like(big_endian)
    aligned[np.arange(DECIMAL_BYTES) < sizes[:, None]] = big_endian[kept]
    matrix = np.concatenate([(sizes * 2).astype(np.uint8)[:, None], aligned], axis=1)
    return [_with_branch(node, matrix, sizes + 1, valid)]


def _decimal_fixed(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    big_endian = _big_endian(node, column)
    kept = big_endian[:, DECIMAL_BYTES - node.size :]
    if (big_endian[:, : DECIMAL_BYTES - node.size] != _signs(kept[:, :1])).any():
        raise SchemaMismatch(node.path, "a decimal too large", f"a decimal of {node.size} bytes")
    return [_with_branch(node, kept, None, valid)]


def _null(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    if column.null_count < len(column):
        raise SchemaMismatch(node.path, column.type, "null")
    return []


def _record(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    if not pa.types.is_struct(column.type):
        raise SchemaMismatch(node.path, column.type, node.arrow)
    present = column.drop_null()
    pieces: list[Piece] = []
    for name, child in zip(node.names, node.children, strict=True):
        index = present.type.get_field_index(name)
        if index < 0:
            raise SchemaMismatch(child.path, "not there", child.arrow)
        pieces += encode_value(child, present.field(index))
    return _nested(node, pieces, len(present), valid)


def _items(node: SchemaNode, column: pa.Array, valid: Mask | None) -> list[Piece]:
    """Arrays and maps: one block with its number of items, then the end; the end alone when empty."""
    if pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_field))
    if not (pa.types.is_map(column.type) if node.kind is ValueKind.MAP else pa.types.is_list(column.type)):
        raise SchemaMismatch(node.path, column.type, node.arrow)
    present = column.drop_null()
    offsets = numpy_of(present.offsets)
    begin, stop = int(offsets[0]), int(offsets[-1])
    counts = np.diff(offsets)
    bodies = join_pieces(_item_pieces(node, present, begin, stop), stop - begin)
    borders = borders_of(bodies)[offsets - begin]
    body = pa.Array.from_buffers(pa.large_binary(), len(counts), [None, pa.py_buffer(borders), bodies.buffers()[2]])
    matrix, sizes = encode_longs(counts)
    head = _ragged(matrix, np.where(counts > 0, sizes, 0))
    return _nested(node, [head, body, _scalar(b"\0")], len(counts), valid)


def _item_pieces(node: SchemaNode, column: pa.Array, begin: int, stop: int) -> list[Piece]:
    item = node.children[0]
    if node.kind is ValueKind.ARRAY:
        return encode_value(item, column.values.slice(begin, stop - begin))
    key, value = item.children
    keys, values = (side.slice(begin, stop - begin) for side in (column.keys, column.items))
    return [*encode_value(key, keys), *encode_value(value, values)]


def _nested(node: SchemaNode, pieces: list[Piece], count: int, valid: Mask | None) -> list[Piece]:
    """Pieces of the values that are there, spread over all rows after the branch of their union."""
    if valid is None:
        return pieces
    if count == len(valid):
        return [_scalar(_branch(node.value_branch)), *pieces]
    branch = np.where(valid, *(np.uint8(_branch(b)[0]) for b in (node.value_branch, node.null_branch)))
    return [_ragged(branch.astype(np.uint8)[:, None], None), spread(join_pieces(pieces, count), valid)]


def _with_branch(node: SchemaNode, matrix: Bytes, sizes: Longs | None, valid: Mask | None) -> pa.Array:
    """The rows of a matrix (sizes None: all of it) after the branch of their union, which stands alone where there is none."""
    if valid is None:
        return _ragged(matrix, sizes)
    out = np.empty((len(matrix), matrix.shape[1] + 1), np.uint8)
    out[:, 0] = _branch(node.value_branch)[0]
    out[:, 1:] = matrix
    if valid.all():
        return _ragged(out, None if sizes is None else sizes + 1)
    out[~valid, 0] = _branch(node.null_branch)[0]
    full = matrix.shape[1] if sizes is None else sizes
    return _ragged(out, np.where(valid, full, 0) + 1)


def _ragged(matrix: Bytes, sizes: Longs | None) -> pa.Array:
    """The first `sizes` bytes (None: all) of each row of a matrix."""
    rows, width = matrix.shape
    if sizes is None:
        borders, content = np.arange(rows + 1, dtype=np.int64) * width, np.ascontiguousarray(matrix)
    else:
        borders = np.zeros(rows + 1, np.int64)
        np.cumsum(sizes, out=borders[1:])
        content = matrix[np.arange(width) < sizes[:, None]]
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), rows, buffers)


def borders_of(array: pa.Array) -> Longs:
    """The n + 1 offsets of a large_binary array."""
    borders: Longs = np.frombuffer(array.buffers()[1], np.int64)
    return borders[array.offset : array.offset + len(array) + 1]


def _big_endian(node: SchemaNode, column: pa.Array) -> Bytes:
    column = _cast(node, column)
    values = np.frombuffer(column.buffers()[1], np.uint8, len(column) * DECIMAL_BYTES, column.offset * DECIMAL_BYTES)
    return values.reshape(-1, DECIMAL_BYTES)[:, ::-1]


def _signs(leading: Bytes) -> Bytes:
    """00 or ff, as the top bit of the leading byte says."""
    return (leading.view(np.int8) >> 7).view(np.uint8)


def _cast(node: SchemaNode, column: pa.Array) -> pa.Array:
    """The column in the node's Arrow type; nothing may be lost."""
    if column.type == node.arrow:
        return column
    try:
        return column.cast(node.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(node.path, f"{column.type} ({error})", node.arrow) from error


def _numpy(column: pa.Array, filler: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = numpy_of(fill_null(column, filler))
    return values


def _valid(column: pa.Array) -> Mask:
    valid: Mask = numpy_of(column.is_valid())
    return valid


def _branch(index: int) -> bytes:
    return bytes([2 * index])


def _scalar(value: bytes) -> Any:
    return scalar_of(value, pa.large_binary())


_VALUES: dict[ValueKind, Callable[[SchemaNode, pa.Array, Mask | None], list[Piece]]] = {
    **dict.fromkeys((ValueKind.INT, ValueKind.LONG), _number),
    **dict.fromkeys((ValueKind.BYTES, ValueKind.STRING), _text),
    **dict.fromkeys((ValueKind.FLOAT, ValueKind.DOUBLE), _float),
    **dict.fromkeys((ValueKind.ARRAY, ValueKind.MAP), _items),
    ValueKind.NULL: _null,
    ValueKind.BOOLEAN: _boolean,
    ValueKind.FIXED: _fixed,
    ValueKind.VECTOR: _vector,
    ValueKind.ENUM: _enum,
    ValueKind.DECIMAL: _decimal,
    ValueKind.DECIMAL_FIXED: _decimal_fixed,
    ValueKind.RECORD: _record,
}
