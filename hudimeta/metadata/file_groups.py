"""What file groups of the metadata table are called: the name of the partition, a number and a zero.

files-0000-0, col-stats-0001-0, record-index-0007-0, secondary-index-rider-idx-0000-0, record-index-south-0000-0
"""

from __future__ import annotations

__all__ = ["file_group_id", "file_stem"]

_STEMS = {"column_stats": "col-stats"}


def file_stem(partition: str, data_partition: str = "") -> str:
    """What the ids of a metadata partition's file groups begin with.

    Args:
        partition: Metadata partition.
        data_partition: Of the table, for a record index that is kept by partition.
    """
    stem = _STEMS.get(partition, partition.replace("_", "-"))
    return f"{stem}-{data_partition}" if data_partition else stem


def file_group_id(partition: str, group: int, data_partition: str = "") -> str:
    """File id of one file group of a metadata partition; see `file_stem`."""
    return f"{file_stem(partition, data_partition)}-{group:04d}-0"
