"""P10: reading a copy-on-write table of 1.5 million rows: all of it, one column, one row in a hundred.

Everyone reads the same files: the engine without Spark, Spark through both doors, Spark's own Parquet scan, Apache Hudi. What a
user compares writes its own files, and how these are laid out is half of a narrow scan: so each version of Apache Hudi also
reads a table of the same rows that it wrote itself, with the same codec, partitions and column statistics, and the goals of the
narrow scan are held against that. Beside the plain door's full scan stands what Spark takes for the same rows from a Python
source that decodes nothing (see `floor`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import lineitem, ours
from benchmarks.case import ATTACHED, OWN_TABLES, PLAIN, SPARK, Case, Goal, Settings, faster_than_apache, times_faster
from benchmarks.doors import COLUMN, FULL, NARROW, Query, sides
from benchmarks.written import COW, Written

WITHIN = 0.95
"""Of Spark's speed on the same files, as one measures it."""
OWN = Written(COW, indexes=("column_stats",))


def table(settings: Settings) -> Path:
    """The table, written by hudimeta; kept between runs."""
    path = settings.data / f"{lineitem.rows_file(settings).stem}-table"
    if not path.is_dir():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        ours.bulk_insert(unfinished, lineitem.rows(settings), ["column_stats"])
        unfinished.rename(path)
    return path


def _case(
    name: str, title: str, query: Query, rounds: int, goals: tuple[Goal, ...], not_in_smoke: tuple[str, ...] = ()
) -> Case:
    everyone = sides(table, query, parquet=True, own=OWN)
    engine = (*faster_than_apache(1), *faster_than_apache(1, rivals=OWN_TABLES))
    return Case(f"P10-{name}", f"snapshot scan, {title}", everyone, (*engine, *goals), rounds, table, not_in_smoke)


FEW, MANY = 6, 20
"""Rounds: Java's compiler is at work for some seconds, which is two full scans and ten of one column or of few rows."""
AS_SPARK = times_faster(SPARK, WITHIN, side=ATTACHED)
DOORS = (PLAIN, ATTACHED)
ON_THEIR_FILES = faster_than_apache(3, side=ATTACHED, rivals=OWN_TABLES)
ON_OUR_FILES = faster_than_apache(1, side=ATTACHED)

CASES = [
    _case("full", "all rows and columns", FULL, FEW, (AS_SPARK, *faster_than_apache(0.8, side=PLAIN))),
    _case("column", "one column", COLUMN, MANY, (AS_SPARK,), not_in_smoke=DOORS),
    _case("narrow", "1 % of the rows", NARROW, MANY, (*ON_THEIR_FILES, *ON_OUR_FILES), not_in_smoke=DOORS),
]
