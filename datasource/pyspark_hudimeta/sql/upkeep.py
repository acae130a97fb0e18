"""OPTIMIZE, VACUUM, RESTORE and ANALYZE: a clustering, a clean, a restore, and what a Hudi table has for statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException

from hudimeta.config.options import CLEAN_HOURS, CLEAN_POLICY
from hudimeta.errors import ConfigError
from hudimeta.keys import PartitionLayout
from hudimeta.reports import Reports
from hudimeta.services import clean
from hudimeta.sql import Analyze, Optimize, Restore, Vacuum
from hudimeta.timeline import normalise_instant
from pyspark_hudimeta.hudi_table import HudiTable
from pyspark_hudimeta.routed.assignment import column_of
from pyspark_hudimeta.sql.moments import instant_named
from pyspark_hudimeta.sql.partitions import given_partition
from pyspark_hudimeta.sql.session import opened, options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["analyze", "optimize", "restore", "vacuum"]


def optimize(session: SqlSession, entry: Entry, statement: Optimize) -> DataFrame:
    """Cluster the table, or the partitions that a condition over partition columns keeps.

    Raises:
        HudiError: Columns that are not there or, in a condition, are of no partition; a table that cannot be clustered.
        AnalysisException, of Spark: What else is wrong with the condition.
    """
    table = opened(session, entry)
    columns = [column_of(entry.columns, name) for name in statement.columns]
    partitions = _kept_partitions(session, table, statement.where) if statement.where is not None else []
    rows = []
    if statement.where is None or partitions:
        made = table.services.cluster(columns, "zorder" if len(columns) > 1 else None, partitions)
        assert isinstance(made, Reports)  # mypy
        rows = [(r.instant, r.files_before, r.files_after, r.bytes_before, r.bytes_after) for r in made]
    kinds = "instant string, files_removed bigint, files_added bigint, bytes_removed bigint, bytes_added bigint"
    return session.rows(rows, kinds)


def _kept_partitions(session: SqlSession, table: HudiTable, where: str) -> list[str]:
    fields = table.properties.partition_fields
    if not fields:
        raise ConfigError("OPTIMIZE … WHERE", where, "nothing, without partitions", "Leave WHERE out.")
    paths = sorted(set(table.snapshot().slices()["partition_path"].unique().to_pylist()))
    values = PartitionLayout.from_properties(table.properties).values(pa.array(paths, pa.string()), table.schema)
    path = "_hudimeta_path"
    frame = session.spark.createDataFrame(values.append_column(path, pa.array(paths, pa.string())))
    try:
        kept = frame.where(where)
        _ = kept.schema  # through Connect nothing is analysed before
    except AnalysisException as error:
        if "UNRESOLVED_COLUMN" not in str(error):
            raise
        allowed = f"a condition over partition columns: {', '.join(fields)}"
        raise ConfigError("OPTIMIZE … WHERE", where, allowed) from error
    return [row[path] for row in kept.collect()]


def vacuum(session: SqlSession, entry: Entry, statement: Vacuum) -> DataFrame:
    """Delete the files that no retained moment needs, by the table's own policy or of moments older than some hours."""
    options = options_of(session, entry)
    if statement.hours is not None:
        options |= {CLEAN_POLICY.key: "KEEP_LATEST_BY_HOURS", CLEAN_HOURS.key: str(statement.hours)}
    report = HudiTable(session.spark, entry.location, options).services.clean(dry_run=statement.dry_run)
    if isinstance(report, clean.CleanPlan):
        return session.rows([(_joined(entry.location, *file),) for file in _files(report)], "path string")
    return session.rows([(entry.location, report.instant, report.deleted)], "path string, instant string, files_deleted bigint")


def _files(plan: clean.CleanPlan) -> list[tuple[str, str]]:
    return [(partition, name) for partition, names in sorted(plan.files.items()) for name in sorted(names)]


def _joined(location: str, partition: str, name: str) -> str:
    return "/".join(part for part in (location.rstrip("/"), partition, name) if part)


def restore(session: SqlSession, entry: Entry, statement: Restore) -> DataFrame:
    """Take the table back to a write, or to how it was at a time.

    Raises:
        ConfigError: There was no write by then.
        UndoError: The table cannot be restored to there; nothing was changed.
    """
    table = opened(session, entry)
    named = instant_named(session, entry, statement.moment, by_version=statement.by_version)
    writes = [instant.time for instant in table.timeline.writes]
    moment = named if named in writes else normalise_instant(named, table.properties.zone)
    point = max((time for time in writes if time <= moment), default=None)
    if point is None or (statement.by_version and point != moment):
        hint = "DESCRIBE HISTORY shows the instants of writes."
        raise ConfigError("RESTORE", named, "a write of the timeline, or a time after one", hint)
    report = table.services.restore(point)
    gone = report.plan
    row = (report.instant, point, len(gone.instants), gone.rows, report.deleted, gone.bytes)
    kinds = "instant string, restored_to string, instants_undone bigint, rows_undone bigint, files_deleted bigint, "
    return session.rows([row], f"{kinds}bytes_deleted bigint")


def analyze(session: SqlSession, entry: Entry, statement: Analyze) -> DataFrame:
    """Nothing is computed: every commit keeps the statistics of its files, and each scan reads them.

    Raises:
        ConfigError: Columns that are not there, or that are no partition columns.
    """
    for name in statement.columns:
        column_of(entry.columns, name)
    given_partition(entry, opened(session, entry).properties.partition_fields, statement.partition)
    return session.nothing()
