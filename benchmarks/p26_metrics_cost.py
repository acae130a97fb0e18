"""P26: what metrics cost an upsert: the same upserts with `hoodie.metrics.on` and without, by turns, in CPU seconds.

Each turn upserts the same keys into two tables that were made alike; the notes are medians of all turns. Their difference is
that of two noisy figures, so the goal is about what the meter itself takes: the CPU seconds within its calls, as a share.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

import pyarrow as pa

from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job
from hudimeta.metering import Meter, Metric

ROWS, UPSERTED, TURNS = 200_000, 20_000, 15
MOST_PERCENT = 2.0
METRICS = {"hoodie.metrics.on": "true", "hoodie.metrics.lock.enable": "true"}


def _rows(first: int, count: int, ts: int) -> pa.Table:
    numbers = range(first, first + count)
    keys = pa.array([f"k{number:08d}" for number in numbers], pa.string())
    return pa.table({"id": keys, "ts": pa.array([ts] * count, pa.int64()), "x": pa.array(map(float, numbers), pa.float64())})


class _Clocked:
    """A meter whose calls are timed."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self.seconds = meter, 0.0

    def add(self, metric: Metric, amount: float = 1) -> None:
        """See `Meter.add`."""
        begin = time.thread_time()
        self._meter.add(metric, amount)
        self.seconds += time.thread_time() - begin

    def reported(self, report: object, action: str) -> None:
        """See `Meter.told`."""
        begin = time.thread_time()
        self._meter.reported(report, action)
        self.seconds += time.thread_time() - begin


def cost(job: Job) -> None:
    """Upsert by turns, one table with metrics and one without."""
    import hudimeta

    rows, upserted = job.settings.scaled(ROWS, 1_000), job.settings.scaled(UPSERTED, 100)
    with job.folder() as folder:
        tables = {}
        for state, options in (("off", {}), ("on", METRICS)):
            made = hudimeta.Table.create(folder / state, _rows(0, 0, 0).schema, key="id", ordering="ts", options=options)
            made.insert(_rows(0, rows, 0))
            tables[state] = made
        log = tables["on"]._snapshot.storage.log
        log.meter = clocked = _Clocked(log.meter)
        for _ in range(job.rounds):
            spent: dict[str, list[float]] = {"off": [], "on": []}
            with job.timed(descendants=True):
                for turn in range(job.settings.scaled(TURNS, 3)):
                    batch = _rows(turn * 97 % max(1, rows - upserted), upserted, turn + 1)
                    for state in ("off", "on") if turn % 2 else ("on", "off"):
                        begin = time.process_time()
                        tables[state].upsert(batch)
                        spent[state].append(time.process_time() - begin)
            for state, seconds in spent.items():
                job.note(f"an upsert, metrics {state} (CPU ms)", round(1000 * statistics.median(seconds), 2))
            pairs = [100 * (on - off) / off for on, off in zip(spent["on"], spent["off"], strict=True)]
            job.note("what an upsert takes more, by turns (%)", round(statistics.median(pairs), 2))
            job.note("within the meter (% of the upsert)", round(100 * clocked.seconds / sum(spent["on"]), 3))
            clocked.seconds = 0.0


def _adds_little(sides: Mapping[str, Measured]) -> bool | None:
    mine = sides[OURS]
    return None if mine.error else bool(mine.notes["within the meter (% of the upsert)"] <= MOST_PERCENT)


GOALS = (Goal(f"metrics add at most {MOST_PERCENT:g} % of an upsert's CPU time", _adds_little, only_at_full_scale=True),)
CASES = [Case("P26", "an upsert with metrics and without", {OURS: cost}, GOALS, rounds=2)]
