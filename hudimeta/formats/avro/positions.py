"""Walking through many Avro datums at once: one position for each row, all moved on together.

Every step checks that no position leaves its row, before anything is read or allocated by a number that the bytes claim.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hudimeta.errors import CorruptFileError
from hudimeta.formats.avro.nodes import SchemaNode, ValueKind
from hudimeta.formats.avro.single_skip import Overrun, skip_one
from hudimeta.formats.avro.varint import Bytes, Longs, decode_longs, words_of

__all__ = ["SPARE_BYTES", "Items", "Mask", "Walker"]

SPARE_BYTES = 32
"""Bytes that must follow the last row, so that a word can be read at any position within a row."""
FEW_ROWS = 32
"""With fewer rows than this left in a long array, walking them one by one is faster than array work."""

Mask = npt.NDArray[np.bool_]
Items = tuple[Longs, Longs, Longs, Longs]


class Walker:
    """Positions within one buffer of datums.

    Args:
        data: The bytes, with SPARE_BYTES after the last row.
        path: File, for messages.
        origin: Offset of `data` in that file.
    """

    def __init__(self, data: Bytes, path: str, origin: int) -> None:
        self.data = data
        self.words = words_of(data)
        self._path, self._origin = path, origin

    def longs(self, at: Longs, end: Longs) -> tuple[Longs, Longs]:
        """Varints and the positions after them."""
        values, sizes, faults = decode_longs(self.data, self.words, at)
        if faults is not None:
            self.expect(~faults, at, "a varint of at most 10 bytes")
        return values, self.advance(at, sizes, end)

    def spans(self, at: Longs, end: Longs) -> tuple[Longs, Longs]:
        """Begin and end of values that state their own length."""
        sizes, begin = self.longs(at, end)
        self.expect((sizes >= 0) & (sizes <= end - begin), at, "a length within its row")
        return begin, begin + sizes

    def present(self, node: SchemaNode, at: Longs, end: Longs) -> tuple[Mask | None, Longs]:
        """Which values of a union are there, None for all; and new positions, after the branch."""
        if not node.branches:
            return None, at.copy()
        after = self.advance(at, 1, end)
        branch = self.data[at]
        present = branch == 2 * node.value_branch
        if present.all():
            return None, after
        known = present | (branch == 2 * node.null_branch) if node.null_branch >= 0 else present
        self.expect(known, at, f"a branch of the union of {node.path}")
        return present, after

    def skip(self, node: SchemaNode, at: Longs, end: Longs) -> Longs:
        """The positions after one value at each position."""
        present, at = self.present(node, at, end)
        if present is None:
            return _SKIPS[node.kind](self, node, at, end)
        rows = np.flatnonzero(present)
        at[rows] = _SKIPS[node.kind](self, node, at[rows], end[rows])
        return at

    def items(self, item: SchemaNode, at: Longs, end: Longs) -> Items:
        """Where the items of arrays or maps lie.

        Returns:
            Number of items of each row; position of every item, row after row; end of the row of every item; the positions
            after the arrays.
        """
        at = at.copy()
        counts = np.zeros(len(at), np.int64)
        active = np.arange(len(at))
        owners: list[Longs] = []
        starts: list[Longs] = []
        while len(active):
            count, at[active] = self._block_counts(item, at[active], end[active])
            active, count = active[count > 0], count[count > 0]
            counts[active] += count
            starts.append(self._block_starts(item, active, count, at, end))
            owners.append(np.repeat(active, count))
        owner, start = np.concatenate([*owners, counts[:0]]), np.concatenate([*starts, counts[:0]])
        if len(starts) > 2:  # more than one block with items: bring each row's together
            order = np.argsort(owner, kind="stable")
            owner, start = owner[order], start[order]
        return counts, start, end[owner], at

    def advance(self, at: Longs, sizes: Longs | int, end: Longs) -> Longs:
        """Positions moved on by sizes, which are not negative and too small to overflow."""
        after = at + sizes
        if (after > end).any():
            self.expect(after <= end, at, "a value within its row")
        return after

    def expect(self, good: Mask, at: Longs, expected: str) -> None:
        """Raise CorruptFileError for the first row that is not good."""
        if not good.all():
            position = int(at[int(np.argmin(good))])
            found = bytes(self.data[position : position + 8]).hex()
            raise CorruptFileError(self._path, self._origin + position, expected, f"bytes {found}")

    def corrupt(self, at: Longs, expected: str, actual: object) -> CorruptFileError:
        """The error for a fault somewhere in the rows of these positions."""
        return CorruptFileError(self._path, self._origin + (int(at[0]) if len(at) else 0), expected, actual)

    def _block_counts(self, item: SchemaNode, at: Longs, end: Longs) -> tuple[Longs, Longs]:
        """Number of items of each row's next block (0: the array ends), and positions after the block's head."""
        count, here = self.longs(at, end)
        sized = np.flatnonzero(count < 0)
        if len(sized):
            count = np.abs(count)
            here[sized] = self.longs(here[sized], end[sized])[1]
        self.expect((count >= 0) & (count <= (end - here) // item.least), at, f"a number of items of {item.path}")
        return count, here

    def _block_starts(self, item: SchemaNode, rows: Longs, count: Longs, at: Longs, end: Longs) -> Longs:
        """Positions of the items of one block of each of these rows; `at` moves after them."""
        base = np.cumsum(count) - count
        total = int(count.sum())
        if item.width > 0 and not item.branches:
            within = np.arange(total) - np.repeat(base, count)
            starts = np.repeat(at[rows], count) + within * item.width
            at[rows] += count * item.width
            return starts
        starts = np.empty(total, np.int64)
        left, k = np.arange(len(rows)), 0
        while len(left) >= FEW_ROWS:
            here = rows[left]
            starts[base[left] + k] = at[here]
            at[here] = self.skip(item, at[here], end[here])
            k += 1
            left = left[count[left] > k]
        for i in left:
            at[rows[i]] = self._walk_one(item, starts[base[i] + k : base[i] + count[i]], int(at[rows[i]]), int(end[rows[i]]))
        return starts

    def _walk_one(self, item: SchemaNode, starts: Longs, at: int, end: int) -> int:
        """Fill in the positions of one row's items; returns the position after."""
        data = memoryview(self.data.data)
        try:
            for k in range(len(starts)):
                starts[k] = at
                at = skip_one(data, item, at, end)
        except Overrun as error:
            raise CorruptFileError(
                self._path, self._origin + int(error.args[0]), f"items of {item.path} within their row", "more"
            ) from error
        return at

    def _skip_long(self, node: SchemaNode, at: Longs, end: Longs) -> Longs:
        return self.longs(at, end)[1]

    def _skip_span(self, node: SchemaNode, at: Longs, end: Longs) -> Longs:
        return self.spans(at, end)[1]

    def _skip_fixed(self, node: SchemaNode, at: Longs, end: Longs) -> Longs:
        return self.advance(at, node.width, end)

    def _skip_record(self, node: SchemaNode, at: Longs, end: Longs) -> Longs:
        for child in node.children:
            at = self.skip(child, at, end)
        return at

    def _skip_items(self, node: SchemaNode, at: Longs, end: Longs) -> Longs:
        return self.items(node.children[0], at, end)[3]


_SKIPS: dict[ValueKind, Callable[[Walker, SchemaNode, Longs, Longs], Longs]] = {
    **dict.fromkeys((ValueKind.INT, ValueKind.LONG, ValueKind.ENUM), Walker._skip_long),
    **dict.fromkeys((ValueKind.BYTES, ValueKind.STRING, ValueKind.DECIMAL), Walker._skip_span),
    **dict.fromkeys((ValueKind.NULL, ValueKind.BOOLEAN, ValueKind.FLOAT, ValueKind.DOUBLE), Walker._skip_fixed),
    **dict.fromkeys((ValueKind.FIXED, ValueKind.VECTOR, ValueKind.DECIMAL_FIXED), Walker._skip_fixed),
    ValueKind.RECORD: Walker._skip_record,
    ValueKind.ARRAY: Walker._skip_items,
    ValueKind.MAP: Walker._skip_items,
}
