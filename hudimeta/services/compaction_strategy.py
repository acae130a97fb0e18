"""Which file slices one compaction takes: Hudi's strategies, by the class names that tables and users know them by.

    LogFileSizeBasedCompactionStrategy   slices with at least so many log bytes, most log bytes first, within the I/O budget
    LogFileNumBasedCompactionStrategy    slices with at least so many log files, most log files first, within the I/O budget
    BoundedIOCompactionStrategy          slices as they come, within the I/O budget
    UnBoundedCompactionStrategy          every slice that has log files
    DayBasedCompactionStrategy           the newest partitions (`yyyy/MM/dd`), so many of them
    BoundedPartitionAwareCompactionStrategy    partitions of so many days before today, of today and later
    UnBoundedPartitionAwareCompactionStrategy  all the others
    PartitionRegexBasedCompactionStrategy      partitions whose paths a pattern is found in

Of several strategies each takes of what the one before leaves.
The budget counts what a compaction reads and writes. A budget that is smaller than a single slice still takes that slice: a
compaction that never did anything would let its log grow for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError
from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["choose"]

_MEBIBYTE = 1 << 20

_Strategy = Callable[[Sequence[FileSlice], Options, date], Iterable[FileSlice]]
_DAY = re.compile(r"(?:[^/=]*=)?(\d{4})[/-](?:[^/=]*=)?(\d{1,2})[/-](?:[^/=]*=)?(\d{1,2})(?!\d)")


def choose(slices: Sequence[FileSlice], options: Options, today: date) -> list[FileSlice]:
    """The slices that a compaction takes, in the order of its plan.

    Args:
        slices: All slices that have log files and may be compacted.
        options: Name the strategies and their limits.
        today: In the table's zone.

    Raises:
        ConfigError: A pattern that is none, or a partition that is no day where a strategy goes by days.
    """
    for name in options.get(keys.COMPACT_STRATEGY):
        slices = list(_STRATEGIES[name](slices, options, today))
    return list(slices)


def _by_log_bytes(slices: Sequence[FileSlice], options: Options, _: date) -> Iterable[FileSlice]:
    least = options.get(keys.COMPACT_LEAST_LOG_BYTES)
    enough = [s for s in slices if sum(s.log_sizes) >= least]
    return _within_budget(sorted(enough, key=lambda s: (-sum(s.log_sizes), s.partition_path, s.file_id)), options)


def _by_log_count(slices: Sequence[FileSlice], options: Options, _: date) -> Iterable[FileSlice]:
    least = options.get(keys.COMPACT_LEAST_LOGS)
    enough = [s for s in slices if len(s.log_files) >= least]
    return _within_budget(sorted(enough, key=lambda s: (-len(s.log_files), s.partition_path, s.file_id)), options)


def _by_day(slices: Sequence[FileSlice], options: Options, _: date) -> Iterable[FileSlice]:
    newest = sorted({s.partition_path for s in slices}, reverse=True)[: options.get(keys.COMPACT_DAYS)]
    return sorted((s for s in slices if s.partition_path in newest), key=lambda s: s.partition_path, reverse=True)


def _of_late(slices: Sequence[FileSlice], options: Options, today: date) -> Iterable[FileSlice]:
    first = today - timedelta(days=options.get(keys.COMPACT_DAYS))
    return sorted((s for s in slices if _day_of(s.partition_path) >= first), key=lambda s: s.partition_path, reverse=True)


def _of_long_ago(slices: Sequence[FileSlice], options: Options, today: date) -> Iterable[FileSlice]:
    first = today - timedelta(days=options.get(keys.COMPACT_DAYS))
    return [s for s in slices if _day_of(s.partition_path) < first]


def _day_of(partition_path: str) -> date:
    """The day that a partition is of: 2026/01/02, 2026-01-02 or year=2026/month=01/day=02, whatever comes below."""
    found = _DAY.match(partition_path)
    try:
        if found is not None:
            return date(*map(int, found.groups()))
    except ValueError:
        pass
    hint = f"Partition {partition_path!r} is none: take PartitionRegexBasedCompactionStrategy, or one that goes by size."
    raise ConfigError(keys.COMPACT_STRATEGY.key, "by days", "a strategy for the table's partitions, which must be days", hint)


def _by_pattern(slices: Sequence[FileSlice], options: Options, _: date) -> Iterable[FileSlice]:
    pattern = options.get(keys.COMPACT_REGEX) or ""
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise ConfigError(keys.COMPACT_REGEX.key, pattern, "a regular expression", str(error)) from error
    return [s for s in slices if found.search(s.partition_path)]


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
    "BoundedIOCompactionStrategy": lambda slices, options, _: _within_budget(slices, options),
    "UnBoundedCompactionStrategy": lambda slices, *_: slices,
    "DayBasedCompactionStrategy": _by_day,
    "BoundedPartitionAwareCompactionStrategy": _of_late,
    "UnBoundedPartitionAwareCompactionStrategy": _of_long_ago,
    "PartitionRegexBasedCompactionStrategy": _by_pattern,
}
