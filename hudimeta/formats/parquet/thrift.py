"""Thrift's compact protocol, as far as Parquet's footers and page headers use it, without knowing their fields.

A structure is a row of fields, each a byte ``delta of the id << 4 | kind`` (with a delta of 0, the id follows as a zigzag
varint) and a value, and ends in a zero byte. Integers are zigzag varints, a boolean is its kind, a binary is a varint length
and bytes, a list is ``size << 4 | kind`` (from 15 elements on, ``F`` and a varint size) and its elements. Source: Apache
Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

__all__ = [
    "VARINT",
    "Elements",
    "Fields",
    "decode_struct",
    "encode_struct",
    "end_of_field",
    "integer",
    "list_of_structs",
    "varint",
    "varint_at",
    "zigzag",
]

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = frozenset((_I16, _I32, _I64))
_MOST_DEPTH = 16
_LONG_LIST = 15
VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
"""A regular expression of the bytes of one."""
_LAST_SHIFT = 63
"""Of the tenth byte of a varint, its last."""

Fields = dict[int, tuple[int, Any]]
"""A structure: id to kind and value, in the order of the bytes."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A list. Attributes: kind: Of all elements. values: The elements."""

    kind: int
    values: list[Any]


def decode_struct(data: bytes | memoryview, start: int = 0) -> tuple[Fields, int]:
    """The structure that begins at a byte, and where it ends.

    Raises:
        ValueError: Bytes that are no such structure, or one that nests deeper or is longer than the data.
    """
    try:
        return _struct(data, start, 0)
    except (IndexError, struct.error):
        raise ValueError(f"a Thrift structure that ends past byte {len(data)}") from None


def end_of_field(data: bytes | memoryview, start: int, last: int) -> int:
    """Where the field of a number ends, in a structure that begins at a byte; where the last field before it does without it.

    Raises:
        ValueError: As of `decode_struct`.
    """
    at = start
    number = 0
    try:
        while head := data[at]:
            if head >> 4:
                number, content = number + (head >> 4), at + 1
            else:
                number, content = _integer(data, at + 1)
            if number > last:
                break
            _, at = _value(data, content, head & 15, 0)
    except (IndexError, struct.error):
        raise ValueError(f"a Thrift structure that ends past byte {len(data)}") from None
    return at


def encode_struct(fields: Fields) -> bytes:
    """The bytes of a structure; undoes `decode_struct`."""
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


def zigzag(varint: bytes) -> int:
    """An integer, from the bytes of its varint; undoes `integer`."""
    if len(varint) == 1:
        return (varint[0] >> 1) ^ -(varint[0] & 1)
    if len(varint) == 3:  # as most sizes of pages have, of which a file has thousands
        value = varint[0] & 0x7F | (varint[1] & 0x7F) << 7 | varint[2] << 14
        return (value >> 1) ^ -(value & 1)
    value = shift = 0
    for byte in varint:
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1)


def integer(value: int) -> bytes:
    """An integer as a zigzag varint, without the byte of its field."""
    return varint((value << 1) ^ (value >> 63))


def varint(value: int) -> bytes:
    """A number that is not negative, seven bits a byte."""
    # Of a footer that is put together most numbers are short, and there are thousands of them.
    if value < 0x80:
        return bytes((value,))
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if value < 1 << 28:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21))
    out = bytearray()
    _put_varint(out, value)
    return bytes(out)


def list_of_structs(size: int) -> bytes:
    """How a list of so many structures begins."""
    out = bytearray()
    _put_head(out, _STRUCT, size)
    return bytes(out)


# Each reads what begins at a byte, and also returns where it ends. A file has hundreds of page headers, so the loop over fields
# reads integers itself.


def _struct(data: bytes | memoryview, at: int, depth: int) -> tuple[Fields, int]:
    if depth > _MOST_DEPTH:
        raise ValueError(f"a Thrift structure at byte {at} that nests deeper than {_MOST_DEPTH}")
    fields: Fields = {}
    number = 0
    while head := data[at]:
        at += 1
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        if kind in _INTEGERS:
            value: Any = data[at]
            at += 1
            if value >= 0x80:
                value &= 0x7F
                shift = 7
                while (byte := data[at]) >= 0x80 and shift < _LAST_SHIFT:
                    value |= (byte & 0x7F) << shift
                    shift += 7
                    at += 1
                if byte >= 0x80:
                    raise ValueError(f"a varint of more than ten bytes before byte {at}")
                value |= byte << shift
                at += 1
            value = (value >> 1) ^ -(value & 1)
        elif kind == _STRUCT:
            value, at = _struct(data, at, depth + 1)
        else:
            value, at = _value(data, at, kind, depth)
        fields[number] = (kind, value)
    return fields, at + 1


def varint_at(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The varint that begins at a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _LAST_SHIFT:
            raise ValueError(f"a varint of more than ten bytes before byte {at}")


def _integer(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value, at = varint_at(data, at)
    return (value >> 1) ^ -(value & 1), at


def _value(data: bytes | memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind == _BINARY:
        return _binary(data, *varint_at(data, at))
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (_LIST, _SET):
        return _elements(data, at, depth)
    if kind == _BYTE:
        return data[at], at + 1
    if kind == _DOUBLE:
        content, at = _binary(data, 8, at)
        return struct.unpack("<d", content)[0], at
    raise ValueError(f"a Thrift value of kind {kind} before byte {at}")


def _binary(data: bytes | memoryview, size: int, at: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise ValueError(f"{size} bytes at byte {at} of {len(data)}")
    return bytes(data[at : at + size]), at + size


def _elements(data: bytes | memoryview, at: int, depth: int) -> tuple[Elements, int]:
    head = data[at]
    at += 1
    kind, size = head & 15, head >> 4
    if size == _LONG_LIST:
        size, at = varint_at(data, at)
    if size > len(data) - at:
        raise ValueError(f"a list of {size} elements at byte {at} of {len(data)}")
    values: list[Any] = []
    for _ in range(size):
        if kind in (_TRUE, _FALSE):
            value, at = data[at] == _TRUE, at + 1
        else:
            value, at = _value(data, at, kind, depth + 1)
        values.append(value)
    return Elements(kind, values), at


def _put_struct(out: bytearray, fields: Fields) -> None:
    before = 0
    for number, (kind, value) in fields.items():
        written = kind if kind not in (_TRUE, _FALSE) else _TRUE if value else _FALSE
        if 0 < number - before < 16:
            out.append((number - before) << 4 | written)
        else:
            out.append(written)
            _put_integer(out, number)
        if kind not in (_TRUE, _FALSE):
            _put_value(out, kind, value)
        before = number
    out.append(0)


def _put_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _put_integer(out, value)
    elif kind == _BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == _STRUCT:
        _put_struct(out, value)
    elif kind in (_LIST, _SET):
        _put_elements(out, value)
    elif kind == _BYTE:
        out.append(value)
    else:
        out += struct.pack("<d", value)


def _put_head(out: bytearray, kind: int, size: int) -> None:
    """Of a list."""
    out.append(min(size, _LONG_LIST) << 4 | kind)
    if size >= _LONG_LIST:
        _put_varint(out, size)


def _put_elements(out: bytearray, elements: Elements) -> None:
    _put_head(out, elements.kind, len(elements.values))
    for value in elements.values:
        if elements.kind in (_TRUE, _FALSE):
            out.append(_TRUE if value else _FALSE)
        else:
            _put_value(out, elements.kind, value)


def _put_integer(out: bytearray, value: int) -> None:
    _put_varint(out, (value << 1) ^ (value >> 63))


def _put_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
