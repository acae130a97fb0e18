"""Where a Parquet file is written to: a stream whose last bytes wait until their checksums are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CountingSink"]


class CountingSink:
    """A stream as pyarrow wants it: knows its position, and is not closed by the Parquet writer."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._held: list[bytes] | None = None
        self.written = 0

    def write(self, data: Any) -> int:
        if self._held is None:
            self._stream.write(data)
        else:
            self._held.append(bytes(data))
        self.written += len(data)
        return len(data)

    def hold(self) -> None:
        """Keep what is written from now on until `release`."""
        self._held = []

    def release(self, change: Callable[[bytes], bytes]) -> None:
        """Pass on what was held, changed to other bytes of the same length."""
        self._stream.write(change(b"".join(self._held or ())))
        self._held = None

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The stream belongs to the caller."""
