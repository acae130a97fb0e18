"""Which file slices one compaction takes: Hudi's strategies, by the class names that tables and users know them by.

    LogFileSizeBasedCompactionStrategy   slices with at least so many log bytes, most log bytes first, within the I/O budget
    LogFileNumBasedCompactionStrategy    slices with at least so many log files, most log files first, within the I/O budget
    BoundedIOCompactionStrategy          slices as they come, within the I/O budget
    UnBoundedCompactionStrategy          every slice that has log files
    DayBasedCompactionStrategy           the newest partitions (`yyyy/MM/dd`), so many of them

The budget counts what a compaction reads and writes. A budget that is smaller than a single slice still takes that slice: a
compaction that never did anything would let its log grow for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["choose"]

_MEBIBYTE = 1 << 20

_Strategy = Callable[[Sequence[FileSlice], Options], Iterable[FileSlice]]


def choose(slices: Sequence[FileSlice], options: Options) -> list[FileSlice]:
    """The slices that a compaction takes, in the order of its plan.

    Args:
        slices: All slices that have log files and may be compacted.
        options: Name the strategy and its limits.
    """
    return list(_STRATEGIES[options.get(keys.COMPACT_STRATEGY)](slices, options))


def _by_log_bytes(slices: Sequence[FileSlice], options: Options) -> Iterable[FileSlice]:
    least = options.get(keys.COMPACT_LEAST_LOG_BYTES)
    enough = [s for s in slices if sum(s.log_sizes) >= least]
    return _within_budget(sorted(enough, key=lambda s: (-sum(s.log_sizes), s.partition_path, s.file_id)), options)


def _by_log_count(slices: Sequence[FileSlice], options: Options) -> Iterable[FileSlice]:
    least = options.get(keys.COMPACT_LEAST_LOGS)
    enough = [s for s in slices if len(s.log_files) >= least]
    return _within_budget(sorted(enough, key=lambda s: (-len(s.log_files), s.partition_path, s.file_id)), options)


def _by_day(slices: Sequence[FileSlice], options: Options) -> Iterable[FileSlice]:
    newest = sorted({s.partition_path for s in slices}, reverse=True)[: options.get(keys.COMPACT_DAYS)]
    return sorted((s for s in slices if s.partition_path in newest), key=lambda s: s.partition_path, reverse=True)


def _within_budget(slices: Sequence[FileSlice], options: Options) -> list[FileSlice]:
    left = options.get(keys.COMPACT_TARGET_IO) * _MEBIBYTE
    taken: list[FileSlice] = []
    for one in slices:
        left -= 2 * one.base_size + sum(one.log_sizes)
        if left < 0 and taken:
            break
        taken.append(one)
    return taken


_BY_LOG_SIZE = "LogFileSizeBasedCompactionStrategy"
_STRATEGIES: dict[str, _Strategy] = {
    _BY_LOG_SIZE: _by_log_bytes,
    "LogFileNumBasedCompactionStrategy": _by_log_count,
    "BoundedIOCompactionStrategy": _within_budget,
    "UnBoundedCompactionStrategy": lambda slices, _: slices,
    "DayBasedCompactionStrategy": _by_day,
}
