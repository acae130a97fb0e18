"""The simple index: find keys by reading the key columns of the files that may hold them.

Nothing is stored for it. Files whose key range (column statistics of `_hoodie_record_key`) or bloom filter (in the footer)
excludes every key of the batch are not read; an unknown range or a missing filter keeps the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import array_of, numpy_of
from hudimeta.indexes.tagging import IndexKind, Tagging
from hudimeta.table.key_file import FilesOf, KeyFile, KeyReader, RunAll
from hudimeta.table.positions import positions_by_text

__all__ = ["RowsByFile", "SimpleLookUp", "candidates", "files_in_range", "search"]


@dataclass
class RowsByFile:
    """Which rows are to be looked for in which files.

    Attributes:
        files: Files that may hold some.
        rows: For each of them, positions in the batch.
        by_range: Files left out.
    """

    files: list[KeyFile]
    rows: list[np.ndarray[Any, Any]]
    by_range: int = 0


def candidates(keys: pa.StringArray, partitions: pa.StringArray | None, files: Mapping[str, Sequence[KeyFile]]) -> RowsByFile:
    """Files that may hold keys, by partition and key range.

    Args:
        keys: Record keys of the batch.
        partitions: Their partition paths; None to look in every partition.
        files: The table's latest slices, by partition path.
    """
    found = RowsByFile([], [])
    if partitions is None:
        share = dict.fromkeys(files, np.arange(len(keys), dtype=np.int64))
    else:
        share = positions_by_text(partitions)
    for partition, rows in share.items():
        of_partition = files.get(partition, ())
        for file, possible in zip(of_partition, files_in_range(of_partition, keys.take(array_of(rows))), strict=True):
            if possible:
                found.files.append(file)
                found.rows.append(rows)
            else:
                found.by_range += 1
    return found


def search(keys: pa.StringArray, where: RowsByFile, read: KeyReader, run_all: RunAll) -> Tagging:
    """Read the keys of the candidates and compare.

    Args:
        keys: Record keys of the batch.
        where: See `candidates`.
        read: Reads key columns.
        run_all: See `RunAll`.
    """

    # The slices of a partition look for the same keys, and whoever reads them may tell that by the array.
    shares = {id(rows): keys.take(array_of(rows)) for rows in where.rows}

    def look(number: int) -> np.ndarray[Any, Any] | None:
        rows = where.rows[number]
        own = shares[id(rows)]
        found = read(where.files[number], own)
        if found is None:
            return None
        return rows[np.flatnonzero(numpy_of(pc.is_in(own, value_set=found)))]

    results = run_all(look, range(len(where.files)))
    nothing = np.zeros(0, dtype=np.int64)
    hits = [(number, rows) for number, rows in enumerate(results) if rows is not None]
    row = np.concatenate([nothing, *(rows for _, rows in hits)])
    holder = np.concatenate([nothing, *(np.full(len(rows), number, dtype=np.int64) for number, rows in hits)])
    order = np.argsort(row, kind="stable")
    return Tagging(row[order], holder[order], where.files, where.by_range, len(results) - len(hits), len(hits), asked=len(keys))


class SimpleLookUp:
    """Looks into the files themselves.

    Args:
        files_of: The table's files.
        read: Reads key columns.
        run_all: See `RunAll`.
        is_global: Look for keys in every partition, not only in their own.
    """

    def __init__(self, files_of: FilesOf, read: KeyReader, run_all: RunAll, *, is_global: bool = False) -> None:
        self.kind = IndexKind.GLOBAL_SIMPLE if is_global else IndexKind.SIMPLE
        self.is_global = is_global
        self._files_of, self._read, self._run_all = files_of, read, run_all

    def tag(self, keys: pa.StringArray, partitions: pa.StringArray) -> Tagging:
        """See `Index`."""
        files = self._files_of(None if self.is_global else partitions.unique().to_pylist())
        where = candidates(keys, None if self.is_global else partitions, files)
        return replace(search(keys, where, self._read, self._run_all), title=self.kind.title)


def files_in_range(files: Sequence[KeyFile], keys: pa.StringArray) -> np.ndarray[Any, Any]:
    """Which files may hold at least one of the keys, by their key ranges: bool, one a file.

    Keys and bounds are ranked together, so that the question becomes one of whole numbers.
    """
    n = len(files)
    result = np.ones(n, dtype=bool)
    known = np.array([i for i, f in enumerate(files) if f.min_key is not None and f.max_key is not None], dtype=np.int64)
    if not len(known) or not len(keys):
        return result & bool(len(keys))
    low = array_of([files[i].min_key for i in known], pa.binary())
    high = array_of([files[i].max_key for i in known], pa.binary())
    everything = pa.concat_arrays([keys.cast(pa.binary()), low, high])
    ranks = numpy_of(pc.rank(everything, tiebreaker="dense"))
    own = np.sort(ranks[: len(keys)])
    first = np.searchsorted(own, ranks[len(keys) : len(keys) + len(known)], side="left")
    last = np.searchsorted(own, ranks[len(keys) + len(known) :], side="right")
    result[known] = last > first
    return result
