"""Avro object container files, the shape of nearly every file on the timeline (Avro specification, "Object Container Files").

Layout::

    "Obj" 01 | metadata map | 16 bytes sync marker | blocks
    metadata map: long n | n x (key: string, value: bytes) | ... | 00      (n < 0: |n| entries, then a long with their size)
    block:        long record count | long byte size | datums | sync marker

Hudi's Java writer puts exactly one metadata entry, `avro.schema`, without `avro.codec` (which means the null codec), and one
block. Readers pass over entries that they do not know. All longs are zigzag varints.

A sealed container has the entry `hudimeta.seal` as well, whose value is the name of the file that it was written as. Its sync
marker is the checksum (`formats.seal`) of everything else: magic, metadata map, and blocks without their markers.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import os
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudimeta.errors import CorruptFileError
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.seal import SEAL, digest

__all__ = [
    "MAGIC",
    "MAX_INFLATED",
    "container_entries",
    "decode_container",
    "decode_container_schema",
    "encode_container",
    "sealed_container",
    "sealed_name",
]

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
MAX_INFLATED = 16 << 20
"""Size to which the deflated blocks of a file may unpack, besides four times the file; Hudi deflates none of its own."""
_MOST_EXPANSION = 4
MAX_VARINT_BYTES = 10
ZLIB_TRAILER_BYTES = 4
"""Some writers leave (part of) zlib's checksum after a raw deflate stream."""


def decode_container(data: bytes, path: str = "", names: Collection[str] = ()) -> list[dict[str, Any]]:
    """The records of a container file, with the schema that it embeds.

    Args:
        data: The whole file. Codecs null and deflate are accepted.
        path: For error messages.
        names: Records of Hudi's, one of which it must be; none for any record.

    Returns:
        One dict per record; all fields of the embedded schema, in its order, and those of Hudi's record that it lacks.

    Raises:
        CorruptFileError: The bytes are no container, are cut off or damaged, or carry more than they should.
    """
    header = _read_header(data, path)
    _verify(data, header, path)
    parsed = _parsed_schema_of(header, path)
    absent = _checked_shape(header.schema, names, path)
    records: list[dict[str, Any]] = []
    for offset, count, block in _blocks(data, header, path):
        records.extend(_decode_block(parsed, block, count, path, offset))
    return [{**record, **copy.deepcopy(absent)} for record in records] if absent else records


def _checked_shape(schema: str, names: Collection[str], path: str) -> Mapping[str, Any]:
    """Refuse another record than one of `names`; the fields that it lacks, with their defaults."""
    from hudimeta.formats.avro.shapes import absent_fields, misfit, record_name

    name, fault = record_name(schema), misfit(schema)
    if names and name not in names:
        raise CorruptFileError(path, 4, " or ".join(names), name)
    if fault is not None:
        raise CorruptFileError(path, 4, f"the fields of {name}", fault)
    return absent_fields(schema)


def decode_container_schema(data: bytes, path: str = "") -> dict[str, Any]:
    """The schema that a container file embeds, as JSON values, documentation texts included.

    Raises:
        CorruptFileError: The header is damaged or its schema is not the JSON of a record.
    """
    header = _read_header(data, path)
    _parsed_schema_of(header, path)
    schema: dict[str, Any] = parse_json(header.schema)
    return schema


def container_entries(data: bytes, path: str = "") -> Mapping[str, bytes]:
    """The metadata entries of a container file, `avro.schema` among them.

    Raises:
        CorruptFileError: The header is damaged.
    """
    return {name.decode(errors="replace"): value for name, value in _read_header(data, path).entries.items()}


def encode_container(
    schema: dict[str, Any],
    records: Sequence[dict[str, Any]],
    sync: bytes | None = None,
    entries: Mapping[str, str] | None = None,
) -> bytes:
    """A container file as Java's writer makes it: one metadata entry, no codec, one block.

    Args:
        schema: A record schema, as in `hudimeta.formats.avro.schemas`.
        records: One dict per record. A field that is absent takes the schema's default.
        sync: The 16 bytes between blocks; random when None.
        entries: More metadata entries.

    Raises:
        ValueError: A record has a field that the schema lacks, lacks one without default, or `sync` is not 16 bytes.
    """
    import fastavro

    marker = os.urandom(SYNC_BYTES) if sync is None else sync
    if len(marker) != SYNC_BYTES:
        raise ValueError(f"a sync marker has {SYNC_BYTES} bytes, not {len(marker)}")
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    parsed = _parse_schema(text)
    body = io.BytesIO()
    for record in records:
        fastavro.schemaless_writer(body, parsed, record, strict_allow_default=True)
    named = {"avro.schema": text, **(entries or {})}
    out = [MAGIC, _long(len(named)), *(_bytes(part.encode()) for pair in named.items() for part in pair), _long(0), marker]
    if records:
        block = body.getvalue()
        out += [_long(len(records)), _long(len(block)), block, marker]
    return b"".join(out)


