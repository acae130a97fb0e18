"""Decimals in a form that Arrow decodes sooner than the one that Hudi's readers need, which is bytes of a fixed length.

Arrow makes a decimal of each of these bytes anew: a dictionary of them takes ten times as long as one of integers, and without
one they take three times as long as bytes that mean nothing. So the dictionary page of a column is written again with integers,
where all its other pages have nothing but codes, which stay as they are. Without a dictionary the schema does not say what the
bytes mean, and NumPy makes decimals of them (`decimals_of`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.crc32 import crc32
from hudimeta.formats.parquet.page_headers import read_strictly
from hudimeta.formats.parquet.small_file import ColumnPages
from hudimeta.formats.parquet.thrift import encode_struct
from hudimeta.formats.parquet.whole_footer import Leaf

__all__ = ["decimals_of", "is_slow", "quicker"]

_WORD = 8
"""Bytes of an integer, and the most that a decimal may have."""
_MOST_DIGITS = 18
"""Which every integer of 64 bits can have."""
_DATA, _DICTIONARY = 0, 2
"""Kinds of pages."""
_PLAIN = 0
_OF_DICTIONARY, _CODES = (0, 2), (2, 8)
"""Encodings of a dictionary's values, which has two names, and of codes, which has two, too."""
_I32, _STRUCT = 5, 12
"""Kinds of Thrift's values."""
_WORTH_A_DICTIONARY = 1 << 14
"""Rows for which a dictionary is written again: of fewer, decoding them as they are takes no longer."""
_MOST_BYTES = 8 << 20
"""Of a dictionary, which writers end at one MB."""


def is_slow(column: Any) -> bool:
    """Whether a column of decimals is stored as bytes that a quicker form may take the place of; lies in no other column.

    Args:
        column: Pyarrow's `ColumnSchema`.
    """
    return bool(
        column.physical_type == "FIXED_LEN_BYTE_ARRAY"
        and column.logical_type.type == "DECIMAL"
        and column.precision <= _MOST_DIGITS
        and 0 < column.length <= _WORD
        and column.path == column.name
        and column.max_repetition_level == 0
    )


def quicker(pages: ColumnPages, column: Any, rows: int) -> ColumnPages:
    """A column in a quicker form, where there is one that is worth it; as it is otherwise.

    Args:
        pages: Of the column.
        column: Pyarrow's `ColumnSchema` of it.
        rows: How many the pages have.
    """
    if not is_slow(column):
        return pages
    if not pages.dictionary:
        return replace(pages, leaf=Leaf.BYTES)
    anew = _dictionary_of_longs(pages, column.length) if rows >= _WORTH_A_DICTIONARY else None
    return pages if anew is None else replace(pages, pages=(anew, *pages.pages[1:]), dictionary=len(anew), leaf=Leaf.LONGS)


def _dictionary_of_longs(pages: ColumnPages, width: int) -> bytes | None:
    """The dictionary page of a column with integers for values; None where it is not what it should be, or not all is codes.

    Arrow, which reads the column as it is then, tells of damage.
    """
    try:
        first, *others = (memoryview(piece).cast("B") for piece in pages.pages)
        header = read_strictly(first, 0)
        packed = first[header.start :]
        sound = header.kind == _DICTIONARY and header.encoding in _OF_DICTIONARY and header.packed == len(packed)
        if not sound or header.checksum not in (None, crc32(packed)) or not all(map(_has_codes, others)):
            return None
        if header.plain > _MOST_BYTES or header.plain % width:
            return None
        codec = pages.chunk.compression.lower()
        content = packed if codec == "uncompressed" else pa.decompress(packed, header.plain, codec, asbytes=True)
    except (KeyError, TypeError, ValueError, IndexError, OSError, pa.ArrowException):
        return None
    if len(content) != header.plain:
        return None
    longs = _longs(np.frombuffer(content, np.uint8), width).astype("<i8").tobytes()
    body = longs if codec == "uncompressed" else pa.compress(longs, codec, asbytes=True)
    checksum = crc32(body)
    sizes = {1: (_I32, _DICTIONARY), 2: (_I32, len(longs)), 3: (_I32, len(body)), 4: (_I32, checksum - (checksum >> 31 << 32))}
    kind = {1: (_I32, len(longs) // _WORD), 2: (_I32, _PLAIN)}
    return encode_struct({**sizes, 7: (_STRUCT, kind)}) + body


def _has_codes(pages: memoryview) -> bool:
    """Whether all pages have nothing but codes of a dictionary. Raises as `read_strictly` does."""
    at = 0
    while at < len(pages):
        header = read_strictly(pages, at)
        if header.kind != _DATA or header.encoding not in _CODES or header.packed < 0:
            return False
        at = header.start + header.packed
    return at == len(pages)


def decimals_of(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows whose decimals may be bytes, with decimals.

    Args:
        rows: Of a file that was made of columns in a quicker form.
        schema: Has their columns.
    """
    for at, field in enumerate(rows.schema):
        if pa.types.is_fixed_size_binary(field.type) and pa.types.is_decimal(schema.field(field.name).type):
            kind = schema.field(field.name).type
            chunks = [_decimals(chunk, kind) for chunk in rows.column(at).chunks]
            rows = rows.set_column(at, field.with_type(kind), pa.chunked_array(chunks, kind))
    return rows


def _decimals(values: pa.FixedSizeBinaryArray, kind: pa.DataType) -> pa.Array:
    validity, content = values.buffers()
    width, slots = values.type.byte_width, values.offset + len(values)
    longs = _longs(np.frombuffer(content, np.uint8)[: slots * width], width)
    words = np.empty((slots, 2), np.int64)
    words[:, 0], words[:, 1] = longs, longs >> (_WORD * 8 - 1)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(words)], offset=values.offset)


def _longs(content: np.ndarray[Any, np.dtype[np.uint8]], width: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Integers of so many bytes each, the highest first; as many as the bytes have."""
    count = len(content) // width
    # Each is read with the bytes after it, which are shifted out again; the last ones have none after them.
    last = min(count, _WORD)
    first = count - last
    ends = np.append(content[first * width :], np.zeros(_WORD, np.uint8))
    found = np.empty(count, np.int64)
    for part, source in ((found[:first], content), (found[first:], ends)):
        part[:] = np.ndarray(len(part), ">i8", source.data, strides=(width,))
    return found >> (8 * (_WORD - width))
