"""The size of one Avro datum, found byte by byte.

Array work over many rows is slow when few rows are left, as in a long array that only one row has; there this plain walk
is used.
"""

from __future__ import annotations

from hudimeta.formats.avro.nodes import SchemaNode, ValueKind

__all__ = ["Overrun", "skip_one"]

_SPANS = (ValueKind.BYTES, ValueKind.STRING, ValueKind.DECIMAL)
_LONGS = (ValueKind.INT, ValueKind.LONG, ValueKind.ENUM)


class Overrun(ValueError):
    """A datum that does not end within its bounds; the argument is the position of the fault."""


def skip_one(data: memoryview, node: SchemaNode, at: int, end: int) -> int:
    """The position after the datum at `at`, which must not go beyond `end`.

    Raises:
        Overrun: It does, or is no datum of that type.
    """
    if node.branches:
        branch, at = _long(data, at, end)
        if branch == node.null_branch:
            return at
        if branch != node.value_branch:
            raise Overrun(at)
    return _skip_value(data, node, at, end)


def _skip_value(data: memoryview, node: SchemaNode, at: int, end: int) -> int:
    if node.width >= 0:
        return _within(at + node.width, end)
    if node.kind in _LONGS:
        return _long(data, at, end)[1]
    if node.kind in _SPANS:
        size, at = _long(data, at, end)
        return _within(at + size, end, at)
    if node.kind is ValueKind.RECORD:
        for child in node.children:
            at = skip_one(data, child, at, end)
        return at
    return _skip_items(data, node.children[0], at, end)


def _skip_items(data: memoryview, item: SchemaNode, at: int, end: int) -> int:
    count, at = _long(data, at, end)
    while count:
        if count < 0:
            count = -count
            _, at = _long(data, at, end)
        if count > (end - at) // item.least:
            raise Overrun(at)
        for _ in range(count):
            at = skip_one(data, item, at, end)
        count, at = _long(data, at, end)
    return at


def _within(at: int, end: int, least: int = 0) -> int:
    if not least <= at <= end:
        raise Overrun(end)
    return at


def _long(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value, shift = 0, 0
    for position in range(at, min(at + 10, end)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise Overrun(at)
