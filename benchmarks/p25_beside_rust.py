"""P25: what a Python user would take instead: delta-rs and pyiceberg for writing, PyArrow, DuckDB and Polars for reading.

No Spark and no JVM on any side; the same rows in the same run, on every core. Our tables have Hudi's five columns, a bloom
filter and statistics in each file, which the others have not. The readers get the base files of our table, and the columns that
our side reads; hudi-rs, which does not write, reads our table, and delta-rs one of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import beside, lineitem, ours, p10_snapshot_scan, p13_small_commits, written
from benchmarks.beside import ARROW, DELTA, DELTA_DEFAULT, DUCKDB, ICEBERG, POLARS
from benchmarks.case import OURS, RUST, Case, Goal, Settings, Side, times_faster
from benchmarks.job import Job
from benchmarks.p09_upsert import hundredth
from benchmarks.written import COW, LOCAL, MOR, RANDOM, Written

ROUNDS = 5
SCANS = 12
SMALL_FILES, SMALL_ROWS = 600, 500
SLOW_TO_START = (DELTA_DEFAULT, ICEBERG)
"""Sides that a smoke run leaves out: they take seconds, and say nothing there."""
READERS: Mapping[str, Callable[..., int]] = {
    ARROW: beside.read_arrow,
    DUCKDB: beside.read_duckdb,
    POLARS: beside.read_polars,
}
OWN_READERS: Mapping[str, tuple[Callable[[Settings], Path], Callable[..., int]]] = {
    DELTA: (beside.delta_table, beside.read_delta),
    RUST: (p10_snapshot_scan.table, beside.read_hudi_rs),
}
"""Who finds the files by a table, and which it is."""
COUNTERS: Mapping[str, Callable[..., int]] = {
    ARROW: beside.count_arrow,
    DUCKDB: beside.count_duckdb,
    POLARS: beside.count_polars,
}


SMALL_COMMITS: Mapping[str, Mapping[str, str]] = {
    OURS: {},
    f"{OURS}, to logs": {"hudimeta.log.inserts": "true"},
    f"{OURS}, new files": {"hoodie.parquet.small.file.limit": "0"},
}
"""Where new rows go: into the small file that a partition has, to its log, or into files of their own, as with delta-rs."""


def at_most_times(rival: str, factor: float, metric: str = "warm.cpu", side: str = OURS) -> Goal:
    """Ours is at most `factor` times the rival's."""
    return times_faster(rival, 1 / factor, metric, side, only_at_full_scale=True)


def _size(path: Path) -> float:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) / 1e6


def _loads(load: Callable[[Path, pa.Table], object]) -> Side:
    def run(job: Job) -> None:
        rows = lineitem.rows(job.settings)
        for _ in range(job.rounds):
            with job.folder() as folder:
                with job.timed():
                    load(folder / "t", rows)
                job.note("MB", _size(folder / "t"))

    return run


def _by_delta(path: Path, rows: pa.Table, codec: str = "ZSTD") -> None:
    beside.delta_load(path, rows, [lineitem.PARTITION], codec)


def _load_case(name: str, title: str, indexes: list[str], factor: float) -> Case:
    everyone = {
        OURS: _loads(lambda path, rows: ours.bulk_insert(path, rows, indexes)),
        DELTA: _loads(_by_delta),
        DELTA_DEFAULT: _loads(partial(_by_delta, codec=beside.DEFAULT_CODEC)),
        ICEBERG: _loads(lambda path, rows: beside.Iceberg(path).load(rows, lineitem.PARTITION)),
    }
    return Case(f"P25-{name}", title, everyone, (at_most_times(DELTA, factor),), ROUNDS, lineitem.rows_file, SLOW_TO_START)


def _merges(kind: str, how: str) -> Side:
    def run(job: Job) -> None:
        table = Written(kind)
        with job.folder() as folder:
            path = written.copied(written.by_us(job.settings, table), folder)
            for file in written.batches(job.settings, hundredth(job.settings, table), how, job.rounds):
                batch = pq.read_table(file)
                with job.timed():
                    report = ours.upsert(path, batch)
                job.note("files", report.files_written)
            job.fact("rows", ours.count(path))

    return run


def _delta_merges(how: str, codec: str = "ZSTD") -> Side:
    def run(job: Job) -> None:
        with job.folder() as folder:
            path = folder / "t"
            _by_delta(path, lineitem.rows(job.settings), codec)
            for file in written.batches(job.settings, hundredth(job.settings, Written(COW)), how, job.rounds):
                batch = pq.read_table(file)
                with job.timed():
                    beside.delta_merge(path, batch, codec)
            job.note("files", beside.delta_files(path))
            job.fact("rows", beside.count_arrow(beside.delta_uris(path)))

    return run


