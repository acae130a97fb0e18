"""What happened to a table, as a table: one row an instant, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.report import REPORT_KEY, CommitReport
from hudimeta.errors import ConfigError
from hudimeta.formats.plain_arrays import table_of
from hudimeta.timeline import Timeline
from hudimeta.timeline.content import decode_instant
from hudimeta.types import Action, Instant, State

__all__ = ["SCHEMA", "history_of"]

_FIGURES = ("rows_inserted", "rows_updated", "rows_deleted", "files", "bytes")

SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in ("instant", "completion", "action", "state", "operation")],
        *[(name, pa.int64()) for name in _FIGURES],
        ("written_by", pa.string()),
    ]
)
"""`completion` is null of what is not completed; `operation` and the figures are null of what writes no rows, and where the
record of a write is lost; `rows_deleted` also where whole file groups left the table, whose rows nobody counts. `files` and
`bytes` are those of base and log files that it wrote. `written_by` is `hudimeta` for our own commits, and null where a commit
does not say."""


def history_of(timeline: Timeline, limit: int | None = None, *, archived: bool = False) -> pa.Table:
    """The instants, newest first.

    Args:
        timeline: Of a table.
        limit: Most rows; None for all.
        archived: Archived instants too. Of their records only those that come into the rows are decoded.

    Returns:
        Rows of `SCHEMA`. Each completed write costs one request while it is on the active timeline.

    Raises:
        ConfigError: A limit below 0.
    """
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ConfigError("limit", limit, "a number of rows, 0 or more", "Leave it out for all rows.")
    old = _archived_instants(timeline) if archived else []
    both = sorted([*timeline.instants, *old], key=lambda instant: instant.time, reverse=True)[:limit]
    from_archive = {(instant.time, instant.action): instant for instant in old}
    records = _archived_records(timeline, [i for i in both if from_archive.get((i.time, i.action)) is i])
    wrote = [i for i in both if i.is_completed and i.action.writes_data and (i.time, i.action) not in from_archive]
    known = [instant for instant in wrote if instant not in timeline.empty_writes]
    timeline.prefetch(known)
    records |= {(instant.time, instant.action): timeline.metadata(instant) for instant in known}
    return table_of([_row(instant, records.get((instant.time, instant.action))) for instant in both], SCHEMA)


def _archived_instants(timeline: Timeline) -> list[Instant]:
    known = {(instant.time, instant.action) for instant in timeline.instants}
    return [instant for instant in timeline.history.instants() if (instant.time, instant.action) not in known]


def _archived_records(timeline: Timeline, wanted: list[Instant]) -> dict[tuple[str, Action], Mapping[str, Any]]:
    """What the completed files of archived writes said."""
    times = [instant.time for instant in wanted if instant.action.writes_data]
    if not times:
        return {}
    rows = timeline.history.load(("instant_time", "action", "metadata"), since=min(times))
    rows = rows.filter(pc.is_in(rows["instant_time"], pa.array(times, pa.string())))
    return {
        (row["instant_time"], Action(row["action"])): decode_instant(row["metadata"], timeline.history.folder, True)
        for row in rows.to_pylist()
        if row["metadata"] and Action(row["action"]).writes_data
    }


def _row(instant: Instant, record: Mapping[str, Any] | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "instant": instant.time,
        "completion": instant.completion if instant.state is State.COMPLETED else None,
        "action": instant.action.value,
        "state": instant.state.name,
    }
    if record is None:
        return row
    report = CommitReport.of_commit(instant, record)
    deleted = None if report.rows_left_uncounted else report.deleted
    figures = (report.inserted, report.updated, deleted, report.files_written, report.bytes_written)
    author = "hudimeta" if REPORT_KEY in (record.get("extraMetadata") or {}) else None
    row |= {"operation": report.operation, "written_by": author}
    return row | dict(zip(_FIGURES, figures, strict=True))