def sealed_container(data: bytes, name: str) -> bytes:
    """A container once more, sealed.

    Args:
        data: As `encode_container` made it.
        name: Of the file that it will be, without its folder.
    """
    header = _read_header(data, name)
    entries = {**header.entries, SEAL.encode(): name.encode()}
    parts = [_long(len(entries)), *(_bytes(key) + _bytes(value) for key, value in entries.items()), _long(0)]
    head, blocks = MAGIC + b"".join(parts), [data[start:end] for start, end in _block_spans(data, header, name)]
    marker = digest(head + b"".join(blocks))
    return head + marker + b"".join(block + marker for block in blocks)


def sealed_name(data: bytes, path: str = "") -> str | None:
    """The name under which a container was sealed; None for one without a seal.

    Raises:
        CorruptFileError: It is damaged.
    """
    header = _read_header(data, path)
    _verify(data, header, path)
    name = header.entries.get(SEAL.encode())
    return None if name is None else name.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Header:
    schema: str
    deflated: bool
    sync: bytes
    end: int
    entries: Mapping[bytes, bytes]


def _verify(data: bytes, header: _Header, path: str) -> None:
    """Refuse a sealed container that is not as it was written."""
    if SEAL.encode() not in header.entries:
        return
    covered = [data[: header.end - SYNC_BYTES], *(data[start:end] for start, end in _block_spans(data, header, path))]
    right = digest(b"".join(covered))
    if header.sync != right:
        raise CorruptFileError(path, header.end - SYNC_BYTES, f"the checksum {right.hex()}", header.sync.hex())


def _block_spans(data: bytes, header: _Header, path: str) -> Iterator[tuple[int, int]]:
    """Where each block begins and ends, without its marker."""
    at = header.end
    while at < len(data):
        start = at
        _, at = _read_long(data, at, path)
        size, at = _read_long(data, at, path)
        if not 0 <= size <= len(data) - at - SYNC_BYTES:
            raise CorruptFileError(path, at, f"a block of at most {max(0, len(data) - at - SYNC_BYTES)} bytes", size)
        yield start, at + size
        at += size + SYNC_BYTES


