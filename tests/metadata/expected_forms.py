"""Metadata records in the forms of the recorded answers: one value at a time, decoded without the code under test."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from typing import Any

import xxhash

WRAPPERS = ["", "Boolean", "Int", "Long", "Float", "Double", "Bytes", "String", "Date", "Decimal", "TimeMicros"]
WRAPPERS += ["TimestampMicros", "LocalDate", "Array"]
MEMBERS = {kind: f"member{kind - 1}" for kind in range(1, 14)}
SEED = 0xFFFFFFFFDABADABA


def zigzag(body: bytes) -> int:
    """One Avro number."""
    value = 0
    for place, byte in enumerate(body):
        value |= (byte & 0x7F) << (7 * place)
    return (value >> 1) ^ -(value & 1)


def bound(kind: int, body: bytes) -> Any:
    """The value inside a wrapper; bytes stay bytes."""
    name = WRAPPERS[kind]
    if not name:
        return None
    if name == "Boolean":
        return body == b"\x01"
    if name in ("Float", "Double"):
        value = struct.unpack("<f" if name == "Float" else "<d", body)[0]
        return value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if name == "String":
        return body.decode()
    if name in ("Bytes", "Decimal"):
        return body
    return zigzag(body)


def hash64(text: str) -> str:
    """Column and partition id."""
    return base64.b64encode(xxhash.xxh64((text or ".").encode(), seed=SEED).digest()).decode()


def md5(text: str) -> str:
    """File id."""
    return base64.b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode()
