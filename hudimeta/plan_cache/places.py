"""Where plans are kept: in a folder of this machine, or with the table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b

from hudimeta.config import Options
from hudimeta.config.options import PLAN_CACHE, PLAN_CACHE_BYTES, PLAN_CACHE_DIR
from hudimeta.storage import CountingStorage, LocalStorage, absolute_location, join

__all__ = ["PLANS_PATH", "limit_bytes", "place_of"]

PLANS_PATH = ".hoodie/.aux/hudimeta/plans"
_NAME_BYTES = 16


def place_of(storage: CountingStorage, options: Options) -> CountingStorage | str:
    """The folder for the plans of one table, or why there is none.

    Args:
        storage: Rooted at the table.
        options: Of the table.
    """
    if options.get(PLAN_CACHE) == "local":
        name = blake2b(storage.root.encode(), digest_size=_NAME_BYTES).hexdigest()
        return CountingStorage(LocalStorage(join(_folder(options), name), durable=False))
    if not storage.root.startswith("/"):
        return f"{PLAN_CACHE.key}=table needs a table on a mounted disk, whose files can be mapped"
    inner = LocalStorage(join(storage.root, PLANS_PATH), durable=False)
    return CountingStorage(inner, storage.log, PLANS_PATH)


def _folder(options: Options) -> str:
    given = options.get(PLAN_CACHE_DIR)
    if given is not None:
        return given
    usual = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return absolute_location(os.path.join(usual, "hudimeta", "plans"))


def limit_bytes(options: Options) -> None:
    """Remove the oldest plans of all tables in a local folder until the rest takes no more than it may."""
    if options.get(PLAN_CACHE) != "local":
        return
    root, most = LocalStorage(_folder(options)), options.get(PLAN_CACHE_BYTES)
    kept = sorted(_plans(root), reverse=True)
    total = 0
    for _, path, size in kept:
        total += size
        if total > most:
            for info in root.list(path.rpartition("/")[0]):
                if info.path.startswith(f"{path}."):
                    root.delete(info.path)


def _plans(root: LocalStorage) -> Iterator[tuple[int, str, int]]:
    """For each plan when it was written last, its path without ending, and its bytes."""
    for folder in root.list(""):
        found: dict[str, tuple[int, int]] = {}
        for info in root.list(folder.path) if folder.is_folder else ():
            path = f"{folder.path}/{info.name.partition('.')[0]}"
            modified, size = found.get(path, (0, 0))
            found[path] = max(modified, info.modified_ms), size + info.size
        yield from ((modified, path, size) for path, (modified, size) in found.items())
