"""Thrift's compact protocol where one wants to know or to change little: values that do not interest stay as their bytes.

To find where a value ends takes a fraction of the time in which it is decoded, and bytes are written again as they are. See
`thrift` for the form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudimeta.formats.parquet.thrift import Elements, Fields, integer, list_of_structs, varint_at

__all__ = ["Parts", "decode_level", "encode_level"]

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = frozenset((_I16, _I32, _I64))
_MOST_DEPTH = 16
_LONG_LIST = 15
_DOUBLE_BYTES = 8

Parts = Mapping[int, "Parts"]
"""Fields of a structure that interest, and of each those of its own."""


def decode_level(data: bytes, start: int, inner: Parts) -> tuple[Fields, int]:
    """The structure that begins at a byte, and where it ends; of its values, only integers are decoded.

    The others are their bytes, which takes a fraction of the time: of most, one only wants to know where they end.

    Args:
        data: Has the structure.
        start: Where it begins.
        inner: Fields that are decoded as well: structures, and lists of structures. Of each, the same of its own fields.

    Raises:
        ValueError: As of `decode_struct`, and where such a field is something else.
    """
    try:
        return _level(data, start, inner)
    except IndexError:
        raise ValueError(f"a Thrift structure that ends past byte {len(data)}") from None


def encode_level(fields: Fields) -> bytes:
    """The bytes of a structure; undoes `decode_level`."""
    out = bytearray()
    _put_level(out, fields)
    return bytes(out)


def _level(data: bytes, at: int, inner: Parts) -> tuple[Fields, int]:
    fields: Fields = {}
    number = 0
    while head := data[at]:
        kind = head & 15
        if head >> 4:
            number, at = number + (head >> 4), at + 1
        else:
            number, at = varint_at(data, at + 1)
            number = (number >> 1) ^ -(number & 1)
        if kind in _INTEGERS:
            value: Any = data[at]
            if value < 0x80:
                at += 1
            else:
                value, at = varint_at(data, at)
            value = (value >> 1) ^ -(value & 1)
        elif number in inner:
            value, at = _level_or_list(data, at, kind, inner[number])
        else:
            end = _end_of_value(data, at, kind, 0)
            value, at = data[at:end], end
        fields[number] = (kind, value)
    return fields, at + 1


def _level_or_list(data: bytes, at: int, kind: int, inner: Parts) -> tuple[Any, int]:
    if kind == _STRUCT:
        return _level(data, at, inner)
    if kind != _LIST or data[at] & 15 != _STRUCT:
        raise ValueError(f"a Thrift value of kind {kind} at byte {at} instead of structures")
    size, at = data[at] >> 4, at + 1
    if size == _LONG_LIST:
        size, at = varint_at(data, at)
    values: list[Any] = []
    for _ in range(size):
        value, at = _level(data, at, inner)
        values.append(value)
    return Elements(_STRUCT, values), at


def _end_of_value(data: bytes, at: int, kind: int, depth: int) -> int:
    if kind in _INTEGERS:
        while data[at] >= 0x80:
            at += 1
        return at + 1
    if kind == _BINARY:
        size, at = varint_at(data, at)
        return at + size
    if kind == _STRUCT:
        return _end_of_struct(data, at, depth)
    if kind in (_LIST, _SET):
        size, element, at = data[at] >> 4, data[at] & 15, at + 1
        if size == _LONG_LIST:
            size, at = varint_at(data, at)
        if element in (_TRUE, _FALSE, _BYTE):
            return at + size
        if element in _INTEGERS:
            for _ in range(size):
                while data[at] >= 0x80:
                    at += 1
                at += 1
            return at
        for _ in range(size):
            at = _end_of_value(data, at, element, depth + 1)
        return at
    if kind in (_TRUE, _FALSE):
        return at
    if kind in (_BYTE, _DOUBLE):
        return at + (1 if kind == _BYTE else _DOUBLE_BYTES)
    raise ValueError(f"a Thrift value of kind {kind} before byte {at}")


def _end_of_struct(data: bytes, at: int, depth: int) -> int:
    if depth > _MOST_DEPTH:
        raise ValueError(f"a Thrift structure at byte {at} that nests deeper than {_MOST_DEPTH}")
    while head := data[at]:
        at += 1
        kind = head & 15
        if not head >> 4:
            at = _end_of_value(data, at, _I64, depth)
        if kind in _INTEGERS:
            while data[at] >= 0x80:
                at += 1
            at += 1
        else:
            at = _end_of_value(data, at, kind, depth + 1)
    return at + 1


def _put_level(out: bytearray, fields: Fields) -> None:
    before = 0
    for number, (kind, value) in fields.items():
        if 0 < number - before < 16:
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            out += integer(number)
        if kind in _INTEGERS:
            if 0 <= value < 0x40:
                out.append(value << 1)
            else:
                out += integer(value)
        elif isinstance(value, dict):
            _put_level(out, value)
        elif isinstance(value, Elements):
            out += list_of_structs(len(value.values))
            for element in value.values:
                _put_level(out, element)
        else:
            out += value
        before = number
    out.append(0)
