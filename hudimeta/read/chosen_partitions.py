"""The partitions that a read is limited to: those that the option `hudimeta.partitions` names, by path or by pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.config.options import PARTITIONS
from hudimeta.errors import ConfigError
from hudimeta.redaction import hidden
from hudimeta.table.globs import Glob, split_globs

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["chosen_partitions", "in_chosen"]

_SHOWN = 5


def chosen_partitions(snapshot: Snapshot) -> list[str] | None:
    """The partitions that a read is limited to, sorted; None for all of them.

    Args:
        snapshot: The table at its moment, with the options of the read.

    Raises:
        ConfigError: Nothing in the table is what one of the patterns says, or a pattern means nothing.
    """
    text = snapshot.options.get(PARTITIONS)
    if text is None:
        return None
    paths: list[str] = snapshot.partitions().to_pylist()
    found: set[str] = set()
    for pattern in split_globs(text):
        glob = Glob.of(pattern, PARTITIONS.key)
        inside = {path for path in paths if glob.names_partition(path)}
        if not inside and paths:
            some = ", ".join(repr(path) for path in paths[:_SHOWN]) + (" …" if len(paths) > _SHOWN else "")
            allowed = f"the path of a partition of {hidden(snapshot.storage.root)}, or a pattern; there are {some}"
            raise ConfigError(PARTITIONS.key, pattern, allowed)
        found |= inside
    return sorted(found)


def in_chosen(snapshot: Snapshot, rows: pa.Table) -> pa.Table:
    """Those rows whose `partition_path` a read of the snapshot is limited to."""
    import pyarrow.compute as pc

    chosen = chosen_partitions(snapshot)
    if chosen is None:
        return rows
    return rows.filter(pc.is_in(rows.column("partition_path"), value_set=pa.array(chosen, pa.string())))
