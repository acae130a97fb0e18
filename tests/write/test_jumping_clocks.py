"""Clocks that stand still or go back: every instant is new, on both timelines, and completion times stay in order."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.services import clean
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.inspection import Inspection
from hudimeta.testing.invariants import check_all, timeline_is_in_order
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows

START = 1_780_000_000_000
BUSY = {
    "hoodie.metadata.compact.max.delta.commits": "1",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}


class Clock:
    """Says what it is made to say."""

    def __init__(self, step: Callable[[], int]) -> None:
        self._now, self._step = START, step

    def now_ms(self) -> int:
        self._now += self._step()
        return self._now


def still() -> int:
    return 0


def jumping(seed: int) -> Callable[[], int]:
    chance = random.Random(seed)
    return lambda: chance.choice([0, 0, 1, 2, 5, 40, -3, -20, -2_000, 1_000])


@pytest.mark.parametrize("step", [still, jumping(1)], ids=["still", "jumping"])
def test_no_instant_is_given_twice(tmp_path: Path, step: Callable[[], int]) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **BUSY})
    clock, options = Clock(step), OPTIONS.read({**SIMPLE_OPTIONS, **BUSY})
    for ts in range(1, 19):
        # Each write is a process of its own: it knows of earlier times only what the timeline shows.
        rows = simple_rows([ts % 7], ts)
        report = write_rows(WriteSession(table.storage, options, clock), Operation.UPSERT, rows)
        assert report.attempts == 1
        table.model.write(Operation.UPSERT, rows)
        if not ts % 9:
            clean.clean(WriteSession(table.storage, options, clock))
        timeline_is_in_order(Inspection(table.storage))
    check_all(table.storage)
    table.check()


def test_a_metadata_table_is_built_after_all_that_the_table_holds(tmp_path: Path) -> None:
    """By a clock that is weeks behind: else what it was built from would pass for later commits that it lacks."""
    without = {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"}
    table = ModelledTable(str(tmp_path / "t"), without)
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    late = Clock(still)
    late._now -= 4 * 365 * 86_400_000
    rows = simple_rows([2, 9], 2)
    write_rows(WriteSession(table.storage, OPTIONS.read(SIMPLE_OPTIONS), late), Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    check_all(table.storage)
    table.check()
