"""Footers of Parquet files as structures that can be changed, and as the end of a file.

A file ends in its footer, a Thrift structure, four bytes of its length, little-endian, and the magic `PAR1`, with which it
also begins. Source: Apache Parquet format, "File format".
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

from hudimeta.formats.parquet.thrift import Elements, Fields, decode_struct, encode_struct
from hudimeta.formats.parquet.thrift_levels import Parts, decode_level, encode_level

__all__ = [
    "LENGTH_BYTES",
    "MAGIC",
    "decode_footer",
    "decode_whole_footer",
    "encode_footer",
    "encode_whole_footer",
    "schema_of_columns",
]

MAGIC = b"PAR1"
LENGTH_BYTES = 4
_SCHEMA, _CHILDREN = 2, 5
"""Fields of a footer, and of an element of its schema."""
_PLACES: Parts = {4: {1: {3: {}}}}
"""Row groups, their column chunks, and the metadata of these."""


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
def schema_of_columns(schema: bytes, columns: tuple[int, ...]) -> bytes | None:
    """How a footer begins whose file has only some of the columns; None where columns lie in others.

    Args:
        schema: The version and the schema of the whole file, without the end of the structure.
        columns: Numbers of leaf columns, ascending.
    """
    fields, _ = decode_struct(schema + b"\0")
    kind, elements = fields[_SCHEMA]
    root, leaves = elements.values[0], elements.values[1:]
    if any(_CHILDREN in leaf for leaf in leaves):
        return None
    root = {**root, _CHILDREN: (root[_CHILDREN][0], len(columns))}
    chosen = Elements(elements.kind, [root, *(leaves[number] for number in columns)])
    return encode_struct({**fields, _SCHEMA: (kind, chosen)}).removesuffix(b"\0")
