"""Which folder a statement means, from what Spark hands over as `path`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from hudimeta.errors import ConfigError
from hudimeta.storage import absolute_location

__all__ = ["given_location", "resolve"]

_FILE_SCHEME = re.compile(r"^file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)
_CONNECT_SCRATCH = "userFiles-"
"""Beginning of the folder in which a Spark Connect server lets its Python workers run."""


def given_location(options: Mapping[str, str]) -> str | None:
    """The table's location from options, resolved; None when they name none.

    Raises:
        ConfigError: Several paths, or a path that means nothing here.
    """
    if options.get("paths"):
        raise ConfigError("path", options["paths"], "the folder of one table", "Several paths can only be read.")
    path = options.get("path") or options.get("location")
    return resolve(path) if path else None


def resolve(path: str) -> str:
    """The one spelling of a location: an absolute local path, or a URI.

    Spark hands paths over as they were typed, except that LOCATION gets `file:` in front; neither is percent-encoded.

    Raises:
        ConfigError: A relative path where the current folder is not the user's.
    """
    local = _FILE_SCHEME.sub("", path)
    if local != path and local.startswith("/"):
        return os.path.normpath(local)
    if not os.path.isabs(path) and ":" not in path.split("/", 1)[0]:
        here = os.getcwd()
        # A classic session's workers run in the user's folder, a Connect server's in a scratch folder that is deleted.
        if any(part.startswith(_CONNECT_SCRATCH) for part in here.split(os.sep)):
            raise ConfigError("path", path, "an absolute path or a URI", "Through Spark Connect, write the whole path.")
    return absolute_location(path)
