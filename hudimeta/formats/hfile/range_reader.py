"""Where an HFile's bytes come from: anything with a size and `read(offset, length)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.storage import Storage
from hudimeta.storage.at_once import pieces_at_once

__all__ = ["BytesRange", "RangeReader", "StorageRange", "as_range_reader"]


@runtime_checkable
class RangeReader(Protocol):
    """A file of known size of which stretches can be read; each call of `read` is one request."""

    @property
    def size(self) -> int:
        """Bytes of the whole file."""

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """`length` bytes from `offset`, fewer at the end of the file."""

    def read_all(self, spans: Sequence[tuple[int, int]]) -> Sequence[bytes | memoryview]:
        """The bytes of each (offset, length), as `read` gives them; requests that need not wait for each other do not."""


class BytesRange:
    """Bytes in memory; reading makes no copy."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data).cast("B")

    @property
    def size(self) -> int:
        """Bytes in all."""
        return len(self._data)

    def read(self, offset: int, length: int) -> memoryview:
        """A view of `length` bytes from `offset`."""
        return self._data[offset : offset + length]

    def read_all(self, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Views of each (offset, length)."""
        return [self.read(offset, length) for offset, length in spans]


class StorageRange:
    """A file of a storage.

    Args:
        storage: Where the file lies.
        path: Relative to the storage's root.
        size: As a listing or the metadata table says; asked of the storage when None. Raises NotFound then.
        shown: The path for errors; `path` when None.
    """

    def __init__(self, storage: Storage, path: str, size: int | None = None, shown: str | None = None) -> None:
        self._storage, self._shown = storage, shown or path
        self._path = path
        if size is None:
            found = storage.stat(path)
            if found is None:
                raise NotFound(path)
            size = found.size
        self._size = size

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """One request for `length` bytes from `offset`; for all bytes it is one plain read.

        Raises:
            CorruptFileError: The file has another size.
        """
        if offset == 0 and length == self._size:
            data = self._storage.read(self._path)
            if len(data) != self._size:
                at = min(len(data), self._size)
                raise CorruptFileError(self._shown, at, f"a file of {self._size} bytes", f"{len(data)} bytes")
            return data
        return self._storage.read_range(self._path, offset, length)

    def read_all(self, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """One request for each (offset, length), some at once; raises as `read` does."""
        return pieces_at_once(lambda span: self.read(*span), spans, self._storage)


def as_range_reader(source: RangeReader | bytes | bytearray | memoryview) -> RangeReader:
    """`source` itself, or bytes wrapped."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return BytesRange(source)
    return source
