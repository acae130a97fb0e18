"""From a path or URI to a storage."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from hudimeta.errors import ConfigError
from hudimeta.storage.local import LocalStorage
from hudimeta.storage.protocol import Storage
from hudimeta.types import is_text

__all__ = ["absolute_location", "open_storage"]

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.\-]*):(.*)$", re.DOTALL)
_ODD_SCHEME = re.compile(r"^[^/]*://")
_STORE_OPTION = "hudimeta.storage."


def absolute_location(location: str | os.PathLike[str]) -> str:
    """The one spelling of a table's location: an absolute local path, or a URI of an object store.

    `file:/x`, `file:///x`, `local:/x` and `/x` are the same place. A relative path is taken from the current folder,
    one that begins with `~/` from the user's own.

    Raises:
        ConfigError: The location is empty, no path, a `file` URI that names another host, or a URI without `//` or a scheme: it
            would be a folder with an odd name where a store was meant.
    """
    if not isinstance(location, (str, os.PathLike)):
        raise ConfigError("path", location, "text or a pathlib.Path", "Give the path of the table.")
    text = os.fspath(location)
    if not text.strip():
        raise ConfigError("path", text, "the table's folder", "Give the path of the table.")
    if "\0" in text or not is_text(text):
        raise ConfigError("path", text, "a path without NUL and halves of surrogate pairs", "Give the path of the table.")
    match = _SCHEME.match(text)
    if match is None:
        if _ODD_SCHEME.match(text):
            raise ConfigError(
                "path", text, "a local path, or a URI", "Correct the scheme: it begins with a letter, as s3:// does."
            )
        return os.path.abspath(os.path.expanduser(text) if text == "~" or text.startswith("~/") else text)
    scheme, rest = match.group(1).lower(), match.group(2)
    if scheme not in ("file", "local"):
        if not rest.startswith(("//", ":")):
            hint = f"Write {scheme}://… for a store, ./{text} for a folder of that name."
            raise ConfigError("path", text, "a local path, or a URI such as s3://bucket/table", hint)
        return f"{scheme}:{rest}".rstrip("/")
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise ConfigError("path", text, "a file URI without a host", "Write file:///folder or /folder.")
        rest = "/" + path
    if not rest.startswith("/"):
        raise ConfigError("path", text, "an absolute path after file:", "Write file:///folder or /folder.")
    return os.path.normpath(unquote(rest))


def open_storage(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """The storage of a folder, local or in an object store (through fsspec).

    Args:
        location: Path or URI, see `absolute_location`.
        options: Table options; those that begin with `hudimeta.storage.` are handed to the store without that prefix
            (credentials, endpoint, region).

    Raises:
        ConfigError: The scheme needs a package that is not installed; the text names it.
    """
    where = absolute_location(location)
    if where.startswith("/"):
        return LocalStorage(where)
    from hudimeta.storage.fsspec_store import FsspecStorage
    from hudimeta.storage.retrying import RetryingStorage

    store_options = {k[len(_STORE_OPTION) :]: v for k, v in (options or {}).items() if k.startswith(_STORE_OPTION)}
    return RetryingStorage(FsspecStorage.open(where, store_options))
