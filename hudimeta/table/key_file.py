"""File slices as the look-up of keys sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.table.file_names import parse_base_file, parse_log_file

__all__ = ["FilesOf", "KeyFile", "KeyReader", "RunAll"]


@dataclass(frozen=True, slots=True)
class KeyFile:
    """One file slice that may hold keys.

    Attributes:
        partition_path, file_id: Of the file group.
        name: Of the base file, "" for a slice of log files only.
        size: Its bytes.
        min_key, max_key: Smallest and largest record key of all its files, None when unknown.
        logs: Names of its log files.
        busy: It is in the plan of a pending service.
        log_sizes: Bytes of its log files.
    """

    partition_path: str
    file_id: str
    name: str
    size: int
    min_key: str | None = None
    max_key: str | None = None
    logs: tuple[str, ...] = ()
    busy: bool = False
    log_sizes: tuple[int, ...] = ()

    @property
    def newest_instant(self) -> str:
        """The latest instant that wrote one of its files. Log files are in the order of their instants."""
        named = [parse_base_file(self.name), *(parse_log_file(name) for name in self.logs[-1:])]
        return max((file.instant for file in named if file is not None), default="")


KeyReader = Callable[[KeyFile, "pa.StringArray | None"], "pa.StringArray | None"]
"""Reads the keys of a file slice; None when the file's bloom filter excludes all keys that are wanted; None wants all."""

RunAll = Callable[[Callable[[Any], Any], Sequence[Any]], "list[Any]"]
"""Runs a task on every item, side by side, and returns the results in the order of the items (`Engine.map`)."""

FilesOf = Callable[[Sequence[str] | None], Mapping[str, Sequence[KeyFile]]]
"""The table's latest file slices by partition path: of some partitions, or (None) of all."""
