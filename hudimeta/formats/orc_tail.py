"""The zone in which the writer of an ORC file lived, which says what moments its wall-clock timestamps stand for.

A file ends with a postscript, and its last byte is the postscript's length. Postscript, footer and the footer of each stripe
are Protocol Buffers messages; all but the postscript are cut into chunks, each after three bytes (little-endian): twice its
length, plus one when it is not compressed::

    postscript      1 footer length, 2 compression (0 none, 1 zlib without head, 2 snappy)
    footer          3 stripes, each: 1 offset, 2 index length, 3 data length, 4 footer length
    stripe footer   3 name of the writer's zone
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from hudimeta.errors import CorruptFileError, UnsupportedFeature

__all__ = ["writer_zones"]

_TAIL: Final = 1 << 14
_MAX_MESSAGE: Final = 1 << 24
_NONE, _ZLIB, _SNAPPY = range(3)


def writer_zones(read_range: Callable[[int, int], bytes], size: int, path: str = "") -> list[str]:
    """The zone of each stripe, "" where none is named.

    Args:
        read_range: Reads so many bytes (second) from an offset (first).
        size: Of the file.
        path: For errors.

    Raises:
        CorruptFileError: The end does not add up.
        UnsupportedFeature: Another compression.
    """
    tail = read_range(max(0, size - _TAIL), min(size, _TAIL))
    if len(tail) < 2 or tail[-1] >= len(tail):
        raise CorruptFileError(path, max(0, size - 1), "the length of a postscript", tail[-1:])
    length = tail[-1]
    try:
        postscript = dict(_fields(tail[-1 - length : -1]))
        footer_length, compression = int(postscript[1]), int(postscript.get(2, _NONE))
        start = size - 1 - length - footer_length
        if not 0 <= start <= size or footer_length > _MAX_MESSAGE:
            raise CorruptFileError(path, size - 1 - length, "a footer inside the file", footer_length)
        footer = _unpacked(read_range(start, footer_length), compression)
        zones = []
        for stripe in (dict(_fields(value)) for number, value in _fields(footer) if number == 3 and isinstance(value, bytes)):
            at = int(stripe.get(1, 0)) + int(stripe.get(2, 0)) + int(stripe.get(3, 0))
            named = dict(_fields(_unpacked(read_range(at, min(int(stripe[4]), _MAX_MESSAGE)), compression))).get(3, b"")
            zones.append(named.decode() if isinstance(named, bytes) else "")
    except (KeyError, IndexError, ValueError, TypeError, zlib.error) as error:
        raise CorruptFileError(path, max(0, size - 1 - length), "an ORC footer", f"{type(error).__name__}: {error}") from error
    return zones


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field: an integer, or the bytes of a text or message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        length = {1: 8, 5: 4}.get(kind, -1)
        if kind == 2:
            length, at = _varint(message, at)
        if not 0 <= length <= len(message) - at:
            raise ValueError("a field runs past its message")
        yield tag >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("an integer of more than 64 bits")


def _unpacked(stream: bytes, compression: int) -> bytes:
    if compression == _NONE:
        return stream
    parts, at, size = [], 0, 0
    while at + 3 <= len(stream):
        head = int.from_bytes(stream[at : at + 3], "little")
        chunk = stream[at + 3 : at + 3 + (head >> 1)]
        part = chunk if head & 1 else _decompressed(chunk, compression)
        size += len(part)
        if size > _MAX_MESSAGE:
            raise ValueError("a footer that is too large")
        parts.append(part)
        at += 3 + (head >> 1)
    return b"".join(parts)


def _decompressed(chunk: bytes, compression: int) -> bytes:
    if compression == _ZLIB:
        return zlib.decompressobj(-15).decompress(chunk, _MAX_MESSAGE)
    if compression == _SNAPPY:
        import pyarrow as pa

        length, _ = _varint(chunk, 0)
        if length > _MAX_MESSAGE:
            raise ValueError("a footer that is too large")
        try:
            return bytes(pa.decompress(chunk, decompressed_size=length, codec="snappy", asbytes=True))
        except OSError as error:  # all that Arrow says of bytes that are no snappy
            raise ValueError(str(error)) from error
    raise UnsupportedFeature(f"moments in ORC files of compression {compression}", "Leave the columns with moments out.")
