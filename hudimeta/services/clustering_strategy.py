"""Which file slices one clustering takes, and which of them together: Hudi's strategies, by their class names.

    SparkSizeBasedClusteringPlanStrategy            slices whose base file is small, in the partitions that are looked at
    SparkRecentDaysClusteringPlanStrategy           the same of the newest partitions
    SparkSelectedPartitionsClusteringPlanStrategy   the same of a range of partitions
    SparkSingleFileSortPlanStrategy                 each of these slices by itself, in one new file
    SparkStreamCopyClusteringPlanStrategy           small slices together whose files have the same columns, to be copied
    CommitBasedClusteringPlanStrategy               what commits wrote, in their order: see `clustering_by_commits`
    SparkConsistentBucketClusteringPlanStrategy     buckets of a hash ring: see `bucket_resizing`

Slices of a partition are taken together, the largest first unless `hoodie.clustering.plan.strategy.file.slices.sort.by` says
otherwise, until a group has its bytes. A slice without a base file counts as a whole file, as in Apache Hudi.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeAlias

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError
from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["Group", "STREAM_COPY", "bytes_of", "choose", "groups_of", "looked_at"]

Group = tuple[tuple[FileSlice, ...], int]
"""Slices of one partition, and how many file groups come of them."""

_HOURS = 24
_MODES = {
    "SparkRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
    "SparkSelectedPartitionsClusteringPlanStrategy": "SELECTED_PARTITIONS",
}
_SINGLE, STREAM_COPY = "SparkSingleFileSortPlanStrategy", "SparkStreamCopyClusteringPlanStrategy"
_SIZE, _INSTANT = "SIZE", "INSTANT_TIME"
ColumnsOf: TypeAlias = "Callable[[Sequence[FileSlice]], Sequence[Hashable]]"
"""Says of each of some slices which columns it has."""


def choose(slices: Iterable[FileSlice], options: Options, hour: int, columns_of: ColumnsOf | None = None) -> list[Group]:
    """The groups of a plan.

    Args:
        slices: Those that may be clustered.
        options: Name the strategy and its limits.
        hour: Of the day, for DAY_ROLLING.
        columns_of: Only slices of the same columns are taken together; None for any.

    Raises:
        ConfigError: A pattern that is none.
    """
    limit, most = options.get(keys.CLUSTER_SMALL), options.get(keys.CLUSTER_MOST_GROUPS)
    by_partition: dict[str, list[FileSlice]] = {}
    for one in slices:
        by_partition.setdefault(one.partition_path, []).append(one)
    found: list[Group] = []
    for partition in looked_at(sorted(by_partition), options, hour):
        small = [one for one in by_partition[partition] if one.base_size < limit]
        found += groups_of(small, options, columns_of)
        if len(found) >= most:
            break
    return found[:most]


def looked_at(paths: Sequence[str], options: Options, hour: int) -> Sequence[str]:
    """The partitions that are looked at: first those that are named, then of these the newest, or a range."""
    if named := options.get(keys.CLUSTER_PARTITIONS):
        paths = [path for path in paths if path in named]
    if pattern := options.get(keys.CLUSTER_REGEX):
        try:
            matching = re.compile(pattern)
        except re.error as error:
            raise ConfigError(keys.CLUSTER_REGEX.key, pattern, "a regular expression", str(error)) from error
        paths = [path for path in paths if matching.fullmatch(path)]
    mode = _MODES.get(options.get(keys.CLUSTER_STRATEGY), options.get(keys.CLUSTER_FILTER))
    if mode == "RECENT_DAYS":
        skipped = options.get(keys.CLUSTER_SKIPPED_DAYS)
        return sorted(paths, reverse=True)[skipped : skipped + options.get(keys.CLUSTER_DAYS)]
    if mode == "SELECTED_PARTITIONS":
        begin, end = options.get(keys.CLUSTER_BEGIN), options.get(keys.CLUSTER_END)
        return [path for path in paths if (begin is None or path >= begin) and (end is None or path <= end)]
    if mode == "DAY_ROLLING":
        return [path for at, path in enumerate(paths) if at % _HOURS == hour]
    return paths


def groups_of(slices: Sequence[FileSlice], options: Options, columns_of: ColumnsOf | None = None) -> Iterator[Group]:
    """The groups that slices of one partition make.

    Args:
        slices: All that are to be taken.
        options: Limit the groups, and say in which order slices come into them.
        columns_of: See `choose`.

    Raises:
        ConfigError: No such order.
    """
    if columns_of is not None:
        alike: dict[Hashable, list[FileSlice]] = {}
        placed = sorted(slices, key=_place(options))
        for one, columns in zip(placed, columns_of(placed), strict=True):
            alike.setdefault(columns, []).append(one)
        for some in alike.values():
            yield from groups_of(some, options)
        return
    if options.get(keys.CLUSTER_STRATEGY) == _SINGLE:
        yield from (((one,), 1) for one in slices)
        return
    target, most = options.get(keys.CLUSTER_TARGET), options.get(keys.CLUSTER_GROUP_BYTES)
    alone = bool(options.get(keys.CLUSTER_SORT)) or options.get(keys.CLUSTER_SINGLE)
    taken: list[FileSlice] = []
    size = 0
    for one in sorted(slices, key=_place(options)):
        if taken and size + bytes_of(one, options) > most:
            yield tuple(taken), _outputs(size, target)
            taken, size = [], 0
        taken.append(one)
        size += bytes_of(one, options)
    if len(taken) > 1 or (taken and alone):
        yield tuple(taken), _outputs(size, target)


def bytes_of(one: FileSlice, options: Options) -> int:
    """How large a slice counts: its base file, or what one may have."""
    return one.base_size if one.base_file else options.get(keys.MAX_FILE_SIZE)


def _place(options: Options) -> Callable[[FileSlice], tuple[int | str, ...]]:
    """What slices are sorted by."""
    words = [word.upper() for word in options.get(keys.CLUSTER_SLICES_BY) or (_SIZE,)]
    if not set(words) <= {_SIZE, _INSTANT}:
        raise ConfigError(keys.CLUSTER_SLICES_BY.key, ",".join(words), f"{_SIZE}, {_INSTANT} or both, in the order that counts")

    def place(one: FileSlice) -> tuple[int | str, ...]:
        instant = one.base_instant if one.base_file else ""
        return (*(-bytes_of(one, options) if word == _SIZE else instant for word in words), one.file_id)

    return place


def _outputs(size: int, target: int) -> int:
    return max(1, -(-size // target))
