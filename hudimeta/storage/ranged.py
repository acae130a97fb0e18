"""A file of an object store that is read in places.

The files of the stores' own drivers ask for the size first, although the table states it, and fetch 5 to 50 MiB after whatever
is read: of a column of a base file, or the pages that a filter leaves, more than the file has.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["RangedInput"]

_AHEAD_BYTES = 256 << 10
"""So much is fetched after a small read: many of these in a row are better one request."""
_LARGE_BYTES = 1 << 20
"""From so much on a read is fetched as it is, and nothing of it kept."""


class RangedInput:
    """What pyarrow needs of a Python file to read.

    Args:
        fetch: The bytes from one offset to before another.
        size: Of the file.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch, self._size = fetch, size
        self._at = self._start = 0
        self._kept = b""
        self.closed = False

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """See `io.IOBase.seek`."""
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def read(self, size: int = -1) -> bytes:
        """So many bytes from here on, all that are left where it is negative; fewer where the file ends sooner than stated."""
        end = self._size if size < 0 else min(self._size, self._at + size)
        found = self._between(self._at, end) if end > self._at else b""
        self._at += len(found)
        return found

    def _between(self, start: int, end: int) -> bytes:
        if start < self._start or end > self._start + len(self._kept):
            if end - start >= _LARGE_BYTES:
                return self._fetch(start, end)
            self._start, self._kept = start, self._fetch(start, min(self._size, end + _AHEAD_BYTES))
        return self._kept[start - self._start : end - self._start]

    def close(self) -> None:
        """Let go what is kept."""
        self.closed, self._kept = True, b""
