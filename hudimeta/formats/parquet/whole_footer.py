"""Footers of Parquet files as structures that can be changed, and as the end of a file.

A file ends in its footer, a Thrift structure, four bytes of its length, little-endian, and the magic `PAR1`, with which it
also begins. Source: Apache Parquet format, "File format".
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any

from hudimeta.formats.parquet.thrift import Elements, Fields, decode_struct, encode_struct
from hudimeta.formats.parquet.thrift_levels import Parts, decode_level, encode_level

__all__ = [
    "LENGTH_BYTES",
    "MAGIC",
    "TYPES",
    "Leaf",
    "decode_footer",
    "decode_whole_footer",
    "encode_footer",
    "encode_whole_footer",
    "schema_of_columns",
]

MAGIC = b"PAR1"
LENGTH_BYTES = 4
TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""Of stored values, by their numbers."""
_SCHEMA = 2
"""The field of a footer."""
_TYPE, _LENGTH, _CHILDREN = 1, 2, 5
_MEANING = (6, 7, 8, 10)
"""Fields of an element of the schema; the last ones tell what its bytes stand for."""
_I32 = 5
"""The kind of Thrift's values."""
_PLACES: Parts = {4: {1: {3: {}}}}
"""Row groups, their column chunks, and the metadata of these."""


class Leaf(Enum):
    """What the schema of a file made of another's pages says of a column.

    Attributes:
        STATED: What the other file's schema says.
        LONGS: The same, but that the values are stored as integers of 64 bits.
        BYTES: Its bytes have no meaning.
    """

    STATED = "stated"
    LONGS = "longs"
    BYTES = "bytes"

    def physical_type(self, stated: str) -> str:
        """How the values are stored; `stated` is the other file's name of it."""
        return "INT64" if self is Leaf.LONGS else stated

    def element(self, stated: Fields) -> Fields:
        """What the schema says; `stated` is what the other file's says."""
        if self is Leaf.LONGS:
            longs = {**stated, _TYPE: (_I32, TYPES.index("INT64"))}
            return {number: value for number, value in longs.items() if number != _LENGTH}
        if self is Leaf.BYTES:
            return {number: value for number, value in stated.items() if number not in _MEANING}
        return stated


def decode_footer(footer: bytes) -> Fields:
    """A footer, as far down as it says where something lies: row groups, their column chunks, and the metadata of these.

    Args:
        footer: It, from its first byte on.

    Returns:
        Of values that are neither integers nor any of these, the bytes (see `decode_level`).

    Raises:
        ValueError: It is none.
    """
    return decode_level(footer, 0, _PLACES)[0]


def encode_footer(footer: Fields) -> bytes:
    """The end of a file, from a footer on that `decode_footer` gave."""
    return _ended(encode_level(dict(sorted(footer.items()))))


def decode_whole_footer(metadata: Any) -> Fields:
    """A footer as Parquet's own structure, all the way down.

    Args:
        metadata: Pyarrow's `FileMetaData`.

    Raises:
        ValueError: It is none.
    """
    sink = io.BytesIO()
    metadata.write_metadata_file(sink)
    return decode_struct(memoryview(sink.getvalue()), len(MAGIC))[0]


def encode_whole_footer(footer: Fields) -> bytes:
    """The end of a file, from a footer on that `decode_whole_footer` gave."""
    return _ended(encode_struct(dict(sorted(footer.items()))))


def _ended(footer: bytes) -> bytes:
    return footer + len(footer).to_bytes(LENGTH_BYTES, "little") + MAGIC


@lru_cache(maxsize=64)
def schema_of_columns(schema: bytes, columns: tuple[tuple[int, Leaf], ...]) -> bytes | None:
    """How a footer begins whose file has only some of the columns; None where one of them lies in another.

    Args:
        schema: The version and the schema of the whole file, without the end of the structure.
        columns: Numbers of leaf columns, ascending, and what to say of each.
    """
    fields, _ = decode_struct(schema + b"\0")
    kind, elements = fields[_SCHEMA]
    root = elements.values[0]
    leaves = list(_leaves(elements.values[1:]))
    chosen = [(leaves[number], leaf) for number, leaf in columns]
    if any(inside for (_, inside), _ in chosen):
        return None
    root = {**root, _CHILDREN: (root[_CHILDREN][0], len(columns))}
    some = Elements(elements.kind, [root, *(leaf.element(element) for (element, _), leaf in chosen)])
    return encode_struct({**fields, _SCHEMA: (kind, some)}).removesuffix(b"\0")


def _leaves(elements: list[Fields]) -> Iterator[tuple[Fields, bool]]:
    """The leaf columns of a schema, of its elements without the root, and whether each lies in another column."""
    open_groups: list[int] = []
    """How many elements are still to come of each group that one is in."""
    for element in elements:
        if _CHILDREN in element:
            inner: int = element[_CHILDREN][1]
        else:
            inner = 0
            yield element, bool(open_groups)
        if open_groups:
            open_groups[-1] -= 1
        if inner:
            open_groups.append(inner)
        while open_groups and not open_groups[-1]:
            open_groups.pop()
