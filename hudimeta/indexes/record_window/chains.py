"""Which segments of the runs speak of a file slice as it is now.

A segment is about one file group. Either it has all keys of a slice, or what one write changed, and then it says of which slice
it goes out; slices are told apart by a print of the names of their files. So the segments of a file group are a chain: the
newest with all keys, and after it changes, each going out from what the one before has led to. It counts as far as the slice
that there is. Whatever breaks it (another writer, a rollback, a write whose changes are not here) takes nothing but time:
the keys of that slice are read anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.table.key_file import KeyFile

__all__ = ["GroupKey", "after_files", "group_keys", "living", "slice_print"]

GroupKey = str
"""Partition path, a zero, and file id."""

_PRINT_BYTES = 8


def slice_print(name: str, logs: Sequence[str], log_sizes: Sequence[int]) -> int:
    """What stands for the files of a slice.

    Args:
        name: Of the base file, "" for none.
        logs: Names of its log files.
        log_sizes: Their bytes: in version 6 one may grow under its name.
    """
    text = "\n".join((name, *sorted(f"{log}:{size}" for log, size in zip(logs, log_sizes, strict=True))))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_PRINT_BYTES).digest(), "little")


def after_files(before: KeyFile | None, name: str, size: int, *, is_log: bool) -> int:
    """The print of a slice after a write added a log file to it or gave it a new base file.

    Args:
        before: The slice; None for a file group that begins.
        name: Of the new file.
        size: Its bytes.
        is_log: It is a log file.
    """
    if not is_log:
        return slice_print(name, (), ())
    if before is None:
        return slice_print("", (name,), (size,))
    return slice_print(before.name, (*before.logs, name), (*before.log_sizes, size))


def group_keys(segments: pa.Table) -> list[GroupKey]:
    """The file group of each segment."""
    pairs = zip(segments["partition_path"].to_pylist(), segments["file_id"].to_pylist(), strict=True)
    return [f"{partition}\0{file_id}" for partition, file_id in pairs]


def living(runs: Sequence[pa.Table], now: Mapping[GroupKey, int]) -> list[npt.NDArray[np.bool_]]:
    """Which segments count: of each run a mask.

    What comes after the segment that leads to the slice is of a write that came later, or that was taken back.

    Args:
        runs: `runs.SEGMENTS`, oldest first.
        now: The print of each slice that there is.
    """
    names = [name for run in runs for name in group_keys(run)]
    if not names:
        return [np.zeros(0, np.bool_) for _ in runs]
    codes: dict[GroupKey, int] = {}
    group = np.array([codes.setdefault(name, len(codes)) for name in names], np.int64)
    ends = np.array([now.get(name, -1) for name in names], object)
    full, before, after = (
        np.concatenate([run[column].to_numpy(zero_copy_only=False) for run in runs]) for column in ("full", "before", "after")
    )
    order = np.argsort(group, kind="stable")  # by file group, oldest first
    number, full, before, after = group[order], full[order], before[order], after[order]
    at = np.arange(len(number))
    leads_there = (after == ends[order]).astype(np.bool_)
    end = _last_of(number, at, leads_there, len(codes))
    begin = _last_of(number, at, full & (at <= end[number]), len(codes))
    counts = (begin[number] >= 0) & (begin[number] <= at) & (at <= end[number])
    broken = counts & ~full & np.append(True, (before[1:] != after[:-1]) | (number[1:] != number[:-1]))
    spoilt = np.zeros(len(codes), np.bool_)
    spoilt[number[broken]] = True
    alive = np.empty(len(number), np.bool_)
    alive[order] = counts & ~spoilt[number]
    return np.split(alive, np.cumsum([len(run) for run in runs])[:-1])


def _last_of(
    number: npt.NDArray[np.int64], at: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_], count: int
) -> npt.NDArray[np.int64]:
    """Of each group the last position that is wanted; -1 for none."""
    last = np.full(count, -1, np.int64)
    np.maximum.at(last, number[wanted], at[wanted])
    return last
