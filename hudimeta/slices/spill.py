"""Records of a log and rows of a base file on local disk, divided by the hash of their record key.

Whatever is said about a key lies in the same bucket, in the order in which it was said, so that each bucket can be merged by
itself. A bucket is three Arrow IPC streams: rows of the log, deletes of the log, and rows of the base file; how the first two
take turns is kept in memory. The files have no name: the operating system frees them with the process, however it ends.

Rows of the base file whose key no record of the log has are never written: a table of flags, set by the hashes of those keys,
knows almost all of them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.config.options import MERGE_MEMORY, SPILL_FOLDER
from hudimeta.errors import StorageError
from hudimeta.formats.bloom import hash_chain
from hudimeta.slices.log_parts import DataPart, DeletePart, LogPart
from hudimeta.slices.merge_rules import KEY_COLUMN

__all__ = ["BUCKETS", "LogSpill"]

BUCKETS = 16
"""Into how many buckets records go; what is still too large is divided again."""
_KNOWN_KEYS = 1 << 23
"""Size of the table that tells foreign keys: up to a million keys, seven of eight foreign ones are recognised."""

_DELETED, _NATURAL = "\0deleted", "\0natural"
_GATHERED = 4 << 20
"""Bytes of records of small blocks that are divided together."""

_Numbers = npt.NDArray[np.int64]
_Kind = tuple[bool, frozenset[str] | None]
"""What records have in common that are written as one batch: whether they are deletes, and which columns they have."""


class _Stream:
    """An Arrow IPC stream in a file without a name; made when the first row comes."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._writer: Any = None
        self.written = 0

    def append(self, rows: pa.Table) -> None:
        """Write rows as one batch.

        Raises:
            StorageError: The folder is not there, or has no room.
        """
        with self._refused():
            if self._writer is None:
                self._file = tempfile.TemporaryFile(prefix="hudimeta-", dir=self._folder)  # noqa: SIM115
                codec = "lz4" if pa.Codec.is_available("lz4") else None
                self._writer = pa.ipc.new_stream(self._file, rows.schema, options=pa.ipc.IpcWriteOptions(compression=codec))
            for batch in rows.combine_chunks().to_batches():
                self._writer.write_batch(batch)
        self.written += int(rows.nbytes)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What was written, batch by batch; nothing can be written afterwards.

        Raises:
            StorageError: There was no room for the end of it.
        """
        if self._writer is None or self._file is None:
            return
        with self._refused():
            self._writer.close()
            self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)
        self.close()

    def close(self) -> None:
        """Give the disk space back."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # of what the file had no room for, and nobody reads any more
                self._file.close()
        self._file = self._writer = None

    @contextlib.contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                self._folder or tempfile.gettempdir(),
                f"temporary files cannot be written there ({error.strerror or error})",
                f"Set {SPILL_FOLDER.key} to a folder with room, or raise {MERGE_MEMORY.key}, or compact the table.",
            ) from error


@dataclass
class _Bucket:
    """Attributes: order: of which kind each batch of the log's records is, the oldest first."""

    rows: _Stream
    deletes: _Stream
    base: _Stream
    order: list[_Kind] = field(default_factory=list)


