"""Requests as the storage sees them, counted apart from the engine's own reports."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hudimeta.storage import CountingStorage, open_storage
from hudimeta.storage.counting import RequestKind, RequestLog
from hudimeta.storage.protocol import Storage

__all__ = ["Counter"]


class Counter:
    """Stands where `hudimeta.Table` opens storage, and keeps a log for each table that was opened since."""

    def __init__(self) -> None:
        self.logs: list[RequestLog] = []

    def open(self, location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
        """See `hudimeta.storage.open_storage`."""
        storage = CountingStorage(open_storage(location, options))
        self.logs.append(storage.log)
        return storage

    @property
    def log(self) -> RequestLog:
        """Of the table that was opened last."""
        return self.logs[-1]

    def lists(self, mark: int = 0) -> list[str]:
        """Folders that were listed, in order."""
        return self.log.paths(RequestKind.LIST, mark)

    def gets(self, mark: int = 0) -> list[str]:
        """Files that were read, in order, once for each request."""
        return self.log.paths(RequestKind.GET, mark)

    def data_files(self, mark: int = 0) -> set[str]:
        """Data files that were opened."""
        return {r.path for r in self.log.since(mark) if r.kind is RequestKind.GET and r.purpose == "data"}
