"""Which log files of a version 6 table hold anything that a moment shows.

There a log file bears the instant of its base file and collects blocks of many commits, so its name does not tell whose it is.
The commits' write stats do: each names the log file that it appended to. Reading needs none of this, because blocks are judged
one by one when they are read; listings of file slices do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from hudimeta.timeline import Timeline

__all__ = ["without_invisible_logs"]


def without_invisible_logs(slices: pa.Table, timeline: Timeline, as_of: str | None) -> pa.Table:
    """A slice listing without the log files that hold only later, unfinished or rolled back blocks.

    Args:
        slices: Columns of `table.slices.slices_schema()`.
        timeline: Of the table; the metadata of all its writes is read.
        as_of: The reader's moment, None for the latest.
    """
    import pyarrow.compute as pc

    from hudimeta.table.slices import slices_schema

    if not pc.any(pc.greater(pc.list_value_length(slices.column("log_files")), 0)).as_py():
        return slices
    timeline.prefetch(timeline.writes)
    seen: set[str] = set()
    later: set[str] = set()
    for instant in timeline.writes:
        stats = timeline.metadata(instant).get("partitionToWriteStats") or {}
        names = {str(s.get("path") or "").rpartition("/")[2] for of_partition in stats.values() for s in of_partition}
        (seen if as_of is None or instant.time <= as_of else later).update(names)
    first = timeline.first_active_write or ""
    rows = slices.to_pylist()
    for row in rows:
        # Writers of a log whose base file is not archived are not archived either: a log that none of them names is dead.
        archived = row["base_instant"] < first
        kept = [
            (name, size)
            for name, size in zip(row["log_files"], row["log_sizes"], strict=True)
            if name in seen or (archived and name not in later)
        ]
        row["log_files"], row["log_sizes"] = [n for n, _ in kept], [s for _, s in kept]
    return pa.Table.from_pylist([row for row in rows if row["base_file"] or row["log_files"]], slices_schema())
