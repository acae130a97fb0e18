"""Which of Hudi's figures a report holds: gauges by the names of its HoodieMetrics, `ACTION.METRIC`.

What no report here holds is not made up: `totalScanTime`, `totalCreateTime`, `totalCompactedRecordsUpdated`,
`totalLogFilesCompacted`, `totalLogFilesSize`, and latencies of event times. `commitTime` is the instant as a moment of UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timezone
from functools import singledispatch

from hudimeta.commit.report import CommitReport
from hudimeta.services.archival import ArchivalReport
from hudimeta.services.clean import CleanReport
from hudimeta.services.clustering import ClusteringReport
from hudimeta.services.restore import RestoreReport
from hudimeta.services.rollback import RollbackReport
from hudimeta.timeline import parse_instant

__all__ = ["COUNTED", "gauges_of"]

COUNTED = {"compaction": "compaction.compaction.completed.counter"}
"""Counters that grow by one with each report of an action."""


@singledispatch
def gauges_of(report: object, action: str) -> Iterator[tuple[str, float]]:
    """Names and values; nothing of reports that are not known.

    Args:
        report: Of a commit or service.
        action: Hudi's word for it.
    """
    yield from ()


@gauges_of.register
def _(report: CommitReport, action: str) -> Iterator[tuple[str, float]]:
    if report.completion is None:
        return
    added = report.file_groups_added
    yield f"{action}.totalPartitionsWritten", report.partitions
    yield f"{action}.totalFilesInsert", added
    yield f"{action}.totalFilesUpdate", max(0, report.files_written - added)
    yield f"{action}.totalRecordsWritten", report.inserted + report.updated
    yield f"{action}.totalUpdateRecordsWritten", report.updated
    yield f"{action}.totalInsertRecordsWritten", report.inserted
    yield f"{action}.totalRecordsDeleted", report.deleted
    yield f"{action}.totalBytesWritten", report.bytes_written
    yield f"{action}.commitTime", parse_instant(report.instant, timezone.utc)
    yield f"{action}.duration", sum(report.seconds.values()) * 1000
    if "write" in report.seconds:
        yield f"{action}.totalUpsertTime", report.seconds["write"] * 1000
    if report.looked_up:
        took = report.seconds.get("look-up", 0.0) * 1000
        yield "index.lookup.duration", took
        if "record index" in report.index.lower():
            yield "lookup_record_index_time", took
            yield "lookup_record_index_key_count", report.looked_up
            yield "lookup_record_index_key_hit_count", report.found


@gauges_of.register
def _(report: ClusteringReport, action: str) -> Iterator[tuple[str, float]]:
    yield from gauges_of(report.commit, action)


@gauges_of.register
def _(report: CleanReport, action: str) -> Iterator[tuple[str, float]]:
    yield f"{action}.numFilesDeleted", report.deleted


@gauges_of.register
def _(report: RollbackReport, action: str) -> Iterator[tuple[str, float]]:
    yield f"{action}.numFilesDeleted", report.deleted


@gauges_of.register
def _(report: RestoreReport, action: str) -> Iterator[tuple[str, float]]:
    yield f"{action}.numFilesDeleted", report.deleted


@gauges_of.register
def _(report: ArchivalReport, action: str) -> Iterator[tuple[str, float]]:
    yield f"{action}.numInstantsArchived", len(report.plan.instants)
