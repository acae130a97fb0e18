"""Partition `record_index` (type 5): where a record key lives. The HFile row is the record key itself.

    partitionName [null, string], fileIdHighBits, fileIdLowBits [null, long], fileIndex [null, int], fileId [null, string],
    instantTime [null, long] (epoch milliseconds of the instant), fileIdEncoding int, position [null, long]

A file id is stored in one of two ways. Encoding 0 (a UUID, optionally "-" and a number): the halves of the UUID as signed
numbers, the number as `fileIndex` (-1 where there is none), `fileId` empty. Encoding 1 (any text): `fileId` is the text and the
numbers are -1.

As a table, one row per key:

    record_key string, partition_path string, file_id string (dictionary encoded), instant_ms int64, position int64 or None
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.metadata.datum import DatumCursor, Ints, encode_longs, encode_texts, join_binary
from hudimeta.metadata.payload import Cells, column_of, decode_payloads, encode_payloads, sorted_cells
from hudimeta.metadata.record import RecordLayout, RecordType, layout_of

__all__ = ["PARTITION", "SCHEMA", "decode_values", "encode_values", "halves_of"]

PARTITION = "record_index"
SCHEMA = pa.schema(
    [
        ("record_key", pa.string()),
        ("partition_path", pa.string()),
        ("file_id", pa.dictionary(pa.int32(), pa.string())),
        ("instant_ms", pa.int64()),
        ("position", pa.int64()),
    ]
)
"""Columns of `decode_values`."""

_UUID_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_DIGITS = tuple(i for i in range(_UUID_LENGTH) if i not in _DASHES)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_NIBBLES = np.full(256, 255, np.uint8)
_NIBBLES[_HEX] = np.arange(16)


def decode_values(cells: Cells, schema_text: str, path: str = "") -> pa.Table:
    """Records to a table of `SCHEMA`, in the order of the cells.

    Raises:
        CorruptFileError: Bytes that are not such records.
    """
    layout = layout_of(schema_text, path)
    batches = [
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA.remove(0))
        for _, columns in decode_payloads(cells.values, layout, "recordIndexMetadata", _read, path)
    ]
    table = pa.Table.from_batches(batches, SCHEMA.remove(0)).unify_dictionaries()
    return table.add_column(0, SCHEMA.field("record_key"), cells.keys.cast(pa.string()))


def _read(cursor: DatumCursor) -> list[pa.Array]:
    partition = cursor.optional_bytes().column(pa.string())
    high, _ = cursor.optional_long()
    low, _ = cursor.optional_long()
    index, _ = cursor.optional_long()
    text = cursor.optional_bytes().column(pa.string())
    instant, timed = cursor.optional_long()
    encoding = cursor.long()
    position, positioned = cursor.optional_long()
    return [
        partition,
        _file_ids(high, low, index, text, encoding),
        array_of(instant, mask=None if timed.all() else ~timed),
        array_of(position, mask=~positioned),
    ]


def _file_ids(high: Ints, low: Ints, index: Ints, text: pa.Array, encoding: Ints) -> pa.DictionaryArray:
    """The file id of every record; each distinct id is spelled once."""
    rows = len(high)
    raw = np.empty((rows, 3), ">i8")
    raw[:, 0], raw[:, 1], raw[:, 2] = high, low, index
    binary = pa.Array.from_buffers(pa.binary(24), rows, [None, pa.py_buffer(raw)])
    coded = binary.dictionary_encode()
    distinct = np.frombuffer(coded.dictionary.buffers()[1], ">i8", 3 * len(coded.dictionary)).reshape(-1, 3)
    spelled = _spell(distinct)
    codes = numpy_of(coded.indices).astype(np.int32)
    plain = np.flatnonzero(encoding != 0)
    if not len(plain):
        return pa.DictionaryArray.from_arrays(array_of(codes), spelled)
    others = text.take(array_of(plain)).dictionary_encode()
    codes[plain] = numpy_of(others.indices) + len(spelled)
    return pa.DictionaryArray.from_arrays(array_of(codes), pa.concat_arrays([spelled, others.dictionary]))


def _spell(distinct: npt.NDArray[Any]) -> pa.Array:
    """(high, low, index) as `8-4-4-4-12` hexadecimal digits and, unless the index is -1, "-" and the index."""
    halves = np.frombuffer(np.ascontiguousarray(distinct[:, :2]).tobytes(), np.uint8).reshape(-1, 16)
    text = np.full((len(distinct), _UUID_LENGTH), ord("-"), np.uint8)
    text[:, _DIGITS] = _HEX[np.stack([halves >> 4, halves & 15], axis=2).reshape(-1, 32)]
    heads = text.tobytes().decode("ascii")
    width = _UUID_LENGTH
    uuids = [heads[i : i + width] for i in range(0, len(heads), width)]
    return array_of([u if n == -1 else f"{u}-{n}" for u, n in zip(uuids, distinct[:, 2].tolist(), strict=True)], pa.string())


def encode_values(table: pa.Table, layout: RecordLayout) -> KeyValues:
    """The inverse of `decode_values`: rows of `SCHEMA` to records sorted by key; keys must be unique.

    Args:
        table: `file_id` may be plain strings or dictionary encoded; `position` may be missing.
        layout: What the records of the partition look like.
    """
    place_of, one_of_each = _places(table)
    values = _encode_places(table.take(array_of(one_of_each)), layout).take(array_of(place_of))
    return KeyValues(*sorted_cells(column_of(table, "record_key"), values))


def _places(table: pa.Table) -> tuple[Ints, Ints]:
    """The number of the place that each row names, and a row for each place: a commit has far fewer places than keys.

    Where rows have positions, or differ in most of the rest, each row counts as a place of its own.
    """
    every = np.arange(len(table))
    if "position" in table.column_names and column_of(table, "position").null_count < len(table):
        return every, every
    numbers, count = np.zeros(len(table), np.int64), 1
    for name in ("partition_path", "file_id", "instant_ms"):
        column = column_of(table, name)
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        numbers = numbers * len(coded.dictionary) + numpy_of(coded.indices)
        count *= len(coded.dictionary)
    if count > len(table):
        return every, every
    one = np.full(count, -1, np.int64)
    one[numbers] = every
    found = one >= 0
    return (np.cumsum(found) - 1)[numbers], one[found]


def _encode_places(table: pa.Table, layout: RecordLayout) -> pa.Array:
    """The encoded record of every row."""
    import pyarrow.compute as pc

    ids = column_of(table, "file_id")
    coded = ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()
    locations = _encode_file_ids(coded.dictionary.cast(pa.string())).take(coded.indices)
    before, after, encodings = (pc.struct_field(locations, i) for i in range(3))
    position: pa.Array | bytes = b"\x00"
    if "position" in table.column_names and column_of(table, "position").null_count < len(table):
        column = column_of(table, "position")
        given = encode_longs(numpy_of(fill_null(column, 0)), b"\x02")
        position = pc.if_else(column.is_valid(), given, scalar_of(b"\x00", pa.binary()))
    bodies = join_binary(
        b"\x02",
        encode_texts(column_of(table, "partition_path").cast(pa.string())),
        before,
        after,
        encode_longs(numpy_of(column_of(table, "instant_ms")), b"\x02"),
        encodings,
        position,
    )
    types = np.full(len(table), int(RecordType.RECORD_INDEX), np.int64)
    return encode_payloads(types, layout, "recordIndexMetadata", bodies)


def _encode_file_ids(ids: pa.Array) -> pa.StructArray:
    """Encoded (halves and index, text, encoding) of each distinct file id."""
    texts = ids.to_pylist()
    parts = [halves_of(t) for t in texts]
    high, low, index = (np.array([p[i] if p else -1 for p in parts], np.int64) for i in range(3))
    numbers = join_binary(encode_longs(high, b"\x02"), encode_longs(low, b"\x02"), encode_longs(index, b"\x02"))
    names = array_of(["" if p else t for p, t in zip(parts, texts, strict=True)], pa.string())
    encodings = encode_longs(np.array([0 if p else 1 for p in parts], np.int64))
    return pa.StructArray.from_arrays([numbers, join_binary(b"\x02", encode_texts(names)), encodings], ["n", "t", "e"])


def halves_of(file_id: str) -> tuple[int, int, int] | None:
    """Halves and index of a UUID file id; None for a text that would not be spelled back the same."""
    head, rest = file_id[:_UUID_LENGTH], file_id[_UUID_LENGTH:]
    digits = head.replace("-", "")
    if len(head) != _UUID_LENGTH or any(head[i] != "-" for i in _DASHES) or len(digits) != 32:
        return None
    if any(c not in "0123456789abcdef" for c in digits):
        return None
    index = rest[1:] if rest.startswith("-") else ""
    if rest and not (index.isascii() and index.isdigit() and str(int(index)) == index and int(index) < 1 << 31):
        return None
    halves = np.frombuffer(bytes.fromhex(digits), ">i8")
    return int(halves[0]), int(halves[1]), int(index) if rest else -1
