"""A table as it will be: its storage with one file more, which nobody else can see yet."""

from __future__ import annotations

import time

from hudimeta.storage import CountingStorage, FileInfo, Storage, join

__all__ = ["PreviewStorage"]


class PreviewStorage(CountingStorage):
    """Reads like `inner`, but for one file more.

    Args:
        inner: The storage.
        path: Of the file.
        content: Of the file.
    """

    def __init__(self, inner: Storage, path: str, content: bytes) -> None:
        super().__init__(inner)
        self._path, self._content = path, content

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        return self._content if path == self._path else super().read(path)

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        found = super().list(path)
        folder, _, name = self._path.rpartition("/")
        if folder == path:
            now_ms = int(time.time() * 1000)
            found.append(FileInfo(join(folder, name), len(self._content), now_ms, False))
        return found

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`."""
        return FileInfo(path, len(self._content), 0, False) if path == self._path else super().stat(path)

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`."""
        return path == self._path or super().is_file(path)

    def sub(self, path: str) -> CountingStorage:
        """See `Storage.sub`; a folder that holds the file shows it too."""
        if not self._path.startswith(path + "/"):
            return super().sub(path)
        return PreviewStorage(self.inner.sub(path), self._path[len(path) + 1 :], self._content)
