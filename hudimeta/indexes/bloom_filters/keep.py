"""The metadata partition `bloom_filters`: the filter in the footer of each base file, beside all others in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from hudimeta.config import options as keys
from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.parquet import BLOOM_TYPE_KEY, read_footer
from hudimeta.formats.plain_arrays import array_of, single_array
from hudimeta.indexes.expression_index.facts import filter_rows
from hudimeta.indexes.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource, Reach
from hudimeta.metadata import MetadataTable, bloom_filters
from hudimeta.metadata.delta import PartitionDelta, by_group
from hudimeta.metadata.keys import bloom_filter_keys
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import is_base_file, parse_base_file

__all__ = ["BloomFiltersKeep", "removed_filters"]

Filter = tuple[str, str, str, str, str]
"""Partition path, name and instant of a file, type code and base64 text of its filter."""


_Read = Callable[[tuple[str, str]], Filter | None]
_Run = Callable[[_Read, list[tuple[str, str]]], list[Filter | None]]


class BloomFiltersKeep:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition == bloom_filters.PARTITION

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """The filter of each new base file: as it came with the file, else from its footer."""
        base = [f for f in change.written if f.log_instant is None]
        known = [(f.partition_path, f.name, change.instant, *f.facts.bloom) for f in base if f.facts.bloom is not None]
        unknown = [(f.partition_path, f.name) for f in base if f.facts.bloom is None]
        found = [*known, *_filters(change.storage, change.engine.map, unknown)]
        return IndexDelta([PartitionDelta(partition, bloom_filters.encode_values(filter_rows(found), change.layout))])

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Always: it tells of the commit's own files alone."""
        return True

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """One key for each deleted base file."""
        return removed_filters(partition, change)

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """The filters of every base file, superseded ones too: of one file group after the other, because they are large."""
        groups = source.options.get(keys.BLOOM_GROUPS)
        base, none = source.base_files, array_of([], pa.string())
        paths, names = (single_array(base[c]) if len(base) else none for c in ("partition_path", "name"))
        shares = by_group(bloom_filter_keys(paths, names), groups) if len(base) else []

        def records(rows: pa.Array) -> KeyValues:
            files = list(zip(paths.take(rows).to_pylist(), names.take(rows).to_pylist(), strict=True))
            found = _filters(source.storage, partial(source.of_each, "filters"), files)
            return bloom_filters.encode_values(filter_rows(found), source.layout)

        return BuiltIndex(groups, ((group, records(rows)) for group, rows in shares), reach=Reach.FILE_GROUP)


def removed_filters(partition: str, change: CleanChange) -> IndexDelta:
    """The keys of deleted base files; log files have no filter."""
    gone = [(path, name) for path, names in change.removed.items() for name in names if is_base_file(name)]
    if not gone:
        return IndexDelta()
    paths, names = (array_of([pair[i] for pair in gone], pa.string()) for i in (0, 1))
    return IndexDelta([PartitionDelta(partition, removed=bloom_filter_keys(paths, names).cast(pa.string()))])


def _filters(storage: Storage, run: _Run, files: list[tuple[str, str]]) -> list[Filter]:
    """The filters in the footers of some base files; a file without one is left out, and then nothing excludes it."""

    def read(file: tuple[str, str]) -> Filter | None:
        path = join(*file)
        with storage.open_input(path) as source:
            footer = read_footer(source, path)
        text, parsed = footer.bloom_text, parse_base_file(file[1])
        if text is None or parsed is None:
            return None
        return (*file, parsed.instant, footer.key_value.get(BLOOM_TYPE_KEY, "SIMPLE"), text)

    return [found for found in run(read, files) if found is not None]
