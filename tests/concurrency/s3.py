"""S3 as tests see it: a file system for fsspec over boto3, whose requests fail by a seed, before or after their effect, or lie.

The package s3fs cannot be installed beside every boto3; what it sends is sent here: If-None-Match for a create, If-Match for a
replacement.
"""

from __future__ import annotations

import io
import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from fsspec import AbstractFileSystem

from hudimeta.storage import CountingStorage
from hudimeta.storage.fsspec_store import FsspecStorage
from hudimeta.storage.retrying import RetryBudget, RetryingStorage

__all__ = ["Faults", "S3FileSystem", "s3_storage"]

BUCKET = "lake"
_SERVER_ERROR = 500


class Faults:
    """Which requests fail: by chance, from a seed.

    Args:
        seed: Of the chance.
        share: Of the requests that fail, each kind of failure alike often.
        repeats: How often the client sends a request again that may or may not have had its effect, as Amazon's clients do.
        stale: Of the lists that are as they were before the last put.
    """

    KINDS = ("500 before", "500 after", "503", "time-out after")

    def __init__(self, seed: int, share: float, repeats: int = 0, stale: float = 0.0) -> None:
        self._random, self._share, self._repeats, self._stale = random.Random(seed), share, repeats, stale
        self._lock = threading.Lock()
        self.struck: Counter[str] = Counter()

    def around(self, name: str, send: Callable[[], Any]) -> Any:
        """Send a request, or fail as S3 and networks do; again after a failure, as the client is made."""
        for _ in range(self._repeats):
            try:
                return self._once(name, send)
            except TimeoutError:
                continue
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != _SERVER_ERROR:
                    raise
        return self._once(name, send)

    def as_listed(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What a list shows: in a stale one the object is missing that was put last."""
        objects = [entry for entry in entries if entry["type"] == "file"]
        with self._lock:
            if not objects or self._random.random() >= self._stale:
                return entries
            self.struck["stale list"] += 1
        newest = max(objects, key=_put_at)
        return [entry for entry in entries if entry is not newest]

    def _once(self, name: str, send: Callable[[], Any]) -> Any:
        with self._lock:
            kind = self._random.choice(self.KINDS) if self._random.random() < self._share else ""
            self.struck[kind] += 1
        if kind == "500 before":
            raise _answer(_SERVER_ERROR, "InternalError", name)
        if kind == "503":
            raise _answer(503, "SlowDown", name)
        result = send()
        if kind == "500 after":
            raise _answer(_SERVER_ERROR, "InternalError", name)
        if kind == "time-out after":
            raise TimeoutError(f"{name}: no answer came")
        return result


def _put_at(entry: dict[str, Any]) -> Any:
    return entry["LastModified"]


def _answer(status: int, code: str, name: str) -> ClientError:
    told = {"Error": {"Code": code, "Message": "injected"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(told, name)  # type: ignore[arg-type]


class S3FileSystem(AbstractFileSystem):  # type: ignore[misc]
    """What `FsspecStorage` asks of a driver; remembers nothing.

    Args:
        url: Of the server.
        faults: Of its requests.
    """

    cachable = False

    def __init__(self, url: str, faults: Faults) -> None:
        super().__init__()
        once = Config(retries={"max_attempts": 1, "mode": "standard"}, connect_timeout=10, read_timeout=30)
        given = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "region_name": "us-east-1"}
        self._s3 = boto3.client("s3", endpoint_url=url, config=once, **given)
        self._faults = faults

    def _ask(self, name: str, path: str, **given: Any) -> Any:
        try:
            return self._faults.around(name, lambda: getattr(self._s3, name)(Bucket=BUCKET, **given))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                raise FileNotFoundError(path) from error
            raise

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """GET."""
        span = {} if start is None or end is None else {"Range": f"bytes={start}-{end - 1}"}
        return bytes(self._ask("get_object", path, Key=path, **span)["Body"].read())

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        """PUT, on condition where one is given."""
        condition = {"IfNoneMatch": "*"} if mode == "create" else kwargs
        try:
            self._ask("put_object", path, Key=path, Body=bytes(value), **condition)
        except ClientError as error:
            if mode == "create" and error.response["Error"]["Code"] == "PreconditionFailed":
                raise FileExistsError(path) from error
            raise OSError(str(error)) from error

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """HEAD; a prefix with something below is a folder."""
        try:
            found = self._ask("head_object", path, Key=path)
        except FileNotFoundError:
            if self._ask("list_objects_v2", path, Prefix=f"{path}/", MaxKeys=1).get("KeyCount"):
                return {"name": path, "size": 0, "type": "directory"}
            raise
        entry = {"name": path, "size": found["ContentLength"], "type": "file"}
        return {**entry, "ETag": found["ETag"], "LastModified": found["LastModified"]}

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """LIST, of one folder."""
        found: list[dict[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            page = self._ask("list_objects_v2", path, Prefix=f"{path.rstrip('/')}/", Delimiter="/", **more)
            found += [{"name": p["Prefix"].rstrip("/"), "size": 0, "type": "directory"} for p in page.get("CommonPrefixes", ())]
            found += [
                {"name": o["Key"], "size": o["Size"], "type": "file", "ETag": o["ETag"], "LastModified": o["LastModified"]}
                for o in page.get("Contents", ())
            ]
            if not page.get("IsTruncated"):
                return self._faults.as_listed(found)
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def rm_file(self, path: str) -> None:
        """DELETE."""
        self._ask("delete_object", path, Key=path)

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        """DELETE of all below."""
        for entry in self.ls(path):
            if entry["type"] == "directory":
                self.rm(entry["name"], recursive=True)
            else:
                self.rm_file(entry["name"])

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing: there are no folders."""

    def open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        """A file in memory: read at once, or written when it is closed."""
        return io.BytesIO(self.cat_file(path)) if mode == "rb" else _Upload(self, path)


class _Upload(io.BytesIO):
    """Bytes that become an object when they are whole; `discard` drops them."""

    def __init__(self, store: S3FileSystem, path: str) -> None:
        super().__init__()
        self._store, self._path, self._dropped = store, path, False

    def discard(self) -> None:
        """Nothing appears."""
        self._dropped = True

    def close(self) -> None:
        """Send the object, once."""
        if not self.closed and not self._dropped:
            self._dropped = True
            self._store.pipe_file(self._path, self.getvalue())
        super().close()


def s3_storage(url: str, table: str, faults: Faults) -> CountingStorage:
    """A table's storage as `open_storage` makes one of a URI, with requests that are repeated at once."""
    budget = RetryBudget(attempts=8, first_pause=0.001, longest_pause=0.01)
    inner = FsspecStorage(S3FileSystem(url, faults), f"{table}", f"s3://{BUCKET}/{table}")
    return CountingStorage(RetryingStorage(inner, budget))
