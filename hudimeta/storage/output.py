"""What every file being written has in common: enough of Python's file protocol for pyarrow to write into it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any

__all__ = ["FileOutput"]


class FileOutput(ABC):
    """A Python file opened for writing; a subclass says what publishing and giving up mean.

    Args:
        file: The open file.
    """

    def __init__(self, file: Any) -> None:
        self._file = file

    @property
    def in_place(self) -> bool:
        """See `OutputStream.in_place`."""
        return False

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        return int(self._file.tell())

    def write(self, data: Any, /) -> int:
        return int(self._file.write(data))

    def close(self) -> None:
        """Publish the file."""
        if not self._file.closed:
            self._file.close()

    @abstractmethod
    def discard(self) -> None:
        """Leave nothing under the file's name."""

    def __enter__(self) -> FileOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
