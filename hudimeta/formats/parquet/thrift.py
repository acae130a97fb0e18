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

__all__ = ["Elements", "Fields", "decode_struct", "encode_struct"]

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = frozenset((_I16, _I32, _I64))
_MOST_DEPTH = 16
_LONG_LIST = 15

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
    cursor = _Cursor(data, start)
    try:
        return cursor.struct(0), cursor.at
    except (IndexError, struct.error):
        raise ValueError(f"a Thrift structure that ends past byte {len(data)}") from None


def encode_struct(fields: Fields) -> bytes:
    """The bytes of a structure; undoes `decode_struct`."""
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


class _Cursor:
    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self.data, self.at = data, at

    def struct(self, depth: int) -> Fields:
        if depth > _MOST_DEPTH:
            raise ValueError(f"a Thrift structure at byte {self.at} that nests deeper than {_MOST_DEPTH}")
        fields: Fields = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            fields[number] = (head & 15, self.value(head & 15, depth))
        return fields

    def byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError(f"a varint of more than ten bytes before byte {self.at}")

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self.integer()
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BINARY:
            return self.take(self.varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self.elements(depth)
        if kind == _BYTE:
            return self.byte()
        if kind == _DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        raise ValueError(f"a Thrift value of kind {kind} before byte {self.at}")

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise ValueError(f"{size} bytes at byte {self.at} of {len(self.data)}")
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def elements(self, depth: int) -> Elements:
        head = self.byte()
        kind, size = head & 15, head >> 4
        if size == _LONG_LIST:
            size = self.varint()
        if size > len(self.data) - self.at:
            raise ValueError(f"a list of {size} elements at byte {self.at} of {len(self.data)}")
        if kind in (_TRUE, _FALSE):
            return Elements(kind, [self.byte() == _TRUE for _ in range(size)])
        return Elements(kind, [self.value(kind, depth + 1) for _ in range(size)])


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


def _put_elements(out: bytearray, elements: Elements) -> None:
    size = len(elements.values)
    out.append(min(size, _LONG_LIST) << 4 | elements.kind)
    if size >= _LONG_LIST:
        _put_varint(out, size)
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
