"""The metadata partition `distinct_values`: made of the base files themselves, in one file group."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.base_file import open_base_file
from hudimeta.indexes.plan import IndexPlan, IndexRequest
from hudimeta.indexes.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource
from hudimeta.metadata import MetadataTable
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.storage import Storage, join
from tests.indexes.distinct_values import codec


def plan(asked: IndexRequest) -> IndexPlan:
    """An index over one column."""
    return IndexPlan(asked.kind, IndexDefinition(codec.PARTITION, asked.kind, "identity", (asked.one_column,), {}, None))


class DistinctValues:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition == codec.PARTITION

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """The values of each new base file; log files have none, so that their slices stay unknown."""
        (column,) = change.table.index_definitions[partition].source_fields
        new = [(f.partition_path, f.name) for f in change.written if f.log_instant is None]
        return IndexDelta([PartitionDelta(partition, codec.encode_values(_values(change.storage, new, column), change.layout))])

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Always: it tells of the commit's own files alone."""
        return True

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """The records of deleted files go."""
        gone = pa.array([name for names in change.removed.values() for name in names], pa.string())
        records = change.table.records(partition)
        keys = records.filter(pc.is_in(records["file_name"], value_set=gone))["key"].combine_chunks()
        return IndexDelta([PartitionDelta(partition, removed=keys)] if len(keys) else [])

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """The values of all base files."""
        (column,) = source.definitions[partition].source_fields
        files = zip(*(source.base_files[c].to_pylist() for c in ("partition_path", "name")), strict=True)
        return BuiltIndex(1, [(0, codec.encode_values(_values(source.storage, files, column), source.layout))])


def values_of(storage: Storage, path: str, column: str) -> pa.Array:
    """The values of a file; none where one of them could not be told from another."""
    with open_base_file(storage, path) as file:
        chunks = [chunk for piece in file.pieces([column]) for chunk in piece[column].chunks]
    found = pa.chunked_array(chunks, pa.string()).drop_null().unique()
    return found.slice(0, 0) if pc.any(pc.match_substring(found, codec.TAB)).as_py() else found


def _values(storage: Storage, files: Iterable[tuple[str, str]], column: str) -> pa.Table:
    rows = [(name, value) for folder, name in files for value in values_of(storage, join(folder, name), column).to_pylist()]
    return pa.table({c: pa.array([row[i] for row in rows], pa.string()) for i, c in enumerate(("file_name", "value"))})
