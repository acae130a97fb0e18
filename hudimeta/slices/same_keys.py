"""Keys that several rows of a file have, as inserts leave them: which row before a write is which one after it.

A rewrite keeps the order of rows and puts new ones after them, so that rows of one key are told apart by their number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["has_doubles", "numbered", "told_apart"]


def has_doubles(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a key comes twice."""
    import pyarrow.compute as pc

    distinct: int = pc.count_distinct(keys, mode="only_valid").as_py()
    known: int = len(keys) - keys.null_count
    return distinct < known


def told_apart(before: pa.Array | pa.ChunkedArray, after: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The record keys of both sides of a write; if any comes twice, all with how often they came before."""
    old, new = _whole(before), _whole(after)
    return (numbered(old), numbered(new)) if has_doubles(old) or has_doubles(new) else (old, new)


def numbered(keys: pa.Array | pa.ChunkedArray, *, from_end: bool = False) -> pa.Array:
    """Each key with how often it came before, or with `from_end` with how often it comes after; null for null."""
    import pyarrow.compute as pc

    every = _whole(keys)
    known = every.drop_null()
    coded = (known[::-1] if from_end else known).dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, codes[order][1:] != codes[order][:-1]])[: len(codes)]
    number = np.empty(len(codes), np.int64)
    number[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    texts = pc.binary_join_element_wise(coded.dictionary_decode(), pa.array(number).cast(pa.string()), "\0")
    return pc.replace_with_mask(every, every.is_valid(), texts[::-1] if from_end else texts)


def _whole(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """As one array of texts; keys that a file has as a dictionary are decoded."""
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    return whole.cast(pa.string())
