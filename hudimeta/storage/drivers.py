"""What the fsspec drivers of known object stores do beyond what all drivers have in common.

fsspec asks a store more than is needed: whether a bucket is there before each upload (and makes one that is not, so that a slip
of the name makes a bucket), how large an object is before it is read whole, and whether a file that is not there is a folder.
And it knows conditions of a creation, not of a replacement. So each driver that is known has a few lines here; others are asked
as fsspec has it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hudimeta.config import HudiWarning
from hudimeta.storage.ranged import RangedInput

__all__ = ["StoreDriver", "driver_of", "is_crossed", "is_refused_condition", "is_throttled", "is_unknown_condition"]


class StoreDriver(Protocol):
    """One store's ways; paths are those of its fsspec file system, and it raises what that raises."""

    deletes_at_once: int
    """How many files one request deletes."""
    tells_tags: bool
    """Whether it is known that files have tags; else one has to be asked for."""
    no_tag: str
    """As tags look, and none of a file."""

    @property
    def has_folders(self) -> bool:
        """Whether a file needs its folder to be there."""

    def read(self, path: str) -> tuple[bytes, str | None]:
        """A whole file, and its tag where the answer tells it. Raises FileNotFoundError."""

    def open(self, path: str, size: int) -> Any:
        """A file to read in places. Of known size, if it is not 0; a driver may ask for it all the same."""

    def is_file(self, path: str) -> bool:
        """Whether there is a file of that name."""

    def tag(self, path: str) -> str | None:
        """What a file's content is known by at the store; None where that tells none. Raises FileNotFoundError."""

    def replace(self, path: str, data: bytes, tag: str) -> str | None:
        """Replace a file that has this tag; None when it has another one, or is gone.

        Returns:
            Its new tag; "" where the answer does not tell it.
        """

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """Delete up to `deletes_at_once` files by one request; those that the store says it did not delete."""

    def delete_folder(self, path: str) -> None:
        """Delete all below a folder. May raise FileNotFoundError when nothing is there."""


class _AnyStore:
    """What fsspec has for all; with the words of S3 for conditions."""

    has_folders = True
    deletes_at_once = 1
    tells_tags = False
    no_tag = '"00000000000000000000000000000000"'

    def __init__(self, file_system: Any) -> None:
        self._fs = file_system

    def read(self, path: str) -> tuple[bytes, str | None]:
        return bytes(self._fs.cat_file(path)), None

    def open(self, path: str, size: int) -> Any:
        return self._fs.open(path, "rb")

    def is_file(self, path: str) -> bool:
        try:
            return bool(self._fs.info(path)["type"] != "directory")
        except FileNotFoundError:
            return False

    def tag(self, path: str) -> str | None:
        found = self._fs.info(path).get("ETag")
        return None if found is None else str(found)

    def replace(self, path: str, data: bytes, tag: str) -> str | None:
        try:
            answer = self._fs.pipe_file(path, data, IfMatch=tag)
        except OSError as error:
            if is_refused_condition(error):
                return None
            raise
        return str(answer.get("ETag", "")) if isinstance(answer, Mapping) else ""

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        return list(paths)

    def delete_folder(self, path: str) -> None:
        self._fs.rm(path, recursive=True)


class _ObjectStore(_AnyStore):
    """A store whose files are read by one request a range, and lie in no folders."""

    has_folders = False
    tells_tags = True

    def open(self, path: str, size: int) -> Any:
        def fetch(start: int, end: int) -> bytes:
            return bytes(self._fs.cat_file(path, start=start, end=end))

        return RangedInput(fetch, size or int(self._fs.size(path)))


class _S3(_ObjectStore):
    """s3fs. Where it deletes many files itself, it does not tell of those that the store left."""

    deletes_at_once = 1000

    def __init__(self, file_system: Any) -> None:
        super().__init__(file_system)
        # Newer drivers ask for the size first, to read a large object in several parts.
        known = inspect.signature(file_system._cat_file).parameters
        self._in_one = {"max_concurrency": 1} if "max_concurrency" in known else {}

    def read(self, path: str) -> tuple[bytes, str | None]:
        from aiohttp import ClientError
        from botocore.exceptions import BotoCoreError
        from fsspec.asyn import sync

        bucket, key, _ = self._fs.split_path(path)
        answer = self._fs.call_s3("get_object", Bucket=bucket, Key=key)
        try:
            return bytes(sync(self._fs.loop, answer["Body"].read)), answer.get("ETag")
        except (ClientError, BotoCoreError, TimeoutError):
            # The body broke off: the driver asks again, as often as it is set to.
            return bytes(self._fs.cat_file(path, **self._in_one)), None
        finally:
            answer["Body"].close()

    def is_file(self, path: str) -> bool:
        bucket, key, _ = self._fs.split_path(path)
        try:
            self._fs.call_s3("head_object", self._fs.kwargs, Bucket=bucket, Key=key)
        except FileNotFoundError:
            return False
        return True

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        if self.deletes_at_once == 1:
            return list(paths)
        bucket = self._fs.split_path(paths[0])[0]
        keys = [self._fs.split_path(path)[1] for path in paths]
        asked = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        try:
            answer = self._fs.call_s3("delete_objects", self._fs.kwargs, Bucket=bucket, Delete=asked)
        except (OSError, NotImplementedError) as error:
            if is_throttled(error):
                raise
            # Stores that speak S3 need not know the request. Whatever else it is, single requests say it.
            warnings.warn(
                f"the store does not delete many files by one request, single ones now: {error}", HudiWarning, stacklevel=2
            )
            self.deletes_at_once = 1
            return list(paths)
        left = {error.get("Key") for error in answer.get("Errors") or ()}
        return [path for path, key in zip(paths, keys, strict=True) if key in left]

    def delete_folder(self, path: str) -> None:
        bucket, key, _ = self._fs.split_path(path)
        after: dict[str, str] = {}
        while True:
            page = self._fs.call_s3("list_objects_v2", self._fs.kwargs, Bucket=bucket, Prefix=f"{key}/" if key else "", **after)
            found = [str(entry["Key"]) for entry in page.get("Contents") or ()]
            for left in self.delete_some([f"{bucket}/{name}" for name in found]) if found else ():
                self._fs.rm_file(left)
            if not page.get("IsTruncated"):
                return
            after = {"StartAfter": found[-1]}


