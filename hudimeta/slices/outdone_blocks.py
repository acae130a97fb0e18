"""Blocks of a slice's log of which no row can win, since later blocks have all of their keys: they are not unpacked.

Under commit time a later record of the same key is enough. Under event time it has to be a row whose ordering value is not
lower, and the block must delete nothing: a delete without an ordering value ends what was before it.

The footers of our blocks tell of their keys (`formats.log.key_index`), which says for next to nothing which blocks may be
outdone. Whether they are, their columns of keys and ordering values say, read without the others. Blocks of others stay, as do
all where rows are merged in part, or where the log does not fit into memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.log import BlockType, LogBlock, LogFileKeys, keys_of_block
from hudimeta.formats.plain_arrays import numbers, numpy_of
from hudimeta.slices.log_parts import deleted_rows, rows_of
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules, PartialUpdateMode
from hudimeta.slices.ordering import order_codes, ordering_columns

__all__ = ["without_outdone"]

_TRIED = 64
"""Keys of a block that are looked for first: where a block has others than later ones, some of these tell."""


def without_outdone(blocks: Sequence[LogBlock], rules: MergeRules) -> list[LogBlock]:
    """The blocks that have to be merged, in their order.

    Args:
        blocks: Those of a slice that count, oldest first.
        rules: Which version of a row wins.

    Raises:
        CorruptFileError: Damage.
    """
    whole = rules.merger is None and rules.partial_mode is PartialUpdateMode.NONE and not rules.last_keeps_meta
    if len(blocks) < 2 or not whole or any(block.is_partial or block.outlined for block in blocks):
        return list(blocks)
    known = [keys_of_block(block) for block in blocks]
    later = _Later(rules)
    kept: list[LogBlock] = []
    for at in range(len(blocks) - 1, -1, -1):
        candidate = known[at]
        if candidate is not None and _may_be_outdone(candidate, known[at + 1 :]) and later.outdo(blocks[at]):
            continue
        later.add(blocks[at])
        kept.append(blocks[at])
    return kept[::-1]


def _may_be_outdone(one: LogFileKeys, later: Sequence[LogFileKeys | None]) -> bool:
    """Whether later blocks may have all keys of a block, by their prints."""
    others = [other for other in later if other is not None and len(other.prints)]
    if not len(one.prints) or sum(len(other.prints) for other in others) < len(one.prints):
        return False
    step = max(1, len(one.prints) // _TRIED)
    return all(_all_found(prints, one.width, others) for prints in (one.prints[::step], one.prints))


def _all_found(prints: npt.NDArray[np.uint64], width: int, others: Sequence[LogFileKeys]) -> bool:
    left = prints
    for other in reversed(others):
        least = min(width, other.width)
        there = other.prints >> np.uint64(8 * (other.width - least))
        wanted = left >> np.uint64(8 * (width - least))
        at = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
        left = left[there[at] != wanted]
        if not len(left):
            return True
    return False


class _Later:
    """Keys of the blocks that are merged, with their highest ordering values; read when the first block asks for them."""

    def __init__(self, rules: MergeRules) -> None:
        self._rules, self._unread = rules, list[LogBlock]()
        self._rows: pa.Table | None = None

    def add(self, block: LogBlock) -> None:
        """A block that is merged, older than those that were added before."""
        if block.type is not BlockType.DELETE:
            self._unread.append(block)

    def outdo(self, block: LogBlock) -> bool:
        """Whether no row of an older block can win."""
        rows = self._read(block)
        if not rows.num_rows or (self._rules.by_event_time and deleted_rows(rows, self._rules).any()):
            return False
        mine = self._compared(rows)
        tables = [table for one in self._unread if (table := self._compared(self._read(one))).schema == mine.schema]
        self._unread = []
        if self._rows is not None and self._rows.schema == mine.schema:
            tables.append(self._rows)
        if not tables:
            return False
        self._rows = pa.concat_tables(tables)
        return self._beaten(mine, self._rows)

    def _read(self, block: LogBlock) -> pa.Table:
        return rows_of(block, self._rules.columns)

    def _compared(self, rows: pa.Table) -> pa.Table:
        """Keys, and under event time ordering values."""
        values = ordering_columns(rows, self._rules.ordering_fields) if self._rules.by_event_time else []
        return pa.table([rows.column(KEY_COLUMN), *values], names=[str(n) for n in range(len(values) + 1)])

    def _beaten(self, mine: pa.Table, later: pa.Table) -> bool:
        import pyarrow.compute as pc

        keys = pc.unique(later.column(0))
        found = pc.index_in(mine.column(0), value_set=keys)
        if found.null_count or mine.column(0).null_count:
            return False
        if not self._rules.by_event_time:
            return True
        both = pa.concat_tables([later, mine])
        values = both.columns[1:]
        codes = order_codes(values)
        unknown = np.zeros(len(codes), bool)
        for value in values:
            unknown |= numpy_of(value.is_null())
        if unknown[later.num_rows :].any():
            return False  # what counts in the place of a null is not for here
        highest = np.full(len(keys), np.iinfo(np.int64).min)
        told = ~unknown[: later.num_rows]
        at = numbers(pc.index_in(later.column(0), value_set=keys).combine_chunks())
        np.maximum.at(highest, at[told], codes[: later.num_rows][told])
        beaten = highest[numbers(found.combine_chunks())] >= codes[later.num_rows :]
        return bool(beaten.all())