class LogSpill:
    """Buckets of one file slice, or of a bucket that was too large itself. Use it in `with`.

    Args:
        level: 0 for a slice, one more for each division: other bits of the hash decide.
        folder: Where the files are made; None for the system's folder of temporary files.

    Attributes:
        written: Arrow bytes that went to disk.
    """

    def __init__(self, level: int, folder: str | None) -> None:
        self._level = level
        self._buckets = [_Bucket(_Stream(folder), _Stream(folder), _Stream(folder)) for _ in range(BUCKETS)]
        self._waiting: list[LogPart] = []
        self._known = np.zeros(_KNOWN_KEYS, np.bool_)
        self.written = 0

    def __enter__(self) -> LogSpill:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for bucket in self._buckets:
            for stream in (bucket.rows, bucket.deletes, bucket.base):
                stream.close()

    def add(self, part: LogPart) -> None:
        """Take records of the log, the oldest first."""
        kind = _kind(part)
        if self._waiting and (kind != _kind(self._waiting[0]) or sum(p.nbytes for p in self._waiting) > _GATHERED):
            self._divide_waiting()
        self._waiting.append(part)

    def _divide_waiting(self) -> None:
        """Records of many small blocks become few batches."""
        if not self._waiting:
            return
        is_deletes, _ = kind = _kind(self._waiting[0])
        table = pa.concat_tables([_table_of(part) for part in self._waiting])
        self._waiting.clear()
        hashes = _hashes(table.column(KEY_COLUMN))
        self._known[hashes % _KNOWN_KEYS] = True
        for bucket, at in self._divided(hashes):
            bucket.order.append(kind)
            self._append(bucket.deletes if is_deletes else bucket.rows, table.take(pa.array(at)))

    def add_base(self, rows: pa.Table) -> pa.Table:
        """Take rows of the base file, after all records of the log; gives those back whose key no record has."""
        self._divide_waiting()
        hashes = _hashes(rows.column(KEY_COLUMN))
        known = self._known[hashes % _KNOWN_KEYS]
        touched = rows.filter(pa.array(known))
        for bucket, at in self._divided(hashes[known]):
            self._append(bucket.base, touched.take(pa.array(at)))
        return rows.filter(pa.array(~known))

    def parts(self, number: int) -> Iterator[LogPart]:
        """The records of a bucket, the oldest first; once."""
        self._divide_waiting()
        bucket = self._buckets[number]
        rows, deletes = bucket.rows.batches(), bucket.deletes.batches()
        for is_deletes, present in bucket.order:
            table = pa.Table.from_batches([next(deletes if is_deletes else rows)])
            natural = table.column(_NATURAL).to_numpy()
            if is_deletes:
                ordering = [name for name in table.column_names if name not in (KEY_COLUMN, _NATURAL)]
                yield DeletePart(table.column(KEY_COLUMN), natural, tuple(table.column(name) for name in ordering))
            else:
                deleted = table.column(_DELETED).to_numpy()
                yield DataPart(table.drop_columns([_DELETED, _NATURAL]), deleted, natural, present)

    def base(self, number: int) -> Iterator[pa.Table]:
        """The rows of the base file in a bucket, in the order of the file; once."""
        for batch in self._buckets[number].base.batches():
            yield pa.Table.from_batches([batch])

    def _append(self, stream: _Stream, rows: pa.Table) -> None:
        before = stream.written
        stream.append(rows)
        self.written += stream.written - before

    def _divided(self, hashes: _Numbers) -> Iterator[tuple[_Bucket, _Numbers]]:
        """The buckets that keys fall into, each with the places of its keys."""
        of_key = hashes // BUCKETS**self._level % BUCKETS
        order = np.argsort(of_key, kind="stable")
        borders = np.searchsorted(of_key[order], np.arange(BUCKETS + 1))
        for number, bucket in enumerate(self._buckets):
            at = order[borders[number] : borders[number + 1]]
            if len(at):
                yield bucket, at


def _kind(part: LogPart) -> _Kind:
    return (False, part.present) if isinstance(part, DataPart) else (True, None)


def _table_of(part: LogPart) -> pa.Table:
    """Records as one table; `LogSpill.parts` is the inverse."""
    if isinstance(part, DataPart):
        return part.rows.append_column(_DELETED, pa.array(part.deleted)).append_column(_NATURAL, pa.array(part.natural))
    columns = {KEY_COLUMN: part.keys, _NATURAL: pa.array(part.natural)}
    return pa.table({**columns, **{f"\0{number}": values for number, values in enumerate(part.ordering)}})


def _hashes(keys: pa.ChunkedArray) -> _Numbers:
    """A number of 31 bits for each key."""
    chunks = [hash_chain(chunk, 1)[:, 0].astype(np.int64) for chunk in keys.chunks]
    return np.concatenate(chunks) if chunks else np.zeros(0, np.int64)
