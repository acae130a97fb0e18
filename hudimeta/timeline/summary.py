"""A timeline as a table: one row an instant, with what the commits say they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hudimeta.timeline.active import Timeline
from hudimeta.timeline.content import decode_instant
from hudimeta.types import Action, Instant, State

__all__ = ["SCHEMA", "summarise"]

_TOTALS = (
    "total_bytes_written",
    "total_files_updated",
    "total_partitions_written",
    "total_records_written",
    "total_updated_records_written",
    "total_write_errors",
)

SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in ("timestamp", "action", "state", "completion_time", "file_name")],
        *[(name, pa.int64()) for name in _TOTALS],
    ]
)
"""The columns of Hudi's `hudi_query_timeline`. `timestamp` is the requested time; `file_name` is null of archived instants."""

_NO_COMMIT = "null"
"""What the write statistics of a new file name as the commit before."""


def summarise(timeline: Timeline, archived: bool = False) -> pa.Table:
    """The instants, oldest first.

    Args:
        timeline: Of a table.
        archived: Put the archived instants, which are read whole for it, in front.

    Returns:
        Rows of `SCHEMA`; the totals are null for actions that write no rows and for instants that are not completed. Each
        completed write on the active timeline costs one request.
    """
    timeline.prefetch(instant for instant in timeline.writes if instant.size != 0)
    rows = [*(_archived(timeline) if archived else ()), *(_active(timeline, instant) for instant in timeline.instants)]
    return pa.table([pa.array(list(column), f.type) for column, f in zip(_columns(rows), SCHEMA, strict=True)], schema=SCHEMA)


def _columns(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)


def _active(timeline: Timeline, instant: Instant) -> tuple[Any, ...]:
    wrote = instant.is_completed and instant.action.writes_data
    return _row(instant, timeline.metadata(instant) if wrote else None)


def _archived(timeline: Timeline) -> Iterator[tuple[Any, ...]]:
    known = {(instant.time, instant.action) for instant in timeline.instants}
    archive = timeline.history.load(("instant_time", "completion_time", "action", "metadata"))
    for batch in archive.to_batches(max_chunksize=256):
        for time, completion, word, metadata in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            action = Action(word)
            if (time, action) not in known:
                said = decode_instant(metadata or b"", timeline.history.folder, True) if action.writes_data else None
                yield _row(Instant(time, action, State.COMPLETED, completion), said)


def _row(instant: Instant, metadata: Mapping[str, Any] | None) -> tuple[Any, ...]:
    who = (instant.time, instant.action.value, instant.state.name, instant.completion, instant.file_name or None)
    return (*who, *(_totals(metadata) if metadata is not None else (None,) * len(_TOTALS)))


def _totals(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """In the order of `_TOTALS`."""
    parts = metadata.get("partitionToWriteStats") or {}
    stats = [stat for part in parts.values() for stat in part]

    def total(name: str) -> int:
        return sum(stat.get(name) or 0 for stat in stats)

    updated = sum((stat.get("prevCommit") or _NO_COMMIT) != _NO_COMMIT for stat in stats)
    return (
        total("totalWriteBytes"), updated, len(parts), total("numWrites"), total("numUpdateWrites"), total("totalWriteErrors")
    )  # fmt: skip
