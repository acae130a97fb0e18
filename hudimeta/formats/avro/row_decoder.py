"""Avro datums to Arrow columns, one column at a time over all rows.

The cost is a few dozen array operations a column, whatever the number of rows. Texts are never touched one by one: their
borders make an Arrow array over the bytes as they lie, of which every second element (the others are the gaps) is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.avro.nodes import SchemaNode, ValueKind
from hudimeta.formats.avro.positions import Walker
from hudimeta.formats.avro.varint import Bytes, Longs
from hudimeta.formats.plain_arrays import array_of, spread
from hudimeta.formats.vectors import numbers_of

__all__ = ["RowDecoder"]

DECIMAL_BYTES = 16
_INT32 = np.iinfo(np.int32)

_Column = tuple[pa.Array, Longs]


class RowDecoder:
    """Decodes the datums of one buffer, which has `SPARE_BYTES` after its last row and less than 2 GiB."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._buffer = pa.py_buffer(walker.data)

    def record(self, node: SchemaNode, at: Longs, end: Longs, wanted: frozenset[str] | None) -> list[pa.Array]:
        """The wanted fields (None: all) of records that begin at `at` and must end at `end`, in the schema's order.

        Raises:
            CorruptFileError: The bytes are not such records.
        """
        columns = []
        for name, child in zip(node.names, node.children, strict=True):
            if wanted is None or name in wanted:
                column, at = self.decode(child, at, end)
                columns.append(column)
            else:
                at = self._walker.skip(child, at, end)
        self._walker.expect(at == end, at, "a row that ends with its last field")
        return columns

    def decode(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        """One value at each position; returns the column and the positions after."""
        if not len(at):
            return pa.nulls(0, node.arrow), at
        present, at = self._walker.present(node, at, end)
        if present is None:
            return _VALUES[node.kind](self, node, at, end)
        rows = np.flatnonzero(present)
        if not len(rows):
            return pa.nulls(len(at), node.arrow), at
        values, at[rows] = _VALUES[node.kind](self, node, at[rows], end[rows])
        return spread(values, present), at

    def _gather(self, begin: Longs, stop: Longs) -> pa.Array:
        """The bytes of spans that ascend without overlap, as binary."""
        borders = np.empty(2 * len(begin) + 1, np.int32)
        borders[0:-1:2] = begin
        borders[1::2] = stop
        borders[-1] = stop[-1]
        buffers = [None, pa.py_buffer(borders), self._buffer]
        return pa.Array.from_buffers(pa.binary(), 2 * len(begin), buffers, null_count=0).take(_evens(len(begin)))

    def _null(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        return pa.nulls(len(at)), at

    def _boolean(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        after = self._walker.advance(at, 1, end)
        values = self._walker.data[at]
        self._walker.expect(values < 2, at, f"a boolean of 00 or 01 in {node.path}")
        return array_of(values.view(np.bool_)), after

    def _int(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        values, after = self._walker.longs(at, end)
        self._walker.expect((values >= _INT32.min) & (values <= _INT32.max), at, f"an int of 32 bits in {node.path}")
        return _fixed_width(node.arrow, values.astype(np.int32)), after

    def _long(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        values, after = self._walker.longs(at, end)
        return _fixed_width(node.arrow, values), after

    def _float(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        after = self._walker.advance(at, 4, end)
        return _fixed_width(node.arrow, self._walker.words[at].astype(np.uint32)), after

    def _double(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        after = self._walker.advance(at, 8, end)
        return _fixed_width(node.arrow, self._walker.words[at]), after

    def _bytes(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        begin, after = self._walker.spans(at, end)
        return self._gather(begin, after), after

    def _string(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        binary, after = self._bytes(node, at, end)
        try:
            return binary.cast(pa.string()), after
        except pa.ArrowInvalid as error:
            raise self._walker.corrupt(at, f"UTF-8 in {node.path}", error) from error

    def _fixed(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        after = self._walker.advance(at, node.size, end)
        content = self._gather(at, after).buffers()[2]
        return pa.Array.from_buffers(pa.binary(node.size), len(at), [None, content], null_count=0), after

    def _vector(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        values, after = self._fixed(node, at, end)
        return numbers_of(values, node.arrow), after

    def _enum(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        values, after = self._walker.longs(at, end)
        self._walker.expect((values >= 0) & (values < len(node.names)), at, f"a symbol of the enum {node.path}")
        return array_of(node.names, pa.string()).take(array_of(values)), after

    def _decimal(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        """Big-endian two's complement of 1 to 16 bytes, turned round and filled up with the sign."""
        begin, after = self._walker.spans(at, end)
        sizes = after - begin
        self._walker.expect((sizes > 0) & (sizes <= DECIMAL_BYTES), at, f"a decimal of 1 to {DECIMAL_BYTES} bytes")
        data = self._walker.data
        out = np.repeat(_signs(data[begin])[:, None], DECIMAL_BYTES, axis=1)
        for k in range(int(sizes.max())):
            rows = np.flatnonzero(sizes > k)
            out[rows, k] = data[after[rows] - 1 - k]
        return self._decimals(node, out, at), after

    def _decimal_fixed(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        after = self._walker.advance(at, node.size, end)
        content = np.frombuffer(self._gather(at, after).buffers()[2], np.uint8, len(at) * node.size)
        big_endian = content.reshape(len(at), node.size)
        out = np.empty((len(at), DECIMAL_BYTES), np.uint8)
        out[:, : node.size] = big_endian[:, ::-1]
        out[:, node.size :] = _signs(big_endian[:, :1])
        return self._decimals(node, out, at), after

    def _decimals(self, node: SchemaNode, little_endian: Bytes, at: Longs) -> pa.Array:
        column = _fixed_width(node.arrow, little_endian)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise self._walker.corrupt(at, f"a decimal of precision {node.arrow.precision} in {node.path}", error) from error
        return column

    def _record(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        columns = []
        for child in node.children:
            column, at = self.decode(child, at, end)
            columns.append(column)
        return pa.Array.from_buffers(node.arrow, len(at), [None], null_count=0, children=columns), at

    def _items(self, node: SchemaNode, at: Longs, end: Longs) -> _Column:
        counts, starts, ends, after = self._walker.items(node.children[0], at, end)
        items, _ = self.decode(node.children[0], starts, ends)
        offsets = np.zeros(len(at) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        if pa.types.is_map(node.arrow):  # made of buffers, a map whose keys' nulls were never counted ends the process
            return pa.MapArray.from_arrays(array_of(offsets), items.field(0), items.field(1), node.arrow), after
        return pa.Array.from_buffers(node.arrow, len(at), [None, pa.py_buffer(offsets)], null_count=0, children=[items]), after


def _evens(count: int) -> pa.Array:
    return array_of(np.arange(0, 2 * count, 2))


def _signs(leading: Bytes) -> Bytes:
    """00 or ff, as the top bit of the leading byte says."""
    return (leading.view(np.int8) >> 7).view(np.uint8)


def _fixed_width(kind: pa.DataType, values: npt.NDArray[Any]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))], null_count=0)


_VALUES: dict[ValueKind, Callable[[RowDecoder, SchemaNode, Longs, Longs], _Column]] = {
    ValueKind.NULL: RowDecoder._null,
    ValueKind.BOOLEAN: RowDecoder._boolean,
    ValueKind.INT: RowDecoder._int,
    ValueKind.LONG: RowDecoder._long,
    ValueKind.FLOAT: RowDecoder._float,
    ValueKind.DOUBLE: RowDecoder._double,
    ValueKind.BYTES: RowDecoder._bytes,
    ValueKind.STRING: RowDecoder._string,
    ValueKind.FIXED: RowDecoder._fixed,
    ValueKind.VECTOR: RowDecoder._vector,
    ValueKind.ENUM: RowDecoder._enum,
    ValueKind.DECIMAL: RowDecoder._decimal,
    ValueKind.DECIMAL_FIXED: RowDecoder._decimal_fixed,
    ValueKind.RECORD: RowDecoder._record,
    ValueKind.ARRAY: RowDecoder._items,
    ValueKind.MAP: RowDecoder._items,
}
