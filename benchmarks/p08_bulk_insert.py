"""P8: a new copy-on-write table from lineitem, partitioned by ship year; zstd on every side but one of Hudi's own default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import lineitem, ours, rivals, routed
from benchmarks.case import (
    GZIP,
    HANDED_OVER,
    OURS,
    PLAIN,
    ROUTED,
    ROUTED_ONE,
    SPARK,
    Case,
    Settings,
    faster_than_apache,
    versions_of_apache,
)
from benchmarks.job import Job

WITHOUT_KEYS, WITH_KEYS = ["column_stats"], ["column_stats", "record_index"]


def prepare(settings: Settings) -> None:
    """Make the rows."""
    lineitem.rows_file(settings)


def options(indexes: list[str], codec: str = "zstd") -> dict[str, str]:
    """The same table, in Apache Hudi's words."""
    return {
        "hoodie.table.name": "lineitem",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": lineitem.KEY,
        "hoodie.datasource.write.partitionpath.field": lineitem.PARTITION,
        "hoodie.datasource.write.precombine.field": lineitem.ORDERING,
        "hoodie.metadata.index.column.stats.enable": str("column_stats" in indexes).lower(),
        "hoodie.metadata.record.index.enable": str("record_index" in indexes).lower(),
        "hoodie.parquet.compression.codec": codec,
    }


def _size(path: Path) -> float:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file() and f.suffix != ".crc") / 1e6


def _hudimeta(indexes: list[str]) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        rows = lineitem.rows(job.settings)
        for _ in range(job.rounds):
            with job.folder() as folder:
                with job.timed():
                    ours.bulk_insert(folder / "t", rows, indexes)
                job.note("MB", _size(folder / "t"))
        job.note("rows", rows.num_rows)

    return run


def by_hudi(indexes: list[str], codec: str = "zstd", query: str | None = None) -> Callable[[Job], None]:
    """The same by Apache Hudi; rows of a query if there is one, which finds those of the file under the name `stored`."""

    def run(job: Job) -> None:
        rows = str(lineitem.rows_file(job.settings))
        with rivals.apache_hudi(job) as process:
            for _ in range(job.rounds):
                with job.folder() as folder:
                    asked = {"path": str(folder / "t"), "rows": rows, "options": options(indexes, codec)}
                    job.add(process.call("write", timeout=1200, query=query, **asked)["timings"])
                    job.note("MB", _size(folder / "t"))

    return run


def spark_parquet(query: str | None = None) -> Callable[[Job], None]:
    """What Spark 3.5 needs for the same rows as plain Parquet, partitioned alike."""

    def run(job: Job) -> None:
        rows = str(lineitem.rows_file(job.settings))
        how = {"partition_by": [lineitem.PARTITION], "codec": "zstd", "query": query}
        with rivals.apache_hudi(job) as process:
            for _ in range(job.rounds):
                with job.folder() as folder:
                    done = process.call("write_parquet", timeout=1200, path=str(folder / "t"), rows=rows, **how)
                    job.add(done["timings"])
                    job.note("MB", _size(folder / "t"))

    return run


CASES = [
    Case(
        "P8-stats",
        "bulk insert of 1.5M rows, column statistics",
        {
            OURS: _hudimeta(WITHOUT_KEYS),
            ROUTED: routed.bulk_inserts(WITHOUT_KEYS),
            PLAIN: routed.bulk_inserts(WITHOUT_KEYS, write=routed.saved),
            HANDED_OVER: routed.handed_over(),
            SPARK: spark_parquet(),
            **versions_of_apache(by_hudi(WITHOUT_KEYS)),
            GZIP: by_hudi(WITHOUT_KEYS, "gzip"),
        },
        tuple(goal for side in (OURS, ROUTED, PLAIN) for goal in faster_than_apache(2.5, side=side)),
        rounds=3,
        prepare=prepare,
        not_in_smoke=(PLAIN,),
    ),
    Case(
        "P8-record-index",
        "bulk insert of 1.5M rows, column statistics and record index",
        {
            OURS: _hudimeta(WITH_KEYS),
            ROUTED: routed.bulk_inserts(WITH_KEYS),
            PLAIN: routed.bulk_inserts(WITH_KEYS, write=routed.saved),
            ROUTED_ONE: routed.bulk_inserts(WITH_KEYS, cores=1),
            **versions_of_apache(by_hudi(WITH_KEYS)),
            GZIP: by_hudi(WITH_KEYS, "gzip"),
        },
        tuple(goal for side in (OURS, ROUTED, PLAIN) for goal in faster_than_apache(4, side=side)),
        rounds=3,
        prepare=prepare,
        not_in_smoke=(PLAIN,),
    ),
]
