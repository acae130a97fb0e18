"""The list of deletes in a log file's delete block (`HoodieDeleteRecordList`), by columns.

Layout (Avro binary, one record that holds one array)::

    block: long count | count x (union null, string: record key | union null, string: partition path | union: ordering value)
    ...    (count < 0: |count| records, then a long with their size in bytes)
    end:   00

Java writes one block. Where a record begins is known only from the one before it, so the borders are found by a plain loop over
the bytes that matter (two lengths and a branch each); all else is array work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import CorruptFileError, SchemaMismatch
from hudimeta.formats.avro.nodes import SchemaNode, parse_record
from hudimeta.formats.avro.ordering import DELETES_SCHEMA, ELEMENT_TYPE, LOCAL_DATE, ORDERING_TYPE, Wrapper, wrapper_for
from hudimeta.formats.avro.positions import SPARE_BYTES, Walker
from hudimeta.formats.avro.row_decoder import RowDecoder
from hudimeta.formats.avro.row_encoder import Piece, borders_of, encode_value, join_pieces
from hudimeta.formats.avro.varint import Longs, encode_longs
from hudimeta.formats.plain_arrays import array_of, numpy_of, scalar_of, spread

__all__ = ["decode_delete_list", "encode_delete_list"]

MAX_BYTES = (1 << 31) - SPARE_BYTES
LEAST_RECORD = 3
NATURAL_ORDER = b"\x04\x00"
"""The int 0, which says that a delete wins over everything that is older."""

_VALUE_SCHEMAS: dict[int, Any] = {
    Wrapper.BOOLEAN: "boolean",
    Wrapper.INT: "int",
    Wrapper.LONG: "long",
    Wrapper.FLOAT: "float",
    Wrapper.DOUBLE: "double",
    Wrapper.BYTES: "bytes",
    Wrapper.STRING: "string",
    Wrapper.DATE: {"type": "int", "logicalType": "date"},
    Wrapper.DECIMAL: {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    Wrapper.TIME_MICROS: {"type": "long", "logicalType": "time-micros"},
    Wrapper.TIMESTAMP_MICROS: {"type": "long", "logicalType": "timestamp-micros"},
}


def _nodes(**fields: Any) -> dict[str, SchemaNode]:
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields.items()]}
    node = parse_record(json.dumps(schema))
    return dict(zip(node.names, node.children, strict=True))


_SINGLE: dict[int, SchemaNode] = {wrapper: _nodes(ordering=schema)["ordering"] for wrapper, schema in _VALUE_SCHEMAS.items()}
_ELEMENTS: dict[int, SchemaNode] = _SINGLE | {LOCAL_DATE: _SINGLE[Wrapper.DATE]}
_HEAD = _nodes(record_key=["null", "string"], partition_path=["null", "string"])
_TEXT_LIKE = frozenset({Wrapper.BYTES, Wrapper.STRING, Wrapper.DECIMAL})
_VARINTS = frozenset({2 * Wrapper.INT, 2 * Wrapper.LONG})
_WIDTHS = {wrapper: node.width for wrapper, node in _SINGLE.items() if node.width > 0}


def decode_delete_list(data: bytes | memoryview, path: str = "", origin: int = 0) -> pa.Table:
    """The deletes of a block.

    Args:
        data: The Avro record, without the block's version and length in front.
        path: File, for messages.
        origin: Offset of `data` in that file.

    Returns:
        A table with `DELETES_SCHEMA`: record_key, partition_path, ordering_wrapper (int8, a `Wrapper`), ordering (a struct with
        a field for each branch). `ordering_values` turns the latter into the types of the table's ordering columns.

    Raises:
        CorruptFileError: The bytes are no such list.
    """
    size = len(data)
    if size > MAX_BYTES:
        raise CorruptFileError(path, origin, f"at most {MAX_BYTES} bytes", size)
    starts, end = _borders(bytes(data), path, origin)
    scratch = np.zeros(size + SPARE_BYTES, np.uint8)
    scratch[:size] = np.frombuffer(data, np.uint8)
    walker = Walker(scratch, path, origin)
    decoder = RowDecoder(walker)
    keys, at = decoder.decode(_HEAD["record_key"], starts, end)
    paths, at = decoder.decode(_HEAD["partition_path"], at, end)
    branch, ordering, at = _Orderings(walker, decoder).column(at, end)
    walker.expect(at == end, at, "a delete that ends with its ordering value")
    return pa.Table.from_arrays([keys, paths, array_of(branch), ordering], schema=DELETES_SCHEMA)


def encode_delete_list(
    record_keys: pa.Array,
    partition_paths: pa.Array,
    ordering: Sequence[pa.Array] = (),
    *,
    wrapper: Wrapper | None = None,
) -> bytes:
    """Deletes as Java writes them, in one block.

    Args:
        record_keys: string, one for each delete.
        partition_paths: string, as many.
        ordering: The values of each ordering column, typed like the column, whose type chooses the branch. A null in the only
            column, or nothing at all, means natural order. Several columns need Hudi 1.1 or later to be read.
        wrapper: The branch to write the only ordering column in, where it is to be another than its type suggests;
            `Wrapper.NULL` writes nulls and takes no column.

    Raises:
        SchemaMismatch: Values that do not fit their branch.
    """
    rows = len(record_keys)
    if not rows:
        return b"\0"
    pieces = encode_value(_HEAD["record_key"], record_keys) + encode_value(_HEAD["partition_path"], partition_paths)
    if wrapper is Wrapper.NULL:
        pieces.append(_scalar(b"\0"))
    elif not ordering:
        pieces.append(_scalar(NATURAL_ORDER))
    elif len(ordering) == 1:
        pieces += _wrapped(ordering[0], wrapper or wrapper_for(ordering[0].type), NATURAL_ORDER)
    else:
        pieces.append(_scalar(_branch(Wrapper.ARRAY) + _branch(1) + _long(len(ordering))))
        for column in ordering:
            pieces += _wrapped(column, wrapper_for(column.type), _branch(Wrapper.NULL))
        pieces.append(_scalar(b"\0"))
    joined = join_pieces(pieces, rows)
    content = memoryview(joined.buffers()[2])[: borders_of(joined)[-1]]
    return b"".join([_long(rows), content, b"\0"])


def _wrapped(column: pa.Array, wrapper: Wrapper, absent: bytes) -> list[Piece]:
    """Branch and value of one ordering column; `absent` where it is null."""
    node = _SINGLE[wrapper]
    valid = numpy_of(column.is_valid())
    present = _raw(column.drop_null(), node)
    value = encode_value(node, present)
    if valid.all():
        return [_scalar(_branch(wrapper)), *value]
    choice = array_of(np.where(valid, 0, 1))
    branch = array_of([_branch(wrapper), absent], pa.large_binary()).take(choice)
    return [branch, spread(join_pieces(value, len(present)), valid)]


def _raw(column: pa.Array, node: SchemaNode) -> pa.Array:
    """The column in the node's type; times and dates as the number that stands for them where the node is a number."""
    if column.type == node.arrow:
        return column
    try:
        if pa.types.is_temporal(column.type) and pa.types.is_integer(node.arrow):
            column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
        return column.cast(node.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch("ordering value of a delete", f"{column.type} ({error})", node.arrow) from error


class _Orderings:
    """Decodes the union of ordering values for many rows."""

    def __init__(self, walker: Walker, decoder: RowDecoder) -> None:
        self._walker, self._decoder = walker, decoder

    def column(self, at: Longs, end: Longs) -> tuple[npt.NDArray[np.int8], pa.Array, Longs]:
        """Branch of each row, values as `ORDERING_TYPE`, positions after."""
        branch, values, at = self._union(_SINGLE, at, end)
        rows = np.flatnonzero(branch == Wrapper.ARRAY)
        if len(rows):
            arrays, at[rows] = self._arrays(at[rows], end[rows])
            values[Wrapper.ARRAY.column] = spread(arrays, branch == Wrapper.ARRAY)
        return branch, _struct(ORDERING_TYPE, values, len(at)), at

    def _union(
        self, nodes: dict[int, SchemaNode], at: Longs, end: Longs
    ) -> tuple[npt.NDArray[np.int8], dict[str, pa.Array], Longs]:
        """Branches, the columns of those that occur (by name), positions after. Branches without node are left as they are."""
        after = self._walker.advance(at, 1, end)
        marker = self._walker.data[at]
        self._walker.expect((marker <= 2 * Wrapper.ARRAY) & (marker % 2 == 0), at, "a branch of the ordering value")
        branch = (marker >> 1).astype(np.int8)
        values: dict[str, pa.Array] = {}
        for number in np.flatnonzero(np.bincount(branch, minlength=1)).tolist():
            if number not in nodes:
                continue
            mask = branch == number
            rows = np.flatnonzero(mask)
            column, after[rows] = self._decoder.decode(nodes[number], after[rows], end[rows])
            name = "local_date" if number == LOCAL_DATE else Wrapper(number).column
            values[name] = column if len(rows) == len(at) else spread(column, mask)
        return branch, values, after

    def _arrays(self, at: Longs, end: Longs) -> tuple[pa.Array, Longs]:
        """Lists of ordering values; null where the list is."""
        marker = self._walker.data[at]
        at = self._walker.advance(at, 1, end)
        self._walker.expect((marker == 0) | (marker == 2), at - 1, "a list of ordering values or null")
        valid = marker == 2
        rows = np.flatnonzero(valid)
        lists, at[rows] = self._lists(at[rows], end[rows])
        return spread(lists, valid), at

    def _lists(self, at: Longs, end: Longs) -> tuple[pa.Array, Longs]:
        counts, at = self._walker.longs(at, end)
        sized = np.flatnonzero(counts < 0)
        counts = np.abs(counts)
        at[sized] = self._walker.longs(at[sized], end[sized])[1]
        self._walker.expect((counts >= 0) & (counts <= end - at), at, "a number of ordering values")
        offsets = np.zeros(len(at) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        places: list[Longs] = []
        elements: list[pa.Array] = []
        rows, k = np.flatnonzero(counts > 0), 0
        filled = rows
        while len(rows):
            branch, values, at[rows] = self._union(_ELEMENTS, at[rows], end[rows])
            elements.append(_struct(ELEMENT_TYPE, {"wrapper": array_of(branch), **values}, len(rows)))
            places.append(offsets[rows] + k)
            k += 1
            rows = rows[counts[rows] > k]
        closing = self._walker.advance(at[filled], 1, end[filled])
        self._walker.expect(self._walker.data[at[filled]] == 0, at[filled], "the end of one block of ordering values")
        at[filled] = closing
        order = np.argsort(np.concatenate([*places, offsets[:0]]))
        flat = pa.concat_arrays(elements).take(array_of(order)) if elements else array_of([], ELEMENT_TYPE)
        kind = pa.list_(ELEMENT_TYPE)
        buffers = [None, pa.py_buffer(offsets.astype(np.int32))]
        return pa.Array.from_buffers(kind, len(at), buffers, children=[flat]), at


def _struct(kind: pa.DataType, values: dict[str, pa.Array], rows: int) -> pa.Array:
    columns = [values[field.name] if field.name in values else pa.nulls(rows, field.type) for field in kind]
    return pa.Array.from_buffers(kind, rows, [None], null_count=0, children=columns)


def _borders(data: bytes, path: str, origin: int) -> tuple[Longs, Longs]:
    """Where each delete begins and ends."""
    starts: list[int] = []
    ends: list[int] = []
    try:
        count, at = _read_long(data, 0)
        while count:
            if count < 0:
                count = -count
                _, at = _read_long(data, at)
            if count > (len(data) - at) // LEAST_RECORD:
                raise CorruptFileError(path, origin + at, "a number of deletes that the block can hold", count)
            first = len(starts)
            at = _walk(data, at, count, starts)
            ends += starts[first + 1 :]
            ends.append(at)
            count, at = _read_long(data, at)
    except (IndexError, _NoDelete) as error:
        where = origin + (starts[-1] if starts else 0)
        raise CorruptFileError(path, where, "a delete within its block", str(error)) from error
    if at != len(data):
        raise CorruptFileError(path, origin + at, "a list that ends with its block", f"{len(data) - at} bytes more")
    return np.array(starts, np.int64), np.array(ends, np.int64)


class _NoDelete(ValueError):
    """Bytes that do not begin a delete."""


def _walk(data: bytes, at: int, count: int, starts: list[int]) -> int:
    """Note where `count` deletes begin; returns the position after. Raises IndexError when they leave the data."""
    note = starts.append
    for _ in range(count):
        note(at)
        for _ in (0, 1):  # record key and partition path
            marker = data[at]
            at += 1
            if marker == 2:
                size = data[at]
                at += 1
                if size < 0x80 and not size & 1:
                    at += size >> 1
                else:
                    at = _after_text(data, at - 1)
            elif marker:
                raise _NoDelete(f"branch {marker:#x} of a text")
        marker = data[at]
        at += 1
        if marker in _VARINTS:  # the usual ones without a call; how long a varint may be is checked when it is decoded
            while data[at] >= 0x80:
                at += 1
            at += 1
        elif marker:
            at = _after_ordering(data, at, marker)
    if at > len(data):
        raise IndexError("a text beyond the block")
    return at


def _after_text(data: bytes, at: int) -> int:
    size, at = _read_long(data, at)
    if size < 0:
        raise _NoDelete(f"length {size}")
    return at + size


def _after_ordering(data: bytes, at: int, marker: int) -> int:
    wrapper, odd = divmod(marker, 2)
    if odd or wrapper > Wrapper.ARRAY:
        raise _NoDelete(f"branch {marker:#x} of an ordering value")
    return _after_list(data, at) if wrapper == Wrapper.ARRAY else _after_value(data, at, wrapper)


def _after_value(data: bytes, at: int, wrapper: int) -> int:
    if wrapper == Wrapper.NULL:
        return at
    if wrapper in _TEXT_LIKE:
        return _after_text(data, at)
    return at + _WIDTHS[wrapper] if wrapper in _WIDTHS else _read_long(data, at)[1]


def _after_list(data: bytes, at: int) -> int:
    marker = data[at]
    at += 1
    if marker != 2:
        return at
    count, at = _read_long(data, at)
    if count < 0:
        count = -count
        _, at = _read_long(data, at)
    if not count:
        return at
    for _ in range(count):
        at = _after_value(data, at + 1, data[at] >> 1)
    return at + 1


def _read_long(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise _NoDelete("a varint of more than 10 bytes")


def _long(value: int) -> bytes:
    matrix, sizes = encode_longs(np.array([value]))
    return matrix[0, : sizes[0]].tobytes()


def _branch(number: int) -> bytes:
    return bytes([2 * number])


def _scalar(value: bytes) -> Any:
    return scalar_of(value, pa.large_binary())