def _read_header(data: bytes, path: str) -> _Header:
    if data[:4] != MAGIC:
        raise CorruptFileError(path, 0, "the Avro container magic 'Obj' 01", repr(bytes(data[:4])))
    entries: dict[bytes, bytes] = {}
    count, at = _read_long(data, 4, path)
    while count:
        if count < 0:
            count = -count
            _, at = _read_long(data, at, path)
        for _ in range(count):
            key, at = _read_bytes(data, at, path)
            entries[key], at = _read_bytes(data, at, path)
        count, at = _read_long(data, at, path)
    if at + SYNC_BYTES > len(data):
        raise CorruptFileError(path, at, f"{SYNC_BYTES} bytes of sync marker", f"{len(data) - at} bytes")
    codec = entries.get(b"avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise CorruptFileError(path, 4, "the codec null or deflate", repr(codec))
    try:
        schema = entries[b"avro.schema"].decode()
    except (KeyError, UnicodeDecodeError) as error:
        raise CorruptFileError(path, 4, "a metadata entry avro.schema in UTF-8", repr(error)) from error
    return _Header(schema, codec == b"deflate", data[at : at + SYNC_BYTES], at + SYNC_BYTES, entries)


def _blocks(data: bytes, header: _Header, path: str) -> Iterator[tuple[int, int, bytes]]:
    """(offset, record count, unpacked bytes) of each block."""
    at = header.end
    room = MAX_INFLATED + _MOST_EXPANSION * len(data)
    while at < len(data):
        start = at
        count, at = _read_long(data, at, path)
        block, at = _read_bytes(data, at, path)
        if data[at : at + SYNC_BYTES] != header.sync:
            raise CorruptFileError(path, at, "the file's sync marker after a block", data[at : at + SYNC_BYTES].hex())
        at += SYNC_BYTES
        if header.deflated:
            block = _inflate(block, room, path, start)
            room -= len(block)
        if not 0 <= count <= len(block):
            raise CorruptFileError(path, start, f"0 to {len(block)} records in {len(block)} bytes", count)
        yield start, count, block


def _inflate(block: bytes, room: int, path: str, offset: int) -> bytes:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        out = unpacker.decompress(block, room + 1)
    except zlib.error as error:
        raise CorruptFileError(path, offset, "a deflated block", str(error)) from error
    if len(out) > room or not unpacker.eof or len(unpacker.unused_data) > ZLIB_TRAILER_BYTES:
        raise CorruptFileError(path, offset, f"one deflate stream of at most {room} bytes", "something else")
    return out


def _decode_block(parsed: Any, block: bytes, count: int, path: str, offset: int) -> list[dict[str, Any]]:
    import fastavro

    source = io.BytesIO(block)
    try:
        records = [fastavro.schemaless_reader(source, parsed) for _ in range(count)]
    except _DATUM_FAULTS as error:
        expected = f"{count} records of {parsed.get('name')}"
        raise CorruptFileError(path, offset, expected, f"{type(error).__name__} {error}") from error
    left = len(block) - source.tell()
    if left:
        raise CorruptFileError(path, offset, "a block that ends with its last record", f"{left} bytes more")
    return records


_DATUM_FAULTS = (EOFError, ValueError, IndexError, KeyError, TypeError, ArithmeticError, struct.error, MemoryError)
"""What fastavro raises on bytes that are no datum of the schema (UnicodeDecodeError is a ValueError)."""


def _parsed_schema_of(header: _Header, path: str) -> Any:
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        parsed = _parse_schema(header.schema)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SchemaParseException, UnknownType) as error:
        raise CorruptFileError(path, 4, "an Avro schema", f"{type(error).__name__} {error}") from error
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise CorruptFileError(path, 4, "the schema of a record", header.schema[:100])
    return parsed


@functools.lru_cache(maxsize=64)
def _parse_schema(text: str) -> Any:
    """Files of one kind embed one text, so parsing is done once for each.

    Raises:
        ValueError: No JSON, or a schema by which few bytes could describe endless data: a type that contains itself, or an
            array whose items, or a record whose fields take no bytes.
    """
    from fastavro.schema import parse_schema

    schema = parse_json(text)
    _width(schema, {})
    return parse_schema(schema, _write_hint=False)


def _width(schema: Any, known: dict[str, int]) -> int:
    """The least number of bytes of a datum; refuses schemas that Hudi never has and that would make reading unbounded."""
    if isinstance(schema, list):
        for branch in schema:
            _width(branch, known)
        return 1
    if isinstance(schema, str):
        if known.get(schema.rpartition(".")[2], 0) < 0:
            raise ValueError(f"type {schema} contains itself")
        return 0 if schema == "null" else known.get(schema.rpartition(".")[2], 1)
    kind = schema["type"]
    if kind in ("record", "error"):
        known[schema["name"]] = -1
        widths = [_width(field["type"], known) for field in schema["fields"]]
        if 0 in widths:
            raise ValueError(f"a field of {schema['name']} that takes no bytes")
        width = sum(widths)
        known[schema["name"]] = width
        return width
    if kind == "array" and _width(schema["items"], known) == 0:
        raise ValueError("array of items that take no bytes")
    if kind == "map":
        _width(schema["values"], known)
    if kind == "fixed":
        known[schema["name"]] = int(schema["size"])
        return int(schema["size"])
    return 1 if kind in ("array", "map", "enum") else _width(kind, known)


def _read_long(data: bytes, at: int, path: str) -> tuple[int, int]:
    value, shift = 0, 0
    for byte in data[at : at + MAX_VARINT_BYTES]:
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise CorruptFileError(path, at, "a varint", "more than 10 bytes or the end of the file")


def _read_bytes(data: bytes, at: int, path: str) -> tuple[bytes, int]:
    size, start = _read_long(data, at, path)
    if not 0 <= size <= len(data) - start:
        raise CorruptFileError(path, at, f"a length of 0 to {len(data) - start}", size)
    return data[start : start + size], start + size


def _long(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value
