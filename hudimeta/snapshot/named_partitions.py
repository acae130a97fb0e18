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
        names: Paths as folders are named; where none has the very name, blanks and slashes around it do not count, and `*`
            stands for any text, slashes included, as in Apache Hudi.

    Returns:
        Paths that are there, sorted, and names that stand for none.

    Raises:
        ConfigError: No name at all, or an empty one for a table with partitions.
    """
    have = sorted(set(snapshot.slices()["partition_path"].unique().to_pylist()))
    wanted = [name if name in have else name.strip().strip("/") for name in names]
    if not wanted or ("" in wanted and have not in ([], [""])):
        raise ConfigError("partitions", ",".join(wanted), "paths of partitions", f"The table has {_some(have)}.")
    found: set[str] = set()
    missing = []
    for name in wanted:
        exact = {name} & set(have)
        hits = exact or {path for path in have if "*" in name and fnmatch.fnmatchcase(path, _pattern(name))}
        found.update(hits)
        missing += [] if hits else [name]
    return sorted(found), missing


def _pattern(name: str) -> str:
    """Only `*` means something: `[` and `?` are characters of names."""
    return "".join(f"[{c}]" if c in "[?" else c for c in name)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(repr(p) for p in paths[:10]) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "") or "none"
