"""Merging a file slice in bounded memory: what does not fit goes to disk, divided by key, and is merged bucket by bucket.

As long as the log's records fit, they are folded in memory and the base file streams past them. When they do not, everything
about the same keys is brought together on disk (`spill`), and each bucket is merged like a slice. The rows are the same
either way; their order is not: rows that the log does not touch come first then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from hudimeta.slices.fold import FoldedLog, fold_log_records
from hudimeta.slices.log_parts import LogPart
from hudimeta.slices.merge import MergeCounts, SliceMerger
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.slices.spill import BUCKETS, LogSpill

__all__ = ["MergeMemory", "folded_parts", "merged_rows"]


_DIVISIONS = 3
"""How often a bucket is divided again. One key with more versions than fit would never get smaller."""


@dataclass(frozen=True, slots=True)
class MergeMemory:
    """How much of a slice's log is merged in memory.

    Attributes:
        limit: Arrow bytes of log records that are held; merging them takes up to three times as much.
        folder: Where the rest goes; None for the system's folder of temporary files.
    """

    limit: int
    folder: str | None = None


def merged_rows(
    parts: Iterable[LogPart],
    base: Iterable[pa.Table],
    schema: pa.Schema,
    rules: MergeRules,
    memory: MergeMemory,
    spilled: Callable[[int], None] = lambda _: None,
    *,
    whole: Callable[[SliceMerger], None] = lambda _: None,
    counts: MergeCounts | None = None,
    level: int = 0,
) -> Iterator[pa.Table]:
    """The rows of a file slice, in pieces.

    Args:
        parts: The log's records, oldest first.
        base: Rows of the base file with `schema`, in pieces; none without a base file.
        schema: Columns of the merge.
        rules: How two versions of a row become one.
        memory: What may be held.
        spilled: Counts the bytes that went to disk.
        whole: Told of the merger where one merges the whole slice, in the order of its base file.
        counts: What was done, to add to.
        level: How often these records were divided already.
    """
    source = iter(parts)
    held: list[LogPart] = []
    size = 0
    counts = MergeCounts() if counts is None else counts
    for part in source:
        held.append(part)
        size += part.nbytes
        if size > memory.limit and level < _DIVISIONS:
            yield from _by_buckets(chain(_handing_over(held), source), base, schema, rules, memory, spilled, counts, level)
            return
    merger = SliceMerger(fold_log_records(held, schema, rules), rules, counts=counts)
    held.clear()
    whole(merger)
    for piece in base:
        yield merger.merge(piece)
    yield merger.remaining()


def folded_parts(
    parts: Iterable[LogPart],
    schema: pa.Schema,
    rules: MergeRules,
    memory: MergeMemory,
    spilled: Callable[[int], None] = lambda _: None,
    *,
    level: int = 0,
) -> Iterator[FoldedLog]:
    """The records of a log alone, folded, each key in one of the pieces. See `merged_rows`."""
    source = iter(parts)
    held: list[LogPart] = []
    size = 0
    for part in source:
        held.append(part)
        size += part.nbytes
        if size > memory.limit and level < _DIVISIONS:
            with LogSpill(level, memory.folder) as spill:
                for more in chain(_handing_over(held), source):
                    spill.add(more)
                for number in range(BUCKETS):
                    yield from folded_parts(spill.parts(number), schema, rules, memory, spilled, level=level + 1)
                spilled(spill.written)
            return
    yield fold_log_records(held, schema, rules)


def _handing_over(held: list[LogPart]) -> Iterator[LogPart]:
    """The parts, each of them let go of."""
    held.reverse()
    while held:
        yield held.pop()


def _by_buckets(
    parts: Iterable[LogPart],
    base: Iterable[pa.Table],
    schema: pa.Schema,
    rules: MergeRules,
    memory: MergeMemory,
    spilled: Callable[[int], None],
    counts: MergeCounts,
    level: int,
) -> Iterator[pa.Table]:
    with LogSpill(level, memory.folder) as spill:
        for part in parts:
            spill.add(part)
        for piece in base:
            yield spill.add_base(piece)
        spilled(spill.written)
        for number in range(BUCKETS):
            sides = (spill.parts(number), spill.base(number))
            yield from merged_rows(*sides, schema, rules, memory, spilled, counts=counts, level=level + 1)
