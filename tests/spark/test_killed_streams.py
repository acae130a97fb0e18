"""SIGKILL of the driver of a stream from table to table, at random moments: the copy holds every row once.

The batches insert, so that one which was written twice would show.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudimeta
from hudimeta.commit.stream_batches import CHECKPOINT_KEY
from hudimeta.testing.builders import simple_rows
from tests.elsewhere import only_when
from tests.memory import MEMORY
from tests.spark.drivers import PATIENCE, Drivers
from tests.spark.killed_driver import Order

BATCHES = int(os.environ.get("HUDIMETA_STREAM_BATCHES", "0"))
BETWEEN_KILLS = int(os.environ.get("HUDIMETA_STREAM_BETWEEN_KILLS", "15"))
"""Batches that a driver gets done on average before it is killed."""
SEED = int(os.environ.get("CRASH_SEED", str(random.randrange(1 << 30))))
LASTING = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.metadata.enable": "false"}
NEW = {
    **LASTING,
    "hoodie.table.name": "copy",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one."""
    where = Path(MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) / f"streams-{os.getpid()}"
    where.mkdir()
    yield where
    shutil.rmtree(where)


def source(path: Path, commits: int) -> hudimeta.Table:
    """A table of as many commits, a row each."""
    rows = simple_rows([0], 1)
    table = hudimeta.Table.create(path, rows.schema, key="id", ordering="ts", options=LASTING)
    for number in range(commits):
        table.bulk_insert(simple_rows([number], 1))
    return table


def ids(path: Path) -> Counter[str]:
    return Counter(hudimeta.Table(path).scan(columns=["id"]).to_table()["id"].to_pylist())


def batches(path: Path) -> list[int]:
    """The numbers of the batches that the commits say they hold, in the order of the commits."""
    timeline = hudimeta.Table(path).timeline
    entries = (timeline.metadata(i)["extraMetadata"].get(CHECKPOINT_KEY) for i in timeline.writes)
    return [int(next(iter(json.loads(entry).values()))) for entry in entries if entry]


def done(checkpoint: Path) -> int:
    """Batches that the checkpoint knows to have ended."""
    ended = checkpoint / "commits"
    return sum(name.isdigit() for name in os.listdir(ended)) if ended.is_dir() else 0


@only_when(BATCHES, "make streams-full: the driver starts a dozen times")
@pytest.mark.parametrize("attached", [False, True], ids=["plain", "attached"])
def test_a_copy_by_killed_drivers_holds_every_row_once(home: Path, tmp_path: Path, attached: bool) -> None:
    print(f"CRASH_SEED={SEED}")
    chance, kills, began = random.Random(SEED), 0, time.monotonic()
    source(home / "from", BATCHES)
    order = Order("copy", str(home / "to"), attached, NEW, str(home / "from"), "insert")
    drivers, checkpoint = Drivers(tmp_path), Path(order.path + ".checkpoint")
    try:
        while True:
            ends = done(checkpoint) + chance.randint(1, 2 * BETWEEN_KILLS)
            drivers.now.begin(order)
            answer = None
            while answer is None and done(checkpoint) < ends:
                answer = drivers.now.answer(0.01)
            if answer is None:
                answer = drivers.now.answer(chance.uniform(0, 2))
            if answer is not None:
                assert answer == "done", answer
                break
            whom = chance.choice(("python", "jvm", "both"))
            assert drivers.now.kill(whom, chance)
            if whom == "jvm":
                drivers.now.answer(PATIENCE)
            drivers.now.kill("python", chance)
            drivers.now.wait()
            kills += 1
            print(f"killed {whom} after {done(checkpoint)} batches, {time.monotonic() - began:.0f} s", flush=True)
            drivers.end()
    finally:
        drivers.end()
    print(f"{len(batches(home / 'to'))} batches, {kills} kills, {time.monotonic() - began:.0f} s")
    assert ids(home / "to") == ids(home / "from")
    assert batches(home / "to") == list(range(BATCHES))
