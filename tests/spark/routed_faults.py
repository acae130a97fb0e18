"""A program for `test_routed_writes.py`: routed writes while Python workers die at random and slow tasks are run twice.

python routed_faults.py FOLDER WRITES
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa


def workers(driver: int) -> list[int]:
    """Python workers of a driver's Spark: forks of a daemon that descends from it.

    Args:
        driver: Number of its process.
    """
    parents: dict[int, int] = {}
    daemons: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status, command = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
        if b"pyspark.daemon" in command:
            daemons.add(int(entry.name))
    return [pid for pid in daemons if parents.get(pid) in daemons and _descends(pid, driver, parents)]


def _descends(pid: int, driver: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == driver:
            return True
    return False


class Killer:
    """Kills a random worker now and then while a write runs.

    Args:
        chance: Seeded.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._over = chance, threading.Event()
        self.kills = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._chance.uniform(0.05, 1.5)):
            found = workers(os.getpid())
            if found:
                try:
                    os.kill(self._chance.choice(found), signal.SIGKILL)
                    self.kills += 1
                except ProcessLookupError:
                    continue


def main(folder: str, writes: int) -> None:
    """Write so often; after each, the table must hold exactly what it should."""
    from pyspark.sql import SparkSession
    from pyspark_hudimeta import HudiTable

    import hudimeta
    from hudimeta.storage import open_storage
    from hudimeta.testing.invariants import check_all

    builder = SparkSession.builder.master("local[2,20]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.speculation", "true").config("spark.speculation.interval", "100ms")
    builder = builder.config("spark.speculation.multiplier", "1.1").config("spark.speculation.quantile", "0.3")
    spark = builder.config("spark.speculation.minTaskRuntime", "1ms").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    schema = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("x", pa.float64())])
    kills = failed = 0
    for number, kind in enumerate(("COPY_ON_WRITE", "MERGE_ON_READ")):
        path = f"{folder}/{kind}"
        hudimeta.Table.create(path, schema, "id", "part", "ts", kind, ["record_index", "column_stats"])
        table, expected = HudiTable(spark, path, {"hudimeta.write.routed.driver.bytes": "0"}), {}
        for round_ in range(writes // 2):
            chance = random.Random(1000 * number + round_)
            first = chance.randrange(300)
            frame = spark.range(first, first + 200, 1, 4).selectExpr(
                "id", "concat('p', id % 3) part", f"{round_ + 1}L ts", f"id * {round_ + 1}.0D x"
            )
            with Killer(chance) as killer:
                try:
                    table.upsert(frame)
                    expected |= {i: float(i * (round_ + 1)) for i in range(first, first + 200)}
                except Exception as error:
                    failed += 1
                    print(f"{kind} {round_}: {str(error)[:200]}", flush=True)
            kills += killer.kills
            found = hudimeta.Table(path).scan(columns=["id", "x"]).to_table()
            assert found.num_rows == len(expected), (kind, round_, found.num_rows, len(expected))
            assert dict(zip(found["id"].to_pylist(), found["x"].to_pylist(), strict=True)) == expected, (kind, round_)
        frame = spark.range(1, 2).selectExpr("id", "'p1' part", "10000L ts", "1.0D x")
        table.upsert(frame)
        check_all(open_storage(path))
    print(f"{writes} writes, {kills} workers killed, {failed} writes failed", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
