"""The bloom index: as the simple index, but files are excluded by bloom filters before any of them is opened.

The filters of all files that are left after the key ranges are asked of the metadata partition `bloom_filters` at once, where
the table has it; a slice whose filter is not there, and every slice with log files, falls back to what its footers say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.bloom import BloomFilter
from hudimeta.indexes.simple.look_up import RowsByFile, candidates, search
from hudimeta.indexes.tagging import IndexKind, Tagging
from hudimeta.metadata import bloom_filters
from hudimeta.table.key_file import FilesOf, KeyFile, KeyReader, RunAll

__all__ = ["BloomFiltersLookUp", "FilterSource", "excluded_by_filters"]

_AT_ONCE = 64
"""Filters in memory at a time: Hudi's default makes each of them 320 kB."""

FilterSource = Callable[[Sequence[tuple[str, str]]], pa.Table]
"""Bloom filters of (partition path, file name) pairs: partition_path, file_name, type_code string, bloom (base64 text)."""


class BloomFiltersLookUp:
    """Looks into the files that bloom filters cannot exclude.

    Args:
        files_of: The table's files.
        read: Reads key columns, unless the footer's filter excludes all wanted keys.
        run_all: See `RunAll`.
        filters: The metadata table's filters; None for a table without them.
        is_global: Look for keys in every partition, not only in their own.
    """

    def __init__(
        self,
        files_of: FilesOf,
        read: KeyReader,
        run_all: RunAll,
        filters: FilterSource | None = None,
        *,
        is_global: bool = False,
    ) -> None:
        self.kind = IndexKind.GLOBAL_BLOOM if is_global else IndexKind.BLOOM
        self.is_global = is_global
        self._files_of, self._read, self._run_all, self._filters = files_of, read, run_all, filters

    def tag(self, keys: pa.StringArray, partitions: pa.StringArray) -> Tagging:
        """See `Index`."""
        files = self._files_of(None if self.is_global else partitions.unique().to_pylist())
        where = candidates(keys, None if self.is_global else partitions, files)
        excluded = np.zeros(len(where.files), dtype=bool)
        if self._filters is not None:
            excluded = excluded_by_filters(keys, where, self._filters)
        kept = np.flatnonzero(~excluded)
        left = RowsByFile([where.files[i] for i in kept], [where.rows[i] for i in kept], where.by_range)
        found = search(keys, left, self._read, self._run_all)
        source = "filters of the metadata table" if self._filters is not None else "filters in the footers"
        return replace(found, by_bloom=found.by_bloom + int(excluded.sum()), title=self.kind.title, note=source)


def excluded_by_filters(keys: pa.StringArray, where: RowsByFile, filters: FilterSource) -> np.ndarray[Any, Any]:
    """Which candidates hold none of their rows' keys, by the filters of the metadata table: bool, one a file."""
    excluded = np.zeros(len(where.files), dtype=bool)
    asked = {(f.partition_path, f.name): i for i, f in enumerate(where.files) if _speaks_for_the_slice(f)}
    pairs = list(asked)
    for start in range(0, len(pairs), _AT_ONCE):
        found = filters(pairs[start : start + _AT_ONCE])
        columns = (found[name] for name in ("partition_path", "file_name", "type_code", "bloom"))
        for partition, name, code, text in zip(*columns, strict=True):
            number = asked[partition.as_py(), name.as_py()]
            own = keys.take(pa.array(where.rows[number]))
            place = bloom_filters.place_of(bloom_filters.PARTITION, partition.as_py(), name.as_py())
            bloom = BloomFilter.from_base64(text.as_py(), code.as_py(), place)
            excluded[number] = not bloom.might_contain_any(own)
    return excluded


def _speaks_for_the_slice(file: KeyFile) -> bool:
    """A filter knows the rows of its base file only."""
    return bool(file.name) and not file.logs
