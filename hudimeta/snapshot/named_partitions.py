"""Which partitions of a table names stand for."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from hudimeta.errors import ConfigError
from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["named_partitions"]


def named_partitions(snapshot: Snapshot, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Partitions that have rows, by their paths.

    Args:
        snapshot: The table.
        names: Paths as folders are named; `*` stands for any text, slashes included, as in Apache Hudi.

    Returns:
        Paths that are there, sorted, and names that stand for none.

    Raises:
        ConfigError: No name at all, or an empty one for a table with partitions.
    """
    wanted = [name.strip().strip("/") for name in names]
    have = sorted(set(snapshot.slices()["partition_path"].unique().to_pylist()))
    if not wanted or ("" in wanted and have not in ([], [""])):
        raise ConfigError("partitions", ",".join(wanted), "paths of partitions", f"The table has {_some(have)}.")
    found: set[str] = set()
    missing = []
    for name in wanted:
        hits = [path for path in have if fnmatch.fnmatchcase(path, _pattern(name))] if "*" in name else {name} & set(have)
        found.update(hits)
        missing += [] if hits else [name]
    return sorted(found), missing


def _pattern(name: str) -> str:
    """Only `*` means something: `[` and `?` are characters of names."""
    return "".join(f"[{c}]" if c in "[?" else c for c in name)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(repr(p) for p in paths[:10]) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "") or "none"
