"""P18: what `attach` costs the statements that are not about hudimeta tables: before it, with it, and after `detach`.

One session and one round after the other, so that the three are measured under the same conditions; each note is the median
of many calls, in milliseconds. `select 1` is analysed and nothing else; a query of Parquet is planned down to its files.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import rivals
from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job

CALLS, LEAST_CALLS = 60, 10
STATES = ("before", "attached", "detached")
MOST_MS = 3.0
"""A round trip to the JVM for the text of the plan, and the look at the first word; `attach` does not do more."""

Act = Callable[[], object]


def _statements(spark: Any, folder: Path) -> Mapping[str, Act]:
    """What a session does that has nothing to do with us."""
    parquet = str(folder / "parquet")
    spark.range(1000).selectExpr("id", "id % 7 AS k").write.parquet(parquet)
    spark.read.parquet(parquet).createOrReplaceTempView("p18_parquet")

    def planned() -> object:
        return spark.sql("SELECT k, count(*) FROM p18_parquet WHERE id > 10 GROUP BY k")._jdf.queryExecution().executedPlan()

    return {
        "select 1": lambda: spark.sql("SELECT 1"),
        "parquet plan": planned,
        "show tables": lambda: spark.sql("SHOW TABLES"),
    }


def _median_ms(act: Act, calls: int) -> float:
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        act()
        times.append(time.perf_counter() - begin)
    return round(1000 * statistics.median(times), 2)


def cost(job: Job) -> None:
    """Measure each statement in each state, `job.rounds` times; the notes are of the last round."""
    import pyspark_hudimeta

    calls = job.settings.scaled(CALLS, LEAST_CALLS)
    with job.folder() as folder, rivals.spark_session(job) as spark:
        statements = _statements(spark, folder)
        for act in statements.values():
            _median_ms(act, calls)  # the JVM compiles what it runs often
        for _ in range(job.rounds):
            with job.timed(descendants=True):
                for state in STATES:
                    if state == "attached":
                        pyspark_hudimeta.attach(spark)
                    elif state == "detached":
                        pyspark_hudimeta.detach(spark)
                    for name, act in statements.items():
                        job.note(f"{name}, {state} (ms)", _median_ms(act, calls))


def _adds_little(name: str, state: str) -> Goal:
    def met(sides: Mapping[str, Measured]) -> bool | None:
        mine = sides[OURS]
        if mine.error:
            return None
        return bool(mine.notes[f"{name}, {state} (ms)"] - mine.notes[f"{name}, before (ms)"] <= MOST_MS)

    return Goal(f"{name}, {state}: at most {MOST_MS:g} ms more", met, only_at_full_scale=True)


GOALS = tuple(_adds_little(name, state) for name in ("select 1", "parquet plan") for state in ("attached", "detached"))

CASES = [Case("P18", "statements that are not ours, beside attach", {OURS: cost}, GOALS, rounds=3)]
