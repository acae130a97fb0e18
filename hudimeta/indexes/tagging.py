"""What every index gives: which rows of a batch are in the table, and where.

An index is a function over one batch (of a whole write, or of one shard of it): keys and partition paths go in as Arrow arrays,
a `Tagging` comes out. What it reads for that comes through the functions that it was made with.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from hudimeta.table.key_file import KeyFile

__all__ = ["NewGroups", "Index", "IndexKind", "LookUpFacts", "PlacingIndex", "Tagging", "look_up_text"]


class IndexKind(enum.Enum):
    """Hudi's indexes; the value is the text of `hoodie.index.type`."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    RECORD_INDEX = "RECORD_INDEX"
    RECORD_WINDOW = "RECORD_WINDOW"
    BUCKET = "BUCKET"

    @property
    def title(self) -> str:
        """The name in running text."""
        text = self.value.lower().replace("_", " ")
        return text if text.endswith("index") else f"{text} index"


@dataclass(frozen=True)
class NewGroups:
    """The file groups that rows must begin, for an index that decides where a key lives.

    Attributes:
        row: int64, positions in the batch.
        number: int64, for each of them the position in the other two.
        partition_paths, file_ids: Of the new file groups.
        as_logs: They begin with log files in a merge-on-read table.
    """

    row: np.ndarray[Any, Any]
    number: np.ndarray[Any, Any]
    partition_paths: Sequence[str]
    file_ids: Sequence[str]
    as_logs: bool = False


@dataclass(frozen=True)
class Tagging:
    """Where the keys of a batch are.

    Attributes:
        row: int64, positions in the batch of rows whose key is in the table, ascending; a row stands once for each file that
            holds its key.
        file: int64, for each of them the position in `files`.
        files: The files that were found or looked at.
        by_range, by_bloom: Files left out because of their key range, because of their bloom filter.
        read: Key columns read.
        asked: Keys that were looked for.
        title: Of the index.
        note: What else the user should know; "" for nothing.
        exact: False when a row is assigned to a file group that may or may not hold its key.
        live: False when a log file may have deleted the key in a place.
        new_groups: Where the other rows must go; None when they may go anywhere.
    """

    row: np.ndarray[Any, Any]
    file: np.ndarray[Any, Any]
    files: Sequence[KeyFile]
    by_range: int = 0
    by_bloom: int = 0
    read: int = 0
    asked: int = 0
    title: str = "simple index"
    note: str = ""
    exact: bool = True
    live: bool = True
    new_groups: NewGroups | None = None

    @property
    def hits(self) -> int:
        """How many keys were found."""
        return len(np.unique(self.row))

    def __str__(self) -> str:
        return look_up_text(self, self.asked, self.hits)


class LookUpFacts(Protocol):
    """What a report says of a look-up; see `Tagging`."""

    @property
    def title(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def by_range(self) -> int: ...
    @property
    def by_bloom(self) -> int: ...
    @property
    def read(self) -> int: ...


def look_up_text(found: LookUpFacts, asked: int, hits: int) -> str:
    """A look-up in words, of one batch or of several together."""
    parts = [f"{asked:,} keys looked up"]
    if found.read or found.by_range or found.by_bloom:
        parts.append(
            f"{found.read} key columns read, {found.by_range} files excluded by key range, {found.by_bloom} by bloom filter"
        )
    parts.append(f"{hits:,} keys found" if found.exact else f"{hits:,} rows to file groups that are there")
    return f"{found.title}: {', '.join(parts)}" + (f" ({found.note})" if found.note else "")


class Index(Protocol):
    """Finds existing rows by key.

    Attributes:
        kind: Which one.
        is_global: Keys are looked for in every partition, not only in their own.
    """

    kind: IndexKind
    is_global: bool

    def tag(self, keys: pa.StringArray, partitions: pa.StringArray) -> Tagging:
        """Find a batch's keys.

        Args:
            keys: Record keys.
            partitions: Their partition paths.

        Raises:
            IndexNotReady, MetadataError: The index cannot be used.
        """
        ...


class PlacingIndex(Index, Protocol):
    """An index that decides in which file group a key lives, whether it is there or not."""

    def new_groups(self, keys: pa.StringArray, partitions: pa.StringArray) -> NewGroups:
        """New file groups for all rows, as if the table had none: what an overwrite begins."""
        ...
