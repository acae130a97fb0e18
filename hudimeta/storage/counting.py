"""A wrapper that counts requests by kind and purpose: the source of every figure in a ScanReport or CommitReport."""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from hudimeta.forking import FreeWhenForked
from hudimeta.metering import NO_METER, Meter
from hudimeta.storage.protocol import FileInfo, OutputStream, Storage, join
from hudimeta.storage.retrying import RetryingStorage
from hudimeta.storage.staged import BeforeNamed, NewFile, Staged

__all__ = ["CountingStorage", "Request", "RequestKind", "RequestLog", "kept_by", "purpose_of"]

REQUESTS_KEPT, MARKS_KEPT = 1 << 14, 1 << 8
"""By a log."""


class RequestKind(enum.Enum):
    """What is asked of a store, in the terms of an object store's bill."""

    LIST = "LIST"
    GET = "GET"
    PUT = "PUT"
    DELETE = "DELETE"
    HEAD = "HEAD"


_KINDS = {
    "read": RequestKind.GET,
    "read_range": RequestKind.GET,
    "open_input": RequestKind.GET,
    "put": RequestKind.PUT,
    "put_if_absent": RequestKind.PUT,
    "put_if_unchanged": RequestKind.PUT,
    "prove_replaceable": RequestKind.HEAD,
    "prove_conditions": RequestKind.PUT,
    "open_output": RequestKind.PUT,
    "delete": RequestKind.DELETE,
    "delete_some": RequestKind.DELETE,
    "delete_folder": RequestKind.DELETE,
    "list": RequestKind.LIST,
    "stat": RequestKind.HEAD,
    "is_file": RequestKind.HEAD,
}
"""The kind of request by method of `Storage`."""

_PURPOSES = (
    (".hoodie/metadata/.hoodie/timeline", "metadata timeline"),
    (".hoodie/metadata/.hoodie/.temp", "metadata markers"),
    (".hoodie/metadata/.hoodie", "metadata properties"),
    (".hoodie/metadata", "metadata table"),
    (".hoodie/timeline", "timeline"),
    (".hoodie/.temp", "markers"),
    (".hoodie/.staged", "staged rows"),
    (".hoodie/.locks", "lock"),
    (".hoodie/.index_defs", "index definitions"),
    (".hoodie/.aux/hudimeta/plans", "kept plans"),
    (".hoodie/.aux/hudimeta/record_window", "record window"),
)


