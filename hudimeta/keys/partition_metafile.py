"""`.hoodie_partition_metadata`, by which Java finds a partition on storage."""

from __future__ import annotations

from hudimeta.formats.properties import encode_properties
from hudimeta.formats.seal import sealed_properties
from hudimeta.keys.partition_path import check_new_partition
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import PARTITION_METAFILE

__all__ = ["mark_partition", "partition_metafile"]


def mark_partition(storage: Storage, instant: str, partition_path: str) -> None:
    """Write the metafile of a partition that has none; it is never changed afterwards.

    Args:
        storage: Rooted at the table.
        instant: Of the write.
        partition_path: Of the partition, "" for a table without partitions.

    Raises:
        SchemaMismatch: Apache Hudi could not read such a partition.
    """
    path = join(partition_path, PARTITION_METAFILE)
    if not storage.is_file(path):
        check_new_partition(partition_path)
        depth = partition_path.count("/") + 1 if partition_path else 0
        storage.put(path, partition_metafile(instant, depth))


def partition_metafile(instant: str, depth: int) -> bytes:
    """Content of `.hoodie_partition_metadata`: without it Java does not find a partition on storage.

    Args:
        instant: Of the first write to the partition.
        depth: How many folders the partition lies below the table.
    """
    return sealed_properties(encode_properties({"commitTime": instant, "partitionDepth": str(depth)}, ["partition metadata"]))
