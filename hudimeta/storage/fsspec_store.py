"""Storage on an object store, through fsspec.

Create-if-absent is the store's own conditional write (`mode="create"`: If-None-Match on S3, the like elsewhere). A store whose
driver lacks it is refused at the first such call: check-then-write would let two writers both win.

Drivers remember the folders that they listed, and answer from that what a file is and whether it is there. Others write here
as well, so nothing of the kind may be remembered. Whatever a driver raises becomes a StorageError: several raise exceptions of
their own, which are no OSError, and callers must tell a failed request from everything else.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from hudimeta.errors import AlreadyExists, ConfigError, NotFound, StorageError, Throttled, UnsupportedFeature
from hudimeta.redaction import hidden
from hudimeta.storage.drivers import (
    StoreDriver,
    driver_of,
    is_crossed,
    is_refused_condition,
    is_unknown_condition,
)
from hudimeta.storage.fsspec_files import FsspecInput, FsspecOutput, errors_told
from hudimeta.storage.inside import inside
from hudimeta.storage.protocol import FileInfo, OutputStream, join
from hudimeta.storage.staged import HeldFiles, NewFile, Staged

__all__ = ["FsspecStorage"]

_SMALL_BYTES, _MOST_TAGS = 4096, 16
"""Of files that may be replaced soon: a lock's, and others of a table."""


