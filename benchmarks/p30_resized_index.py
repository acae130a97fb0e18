"""P30: a record index gets more file groups from the index alone, beside dropping it and building it anew from the rows.

Both are one table's: the index goes from 8 to 32 file groups, then is dropped and created with 32.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import synthetic_keys
from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job

ROWS, PARTITIONS, FEW, MANY = 10_000_000, 7, 8, 32
PIECE = 1_000_000
SHARE = 5
_CPU, _WALL = "resizing (CPU s)", "resizing (wall s)"
_AGAIN_CPU, _AGAIN_WALL = "building anew (CPU s)", "building anew (wall s)"


def _rows(first: int, count: int) -> pa.Table:
    number = np.arange(first, first + count)
    chance = np.random.default_rng(first)
    wide = {f"x{at}": chance.random(count) for at in range(6)}
    parts = pa.array([f"p{n}" for n in range(PARTITIONS)]).take(pa.array(number % PARTITIONS))
    return pa.table({"id": synthetic_keys.keys(first, count), "part": parts, **wide})


def _made(path: Path, rows: int) -> None:
    import hudimeta

    least = {"hoodie.metadata.record.index.min.filegroup.count": str(FEW)}
    table = hudimeta.Table.create(path, _rows(0, 1).schema, key="id", partition_by="part", options=least)
    for first in range(0, rows, PIECE):
        table.bulk_insert(_rows(first, min(PIECE, rows - first)))
    table.indexes.create(type="record_index", options=least)


def cost(job: Job) -> None:
    """Resize, and build anew."""
    import hudimeta

    rows = job.settings.scaled(ROWS, 2_000)
    for _ in range(job.rounds):
        with job.folder() as folder:
            _made(folder / "t", rows)
            table = hudimeta.Table(folder / "t")
            begin, cpu = time.perf_counter(), time.process_time()
            with job.timed(descendants=True):
                table.indexes.resize(MANY)
            job.note(_WALL, round(time.perf_counter() - begin, 2))
            job.note(_CPU, round(time.process_time() - cpu, 2))
            begin, cpu = time.perf_counter(), time.process_time()
            table.indexes.drop("record_index")
            many = {"hoodie.metadata.record.index.min.filegroup.count": str(MANY)}
            table.indexes.create(type="record_index", options=many)
            job.note(_AGAIN_WALL, round(time.perf_counter() - begin, 2))
            job.note(_AGAIN_CPU, round(time.process_time() - cpu, 2))


def _is_quicker(sides: Mapping[str, Measured]) -> bool | None:
    mine = sides[OURS]
    return None if mine.error else bool(SHARE * mine.notes[_CPU] <= mine.notes[_AGAIN_CPU])


GOALS = (Goal(f"at most 1/{SHARE} of the CPU time of building it anew", _is_quicker, only_at_full_scale=True),)
CASES = [Case("P30", f"a record index of 10M keys from {FEW} to {MANY} file groups", {OURS: cost}, GOALS, rounds=1)]
