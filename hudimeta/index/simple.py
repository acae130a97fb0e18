"""The simple index: find keys by reading the key columns of the base files that may hold them.

Nothing is stored for it. Files whose key range (column statistics of `_hoodie_record_key`) or bloom filter (in the footer)
excludes every key of the batch are not read; an unknown range or a missing filter keeps the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.table.file_names import parse_base_file, parse_log_file

__all__ = ["KeyFile", "KeyReader", "RunAll", "Tagging", "files_in_range", "tag"]


@dataclass(frozen=True, slots=True)
class KeyFile:
    """One file slice that may hold keys.

    Attributes:
        partition_path, file_id: Of the file group. name: Of the base file, "" for a slice of log files only. size: Its bytes.
        min_key, max_key: Smallest and largest record key of all its files, None when unknown.
        logs: Names of its log files. busy: A planned compaction is going to rewrite it.
    """

    partition_path: str
    file_id: str
    name: str
    size: int
    min_key: str | None = None
    max_key: str | None = None
    logs: tuple[str, ...] = ()
    busy: bool = False

    @property
    def newest_instant(self) -> str:
        """The latest instant that wrote one of its files."""
        named = [parse_base_file(self.name), *(parse_log_file(name) for name in self.logs)]
        return max((file.instant for file in named if file is not None), default="")


KeyReader = Callable[[KeyFile, pa.StringArray], "pa.StringArray | None"]
"""Reads the keys of a file slice; None when the file's bloom filter excludes all keys of the second argument."""


RunAll = Callable[[Callable[[Any], Any], Sequence[Any]], "list[Any]"]
"""Runs a task on every item, side by side, and returns the results in the order of the items (`Engine.map`)."""


@dataclass(frozen=True)
class Tagging:
    """Where the keys of a batch are.

    Attributes:
        row: int64, positions in the batch of rows whose key is in the table, ascending; a row stands once for each file
            that holds its key. file: int64, for each of them the position in `files`.
        files: The files that were looked at.
        by_range, by_bloom: Files left out because of their key range, because of their bloom filter. read: Files read.
    """

    row: np.ndarray[Any, Any]
    file: np.ndarray[Any, Any]
    files: Sequence[KeyFile]
    by_range: int
    by_bloom: int
    read: int

    def __str__(self) -> str:
        return (
            f"simple index: {self.read} key columns read, {self.by_range} files excluded by key range, "
            f"{self.by_bloom} by bloom filter, {len(self.row)} keys found"
        )


def files_in_range(files: Sequence[KeyFile], keys: pa.StringArray) -> np.ndarray[Any, Any]:
    """Which files may hold at least one of the keys, by their key ranges: bool, one a file.

    Keys and bounds are ranked together, so that the question becomes one of whole numbers.
    """
    n = len(files)
    result = np.ones(n, dtype=bool)
    known = np.array([i for i, f in enumerate(files) if f.min_key is not None and f.max_key is not None], dtype=np.int64)
    if not len(known) or not len(keys):
        return result & bool(len(keys))
    low = pa.array([files[i].min_key for i in known], pa.binary())
    high = pa.array([files[i].max_key for i in known], pa.binary())
    everything = pa.concat_arrays([keys.cast(pa.binary()), low, high])
    ranks = pc.rank(everything, tiebreaker="dense").to_numpy()
    own = np.sort(ranks[: len(keys)])
    first = np.searchsorted(own, ranks[len(keys) : len(keys) + len(known)], side="left")
    last = np.searchsorted(own, ranks[len(keys) + len(known) :], side="right")
    result[known] = last > first
    return result


def tag(
    keys: pa.StringArray,
    partitions: pa.StringArray | None,
    files: Mapping[str, Sequence[KeyFile]],
    read: KeyReader,
    run_all: RunAll,
) -> Tagging:
    """Find which rows of a batch are in the table, and where.

    Args:
        keys: Record keys of the batch. partitions: Their partition paths; None to look in every partition (global index).
        files: The base files of the table's latest slices, by partition path.
        read: Reads key columns. run_all: Runs a task on every item, see `RunAll`.
    """
    work: list[tuple[int, KeyFile, np.ndarray[Any, Any]]] = []
    looked_at: list[KeyFile] = []
    skipped = 0
    for partition, rows in _rows_by_partition(partitions, len(keys), files).items():
        candidates = files.get(partition, ())
        own = keys.take(pa.array(rows))
        for file, possible in zip(candidates, files_in_range(candidates, own), strict=True):
            if possible:
                work.append((len(looked_at), file, rows))
                looked_at.append(file)
            else:
                skipped += 1

    def search(item: tuple[int, KeyFile, np.ndarray[Any, Any]]) -> tuple[np.ndarray[Any, Any], int] | None:
        number, file, rows = item
        own = keys.take(pa.array(rows))
        found = read(file, own)
        if found is None:
            return None
        hit = pc.is_in(own, value_set=found).to_numpy(zero_copy_only=False)
        return rows[np.flatnonzero(hit)], number

    results = run_all(search, work)
    hits = [r for r in results if r is not None]
    nothing = np.zeros(0, dtype=np.int64)
    row = np.concatenate([nothing, *(rows for rows, _ in hits)])
    holder = np.concatenate([nothing, *(np.full(len(rows), number, dtype=np.int64) for rows, number in hits)])
    order = np.argsort(row, kind="stable")
    return Tagging(row[order], holder[order], looked_at, skipped, len(results) - len(hits), len(hits))


def _rows_by_partition(
    partitions: pa.StringArray | None, n: int, files: Mapping[str, Sequence[KeyFile]]
) -> dict[str, np.ndarray[Any, Any]]:
    if partitions is None:
        everything = np.arange(n, dtype=np.int64)
        return dict.fromkeys(files, everything)
    coded = partitions.dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    borders = np.searchsorted(codes[order], np.arange(len(coded.dictionary) + 1))
    return {path: order[borders[i] : borders[i + 1]] for i, path in enumerate(coded.dictionary.to_pylist())}
