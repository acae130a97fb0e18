"""Hudi's chain of hashes of a key: `h = murmur2(key, seed=h)` from seed 0 on, of many keys at once.

The murmur2 is Hadoop's, whose 1 to 3 tail bytes are sign-extended and taken in reverse significance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["MOST_KEYS_AT_ONCE", "Words", "arrow_keys", "chains", "hash_chain"]

_M = np.uint32(0x5BD1E995)
_CHUNK_BYTES = 1 << 20
MOST_KEYS_AT_ONCE = 1 << 14
"""Of so many keys at most `chains` gives the hashes together."""

Words = npt.NDArray[np.uint32]


def hash_chain(keys: Any, hash_count: int) -> Words:
    """The chain of hashes of every key, as absolute values: uint32, shape (keys, hash_count); a null's are zero.

    Args:
        keys: Byte strings or texts, or an Arrow array of them.
        hash_count: Length of the chain; shorter chains are its beginnings.
    """
    array = arrow_keys(keys, drop_nulls=False)
    result = np.zeros((len(array), hash_count), dtype=np.uint32)
    for places, chain in chains(array, hash_count):
        result[places] = chain
    return result


def chains(keys: Any, hash_count: int) -> Iterator[tuple[npt.NDArray[np.int64], Words]]:
    """Indices of keys that are not null, group by group, and their chains."""
    for places, content in _groups_of_length(keys):
        chain = np.empty((len(places), hash_count), dtype=np.uint32, order="F")
        words, tail = _mixed_words(content)
        state = np.zeros(len(places), dtype=np.uint32)
        for column in range(hash_count):
            state = _murmur(words, tail, content.shape[1], state)
            # Of the signed integer, as Java takes it: -2**31 stays what it is, and read as an unsigned word is 2**31.
            np.absolute(state.view(np.int32), out=chain[:, column].view(np.int32))
        yield places, chain


def _groups_of_length(keys: Any) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
    """Keys of one length at a time as a matrix of bytes, in pieces that stay in the processor's cache."""
    if not len(keys):
        return
    starts, lengths, data = _key_bytes(keys)
    if not keys.null_count and (lengths == lengths[0]).all():
        yield from _side_by_side(data[starts[0] :], len(keys), int(lengths[0]))
        return
    lengths = np.where(keys.is_valid().to_numpy(zero_copy_only=False), lengths, -1) if keys.null_count else lengths
    order = np.argsort(lengths, kind="stable")
    sizes, firsts = np.unique(lengths[order], return_index=True)
    for size, first, last in zip(sizes.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(order)], strict=True):
        if size < 0:
            continue
        for at, end in _pieces(first, last, size):
            places = order[at:end]
            yield places, data[starts[places][:, None] + np.arange(size)]


def _side_by_side(
    data: npt.NDArray[np.uint8], count: int, size: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
    """The same of keys that are all of one length: a matrix as they lie there."""
    for at, end in _pieces(0, count, size):
        yield np.arange(at, end), data[at * size : end * size].reshape(end - at, size)


def _pieces(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    step = max(min(MOST_KEYS_AT_ONCE, _CHUNK_BYTES // max(size, 1)), 1)
    return ((at, min(at + step, last)) for at in range(first, last, step))


def _mixed_words(content: npt.NDArray[np.uint8]) -> tuple[list[Words], Words | None]:
    """The parts of murmur2 that no seed touches: each mixed word, and what the tail bytes xor in (None without a tail)."""
    size = content.shape[1]
    whole = size // 4
    words = np.ascontiguousarray(content[:, : whole * 4]).view("<u4").astype(np.uint32)
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M
    columns = [np.ascontiguousarray(words[:, i]) for i in range(whole)]
    left = size % 4
    if not left:
        return columns, None
    tail = np.zeros(len(content), dtype=np.uint32)
    signed = content.view(np.int8).astype(np.int32).view(np.uint32)
    for back in range(1, left + 1):
        tail ^= signed[:, size - back] << np.uint32(8 * (back - 1))
    return columns, tail


def _murmur(words: Sequence[Words], tail: Words | None, size: int, seed: Words) -> Words:
    state: Words = seed ^ np.uint32(size)
    for word in words:
        state *= _M
        state ^= word
    if tail is not None:
        state ^= tail
        state *= _M
    state ^= state >> np.uint32(13)
    state *= _M
    state ^= state >> np.uint32(15)
    return state


def arrow_keys(keys: Any, *, drop_nulls: bool = True) -> Any:
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    elif not isinstance(keys, pa.Array):
        keys = pa.array([key.encode() if isinstance(key, str) else key for key in keys], pa.binary())
    return keys.drop_null() if drop_nulls and keys.null_count else keys


def _key_bytes(keys: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Starts, lengths and the data buffer of an Arrow array of binary or string."""
    types = pa.types
    if not any(test(keys.type) for test in (types.is_binary, types.is_string, types.is_large_binary, types.is_large_string)):
        keys = keys.cast(pa.large_binary())
    wide = types.is_large_binary(keys.type) or types.is_large_string(keys.type)
    _, borders, data = keys.buffers()
    offsets = np.frombuffer(borders, dtype=np.int64 if wide else np.int32)[keys.offset : keys.offset + len(keys) + 1]
    offsets = offsets.astype(np.int64)
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    return offsets[:-1], np.diff(offsets), content