class FsspecStorage:
    """A prefix of an object store.

    Args:
        file_system: An fsspec file system.
        prefix: Bucket and key prefix as that file system names them.
        root: The URI that users see.
    """

    def __init__(self, file_system: Any, prefix: str, root: str) -> None:
        self._prefix, self._root = prefix.rstrip("/"), root.rstrip("/")
        self._take(file_system)

    def _take(self, file_system: Any) -> None:
        self._file_system, self._ways, self._process = file_system, driver_of(file_system), os.getpid()
        self._tags: dict[str, tuple[bytes, str]] = {}
        _forget_listings(file_system)

    @property
    def _fs(self) -> Any:
        """The file system. A forked process makes one of its own: the old one waits for a thread that only its parent has."""
        if self._process != os.getpid():
            make, given = self._file_system.__reduce__()
            self._take(make(*given))
        return self._file_system

    @property
    def _driver(self) -> StoreDriver:
        _ = self._fs
        return self._ways

    def __reduce__(self) -> tuple[type[FsspecStorage], tuple[Any, str, str]]:
        """Made anew where it is sent to: the driver there is another one, which remembers listings until it is told not to."""
        return type(self), (self._fs, self._prefix, self._root)

    @classmethod
    def open(cls, uri: str, options: Mapping[str, str]) -> FsspecStorage:
        """Open a URI such as `s3://bucket/table`.

        Raises:
            ConfigError: fsspec, or the package for the scheme, is not installed.
            StorageError: The store refuses, or wants options that are not given.
        """
        scheme = uri.partition(":")[0]
        try:
            from fsspec.core import url_to_fs

            with errors_told(hidden(uri), (ImportError, ValueError)):
                file_system, prefix = url_to_fs(uri, **options)
        except ImportError as error:
            raise ConfigError(
                "path", uri, "a local path, or a URI whose store is installed", f"Install the store for {scheme!r}: {error}"
            ) from error
        except ValueError as error:
            hint = f"Correct the scheme, or install the package that speaks it ({error})."
            raise ConfigError("path", uri, "a local path or a URI that fsspec knows", hint) from error
        return cls(file_system, prefix, uri)

    @property
    def root(self) -> str:
        """The URI of the folder."""
        return self._root

    def __repr__(self) -> str:
        return f"FsspecStorage({hidden(self._root)!r})"

    def _at(self, path: str) -> str:
        return f"{self._prefix}/{inside(path)}" if path else self._prefix

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        with errors_told(path):
            data, tag = self._driver.read(self._at(path))
        if tag and len(data) <= _SMALL_BYTES:
            self._remember(path, data, tag)
        return data

    def _remember(self, path: str, data: bytes, tag: str) -> None:
        """Know the content of a small file by its tag, for who replaces it next."""
        if len(self._tags) >= _MOST_TAGS:
            self._tags.clear()
        self._tags[path] = data, tag

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`."""
        with errors_told(path):
            if offset < 0:
                size = int(self._fs.size(self._at(path)))
                offset = max(0, size + offset)
            return bytes(self._fs.cat_file(self._at(path), start=offset, end=offset + length))

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        with errors_told(path), self._into_bucket(path):
            self._make_parent(path)
            self._fs.pipe_file(self._at(path), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`. Raises UnsupportedFeature where the store has no conditional write."""
        with errors_told(path), self._into_bucket(path):
            self._make_parent(path)
            try:
                self._fs.pipe_file(self._at(path), data, mode="create")
            except (FileExistsError, FileNotFoundError):
                raise
            except (TypeError, NotImplementedError) as error:
                raise self._without_create() from error
            except OSError as error:
                if is_unknown_condition(error):
                    raise self._without_create() from error
                if is_crossed(error):
                    raise Throttled(path, 1) from error
                if is_refused_condition(error):  # drivers take it for what it is only where the store names the condition
                    raise AlreadyExists(path) from error
                raise

    def _without_create(self) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"writing to {type(self._fs).__name__} without a conditional create",
            "Install a newer version of the store's fsspec package, or use a store that has conditional writes.",
        )

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; each file is put by itself."""
        return HeldFiles(self, files)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`. Raises UnsupportedFeature where the store has no conditional replace."""
        known, tag = self._tags.pop(path, None), None
        if known is not None and known[0] == expected:
            tag = self._replaced(path, data, known[1])
        if tag is None:  # nothing is known of it, or it was replaced since, perhaps by the same
            with errors_told(path):
                stored = self._driver.tag(self._at(path))
            if self.read(path) != expected:
                return False
            if stored is None:
                raise self._without_condition()
            tag = self._replaced(path, data, stored)
        if tag:
            self._remember(path, data, tag)
        return tag is not None

    def prove_replaceable(self, path: str) -> None:
        """See `Storage.prove_replaceable`."""
        if self._driver.tells_tags:
            return
        with contextlib.suppress(NotFound), errors_told(path):
            if self._driver.tag(self._at(path)) is None:
                raise self._without_condition()

    def prove_conditions(self, path: str, other: bytes) -> None:
        """See `Storage.prove_conditions`. Nothing is replaced where files have no tags: `prove_replaceable` refuses that."""
        done = "creates a file that is there"
        try:
            self.put_if_absent(path, other)
        except AlreadyExists:
            done = "replaces a file that holds something else"
            with errors_told(path):
                if not self._driver.tells_tags and self._driver.tag(self._at(path)) is None:
                    return
            if self._replaced(path, other, self._driver.no_tag) is None:
                return
        raise UnsupportedFeature(
            f"writing to a store that passes over the conditions of requests: it {done}",
            "Two writers would overwrite one another there. Choose a store that has conditional writes; this one can be read.",
        )

    def _without_condition(self) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"replacing a file of {type(self._fs).__name__} on condition",
            "Tables there can be read; write them where the store replaces files on condition, as S3 does.",
        )

    def _replaced(self, path: str, data: bytes, tag: str) -> str | None:
        with errors_told(path):
            try:
                return self._driver.replace(self._at(path), data, tag)
            except (OSError, NotImplementedError) as error:
                if is_unknown_condition(error):
                    raise self._without_condition() from error
                raise

    def guard(self, path: str) -> AbstractContextManager[bool] | None:
        """See `Storage.guard`: object stores know nothing of this machine's processes."""
        return None

    @contextlib.contextmanager
    def _into_bucket(self, path: str) -> Iterator[None]:
        """What is not found when a file is put is no file. Raises StorageError."""
        try:
            yield
        except FileNotFoundError as error:
            raise StorageError(path, f"{hidden(self._root)} is in no bucket or container that is there") from error

    def _make_parent(self, path: str) -> None:
        if not self._driver.has_folders:
            return
        parent = self._at(path).rpartition("/")[0]
        if parent:
            self._fs.makedirs(parent, exist_ok=True)

    def delete(self, path: str) -> bool:
        """See `Storage.delete`. On most object stores the answer is True also when nothing was there."""
        try:
            with errors_told(path):
                self._fs.rm_file(self._at(path))
        except NotFound:
            return False
        return True

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`."""
        return self._driver.deletes_at_once

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`. What the store leaves of them is deleted one by one."""
        places = {self._at(path): path for path in paths}
        with errors_told(paths[0]):
            left = self._driver.delete_some(list(places))
        gone = {places[place] for place in left if not self.delete(places[place])}
        return [path for path in paths if path not in gone]

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        with contextlib.suppress(NotFound), errors_told(path):
            self._driver.delete_folder(self._at(path))

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        try:
            with errors_told(path):
                entries = self._fs.ls(self._at(path), detail=True, refresh=True)
        except NotFound:
            return []
        infos = (self._info(path, entry) for entry in entries)
        return sorted((i for i in infos if i is not None), key=lambda info: info.path)

    def _info(self, folder: str, entry: Mapping[str, Any]) -> FileInfo | None:
        name = str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]
        if str(entry["name"]).rstrip("/") == self._at(folder).rstrip("/"):
            return None  # Some stores list the folder's own marker object.
        is_folder = entry["type"] == "directory"
        return FileInfo(join(folder, name), 0 if is_folder else int(entry["size"]), _modified_ms(entry), is_folder)

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`."""
        try:
            with errors_told(path):
                entry = self._fs.info(self._at(path))
        except NotFound:
            return None
        is_folder = entry["type"] == "directory"
        return FileInfo(path, 0 if is_folder else int(entry["size"]), _modified_ms(entry), is_folder)

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`."""
        with errors_told(path):
            return self._driver.is_file(self._at(path))

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`."""
        import pyarrow as pa

        with errors_told(path):
            return pa.PythonFile(FsspecInput(self._driver.open(self._at(path), size), path), mode="r")

    def open_output(self, path: str) -> OutputStream:
        """See `Storage.open_output`."""
        with errors_told(path):
            self._make_parent(path)
            return FsspecOutput(self._fs.open(self._at(path), "wb"), path)

    def sub(self, path: str) -> FsspecStorage:
        """See `Storage.sub`."""
        return FsspecStorage(self._fs, self._at(path), f"{self._root}/{path}")


def _forget_listings(file_system: Any) -> None:
    """Keep a driver, which fsspec shares within the process, from answering out of listings that it made before."""
    cache = getattr(file_system, "dircache", None)
    # Not every driver has one; of an unknown kind nothing is assumed.
    if cache is not None and hasattr(cache, "use_listings_cache"):
        cache.use_listings_cache = False
        cache.clear()


def _modified_ms(entry: Mapping[str, Any]) -> int:
    for key in ("LastModified", "mtime", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, dt.datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, (int, float)):
            return int(value * 1000)
    return 0