class _Google(_ObjectStore):
    """gcsfs. What its client knows an object by is the number of its generation."""

    no_tag = "1"

    def _object(self, path: str) -> Mapping[str, Any]:
        bucket, key, _ = self._fs.split_path(path)
        found: Mapping[str, Any] = self._fs.call("GET", "b/{}/o/{}", bucket, key, json_out=True)
        return found

    def is_file(self, path: str) -> bool:
        try:
            self._object(path)
        except FileNotFoundError:
            return False
        return True

    def tag(self, path: str) -> str | None:
        return str(self._object(path)["generation"])

    def replace(self, path: str, data: bytes, tag: str) -> str | None:
        bucket, key, _ = self._fs.split_path(path)
        where = self._fs.base.replace("/storage/v1/", "/upload/storage/v1/") + "b/{}/o"
        asked = {"uploadType": "media", "name": key, "ifGenerationMatch": tag}
        try:
            self._fs.call("POST", where, bucket, data=data, **asked)
        except (FileExistsError, FileNotFoundError):  # so gcsfs translates a refused condition
            return None
        return ""


class _Azure(_ObjectStore):
    """adlfs."""

    no_tag = '"0x0"'

    def is_file(self, path: str) -> bool:
        from fsspec.asyn import sync

        container, blob, _ = self._fs.split_path(path)

        async def exists() -> bool:
            async with self._fs.service_client.get_blob_client(container, blob) as client:
                return bool(await client.exists())

        return bool(sync(self._fs.loop, exists))

    def tag(self, path: str) -> str | None:
        found = self._fs.info(path).get("etag")
        return None if found is None else str(found)

    def replace(self, path: str, data: bytes, tag: str) -> str | None:
        from azure.core import MatchConditions
        from azure.core.exceptions import HttpResponseError

        try:
            self._fs.pipe_file(path, data, etag=tag, match_condition=MatchConditions.IfNotModified)
        except HttpResponseError as error:
            if is_refused_condition(error):
                return None
            raise
        return ""


_KNOWN: Mapping[str, type[_AnyStore]] = {
    **dict.fromkeys(("s3", "s3a"), _S3),
    **dict.fromkeys(("gs", "gcs"), _Google),
    **dict.fromkeys(("abfs", "abfss", "az"), _Azure),
}


def driver_of(file_system: Any) -> StoreDriver:
    """The ways of an fsspec file system's store."""
    named = file_system.protocol
    names = (named,) if isinstance(named, str) else tuple(named)
    return next((_KNOWN[name] for name in names if name in _KNOWN), _AnyStore)(file_system)


_REFUSED = ("PreconditionFailed", "ConditionalRequestConflict", "412")
"""Codes of a store's answer to a conditional request that came too late; the second one: others were writing just then."""
_REFUSED_STATUS = (409, 412)


def is_refused_condition(error: BaseException | None) -> bool:
    """True when a store refused a request because of its condition.

    Its client's own error says so by code or by HTTP status. What an fsspec driver makes of that error has a text, which
    changes from version to version, and the client's error as its cause.
    """
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return status in _REFUSED_STATUS or str(response.get("Error", {}).get("Code")) in _REFUSED
        if any(getattr(error, name, None) == _REFUSED_STATUS[1] for name in ("code", "status", "status_code")):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_crossed(error: BaseException | None) -> bool:
    """True when a store did not do a conditional request because others were at the file just then: it wants to be asked again.

    Only S3 has that; others say by the same HTTP status that the file is there.
    """
    return _code_of(error) == "ConditionalRequestConflict"


def is_unknown_condition(error: BaseException | None) -> bool:
    """True when a store says that it does not have the condition of a request, or not this request."""
    return isinstance(error, NotImplementedError) or _code_of(error) in ("NotImplemented", "501")


def _code_of(error: BaseException | None) -> str:
    """What a store's client tells as the code of its answer; "" where none is told."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):
            return str(response.get("Error", {}).get("Code"))
        error = error.__cause__ or error.__context__
    return ""


_THROTTLED = (
    *("SlowDown", "Throttling", "ThrottlingException", "Throttled", "TooManyRequests", "TooManyRequestsException"),
    *("RequestThrottled", "RequestLimitExceeded", "ServiceUnavailable", "ServerBusy", "429", "503"),
)
"""Codes of a store's answer that ask for fewer requests."""
_THROTTLED_STATUS = (429, 503)


def is_throttled(error: BaseException | None) -> bool:
    """True when a store asked for fewer requests; see `is_refused_condition` for where its client says so."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return status in _THROTTLED_STATUS or str(response.get("Error", {}).get("Code")) in _THROTTLED
        said = (getattr(error, name, None) for name in ("code", "status", "status_code", "error_code"))
        if any(value in _THROTTLED_STATUS or str(value) in _THROTTLED for value in said):
            return True
        error = error.__cause__ or error.__context__
    return False
