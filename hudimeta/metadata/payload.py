"""The frame around every payload of a metadata record: meta fields, empty key, type, and the unions that must be null."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import single_array
from hudimeta.metadata.datum import DatumCursor, Ints, chunks, encode_longs, join_binary
from hudimeta.metadata.record import RecordLayout

__all__ = ["Cells", "column_of", "decode_payloads", "encode_payloads", "sorted_cells"]

T = TypeVar("T")


class Cells(Protocol):
    """What is needed of an HFile's records (`hudimeta.formats.hfile.KeyValues` is one)."""

    @property
    def keys(self) -> pa.Array:
        """Keys, binary."""

    @property
    def values(self) -> pa.Array:
        """Avro datums, binary, as many as keys."""


def decode_payloads(
    values: pa.Array | pa.ChunkedArray,
    layout: RecordLayout,
    payload: str,
    read: Callable[[DatumCursor], T],
    path: str = "",
) -> Iterator[tuple[Ints, T]]:
    """Walk datums whose payload is all of one kind, some thousands at a time.

    Args:
        values: Avro datums, binary.
        layout: Of the file that they come from.
        payload: Field name of the payload.
        read: Walks one payload of every datum.
        path: File, for errors.

    Yields:
        The field `type` of the datums, and what `read` returned.

    Raises:
        CorruptFileError: Damaged bytes, or a record that carries another payload.
    """
    for cursor in chunks(values, path):
        _skip_meta(cursor, layout.meta_fields)
        cursor.bytes()
        types = cursor.long()
        result: list[T] = []
        for name in layout.payloads:
            present = cursor.branch(2)
            wrong = present != 1 if name == payload else present != 0
            if wrong.any():
                raise cursor.fail(int(np.argmax(wrong)), f"a record that holds only {payload}")
            if name == payload:
                result.append(read(cursor))
        if not result:
            raise cursor.fail(0, f"a schema that has {payload}")
        cursor.finish()
        yield types, result[0]


def _skip_meta(cursor: DatumCursor, fields: int) -> None:
    for _ in range(fields):
        present = cursor.branch(2)
        if present.any():
            rows = np.flatnonzero(present)
            part = cursor.at(rows)
            part.bytes()
            cursor.resume(rows, part)


def encode_payloads(types: Ints, layout: RecordLayout, payload: str, bodies: pa.Array) -> pa.Array:
    """Frame encoded payloads as datums, the inverse of `decode_payloads`; meta fields null, key empty.

    Args:
        types: Field `type` of each record.
        layout: What the records look like.
        payload: Name of the payload's field, as in the layout.
        bodies: The payload of each, binary, without the union's branch.

    Returns:
        Binary array of datums.
    """
    at = layout.payloads.index(payload)
    before = b"\x00" * (layout.meta_fields + 1)
    after = b"\x00" * (len(layout.payloads) - at - 1)
    return join_binary(before, encode_longs(types), b"\x00" * at + b"\x02", bodies, after)


def sorted_cells(keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Keys and values in key order (unsigned bytes).

    Raises:
        ValueError: A key occurs twice: fold the records first.
    """
    import pyarrow.compute as pc

    keys = keys.cast(pa.binary()) if keys.type != pa.binary() else keys
    if pc.all(pc.less(keys[:-1], keys[1:]), min_count=0).as_py():
        return keys, values
    order = pc.sort_indices(keys)
    keys, values = keys.take(order), values.take(order)
    if pc.any(pc.equal(keys[1:], keys[:-1])).as_py():
        raise ValueError("a key occurs twice in the records to encode")
    return keys, values


def column_of(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    return single_array(table.column(name))
