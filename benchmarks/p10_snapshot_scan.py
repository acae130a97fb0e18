"""P10: reading a copy-on-write table of 1.5 million rows: all of it, one column, one row in a hundred.

Everyone reads the same files: the engine without Spark, Spark through both doors, Spark's own Parquet scan, Apache Hudi. Beside
the plain door's full scan stands what Spark takes for the same rows from a Python source that decodes nothing (see `floor`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import lineitem, ours
from benchmarks.case import ATTACHED, PLAIN, SPARK, Case, Goal, Settings, faster_than_apache, times_faster
from benchmarks.doors import COLUMN, FULL, NARROW, Query, sides

WITHIN = 0.95
"""Of Spark's speed on the same files, as one measures it."""


def table(settings: Settings) -> Path:
    """The table, written by hudimeta; kept between runs."""
    path = settings.data / f"{lineitem.rows_file(settings).stem}-table"
    if not path.is_dir():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        ours.bulk_insert(unfinished, lineitem.rows(settings), ["column_stats"])
        unfinished.rename(path)
    return path


def _case(name: str, title: str, query: Query, goals: tuple[Goal, ...], not_in_smoke: tuple[str, ...] = ()) -> Case:
    everyone = sides(table, query, parquet=True)
    engine = faster_than_apache(1)
    return Case(f"P10-{name}", f"snapshot scan, {title}", everyone, (*engine, *goals), 6, table, not_in_smoke)


AS_SPARK = times_faster(SPARK, WITHIN, side=ATTACHED)
DOORS = (PLAIN, ATTACHED)

CASES = [
    _case("full", "all rows and columns", FULL, (AS_SPARK, *faster_than_apache(0.8, side=PLAIN))),
    _case("column", "one column", COLUMN, (AS_SPARK,), not_in_smoke=DOORS),
    _case("narrow", "1 % of the rows", NARROW, (*faster_than_apache(3, side=ATTACHED),), not_in_smoke=DOORS),
]
