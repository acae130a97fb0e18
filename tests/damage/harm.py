"""What happens to a file: bits flip, ends go, bytes are added or zeroed, another file's content takes its place."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

__all__ = ["HARMS", "Harm", "kind_of"]

Files = Mapping[str, bytes]
"""Content of a table's files by path."""
Harm = Callable[[str, Files, Mapping[str, list[bytes]], random.Random], "dict[str, bytes] | None"]
"""Of a path, all files, and what stood at each path earlier: new content by path; None where it cannot be done."""

_KINDS = (
    (r"\.hoodie/hoodie\.properties.*", "hoodie.properties"),
    (r"\.hoodie/metadata/\.hoodie/hoodie\.properties", "metadata hoodie.properties"),
    (r"\.hoodie/timeline/history/manifest_.*", "history manifest"),
    (r"\.hoodie/timeline/history/_version_", "history version"),
    (r"\.hoodie/timeline/history/.*", "history file"),
    (r"\.hoodie/timeline/.*\.(?:delta|replace)?commit", "commit"),
    (r"\.hoodie/timeline/.*\.(?:commit|deltacommit|replacecommit)\..*", "pending commit"),
    (r"\.hoodie/timeline/.*(?:compaction|clustering|logcompaction)\.requested", "service plan"),
    (r"\.hoodie/timeline/.*\.clean(?:\..*)?", "clean"),
    (r"\.hoodie/timeline/.*\.(?:rollback|restore)(?:\..*)?", "rollback"),
    (r"\.hoodie/timeline/.*\.savepoint(?:\..*)?", "savepoint"),
    (r"\.hoodie/timeline/.*", "other instant"),
    (r"\.hoodie/metadata/\.hoodie/timeline/history/.*", "metadata history"),
    (r"\.hoodie/metadata/\.hoodie/(?:timeline/)?.*", "metadata timeline"),
    (r"\.hoodie/metadata/.*\.hoodie_partition_metadata", "metadata partition file"),
    (r"\.hoodie/metadata/.*\.hfile", "metadata base file"),
    (r"\.hoodie/metadata/.*\.log\..*", "metadata log file"),
    (r"\.hoodie/metadata/.*", "other metadata"),
    (r"\.hoodie/\.index_defs/.*", "index definitions"),
    (r"\.hoodie/\.bucket_index/.*", "buckets"),
    (r"\.hoodie/\.schema/.*", "schema history"),
    (r"\.hoodie/\.locks/.*", "lock"),
    (r"\.hoodie/\.heartbeat/.*", "heartbeat"),
    (r"\.hoodie/\.temp/.*", "marker"),
    (r"\.hoodie/archived/.*", "history file"),
    (r"\.hoodie/\.aux/.*", "bootstrap index"),
    (r"\.hoodie/[^/]*", "timeline of version 6"),
    (r"\.hoodie/.*", "other of .hoodie"),
    (r"(?:.*/)?\.hoodie_partition_metadata.*", "partition metadata"),
    (r".*\.cdc", "change file"),
    (r"(?:.*/)?\.[^/]*\.log\.[^/]*", "log file"),
    (r".*\.(?:parquet|orc)", "base file"),
)
_PATTERNS = tuple((re.compile(pattern), kind) for pattern, kind in _KINDS)


def kind_of(path: str) -> str:
    """What sort of file a path is of."""
    return next((kind for pattern, kind in _PATTERNS if pattern.fullmatch(path)), "other")


def _one_bit(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    return _flipped(path, files, dice, 1)


def _some_bits(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    return _flipped(path, files, dice, dice.choice((2, 4, 64)))


def _flipped(path: str, files: Files, dice: random.Random, count: int) -> dict[str, bytes] | None:
    content = bytearray(files[path])
    if not content:
        return None
    for _ in range(count):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return {path: bytes(content)}


def _cut(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    content = files[path]
    if not content:
        return None
    return {path: content[: dice.choice((dice.randrange(len(content)), len(content) - 1, len(content) // 2))]}


def _longer(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    content = files[path]
    more = dice.choice((bytes(dice.randrange(1, 600)), dice.randbytes(dice.randrange(1, 600)), content))
    return {path: content + more}


def _zeroed(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    content = bytearray(files[path])
    if not content:
        return None
    at = dice.randrange(len(content))
    end = min(len(content), at + dice.choice((1, 16, 512, len(content))))
    content[at:end] = bytes(end - at)
    return {path: bytes(content)}


def _emptied(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    return {path: b""}


def _older(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    earlier = past.get(path)
    return {path: dice.choice(earlier)} if earlier else None


def _sibling(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    """Another file of the kind: an older one of the file group, one of another group, another commit."""
    kind = kind_of(path)
    others = [other for other in files if other != path and kind_of(other) == kind]
    return {path: files[dice.choice(others)]} if others else None


def _swapped(path: str, files: Files, past: Mapping[str, list[bytes]], dice: random.Random) -> dict[str, bytes] | None:
    kind = kind_of(path)
    others = [other for other in files if other != path and kind_of(other) == kind]
    if not others:
        return None
    other = dice.choice(others)
    return {path: files[other], other: files[path]}


HARMS: Mapping[str, Harm] = {
    "one bit": _one_bit,
    "some bits": _some_bits,
    "cut": _cut,
    "longer": _longer,
    "zeroed": _zeroed,
    "emptied": _emptied,
    "older": _older,
    "sibling": _sibling,
    "swapped": _swapped,
}
"""Every damage by its name."""
