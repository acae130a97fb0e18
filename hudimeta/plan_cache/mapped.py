"""Arrow IPC files as mapped tables whose arrays surely end inside the file, whoever wrote it.

Arrow trusts offsets: a text that claims to end behind its buffer is read from there. So the offsets of every array are looked
at once. They are read, not mapped: what is only checked need not stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.storage import Storage

__all__ = ["PIECE_BYTES", "mapped_table"]

PIECE_BYTES = 4 << 20
"""How much is read at once of what is only checked."""
_TEXTS = {pa.string(): 4, pa.binary(): 4, pa.large_string(): 8, pa.large_binary(): 8}
"""Bytes of an offset."""


def mapped_table(storage: Storage, path: str, schema: pa.Schema | None = None) -> pa.Table:
    """The table in a file on a disk of this machine; nothing of it is copied.

    Args:
        storage: Where the file is.
        path: Of the file.
        schema: Its columns: numbers, flags, texts, and lists of these; None where others decide.

    Raises:
        CorruptFileError: It holds no such table, or one whose values do not end where they must.
    """
    try:
        source = storage.open_input(path)
        start = source.read_buffer(1).address
        source.seek(0)
        table = pa.ipc.open_file(source).read_all()
        if schema is not None and not table.schema.equals(schema):
            raise CorruptFileError(path, 0, f"the columns {', '.join(schema.names)}", "others")
        table.validate()
    except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
        raise CorruptFileError(path, 0, "an Arrow IPC file", str(error).partition("\n")[0]) from error
    for column in table.columns:
        for array in column.chunks:
            for offsets, width in _offsets(array):
                _check(storage, path, offsets.address - start, offsets.size, np.dtype(f"i{width}"))
    return table


def _offsets(array: pa.Array) -> Iterator[tuple[pa.Buffer, int]]:
    """The offsets of an array and of what it holds, with their width; `validate` has looked at the last ones."""
    if pa.types.is_list(array.type):
        yield from _offsets(array.values)
    width = 4 if pa.types.is_list(array.type) else _TEXTS.get(array.type)
    if width is not None and len(array):
        yield array.buffers()[1].slice(0, (len(array) + 1) * width), width


def _check(storage: Storage, path: str, at: int, length: int, kind: np.dtype[Any]) -> None:
    """Refuse offsets of which one is smaller than the one before."""
    last = 0
    for begin in range(at, at + length, PIECE_BYTES):
        data = storage.read_range(path, begin, min(PIECE_BYTES, at + length - begin))
        values = np.frombuffer(data, kind)
        if values[0] < last or (values[1:] < values[:-1]).any():
            raise CorruptFileError(path, begin, "offsets that grow", "others")
        last = int(values[-1])
