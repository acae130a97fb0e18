"""What one instant of the data table changes in the partition `files`, as the instant's own metadata says.

A delta commit of the metadata table at instant t says of `files` what the data instant t says of itself: a write adds the files
of its write stats (change files of CDC included) and names the partitions that it touched; a clean removes files. A reader that
has the data instant's metadata at hand anyway (for the schema, for replaced file groups) thus saves the metadata table's commit
and its log file. Where the correspondence is not certain, `derive` says so and the log file must be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import booleans, integers, texts
from hudimeta.metadata.files import SCHEMA
from hudimeta.metadata.keys import ALL_PARTITIONS, to_key_partition
from hudimeta.types import Action, Instant

__all__ = ["derive"]


def derive(instant: Instant, metadata: Mapping[str, Any]) -> pa.Table | None:
    """Rows of `files.SCHEMA` that the delta commit of a data instant carries.

    Args:
        instant: A completed write or clean of the data table.
        metadata: What its file says.

    Returns:
        None when only the metadata table itself can tell: a stat without size, a clean that failed in part or that emptied a
        partition.
    """
    return _of_clean(metadata) if instant.action is Action.CLEAN else _of_write(metadata)


def _of_write(metadata: Mapping[str, Any]) -> pa.Table | None:
    sizes: dict[tuple[str, str], int] = {}
    partitions = set()
    for partition, stats in (metadata.get("partitionToWriteStats") or {}).items():
        key = to_key_partition(partition)
        partitions.add(key)
        for stat in stats:
            if not stat["path"]:
                continue
            if not stat["fileSizeInBytes"]:
                return None
            entry = (key, stat["path"].rpartition("/")[2])
            sizes[entry] = max(stat["fileSizeInBytes"], sizes.get(entry, 0))
            for path, size in (stat["cdcStats"] or {}).items():
                sizes[key, path.rpartition("/")[2]] = size
    keys = [key for key, _ in sizes] + [ALL_PARTITIONS] * len(partitions)
    names = [name for _, name in sizes] + sorted(partitions)
    return _rows(keys, names, [*sizes.values(), *[0] * len(partitions)], deleted=False)


def _of_clean(metadata: Mapping[str, Any]) -> pa.Table | None:
    keys: list[str] = []
    names: list[str] = []
    for partition, cleaned in (metadata.get("partitionMetadata") or {}).items():
        asked, done = cleaned["deletePathPatterns"] or [], cleaned["successDeleteFiles"] or []
        if cleaned.get("isPartitionDeleted") or cleaned["failedDeleteFiles"] or sorted(asked) != sorted(done):
            return None
        files = {path.rpartition("/")[2] for path in asked}
        keys += [to_key_partition(partition)] * len(files)
        names += sorted(files)
    return _rows(keys, names, [0] * len(names), deleted=True)


def _rows(keys: list[str], names: list[str], sizes: list[int], deleted: bool) -> pa.Table:
    columns = [texts(keys), texts(names), integers(np.array(sizes, np.int64)), booleans(np.full(len(keys), deleted))]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
