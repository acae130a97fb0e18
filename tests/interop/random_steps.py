"""What random turns choose from; a step that stands more often comes more often. The order is part of what a seed means."""

from __future__ import annotations

WIDE_FROM, LATEST_FROM, EXPIRING_FROM, TYPED_FROM, KEYED_FROM, SERVED_FROM = 800, 900, 1000, 1500, 1600, 3000
WRITES = (
    "insert",
    "upsert",
    "upsert",
    "upsert",
    "late",
    "late",
    "delete",
    "delete",
    "marked",
    "bulk_insert",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
    "update",
    "delete where",
    "merge",
    "new column",
    "wider column",
)
SERVICES = (
    "clean",
    "archive",
    "compact",
    "compaction",
    "compaction",
    "cluster",
    "clustering",
    "savepoint",
    "restore",
    "rollback",
    "version",
)
"""`compaction` and `clustering` are planned by one side and run by any."""
MORE_WRITES = (*WRITES, "merge some", "merge some", "merge some", "index", "index", "index", "update", "restore", "savepoint")
MORE_SERVICES = (*SERVICES, "log_compaction", "log_compaction", "restore")
"""Of histories from seed 800 on."""
LATEST_WRITES = (*MORE_WRITES, *("alter",) * 6, "ttl")
LATEST_SERVICES = (*MORE_SERVICES, "ttl", "ttl", "clustering", "cluster", "archive")
"""Of histories from seed 900 on."""
SERVED_WRITES = (*LATEST_WRITES, *("merge delete",) * 3, *("died",) * 5, "no metadata", "type")
SERVED_SERVICES = (*LATEST_SERVICES, *("leave",) * 4, *("run left",) * 4)
"""Of histories from seed 3000 on."""
LOOKING = {*LATEST_WRITES, "carried", "merge delete"} - {"index", "alter", "ttl", "savepoint", "restore"}
"""What looks for partitions that have outlived their time, where that is asked for."""


def choices(seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Writes and services of a history."""
    if seed >= SERVED_FROM:
        return SERVED_WRITES, SERVED_SERVICES
    if seed >= LATEST_FROM:
        return LATEST_WRITES, LATEST_SERVICES
    return (MORE_WRITES, MORE_SERVICES) if seed >= WIDE_FROM else (WRITES, SERVICES)