@lru_cache(maxsize=1 << 12)
def purpose_of(path: str) -> str:
    """What a path relative to a table's root is for: "timeline", "metadata table", "data" and so on."""
    for prefix, purpose in _PURPOSES:
        if path == prefix or path.startswith(prefix + "/"):
            return purpose
    if path.startswith(".hoodie/hoodie.properties"):
        return "properties"
    if path == ".hoodie" or path.startswith(".hoodie/"):
        # Tables of version 6 keep their instants in the folder itself.
        return "timeline"
    return "data"


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        kind: What was asked for.
        path: Relative to the table.
        n_bytes: Bytes moved, 0 where unknown.
        refused: The store asked for fewer requests instead of doing it.
    """

    kind: RequestKind
    path: str
    n_bytes: int
    refused: bool = False

    @property
    def purpose(self) -> str:
        """See `purpose_of`."""
        return purpose_of(self.path)


@dataclass
class _Sums:
    """What requests come to. Attributes: by_purpose: How many, by (kind, purpose)."""

    by_purpose: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: int = 0
    n_bytes: int = 0

    def add(self, request: Request) -> None:
        """Count one more."""
        self.by_purpose[request.kind.value, request.purpose] += 1
        self.refused += request.refused
        self.n_bytes += request.n_bytes

    def after(self, earlier: _Sums) -> _Sums:
        """What came after earlier ones, as a value of its own."""
        counts = self.by_purpose - earlier.by_purpose
        return _Sums(counts, self.refused - earlier.refused, self.n_bytes - earlier.n_bytes)


class RequestLog:
    """All requests since it was made; safe for many threads.

    The newest are kept one by one. Of those before them the sums are known since any of the last marks: a table may be open for
    days, and scans and commits report their requests.

    Attributes:
        meter: Counts what else is done on the storage.
        marks: The last places that `mark` gave, and the beginning, with what the requests before them come to.
    """

    def __init__(self) -> None:
        self._lock = FreeWhenForked()
        self._requests: deque[Request] = deque(maxlen=REQUESTS_KEPT)
        self._made, self._sums = 0, _Sums()
        self.marks = {0: _Sums()}
        self.meter: Meter = NO_METER

    def add(self, kind: RequestKind, path: str, n_bytes: int = 0, refused: bool = False) -> None:
        """Record one request."""
        request = Request(kind, path, n_bytes, refused)
        with self._lock:
            self._requests.append(request)
            self._sums.add(request)
            self._made += 1

    def __len__(self) -> int:
        return self._made

    def mark(self) -> int:
        """How many requests there were so far; the others tell of those after it, however many they become."""
        with self._lock:
            if self._made not in self.marks:
                self.marks[self._made] = self._sums.after(_Sums())
                for oldest in list(self.marks)[1:-MARKS_KEPT]:  # the first is the beginning, which stays
                    del self.marks[oldest]
            return self._made

    def since(self, mark: int) -> tuple[Request, ...]:
        """The requests after the first `mark`, as far as they are kept."""
        with self._lock:
            return self._kept_since(mark)

    def _kept_since(self, mark: int) -> tuple[Request, ...]:
        return tuple(islice(self._requests, max(0, mark - self._made + len(self._requests)), None))

    def _sums_since(self, mark: int) -> _Sums:
        with self._lock:
            if mark in self.marks:
                return self._sums.after(self.marks[mark])
            sums = _Sums()
            for request in self._kept_since(mark):
                sums.add(request)
            return sums

    def counts(self, mark: int = 0) -> Mapping[str, int]:
        """Requests by kind since `mark`, for example {"GET": 6, "LIST": 2}."""
        found: Counter[str] = Counter()
        for (kind, _), number in self.by_purpose(mark).items():
            found[kind] += number
        return dict(found)

    def by_purpose(self, mark: int = 0) -> Mapping[tuple[str, str], int]:
        """Requests by (kind, purpose) since `mark`."""
        return dict(self._sums_since(mark).by_purpose)

    def refused(self, mark: int = 0) -> int:
        """How many requests since `mark` the store refused, asking for fewer; each is counted among its kind as well."""
        return self._sums_since(mark).refused

    def n_bytes(self, mark: int = 0) -> int:
        """Bytes that requests since `mark` moved."""
        return self._sums_since(mark).n_bytes

    def paths(self, kind: RequestKind, mark: int = 0) -> list[str]:
        """Paths of the requests of one kind since `mark`, in order, as far as they are kept."""
        return [r.path for r in self.since(mark) if r.kind is kind]


class CountingStorage:
    """Passes everything on to `inner` and writes it down in `log`.

    Args:
        inner: The storage that does the work.
        log: Where requests go; a new one when None. `sub` shares it, so that a table and its metadata table add up.
        prefix: What stands before paths in the log.
        kept: See `kept_by`; shared by `sub` as well.
    """

    def __init__(
        self, inner: Storage, log: RequestLog | None = None, prefix: str = "", kept: dict[str, Any] | None = None
    ) -> None:
        self.inner = inner.telling(self._refused) if isinstance(inner, RetryingStorage) else inner
        self.log = log if log is not None else RequestLog()
        self.kept: dict[str, Any] = {} if kept is None else kept
        self._prefix = prefix

    def __reduce__(self) -> tuple[type[CountingStorage], tuple[Storage, None, str]]:
        """In another process requests go to a log of its own."""
        return CountingStorage, (self.inner, None, self._prefix)

    @property
    def root(self) -> str:
        """Root of the inner storage."""
        return self.inner.root

    def _add(self, kind: RequestKind, path: str, n_bytes: int = 0) -> None:
        self.log.add(kind, join(self._prefix, path), n_bytes)

    def _refused(self, verb: str, path: str) -> None:
        self.log.add(_KINDS[verb], join(self._prefix, path), refused=True)

    def read(self, path: str) -> bytes:
        """See `Storage.read`; one GET, also when the file is not there."""
        try:
            data = self.inner.read(path)
        except BaseException:
            self._add(RequestKind.GET, path)
            raise
        self._add(RequestKind.GET, path, len(data))
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`; one GET, also when the file is not there."""
        try:
            data = self.inner.read_range(path, offset, length)
        except BaseException:
            self._add(RequestKind.GET, path)
            raise
        self._add(RequestKind.GET, path, len(data))
        return data

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`; one PUT."""
        self._add(RequestKind.PUT, path, len(data))
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`; one PUT."""
        self._add(RequestKind.PUT, path, len(data))
        self.inner.put_if_absent(path, data)

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; one PUT a file that gets its name."""
        return _CountedStaged(self.inner.stage(files), lambda file: self._add(RequestKind.PUT, file.path, len(file.data)))

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`; one GET and one PUT."""
        self._add(RequestKind.GET, path, len(expected))
        self._add(RequestKind.PUT, path, len(data))
        return self.inner.put_if_unchanged(path, data, expected)

    def prove_replaceable(self, path: str) -> None:
        """See `Storage.prove_replaceable`; no request of a store that is known."""
        self.inner.prove_replaceable(path)

    def prove_conditions(self, path: str, other: bytes) -> None:
        """See `Storage.prove_conditions`; two PUTs, where it is asked."""
        self.inner.prove_conditions(path, other)

    def guard(self, path: str) -> AbstractContextManager[bool] | None:
        """See `Storage.guard`; no request."""
        return self.inner.guard(path)

    def delete(self, path: str) -> bool:
        """See `Storage.delete`; one DELETE."""
        self._add(RequestKind.DELETE, path)
        return self.inner.delete(path)

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`."""
        return self.inner.deletes_at_once

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`; one DELETE."""
        self._add(RequestKind.DELETE, paths[0])
        return self.inner.delete_some(paths)

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`; one DELETE."""
        self._add(RequestKind.DELETE, path)
        self.inner.delete_folder(path)

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`; one LIST."""
        self._add(RequestKind.LIST, path)
        return self.inner.list(path)

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`; one HEAD."""
        self._add(RequestKind.HEAD, path)
        return self.inner.stat(path)

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`; one HEAD."""
        self._add(RequestKind.HEAD, path)
        return self.inner.is_file(path)

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`; one GET however much is read."""
        self._add(RequestKind.GET, path)
        return self.inner.open_input(path, size)

    def open_output(self, path: str) -> OutputStream:
        """See `Storage.open_output`; one PUT."""
        self._add(RequestKind.PUT, path)
        return self.inner.open_output(path)

    def sub(self, path: str) -> CountingStorage:
        """See `Storage.sub`; shares the log."""
        return CountingStorage(self.inner.sub(path), self.log, join(self._prefix, path), self.kept)


class _CountedStaged:
    def __init__(self, inner: Staged, count: BeforeNamed) -> None:
        self._inner, self._count = inner, count

    def publish(self, paths: Collection[str] | None = None, before: BeforeNamed | None = None) -> None:
        def counted(file: NewFile) -> None:
            if before is not None:
                before(file)
            self._count(file)

        self._inner.publish(paths, counted)

    def close(self) -> None:
        self._inner.close()


def kept_by(storage: object) -> dict[str, Any]:
    """What was read of a table by this storage and may serve whoever looks at the table again by it, by what it is.

    Whoever keeps something here sees to it that it is small, and still what the table holds: that files have the size and the
    age that they had. A storage that counts no requests keeps nothing.
    """
    while storage is not None:
        kept = getattr(storage, "kept", None)
        if kept is not None:
            return kept  # type: ignore[no-any-return]
        storage = getattr(storage, "inner", None)
    return {}
