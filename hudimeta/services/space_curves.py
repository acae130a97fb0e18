"""Orders of rows that keep several columns together: along a z-order or a Hilbert curve, or by one column after the other.

A value becomes a place on its axis, a number of a few bits that grows with the value: by its distance between the smallest and
the greatest, or by its rank in a sample. The axes' numbers make one 64-bit key a row: their bits by turns for the z-order; for
the Hilbert curve the same after Skilling's transform. Any mix of types will do, since only the order of values counts: of texts
it is their first bytes after what all have in common, of decimals the nearest double. Nulls come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import single_array

__all__ = ["bits_each", "by_columns", "hilbert_keys", "ordinals", "places", "tiles", "z_order_keys"]

Numbers: TypeAlias = npt.NDArray[np.uint64]

_KEY_BITS = 64
_MOST_BITS = 16
"""Of one axis: more places than a table has files."""

_SIGN = np.uint64(1 << 63)
_PREFIX = 8
_AT_ONCE = 1 << 14
"""Rows whose numbers stay in the processor's cache."""


def by_columns(columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    """The order of rows by one column after the other, nulls first, equal rows as they stand."""
    by: dict[str, pa.ChunkedArray] = {}
    for at, column in enumerate(columns):
        if column.null_count:
            by[f"{at} is there"] = column.is_valid()
        by[str(at)] = column
    order: npt.NDArray[np.int64] = (
        pc.sort_indices(pa.table(by), [(name, "ascending") for name in by]).to_numpy().astype(np.int64)
    )
    return order


def ordinals(column: pa.ChunkedArray | pa.Array) -> Numbers:
    """Numbers in the order of a column's values; 0 for null."""
    values = single_array(column)
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        found = _of_texts(values)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        found = _of_doubles(pc.fill_null(values.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False))
    else:
        found = _of_integers(pc.fill_null(_as_integers(values), 0).to_numpy(zero_copy_only=False))
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _as_integers(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return values.cast(pa.int64())


def _of_integers(values: npt.NDArray[np.int64]) -> Numbers:
    found: Numbers = np.ascontiguousarray(values, np.int64).view(np.uint64) ^ _SIGN
    return found


def _of_doubles(values: npt.NDArray[np.float64]) -> Numbers:
    bits = np.ascontiguousarray(values + 0.0, np.float64).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _of_texts(values: pa.Array) -> Numbers:
    """The eight bytes after what all values begin with, the first one most significant."""
    plain = single_array(pc.fill_null(values.cast(pa.large_binary()), b""))
    found = np.zeros(len(plain), np.uint64)
    there = values.drop_null().cast(pa.large_binary())
    if not len(there):
        return found
    ends = pc.min_max(there.cast(pa.binary()))
    skipped = _shared(ends["min"].as_py(), ends["max"].as_py())
    borders = np.frombuffer(plain.buffers()[1], np.int64, len(plain) + 1, plain.offset * 8)
    raw = plain.buffers()[2]
    content = np.frombuffer(raw, np.uint8) if raw is not None and raw.size else np.zeros(1, np.uint8)
    starts, stops = borders[:-1] + skipped, borders[1:]
    for at in range(_PREFIX):
        spots = starts + at
        inside = spots < stops
        taken = np.where(inside, content[np.minimum(spots, len(content) - 1)], 0).astype(np.uint64)
        found |= taken << np.uint64(8 * (_PREFIX - 1 - at))
    return found


def _shared(low: bytes, high: bytes) -> int:
    """How many bytes two texts, hence all between them, begin with."""
    pairs = zip(low, high, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(low), len(high)))


def places(values: Numbers, bits: int, sample: int | None = None) -> Numbers:
    """Numbers of so many bits in the order of `values`.

    Args:
        values: From `ordinals`.
        bits: Of each number.
        sample: By ranks in a sample of so many rows, evenly taken; None by distance from the smallest one.
    """
    if not len(values):
        return values
    most = np.uint64((1 << bits) - 1)
    if sample is None:
        low = values.min()
        width = max(1, int(values.max() - low).bit_length())
        scaled: Numbers = ((values - low) >> np.uint64(max(0, width - bits))) << np.uint64(max(0, bits - width))
        return scaled
    few = values[:: max(1, len(values) // sample)]
    bounds = np.unique(np.sort(few))
    step = max(1, -(-len(bounds) // int(most + np.uint64(1))))
    ranks: Numbers = np.searchsorted(bounds[::step], values, side="right").astype(np.uint64)
    # Over the whole axis, so that its halves, and theirs, have as many rows.
    spread_out: Numbers = ranks * most // np.uint64(len(bounds[::step]))
    return spread_out


def tiles(values: Sequence[Numbers], counts: Sequence[int]) -> Iterator[npt.NDArray[np.int64]]:
    """The rows of each file, so that files cover boxes: in slabs by the first column, these in slabs by the next, and so on.

    A curve that is cut into files runs through several of its squares in most of them. Here each file is one box, as long by
    one column as by any other as far as the number of files allows.

    Args:
        values: `ordinals` of the columns.
        counts: Rows of each file.
    """
    yield from _tiled(np.arange(len(values[0])), values, np.asarray(counts, np.int64))


def _tiled(
    rows: npt.NDArray[np.int64], values: Sequence[Numbers], counts: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.int64]]:
    if len(counts) == 1:
        yield rows
        return
    slabs = max(1, round(len(counts) ** (1 / len(values))))
    if slabs == 1:
        yield from _tiled(rows, values[1:], counts)
        return
    # Rows of one value are told apart by the other columns: a column of few values leaves the files to these.
    in_order = rows[np.lexsort([one[rows] for one in reversed(values)])]
    shares = np.array_split(counts, slabs)
    for slab, share in zip(np.split(in_order, np.cumsum([share.sum() for share in shares])[:-1]), shares, strict=True):
        yield from _tiled(slab, values[1:] if len(values) > 1 else values, share)


def bits_each(columns: int) -> int:
    """Bits that a key has for each of so many axes."""
    return max(1, min(_MOST_BITS, _KEY_BITS // columns))


def z_order_keys(axes: Sequence[Numbers], bits: int) -> Numbers:
    """One key a row: the bits of its places by turns, the most significant first. Axes beyond the 64th do not count."""
    keys = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for axis in axes[:_KEY_BITS]:
            keys = (keys << np.uint64(1)) | ((axis >> np.uint64(bit)) & np.uint64(1))
    return keys


def hilbert_keys(axes: Sequence[Numbers], bits: int) -> Numbers:
    """One key a row: how far along the Hilbert curve its places lie (Skilling, "Programming the Hilbert curve")."""
    keys = np.empty(len(axes[0]), np.uint64)
    for first in range(0, len(keys), _AT_ONCE):
        spots = [axis[first : first + _AT_ONCE].astype(np.uint32) for axis in axes[:_KEY_BITS]]
        _unfold(spots, bits)
        keys[first : first + _AT_ONCE] = z_order_keys([spot.astype(np.uint64) for spot in spots], bits)
    return keys


def _unfold(spots: Sequence[npt.NDArray[np.uint32]], bits: int) -> None:
    """Skilling's transform from axes to the transposed index, in place. Masks of all ones or none stand for branches."""
    head = spots[0]
    for bit in range(bits - 1, 0, -1):
        lower = np.uint32((1 << bit) - 1)
        for spot in spots:
            inverted = _mask(spot, bit) & lower
            if spot is not head:
                swapped = (head ^ spot) & (lower ^ inverted)
                spot ^= swapped
                head ^= swapped
            head ^= inverted
    for at in range(1, len(spots)):
        np.bitwise_xor(spots[at], spots[at - 1], out=spots[at])
    turned = np.zeros(len(head), np.uint32)
    for bit in range(bits - 1, 0, -1):
        turned ^= _mask(spots[-1], bit) & np.uint32((1 << bit) - 1)
    for spot in spots:
        spot ^= turned


def _mask(spot: npt.NDArray[np.uint32], bit: int) -> npt.NDArray[np.uint32]:
    """All ones where a bit is set, else 0."""
    ones: npt.NDArray[np.uint32] = np.uint32(0) - ((spot >> np.uint32(bit)) & np.uint32(1))
    return ones
