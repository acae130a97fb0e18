"""The number that a record key is hashed to for a bucket, exactly as Java computes it.

What is hashed are values of key fields, cut out of the record key's text. A key without a comma or without a colon is taken
whole, whatever the fields are called. Any other is read as `field:value,field:value`: a value ends at the last comma before
the next colon, `__null__` stands for null and `__empty__` for the empty text; of these fields those that are hashed count, in
the order in which the key has them, and when none of them is among the hashed ones the key is taken whole again.

    simple buckets        H = 1; H = 31 * H + h(value) for each value, h Java's String.hashCode (0 for null), 32 bits
    consistent hashing    XXH32, seed 0, of the values put together ("null" for null) as UTF-8
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from hudimeta.keys import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from hudimeta.metadata.keys import java_hash

__all__ = ["HASH_MASK", "hashed_values", "list_hashes", "ring_hashes"]

HASH_MASK = 0x7FFFFFFF
"""Hashes are made non-negative by leaving out the sign bit."""


def list_hashes(keys: pa.StringArray, fields: Sequence[str]) -> np.ndarray[Any, Any]:
    """Java's hash of the list of hashed values, without its sign: int64, one a key."""
    return _of_parts(keys, fields, _fold) & HASH_MASK


def ring_hashes(keys: pa.StringArray, fields: Sequence[str]) -> np.ndarray[Any, Any]:
    """XXH32 of the hashed values put together, without its sign: int64, one a key."""
    return _of_parts(keys, fields, _xxh32) & HASH_MASK


_Hash = Callable[[Sequence[pa.Array]], "np.ndarray[Any, Any]"]


def _of_parts(keys: pa.StringArray, fields: Sequence[str], hash_of: _Hash) -> np.ndarray[Any, Any]:
    """Hash whole keys, keys of the usual form, and all others, each kind at once."""
    result = np.zeros(len(keys), dtype=np.int64)
    whole = pc.invert(pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":")))
    rest = np.flatnonzero(~whole.to_numpy(zero_copy_only=False))
    at = np.flatnonzero(whole.to_numpy(zero_copy_only=False))
    result[at] = hash_of([keys.take(pa.array(at))])
    if not len(rest):
        return result
    left = keys.take(pa.array(rest))
    names = [part.partition(":")[0] for part in left[0].as_py().split(",")]
    regular, values = _regular(left, names, fields)
    if regular.any():
        result[rest[regular]] = hash_of(values)
    for number in rest[~regular]:
        parts = [pa.array([value], pa.string()) for value in hashed_values(keys[int(number)].as_py(), fields)]
        result[number] = hash_of(parts)[0]
    return result


def _regular(keys: pa.StringArray, names: Sequence[str], fields: Sequence[str]) -> tuple[np.ndarray[Any, Any], list[pa.Array]]:
    """Keys of the form that the first one has, with plain values: which they are, and their hashed values by field."""
    pattern = ",".join(f"{re.escape(name)}:(?P<v{i}>[^,:]*)" for i, name in enumerate(names))
    found = pc.extract_regex(keys, f"^{pattern}$")
    regular = found.is_valid()
    wanted = [i for i, name in enumerate(names) if name in fields]
    if len(set(names)) < len(names) or not wanted:
        regular = pc.and_(regular, False)
    values = [pc.struct_field(found.filter(regular), i) for i in wanted]
    plain = [pc.if_else(pc.equal(v, EMPTY_PLACEHOLDER), "", v) for v in values]
    null = pa.scalar(None, pa.string())
    return regular.to_numpy(zero_copy_only=False), [pc.if_else(pc.equal(v, NULL_PLACEHOLDER), null, v) for v in plain]


def hashed_values(key: str, fields: Sequence[str]) -> list[str | None]:
    """The values of one record key that are hashed, see the module's head."""
    if "," not in key or ":" not in key:
        return [key]
    values: list[str | None] = []
    at = 0
    while at < len(key):
        colon = key.find(":", at)
        name, following = key[at:colon], key.find(":", colon + 1)
        comma = key.rfind(",", 0, following + 1)
        while comma < colon and following > 0:  # this comma belongs to the field's name: the value has a colon in it
            following = key.find(":", following + 1)
            comma = key.rfind(",", 0, following + 1)
        end = comma if following >= 0 and comma > 0 else len(key)
        if name in fields:
            values.append({NULL_PLACEHOLDER: None, EMPTY_PLACEHOLDER: ""}.get(text := key[colon + 1 : end], text))
        at = end + 1
    return values or [key]


def _fold(values: Sequence[pa.Array]) -> np.ndarray[Any, Any]:
    total = np.ones(len(values[0]), dtype=np.uint32)
    for column in values:
        hashes = java_hash(pc.fill_null(column, "")).view(np.uint32)
        total = total * np.uint32(31) + hashes
    return total.astype(np.int64)


def _xxh32(values: Sequence[pa.Array]) -> np.ndarray[Any, Any]:
    texts = [pc.fill_null(column, "null") for column in values]
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")
    digest = xxhash.xxh32_intdigest
    return np.fromiter((digest(text) for text in joined.cast(pa.binary()).to_pylist()), np.int64, len(joined))
