"""P37: what else is done to tables of delta-rs, beside ours: changes by a condition, compaction of small files, vacuum.

The rows of P25, zstd on both sides, every core, no Spark. A change is of a hundredth of the rows, which lie together by their
order key and are spread over all partitions. An optimisation begins with ten files in each partition; what is removed are the
files that `UPDATES` upserts of random rows replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import beside, lineitem, ours, written
from benchmarks.beside import DELTA, DELTA_DEFAULT
from benchmarks.case import OURS, Case, Settings, Side
from benchmarks.job import Job

ROUNDS, UPDATES, APPENDS = 5, 5, 10
STATISTICS = ["column_stats"]
NOT_CLEANED = {"hoodie.clean.automatic": "false"}
NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0", **NOT_CLEANED}
ONLY_THE_NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
CODECS = {DELTA: "ZSTD", DELTA_DEFAULT: beside.DEFAULT_CODEC}

Make = Callable[[Settings], Path]
Act = Callable[[Job, Path], None]


def _conditions(settings: Settings, count: int) -> list[str]:
    """Each is met by another hundredth of the rows."""
    first, end = lineitem.narrow_span(settings)
    spans = [(first + number * (end - first), end + number * (end - first)) for number in range(count)]
    return [f"l_orderkey >= {low} AND l_orderkey < {high}" for low, high in spans]


def _kept(name: str, make: Callable[[Path, pa.Table], None]) -> Make:
    """Makes a table of lineitem's rows, and keeps it between runs."""

    def made(settings: Settings) -> Path:
        path = settings.data / f"{lineitem.rows_file(settings).stem}-{name}"
        if not path.is_dir():
            unfinished = path.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            make(unfinished, lineitem.rows(settings))
            unfinished.rename(path)
        return path

    return made


def _pieces(rows: pa.Table) -> list[pa.Table]:
    """The rows in as many parts as there are appends."""
    size = -(-len(rows) // APPENDS)
    return [rows.slice(start, size) for start in range(0, len(rows), size)]


def _some(rows: pa.Table, seed: int) -> pa.Table:
    """A hundredth of the rows, at random."""
    chosen = np.random.default_rng(seed).choice(len(rows), len(rows) // 100, replace=False)
    return rows.take(pa.array(np.sort(chosen)))


def _ours_in_pieces(path: Path, rows: pa.Table) -> None:
    ours.create_lineitem(path, rows.schema, STATISTICS)
    for piece in _pieces(rows):
        ours.open_table(path, NO_SMALL_FILES).bulk_insert(piece)


def _delta_in_pieces(path: Path, rows: pa.Table, codec: str) -> None:
    for piece in _pieces(rows):
        beside.delta_load(path, piece, [lineitem.PARTITION], codec)


def _ours_updated(path: Path, rows: pa.Table) -> None:
    ours.bulk_insert(path, rows, STATISTICS)
    for number in range(UPDATES):
        ours.upsert(path, _some(rows, number), NOT_CLEANED)


def _delta_updated(path: Path, rows: pa.Table, codec: str) -> None:
    beside.delta_load(path, rows, [lineitem.PARTITION], codec)
    for number in range(UPDATES):
        beside.delta_merge(path, _some(rows, number), codec)


def _each_condition(
    make: Callable[[Path, pa.Table], None], change: Callable[[Path, str], object], count: Callable[[Path], int]
) -> Side:
    """One table, changed by one condition after the other."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            path = folder / "t"
            make(path, lineitem.rows(job.settings))
            for where in _conditions(job.settings, job.rounds):
                with job.timed():
                    change(path, where)
            job.fact("rows", count(path))

    return run


def _each_copy(make: Make, act: Callable[[Path], object], count: Callable[[Path], int]) -> Side:
    """Copies of one table, one after the other; notes how many data files lie there before and after."""

    def run(job: Job) -> None:
        source = make(job.settings)
        job.note("files before", _files(source))
        for _ in range(job.rounds):
            with job.folder() as folder:
                path = written.copied(source, folder)
                with job.timed():
                    act(path)
                job.note("files after", _files(path))
                job.fact("rows", count(path))

    return run


def _files(path: Path) -> int:
    return sum(not file.relative_to(path).parts[0].startswith((".hoodie", "_delta_log")) for file in path.rglob("*.parquet"))


def _count_delta(path: Path) -> int:
    return beside.count_arrow(beside.delta_uris(path))


def _change_case(name: str, title: str, mine: Callable[[Path, str], object], theirs: Callable[..., object]) -> Case:
    sides = {OURS: _each_condition(partial(ours.bulk_insert, indexes=STATISTICS), mine, ours.count)}
    for who, codec in CODECS.items():
        make = partial(beside.delta_load, partition_by=[lineitem.PARTITION], codec=codec)
        sides[who] = _each_condition(make, partial(theirs, codec=codec), _count_delta)
    return Case(f"P37-{name}", title, sides, (), ROUNDS, lineitem.rows_file, (DELTA_DEFAULT,))


def _service_case(
    name: str,
    title: str,
    make: tuple[Callable[[Path, pa.Table], None], Callable[..., None]],
    mine: Callable[[Path], object],
    theirs: Callable[..., object],
) -> Case:
    tables = {OURS: _kept(name, make[0])}
    sides = {OURS: _each_copy(tables[OURS], mine, ours.count)}
    for who, codec in CODECS.items():
        tables[who] = _kept(f"{name}-{who.replace(' ', '-')}", partial(make[1], codec=codec))
        sides[who] = _each_copy(tables[who], partial(theirs, codec=codec), _count_delta)

    def prepare(settings: Settings) -> None:
        for table in tables.values():
            table(settings)

    return Case(f"P37-{name}", title, sides, (), ROUNDS, prepare, (DELTA_DEFAULT,))


CASES = [
    _change_case("update", "a column of 1 % of the rows, by a condition", ours.update_where, beside.delta_update),
    _change_case("delete", "1 % of the rows deleted, by a condition", ours.delete_where, beside.delta_delete),
    _service_case(
        "optimize",
        "ten files in each partition put together",
        (_ours_in_pieces, _delta_in_pieces),
        ours.cluster,
        beside.delta_optimize,
    ),
    _service_case(
        "vacuum",
        "files that five upserts replaced are removed",
        (_ours_updated, _delta_updated),
        partial(ours.clean, options=ONLY_THE_NEWEST),
        beside.delta_vacuum,
    ),
]