def _iceberg_merges(how: str) -> Side:
    """The batches' keys are looked for by the key alone: of two columns it makes a condition for every row."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            table = beside.Iceberg(folder / "t").load(lineitem.rows(job.settings), lineitem.PARTITION)
            for file in written.batches(job.settings, hundredth(job.settings, Written(COW)), how, job.rounds):
                batch = pq.read_table(file)
                with job.timed():
                    table.upsert(batch, join_cols=[lineitem.KEY])
            job.note("files", len(list(table.scan().plan_files())))
            job.fact("rows", table.scan().count())

    return run


def _prepare_merge(settings: Settings, kind: str, how: str) -> None:
    table = Written(kind)
    written.batches(settings, hundredth(settings, table), how, settings.rounds or ROUNDS)
    written.by_us(settings, table)


def _merge_case(name: str, title: str, kind: str, how: str, factor: float) -> Case:
    everyone = {
        OURS: _merges(kind, how),
        DELTA: _delta_merges(how),
        DELTA_DEFAULT: _delta_merges(how, beside.DEFAULT_CODEC),
        ICEBERG: _iceberg_merges(how),
    }
    prepare = partial(_prepare_merge, kind=kind, how=how)
    return Case(f"P25-{name}", title, everyone, (at_most_times(DELTA, factor),), ROUNDS, prepare, SLOW_TO_START)


def small_files(settings: Settings) -> Path:
    """A table of many partitions with one small file each; kept between runs."""
    count = settings.scaled(SMALL_FILES, least=20)
    path = settings.data / f"small-files-{count}"
    if not path.is_dir():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        rows = lineitem.rows(settings).slice(0, count * SMALL_ROWS)
        parts = pa.array([f"{number // SMALL_ROWS:05d}" for number in range(rows.num_rows)])
        at = rows.schema.get_field_index(lineitem.PARTITION)
        ours.bulk_insert(unfinished, rows.set_column(at, lineitem.PARTITION, parts), [])
        unfinished.rename(path)
    return path


def base_files(path: Path) -> list[str]:
    """The base files of a table that all readers read."""
    return sorted(str(f) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts)


def _our_scan(narrow: bool, table: Callable[[Settings], Path] = p10_snapshot_scan.table) -> Side:
    def run(job: Job) -> None:
        path = table(job.settings)
        where = lineitem.narrow(job.settings) if narrow else None
        columns, rows = _columns(job.settings), 0
        for _ in range(job.rounds):
            with job.timed():
                rows = ours.scan(path, where, columns)
        job.fact("rows", rows)

    return run


def _their_scan(read: Callable[..., int], narrow: bool, table: Callable[[Settings], Path] = p10_snapshot_scan.table) -> Side:
    def run(job: Job) -> None:
        files, columns, rows = base_files(table(job.settings)), _columns(job.settings), 0
        span = lineitem.narrow_span(job.settings) if narrow else None
        for _ in range(job.rounds):
            with job.timed():
                rows = read(files, columns, span)
        job.fact("rows", rows)

    return run


def _own_scan(table: Callable[[Settings], Path], read: Callable[..., int], narrow: bool) -> Side:
    def run(job: Job) -> None:
        path, columns, rows = table(job.settings), _columns(job.settings), 0
        span = lineitem.narrow_span(job.settings) if narrow else None
        for _ in range(job.rounds):
            with job.timed():
                rows = read(path, columns, span)
        job.fact("rows", rows)

    return run


def _prepare_scan(settings: Settings) -> None:
    for make, _ in OWN_READERS.values():
        make(settings)


def _columns(settings: Settings) -> list[str]:
    return list(pq.read_schema(lineitem.rows_file(settings)).names)


def _scan_case(name: str, title: str, narrow: bool, goals: tuple[Goal, ...]) -> Case:
    everyone = {
        OURS: _our_scan(narrow),
        **{who: _their_scan(read, narrow) for who, read in READERS.items()},
        **{who: _own_scan(table, read, narrow) for who, (table, read) in OWN_READERS.items()},
    }
    return Case(f"P25-{name}", title, everyone, goals, SCANS, _prepare_scan)


def _small_files_case() -> Case:
    sides = {who: _their_scan(read, False, small_files) for who, read in READERS.items()}
    return Case(
        "P25-small-files", "600 files of 500 rows", {OURS: _our_scan(False, small_files), **sides}, (), ROUNDS, small_files
    )


def _our_count(job: Job) -> None:
    path, rows = p10_snapshot_scan.table(job.settings), 0
    for _ in range(job.rounds):
        with job.timed():
            rows = ours.count(path)
    job.fact("rows", rows)


def _their_count(count: Callable[..., int]) -> Side:
    def run(job: Job) -> None:
        files, rows = base_files(p10_snapshot_scan.table(job.settings)), 0
        for _ in range(job.rounds):
            with job.timed():
                rows = count(files)
        job.fact("rows", rows)

    return run


def _commits(settings: Settings) -> int:
    return settings.scaled(1_000, least=12)


def _batches(settings: Settings, more: int = 0) -> list[pa.Table]:
    """Each with keys of its own: a log holds a key once."""
    return [_fresh(p13_small_commits.rows(number), number) for number in range(1, 1 + _commits(settings) + more)]


def _fresh(rows: pa.Table, number: int) -> pa.Table:
    keys = pa.array([f"{number * rows.num_rows + i:010d}" for i in range(rows.num_rows)])
    return rows.set_column(rows.schema.get_field_index("id"), "id", keys)


def _our_commits(options: Mapping[str, str]) -> Side:
    """One call is all the commits."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            path, batches = folder / "t", _batches(job.settings)
            ours.create(path, batches[0].schema, "id", "part", "ts", MOR, [])
            with job.timed():
                table = ours.open_table(path, options)
                for batch in batches:
                    table.insert(batch)
            job.fact("rows", ours.count(path))

    return run


