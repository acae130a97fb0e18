"""Rows laid aside in files of a temporary folder, in buckets: what lets a write be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.storage import Storage
from hudimeta.table.positions import positions_by_number
from hudimeta.write.batch import KeyedBatch

__all__ = ["BUCKETS", "RowBuckets", "batch_of", "table_of"]

BUCKETS = 64

_KEY, _PATH, _DELETED, _FILE = "\0key", "\0path", "\0deleted", "\0file"
"""No column of a table begins with a zero character."""


class RowBuckets:
    """Rows in buckets, written once and then read bucket by bucket. Close it before reading.

    Args:
        storage: A local folder that nobody else uses.
        name: First part of the names of the files.
        limit: Bytes after which a bucket goes on in another file, so that none is read that does not fit into memory.
    """

    def __init__(self, storage: Storage, name: str, limit: int) -> None:
        self._storage, self._name, self._limit = storage, name, limit
        self._open: dict[int, _Open] = {}
        self._files: dict[int, list[str]] = {}
        self.bytes = np.zeros(BUCKETS, np.int64)

    def add(self, rows: pa.Table, bucket_of: np.ndarray[Any, Any]) -> None:
        """Add rows, each to its bucket (0 to `BUCKETS` - 1)."""
        for number, at in positions_by_number(bucket_of):
            part = rows.take(pa.array(at))
            self._append(number, part)
            self.bytes[number] += part.nbytes

    def _append(self, number: int, part: pa.Table) -> None:
        if number not in self._open:
            names = self._files.setdefault(number, [])
            names.append(f"{self._name}-{number}-{len(names)}.arrows")
            stream = self._storage.open_output(names[-1])
            self._open[number] = _Open(stream, pa.ipc.new_stream(stream, part.schema))
        current = self._open[number]
        current.writer.write_table(part)
        current.bytes += part.nbytes
        if current.bytes >= self._limit:
            self._open.pop(number).close()

    def close(self) -> None:
        """Finish the files."""
        while self._open:
            self._open.popitem()[1].close()

    def together(self, limit: int) -> Iterator[list[int]]:
        """Buckets that hold rows, as many at once as stay below a number of bytes; at least one."""
        some: list[int] = []
        size = 0
        for number in np.flatnonzero(self.bytes):
            if some and size + self.bytes[number] > limit:
                yield some
                some, size = [], 0
            some.append(int(number))
            size += int(self.bytes[number])
        if some:
            yield some

    def read(self, buckets: Sequence[int]) -> pa.Table:
        """All rows of some buckets, whose files are deleted on the way."""
        return pa.concat_tables([part for number in buckets for part in self.portions(number)])

    def portions(self, number: int) -> Iterator[pa.Table]:
        """The rows of one bucket in pieces of about the limit; their files are deleted on the way."""
        for path in self._files.get(number, ()):
            with pa.ipc.open_stream(pa.BufferReader(self._storage.read(path))) as reader:
                rows = reader.read_all()
            self._storage.delete(path)
            yield rows


@dataclass
class _Open:
    """A file that is being written."""

    stream: Any
    writer: Any
    bytes: int = 0

    def close(self) -> None:
        self.writer.close()
        self.stream.close()


def table_of(batch: KeyedBatch) -> pa.Table:
    """A batch as one table."""
    keys = batch.keys if batch.keys is not None else pa.nulls(len(batch), pa.string())
    added = {_KEY: keys, _PATH: batch.partitions, _DELETED: pa.array(batch.deleted)}
    if batch.files is not None:
        added[_FILE] = batch.files
    rows = batch.rows
    for name, column in added.items():
        rows = rows.append_column(name, column)
    return rows


def batch_of(table: pa.Table) -> KeyedBatch:
    """The inverse of `table_of`; further columns must be gone."""
    keys = table[_KEY].combine_chunks()
    own = [name for name in (_KEY, _PATH, _DELETED, _FILE) if name in table.column_names]
    return KeyedBatch(
        table.drop_columns(own),
        None if keys.null_count else keys,
        table[_PATH].combine_chunks(),
        table[_DELETED].to_numpy(),
        table[_FILE].combine_chunks() if _FILE in own else None,
    )
