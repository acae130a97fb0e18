"""What one commit of the data table changes in its metadata table, and which file group each change goes to.

A record lives in the file group that the hash of its key tells. What is hashed is the key itself, but for secondary indexes of
the second form (their value's part alone), and for a record index kept by partition (the key, over the groups of its own data
partition).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of
from hudimeta.metadata.keys import shard_to_write
from hudimeta.table.positions import positions_by_number

__all__ = ["Hashed", "MetadataDelta", "PartitionDelta", "by_group"]

Hashed = Callable[[pa.Array], pa.Array]
"""From keys (string or binary) to what is hashed of each."""


def _no_keys() -> pa.Array:
    return array_of([], pa.string())


@dataclass(frozen=True)
class PartitionDelta:
    """Records to write to one metadata partition, and keys to remove from it; no key is in both.

    Attributes:
        partition: Metadata partition.
        records: New records, sorted by key.
        removed: Keys, string.
        hashed: What of a key decides about its file group; None for all of it.
        data_partition: The table's partition that the records are of, as ids spell it, where the index is kept by partition.
        groups: How many file groups it has; None for as many as the metadata partition.
        begins: Its file groups begin with this commit.
    """

    partition: str
    records: KeyValues = field(default_factory=KeyValues.empty)
    removed: pa.Array = field(default_factory=_no_keys)
    hashed: Hashed | None = None
    data_partition: str | None = None
    groups: int | None = None
    begins: bool = False

    def __len__(self) -> int:
        return len(self.records) + len(self.removed)


@dataclass(frozen=True)
class MetadataDelta:
    """What one data commit changes in the metadata table; parts without any change are left out when it is written."""

    parts: Sequence[PartitionDelta]


def by_group(keys: pa.Array, groups: int, hashed: Hashed | None = None) -> list[tuple[int, pa.Array]]:
    """The file groups that some keys live in, ascending, each with the positions of its keys.

    Args:
        keys: String or binary.
        groups: How many there are.
        hashed: See `PartitionDelta`.
    """
    if groups == 1 or not len(keys):
        return [(0, array_of(np.arange(len(keys))))] if len(keys) else []
    at = shard_to_write(keys if hashed is None else hashed(keys), groups)
    return [(number, array_of(rows)) for number, rows in positions_by_number(at)]
