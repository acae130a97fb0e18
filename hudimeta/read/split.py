"""Shares of a read, about of one size, each a plain value that another process can read.

Small slices are packed together. A large base file without log files is cut into parts: which row groups a part has, its reader
sees in the footer, so that planning opens no file.

    task = scan.task
    for split in scan.plan().splits(target_bytes=128 << 20):
        for batch in read_split(task, split):       # here, or in any process that can reach the table
            ...

Task and split say all that reading needs; neither holds an open table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hudimeta.errors import ConfigError
from hudimeta.slices.bootstrap import METADATA_ONLY_INSTANT
from hudimeta.snapshot.file_slice import FileSlice

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.slices.read_task import ReadTask
    from hudimeta.slices.reader import ReadCounts, SliceReader
    from hudimeta.storage import Storage

__all__ = ["Split", "first_rows", "pack_slices", "read_split", "rows_of_split"]

SMALLEST_PART = 8 << 20
"""Bytes: opening a file once more costs as much as reading some, so that files are not cut finer."""

FILE_COST = 4 << 20
"""Bytes that opening a file counts for, so that thousands of tiny files do not become one split."""


_FILTERED_SHARE = 8
"""So much of a file a predicate is taken to leave, for a start: whoever reads more of it ahead pauses until it is taken."""


@dataclass(frozen=True, slots=True)
class Split:
    """Slices that one process reads one after the other."""

    slices: tuple[FileSlice, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(s.size for s in self.slices)


def pack_slices(slices: Iterable[FileSlice], target_bytes: int, at_most: int | None = None) -> list[Split]:
    """Pack slices into splits, largest first into the emptiest split.

    Args:
        slices: In any order.
        target_bytes: About the size of a split; a larger slice is cut where it can be, and makes a split of its own otherwise.
        at_most: Most splits; None for as many as the target gives.

    Returns:
        Splits, each with at least one slice or part of one, the slices of a split in the order given.
    """
    import heapq

    numbered = list(enumerate(part for whole in slices for part in _parts(whole, target_bytes)))
    if not numbered:
        return []
    weights = [s.size + FILE_COST * (1 + len(s.log_files)) for _, s in numbered]
    count = min(len(numbered), max(1, math.ceil(sum(weights) / max(target_bytes, 1))))
    count = min(count, at_most) if at_most is not None and at_most > 0 else count
    heap: list[tuple[int, int]] = [(0, number) for number in range(count)]
    packed: list[list[int]] = [[] for _ in range(count)]
    for at in sorted(range(len(numbered)), key=lambda i: (-weights[i], i)):
        load, number = heapq.heappop(heap)
        packed[number].append(at)
        heapq.heappush(heap, (load + weights[at], number))
    return [Split(tuple(numbered[at][1] for at in sorted(members))) for members in packed if members]


def _parts(whole: FileSlice, target_bytes: int) -> Iterator[FileSlice]:
    """The slice, or parts of its base file of about the target's size."""
    parts = math.ceil(whole.base_size / max(target_bytes, SMALLEST_PART))
    if parts < 2 or not _can_be_cut(whole):
        yield whole
        return
    for number in range(parts):
        yield replace(whole, share=number, shares=parts)


def _can_be_cut(whole: FileSlice) -> bool:
    """False for slices whose rows are put together from several files, and for the changes of a commit."""
    return type(whole) is FileSlice and not whole.log_files and whole.base_instant != METADATA_ONLY_INSTANT


def read_split(
    task: ReadTask, split: Split, storage: Storage | None = None, counts: ReadCounts | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a split.

    Args:
        task: What to read.
        split: Of the same scan.
        storage: Rooted at the table; None opens the task's location.
        counts: Where to count what was read; None for nowhere.

    Yields:
        Batches of `task.output_schema`, none of them empty, of at most `task.batch_rows` rows.

    Raises:
        ConfigError: Something else than a task and a split.
        FileRemoved: A file of the split is gone.
    """
    from hudimeta.slices.read_task import ReadTask

    if not isinstance(task, ReadTask):
        raise ConfigError("task", task, "what a scan is read with", "Give scan.task.")
    if not isinstance(split, Split):
        raise ConfigError("split", split, "a share of a scan", "Give one of scan.plan().splits().")
    return rows_of_split(task, split, storage, counts, ahead=True)


def rows_of_split(
    task: ReadTask, split: Split, storage: Storage | None, counts: ReadCounts | None, *, ahead: bool
) -> Iterator[pa.RecordBatch]:
    """As `read_split`; with `ahead`, slices of a far-away store are read before it is their turn, see `read.ahead`."""
    from hudimeta.storage import open_storage

    storage = storage or open_storage(task.location, task.storage_options)
    with task.telling_removals():
        for table in _tables(task, split, storage, counts, ahead):
            yield from (batch for batch in table.to_batches(max_chunksize=task.batch_rows) if batch.num_rows)


def _tables(task: ReadTask, split: Split, storage: Storage, counts: ReadCounts | None, ahead: bool) -> Iterator[pa.Table]:
    if not ahead or len(split.slices) < 2 or not _may_read_ahead(task, storage):
        reader = _reader_of(task, storage)
        if counts is not None:
            reader.counts = counts
        for file_slice in split.slices:
            yield from reader.readable(file_slice)
        return

    from hudimeta.read.ahead import read_ahead
    from hudimeta.slices.reader import ReadCounts

    def read(file_slice: FileSlice, counts: ReadCounts) -> Iterator[pa.Table]:
        reader = _reader_of(task, storage)  # which is not for several threads
        reader.counts = counts
        return reader.readable(file_slice)

    weights = [_weight(task, one) for one in split.slices]
    yield from read_ahead(read, split.slices, weights, ReadCounts() if counts is None else counts)


def _may_read_ahead(task: ReadTask, storage: Storage) -> bool:
    """Functions of users that merge rows need not be able to run beside themselves; changes of a commit are read in order."""
    from hudimeta.config.options import MERGER
    from hudimeta.slices.read_task import ReadTask
    from hudimeta.storage.at_once import reads_ahead

    return type(task) is ReadTask and not task.merge_options.get(MERGER.key) and reads_ahead(storage)


def _weight(task: ReadTask, one: FileSlice) -> int:
    """Bytes that a slice counts for where it is read ahead: of few of them, where pages without a match are left out."""
    return one.size // _FILTERED_SHARE if task.footers and not one.log_files else one.size


def first_rows(rows: int | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first rows of some batches; what would give more is not asked for."""
    if rows is None:
        yield from batches
        return
    for batch in batches:
        yield batch.slice(0, min(rows, batch.num_rows))  # Arrow takes no length beyond 64 bits
        rows -= batch.num_rows
        if rows <= 0:
            return


def _reader_of(task: ReadTask, storage: Storage) -> SliceReader:
    """What reads slices as a task asks."""
    from hudimeta.slices.read_task import ReadTask
    from hudimeta.slices.reader import SliceReader

    if type(task) is ReadTask:
        return SliceReader(task, storage)
    from hudimeta.read.cdc_reader import ChangeReader, ChangeTask

    return ChangeReader(task, storage) if isinstance(task, ChangeTask) else SliceReader(task, storage)
