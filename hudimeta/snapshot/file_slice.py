"""One file slice as a plain value, and slices out of a listing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudimeta.storage import join

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FileSlice", "slices_of"]

_BATCH = 4096


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The files of one file group that a reader merges.

    Attributes:
        partition_path: Relative to the table, "" without partitions.
        file_id: Of the file group.
        base_instant: Requested time of the base file, or of the oldest log file of a slice without one.
        base_file: Name, None for a slice of log files only.
        base_size: Bytes, 0 without a base file.
        log_files: Names in reading order.
        log_sizes: Their bytes.
        share, shares: Of a slice that several processes read, the number of this part of its base file, from 0, and how many
            parts there are. A part has those row groups whose middle lies in it.
    """

    partition_path: str
    file_id: str
    base_instant: str
    base_file: str | None
    base_size: int
    log_files: tuple[str, ...] = ()
    log_sizes: tuple[int, ...] = ()
    share: int = 0
    shares: int = 1

    @property
    def size(self) -> int:
        """Bytes of all files, of a part of a base file about its own."""
        return self.base_size // self.shares + sum(self.log_sizes)

    @property
    def base_path(self) -> str | None:
        """The base file's path relative to the table."""
        return None if self.base_file is None else join(self.partition_path, self.base_file)

    @property
    def log_paths(self) -> tuple[str, ...]:
        """The log files' paths relative to the table."""
        return tuple(join(self.partition_path, name) for name in self.log_files)


def slices_of(slices: pa.Table) -> Iterator[FileSlice]:
    """Rows of a slice listing (`table.slices.slices_schema`) as values, made as they are asked for."""
    for batch in slices.to_batches(max_chunksize=_BATCH):
        columns = [column.to_pylist() for column in batch.columns]
        for partition, file_id, instant, base, size, logs, log_sizes in zip(*columns, strict=True):
            yield FileSlice(partition, file_id, instant, base, size or 0, tuple(logs or ()), tuple(log_sizes or ()))
