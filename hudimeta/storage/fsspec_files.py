"""Files of an object store that are open, through fsspec, and what their drivers raise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hudimeta.errors import AlreadyExists, HudiError, NotFound, StorageError, Throttled
from hudimeta.storage.drivers import is_throttled
from hudimeta.storage.output import FileOutput

__all__ = ["FsspecInput", "FsspecOutput", "errors_told"]


class FsspecInput:
    """A driver's file, which asks the store only when something is read of it: then the request may fail.

    Args:
        file: Of the driver.
        path: For errors.
    """

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        with errors_told(self._path):
            return bytes(self._file.read(size))


class FsspecOutput(FileOutput):
    """An upload; `discard` stops it, so that nothing appears after an exception.

    Args:
        file: Of the driver.
        path: For errors.
    """

    def __init__(self, file: Any, path: str) -> None:
        super().__init__(file)
        self._path = path

    def write(self, data: Any, /) -> int:
        with errors_told(self._path):
            return super().write(data)

    def close(self) -> None:
        with errors_told(self._path):
            super().close()

    def flush(self) -> None:
        """Nothing: uploads flushed early are cut into parts too small for the store."""

    def discard(self) -> None:
        if hasattr(self._file, "discard"):
            self._file.discard()
        # Else the driver would send what it has when its file is collected.
        self._file.closed = True


@contextlib.contextmanager
def errors_told(path: str, as_they_are: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Make what a driver raises one of our errors.

    Args:
        path: That is told of.
        as_they_are: Exceptions that go on as they are.

    Raises:
        NotFound, AlreadyExists, Throttled: Of what is known for it.
        StorageError: Of everything else.
    """
    told: tuple[type[Exception], ...] = (HudiError, *as_they_are)
    try:
        yield
    except told:
        raise
    except FileNotFoundError as error:
        raise NotFound(path) from error
    except FileExistsError as error:
        raise AlreadyExists(path) from error
    except Exception as error:
        if is_throttled(error):
            raise Throttled(path, 1) from error
        if isinstance(error, OSError):
            raise StorageError(path, str(error)) from error
        raise StorageError(path, f"{type(error).__name__}: {error}") from error
