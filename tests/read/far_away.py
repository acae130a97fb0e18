"""A local table as if it lay far away: requests are slow enough to meet each other, and are counted as they do."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudimeta.storage import FileInfo
from hudimeta.storage.local import LocalStorage


class FarAway:
    """Requests for files that lie far away.

    Args:
        meeting: Requests wait until so many are there together, at most a second.
        among: Which: a pattern that is searched in the path of a file, or of a folder that is listed.

    Attributes:
        most: The most requests that were there together.
        opened: Names of the base files that were opened, in order.
        deleted: Names of the files that were deleted, in order.
    """

    def __init__(self, meeting: int = 1, among: str = r"\.(parquet|hfile)$") -> None:
        self.most, self.opened, self.deleted = 0, list[str](), list[str]()
        self._among = re.compile(among)
        self._meeting, self._here = meeting, 0
        self._changed = threading.Condition()

    @contextmanager
    def asked(self, path: str) -> Iterator[None]:
        """A request for a file, for as long as it lasts."""
        if not self._among.search(path):
            yield
            return
        with self._changed:
            self._here += 1
            self.most = max(self.most, self._here)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._meeting, timeout=1)
        try:
            yield
        finally:
            with self._changed:
                self._here -= 1

    def begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let every local table that is opened from now on lie far away."""
        read, listed = LocalStorage.read, LocalStorage.list
        read_range, open_input = LocalStorage.read_range, LocalStorage.open_input
        put, put_if_absent, delete = LocalStorage.put, LocalStorage.put_if_absent, LocalStorage.delete

        def whole(storage: LocalStorage, path: str) -> bytes:
            with self.asked(f"{storage.root}/{path}"):
                return read(storage, path)

        def entries(storage: LocalStorage, path: str) -> list[FileInfo]:
            with self.asked(f"{storage.root}/{path}"):
                return listed(storage, path)

        def ranged(storage: LocalStorage, path: str, offset: int, length: int) -> bytes:
            with self.asked(path):
                return read_range(storage, path, offset, length)

        def opened(storage: LocalStorage, path: str, size: int = 0) -> Any:
            with self.asked(path):
                self.opened.append(Path(path).name)
                return open_input(storage, path, size)

        def written(storage: LocalStorage, path: str, data: bytes) -> None:
            with self.asked(path):
                put(storage, path, data)

        def created(storage: LocalStorage, path: str, data: bytes) -> None:
            with self.asked(path):
                put_if_absent(storage, path, data)

        def deleted(storage: LocalStorage, path: str) -> bool:
            with self.asked(path):
                self.deleted.append(Path(path).name)
                return delete(storage, path)

        monkeypatch.setattr(LocalStorage, "delete", deleted)
        monkeypatch.setattr(LocalStorage, "put", written)
        monkeypatch.setattr(LocalStorage, "put_if_absent", created)
        monkeypatch.setattr(LocalStorage, "read", whole)
        monkeypatch.setattr(LocalStorage, "list", entries)
        monkeypatch.setattr(LocalStorage, "read_range", ranged)
        monkeypatch.setattr(LocalStorage, "open_input", opened)
        monkeypatch.setattr("hudimeta.storage.at_once.is_nearby", lambda storage: False)
        monkeypatch.setattr("hudimeta.metadata.groups.is_nearby", lambda storage: False)
