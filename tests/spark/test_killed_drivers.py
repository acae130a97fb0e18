"""SIGKILL of Spark's drivers and workers at random moments: the table reads as before or after, and nothing is left over.

A driver is two processes, Python and the JVM, and either may die without the other; its workers outlive it for a while.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.storage import Storage
from hudimeta.testing.builders import simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation
from tests.crash.killing import Scene, check_goes_on
from tests.crash.scenes import SCENES, age_heartbeats
from tests.crash.starts import SHORT, TYPES, Starts, options_of
from tests.elsewhere import only_when
from tests.memory import MEMORY
from tests.spark.drivers import PATIENCE, VICTIMS, Driver, Drivers
from tests.spark.killed_driver import Order

KILLS = int(os.environ.get("HUDIMETA_SPARK_KILLS", "0"))
SEED = int(os.environ.get("CRASH_SEED", str(random.randrange(1 << 30))))
KEPT = os.environ.get("HUDIMETA_SPARK_KEEP")
"""A folder for copies of tables in which something is wrong."""
MOST_TRIES = 4 * KILLS
BETWEEN_LOOKS = 0.001
"""Seconds for which a driver may answer before somebody looks again at its table."""

ROWS = simple_rows(range(6, 18), 5)
NEW = simple_rows(range(20, 26), 5)
FEW = simple_rows([1, 3, 60], 5)
GONE = simple_rows(range(4), 5)


# What is done, and what comes of it


@dataclass(frozen=True)
class Deed:
    """What a driver is told to do to a table.

    Attributes:
        order: All but the places.
        rows: To write.
        expect: What it makes of the model.
        worn: The table has files to clean.
        again: It is told once more after the kill, and gets to its end.
        types: Of tables.
    """

    order: Order
    rows: pa.Table | None = None
    expect: Callable[[ModelTable], None] = lambda model: None
    worn: bool = False
    again: bool = False
    types: tuple[str, ...] = TYPES


def _written(operation: Operation, rows: pa.Table, *, attached: bool, act: str = "write") -> Deed:
    order = Order(act, "", attached, operation=operation.value)
    return Deed(order, rows, lambda model: model.write(operation, rows), again=act == "stream")


def _merged(model: ModelTable) -> None:
    fresh = {row["id"]: row["x"] for row in ROWS.to_pylist()}
    held = {row["id"] for row in model.all_rows()}
    model.change(lambda row: {**row, "x": fresh.get(row["id"], row["x"])})
    model.write(Operation.INSERT, ROWS.filter([key not in held for key in ROWS["id"].to_pylist()]))


def _updated(model: ModelTable) -> None:
    model.change(lambda row: {**row, "x": row["x"] + 1} if row["ts"] == 2 else row)


def _deleted(model: ModelTable) -> None:
    model.change(lambda row: None if row["ts"] == 2 else row)


FRAMES = {
    Operation.UPSERT: ROWS,
    Operation.INSERT: NEW,
    Operation.BULK_INSERT: NEW,
    Operation.DELETE: GONE,
    Operation.INSERT_OVERWRITE: FEW,
}
DEEDS = {
    **{f"plain {o.value}": _written(o, rows, attached=False) for o, rows in FRAMES.items()},
    **{f"attached {o.value}": _written(o, rows, attached=True) for o, rows in FRAMES.items()},
    "stream, plain": _written(Operation.UPSERT, NEW, attached=False, act="stream"),
    "stream, attached": _written(Operation.INSERT, NEW, attached=True, act="stream"),
    "merge": Deed(Order("merge", "", attached=True), ROWS, _merged),
    "update": Deed(Order("update", "", attached=True), None, _updated),
    "delete": Deed(Order("delete", "", attached=True), None, _deleted),
    "HudiTable.upsert": _written(Operation.UPSERT, ROWS, attached=False, act="upsert"),
    "compact": Deed(Order("compact", ""), again=True, types=("MERGE_ON_READ",)),
    "clean": Deed(Order("clean", "", options=SHORT), worn=True, again=True),
    "index": Deed(Order("index", ""), again=True),
}


# Kills


@dataclass
class Moment:
    """When to kill: once so many new names were seen below the table, or after so many seconds.

    Attributes:
        names, seconds: The other one is None.
    """

    names: int | None
    seconds: float | None


def names_below(path: Path) -> set[str]:
    """Every file and folder below one; what goes away meanwhile does not matter."""
    found: set[str] = set()
    left = [str(path)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    found.add(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
        except FileNotFoundError:
            continue
    return found


def struck(driver: Driver, path: Path, moment: Moment, whom: str, chance: random.Random) -> tuple[str | None, int, float]:
    """Wait for the moment and kill; what the driver had answered before (None: it was at work), names seen, seconds.

    Returns:
        The answer is None only if somebody was killed.
    """
    before, seen, began = names_below(path), set[str](), time.monotonic()
    while True:
        heard = driver.answer(BETWEEN_LOOKS)
        took = time.monotonic() - began
        if heard is not None:
            return heard, len(seen), took
        seen |= names_below(path) - before
        due = len(seen) >= moment.names if moment.names is not None else took >= (moment.seconds or 0)
        if due and driver.kill(whom, chance):
            return None, len(seen), took


def scene_of(deed: Deed, type: str, starts: Starts, act: Callable[[Path, Storage], None]) -> Scene:
    table = (starts.worn if deed.worn else starts.young)(type)
    before = table.model.copy()
    before.past = {time: before.past[time] for time in sorted(before.past)[-1:]}
    after = before.copy()
    deed.expect(after)
    return Scene(Path(table.path), act, before, after, age_heartbeats, again=act if deed.again else None)


@pytest.fixture
def starts() -> Iterator[Starts]:
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="drivers", dir=where) as home:
        yield Starts(Path(home), SCENES)


class Campaign:
    """Kills one after the other, of drivers and workers by turns, at any deed.

    Args:
        starts: Tables. home: For all else.
    """

    def __init__(self, starts: Starts, home: Path) -> None:
        self._starts, self._home, self._chance = starts, home, random.Random(SEED)
        self.drivers = Drivers(home)
        self.killed: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._names: dict[tuple[str, str], int] = {}
        self._seconds: dict[tuple[str, str], float] = {}
        self._cases: list[tuple[str, str]] = []

    def _case(self) -> tuple[str, str]:
        """A deed and a type of table; all of them in any order, before any of them again."""
        if not self._cases:
            self._cases = [(name, type) for name, deed in DEEDS.items() for type in deed.types]
            self._chance.shuffle(self._cases)
        return self._cases.pop()

    def _moment(self, case: tuple[str, str]) -> Moment:
        if self._chance.random() < 0.4:
            return Moment(None, self._chance.uniform(0, self._seconds.get(case, 3.0)))
        return Moment(self._chance.randint(0, self._names.get(case, 25)), None)

    def _order(self, deed: Deed, type: str, copy: Path) -> Order:
        order = replace(deed.order, path=str(copy), options={**options_of(type), **deed.order.options})
        if deed.rows is None:
            return order
        rows = self._home / f"{copy.name}.parquet"
        pq.write_table(deed.rows, rows)
        return replace(order, rows=str(rows))

    def strike(self, number: int) -> None:
        """Try to kill somebody, and look at what is left.

        Args:
            number: Of the try.
        """
        case, whom = self._case(), VICTIMS[self.killed.total() % len(VICTIMS)]
        deed, moment, copy = DEEDS[case[0]], self._moment(case), self._starts.home / f"t{number}"
        order = self._order(deed, case[1], copy)
        scene = scene_of(deed, case[1], self._starts, lambda *_: self.drivers.now.do(order))
        scene.fresh(copy)
        self.drivers.now.begin(order)
        answer, names, took = struck(self.drivers.now, copy, moment, whom, self._chance)
        where = f"a kill of the {whom} at {case}, {moment} (CRASH_SEED={SEED}, number {number})"
        if answer is None:
            self.killed[whom] += 1
            answer = self._after_a_kill(whom)
        else:
            self._names[case], self._seconds[case] = names, took
            where = f"no kill at {case} (CRASH_SEED={SEED}, number {number})"
            assert answer == "done", f"{where}: {answer}"
        print(f"{where}: {names} names, {took:.2f} s, {answer!r:.300}", flush=True)
        self._look(replace(scene, before=scene.after) if answer == "done" else scene, copy, where)

    def _after_a_kill(self, whom: str) -> str:
        """What the driver says in the end, if it can; it is gone unless a worker was killed."""
        answer = self.drivers.now.answer(PATIENCE) if whom in ("worker", "jvm") else ""
        assert answer is not None, f"the driver says nothing after a kill of the {whom}"
        if whom != "worker":
            self.drivers.now.kill("python", self._chance)
            self.drivers.now.wait()
            self.drivers.end()
        return answer

    def _look(self, scene: Scene, copy: Path, where: str) -> None:
        try:
            check_goes_on(scene, copy, where, recovering=self._chance.random() < 0.5)
        except AssertionError as error:
            self.wrong.append(str(error))
            print(f"WRONG {error}", flush=True)
            if KEPT:
                shutil.copytree(copy, Path(KEPT) / copy.name, symlinks=True)
        shutil.rmtree(copy)


@only_when(KILLS, "make spark-kills-full: each driver costs seconds to start")
def test_killed_drivers_and_workers_leave_nothing_that_stays(starts: Starts, tmp_path: Path) -> None:
    campaign = Campaign(starts, tmp_path)
    try:
        for number in range(MOST_TRIES):
            if campaign.killed.total() < KILLS:
                campaign.strike(number)
    finally:
        campaign.drivers.end()
    print(f"killed {dict(campaign.killed)}")
    assert not campaign.wrong
    assert campaign.killed.total() == KILLS
