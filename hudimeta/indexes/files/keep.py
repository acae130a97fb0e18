"""The metadata partition `files`: new files of commits, deleted ones of cleans, and which partitions there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.indexes.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, files
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.keys import ALL_PARTITIONS, to_key_partition

__all__ = ["FilesKeep"]


class FilesKeep:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition == files.PARTITION

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """Each file below its partition, and each touched partition below the list of all."""
        rows = _rows(change.written)
        empty = () if change.written else (ALL_PARTITIONS,)
        return IndexDelta([PartitionDelta(partition, files.encode_values(rows, change.layout, empty))])

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Always: it tells of the commit's own files alone."""
        return True

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """Deleted files; the list of partitions is left alone unless one of them is empty now."""
        gone = [(to_key_partition(p), name) for p, names in change.removed.items() for name in names]
        gone += [(ALL_PARTITIONS, to_key_partition(p)) for p in change.emptied]
        rows = pa.table([[k for k, _ in gone], [n for _, n in gone], [0] * len(gone), [True] * len(gone)], schema=files.SCHEMA)
        return IndexDelta([PartitionDelta(partition, files.encode_values(rows, change.layout, ()))])

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """All files."""
        listing = source.listing
        partitions = [to_key_partition(p) for p in listing["partition_path"].unique().to_pylist()]
        own = listing["partition_path"]
        keyed = pc.if_else(pc.equal(own, scalar_of("")), scalar_of(to_key_partition("")), own)
        columns = [keyed, listing["name"], listing["size"], pa.repeat(scalar_of(False), len(listing))]
        rows = pa.concat_tables([_list_of(partitions), pa.table(columns, schema=files.SCHEMA)])
        # Readers other than Java need a base file here, even for a table without files.
        return BuiltIndex(1, [(0, files.encode_values(rows, source.layout, () if partitions else (ALL_PARTITIONS,)))])


def _list_of(partitions: Sequence[str]) -> pa.Table:
    """Rows of `files.SCHEMA` for the list of all partitions."""
    n = len(partitions)
    return _table([ALL_PARTITIONS] * n, list(partitions), [0] * n, [False] * n)


def _rows(written: Sequence[WrittenFile]) -> pa.Table:
    """Rows of `files.SCHEMA` for new files, change files included."""
    partitions = sorted({f.partition_path for f in written})
    named = [(f.partition_path, name, size) for f in written for name, size in ((f.name, f.size), *f.change_files)]
    of_files = _table(
        [to_key_partition(path) for path, _, _ in named],
        [name for _, name, _ in named],
        [size for _, _, size in named],
        [False] * len(named),
    )
    return pa.concat_tables([of_files, _list_of([to_key_partition(p) for p in partitions])])


def _table(*columns: list[Any]) -> pa.Table:
    return pa.table([array_of(values, f.type) for values, f in zip(columns, files.SCHEMA, strict=True)], schema=files.SCHEMA)