def _delta_commits(job: Job) -> None:
    with job.folder() as folder:
        path, batches = folder / "t", _batches(job.settings)
        with job.timed():
            for batch in batches:
                beside.delta_load(path, batch, ["part"])
        job.fact("rows", beside.count_arrow(beside.delta_uris(path)))


def _our_plans(kept_open: bool) -> Side:
    """Plans after the commits: of the table opened anew, or of one that is open, after one more commit each."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            path, batches = folder / "t", _batches(job.settings, job.rounds)
            ours.create(path, batches[0].schema, "id", "part", "ts", MOR, [])
            table, before = ours.open_table(path), _commits(job.settings)
            for batch in batches[:before]:
                table.insert(batch)
            reader = ours.open_table(path)
            ours.count_planned(reader, None)
            for batch in batches[before:]:
                table.insert(batch)
                with job.timed():
                    slices = ours.count_planned(reader if kept_open else ours.open_table(path), None)
            job.note("slices", slices)

    return run


def _delta_plans(kept_open: bool) -> Side:
    def run(job: Job) -> None:
        with job.folder() as folder:
            path, batches = folder / "t", _batches(job.settings, job.rounds)
            before = _commits(job.settings)
            for batch in batches[:before]:
                beside.delta_load(path, batch, ["part"])
            reader = beside.delta_open(path)
            for batch in batches[before:]:
                beside.delta_load(path, batch, ["part"])
                with job.timed():
                    files = len(beside.delta_refreshed(reader) if kept_open else beside.delta_uris(path))
            job.note("files", files)

    return run


def _plan_case(name: str, title: str, kept_open: bool) -> Case:
    sides = {OURS: _our_plans(kept_open), DELTA: _delta_plans(kept_open)}
    return Case(f"P25-{name}", title, sides, (at_most_times(DELTA, 0.2),), ROUNDS)


def _commit_cases() -> list[Case]:
    sides = {**{who: _our_commits(options) for who, options in SMALL_COMMITS.items()}, DELTA: _delta_commits}
    goals = tuple(at_most_times(DELTA, 1, side=who) for who in SMALL_COMMITS)
    return [
        Case("P25-commits", "1,000 commits of 100 rows", sides, goals, 1),
        _plan_case("plan", "a plan after them, of the table opened anew", kept_open=False),
        _plan_case("plan-open", "the same of a table that is open, after one more commit", kept_open=True),
    ]


AHEAD = (times_faster(DUCKDB, 1, only_at_full_scale=True), times_faster(POLARS, 1, only_at_full_scale=True))

CASES = [
    _load_case("load", "1.5M rows, column statistics", ["column_stats"], 1.5),
    _load_case("load-record-index", "1.5M rows, column statistics and record index", ["column_stats", "record_index"], 2.5),
    _merge_case("merge-random", "upsert of 1 %, random keys", COW, RANDOM, 1.0),
    _merge_case("merge-local", "upsert of 1 %, keys that lie together", COW, LOCAL, 0.6),
    _merge_case("merge-mor-random", "the same, merge-on-read, random", MOR, RANDOM, 0.5),
    _merge_case("merge-mor-local", "the same, merge-on-read, together", MOR, LOCAL, 0.5),
    _scan_case("scan", "all rows and columns", False, (at_most_times(ARROW, 1.05),)),
    _scan_case("narrow", "1 % of the rows", True, AHEAD),
    _small_files_case(),
    Case(
        "P25-count",
        "count of all rows",
        {OURS: _our_count, **{who: _their_count(count) for who, count in COUNTERS.items()}},
        AHEAD,
        SCANS,
        p10_snapshot_scan.table,
    ),
    *_commit_cases(),
]
