"""P11: reading a merge-on-read table of 1.5 million rows of which a tenth was updated: all of it, one column, the count.

The table is written by hudimeta, once with its own log blocks (Parquet) and once with those of Apache Hudi (Avro); everyone
reads the same files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import lineitem, ours
from benchmarks.case import ATTACHED, PLAIN, Case, Settings, faster_than_apache
from benchmarks.doors import COLUMN, COUNT, FULL, Query, sides

UPDATED = 0.1


def table(settings: Settings, blocks: str = "parquet") -> Path:
    """The table with log blocks of one kind; kept between runs."""
    path = settings.data / f"{lineitem.rows_file(settings).stem}-mor-{blocks}"
    if not path.is_dir():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        rows = lineitem.rows(settings)
        ours.bulk_insert(unfinished, rows, ["column_stats"], "MERGE_ON_READ")
        ours.upsert(unfinished, changed(rows), {"hoodie.logfile.data.block.format": blocks})
        unfinished.rename(path)
    return path


def changed(rows: pa.Table) -> pa.Table:
    """A tenth of the rows at random, with another comment."""
    chosen = np.random.default_rng(3).choice(len(rows), round(len(rows) * UPDATED), replace=False)
    batch = rows.take(pa.array(np.sort(chosen)))
    at = batch.schema.get_field_index("l_comment")
    return batch.set_column(at, "l_comment", pa.repeat(pa.scalar("changed"), len(batch)))


def avro(settings: Settings) -> Path:
    """The table with Avro blocks."""
    return table(settings, "avro")


def _case(name: str, title: str, query: Query, factor: float, made: Callable[[Settings], Path], smoke: bool = False) -> Case:
    goals = [goal for side in ("hudimeta", PLAIN, ATTACHED) for goal in faster_than_apache(factor, side=side)]
    everyone = sides(made, query, parquet=False)
    return Case(f"P11-{name}", title, everyone, tuple(goals), 4, made, () if smoke else (PLAIN, ATTACHED))


CASES = [
    _case("full", "merge-on-read snapshot, 10 % updated, all rows and columns", FULL, 2.5, table, smoke=True),
    _case("column", "merge-on-read snapshot, 10 % updated, one column", COLUMN, 3, table),
    _case("count", "merge-on-read snapshot, 10 % updated, count", COUNT, 3, table),
    _case("avro", "the same with Avro log blocks, all rows and columns", FULL, 2.5, avro),
]
