"""Tests by turns: each run takes a part of the large sets and of the slow tests, and each part has its turn after so many days.

Large sets are marked `rotation(PARTS)`. In runs of everything, tests that `tests/data/slow_tests.txt` lists, by measurement, go
by turns of ten days at least, marked or not. All of them are run by `make test-full`. `HUDIMETA_TURN` names a turn by its
number, `all` takes every part.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
ALL = "all"
SECONDS_OF_A_DAY = 86_400
SLOW_TESTS = Path(__file__).with_name("data") / "slow_tests.txt"
"""Made by `tools/slow_tests.py`: a test on each line."""
PARTS_OF_SLOW_TESTS = 10
"""So many days after its turn each has it again: the whole run is to stay within ten minutes of two cores."""
PARTS_OF_INTEROP = 6
WHOLE_RUNS = frozenset({"tests", "tests/interop"})
"""What a run of everything is asked for."""


def _turn() -> int | None:
    asked = os.environ.get("HUDIMETA_TURN", "")
    if asked == ALL:
        return None
    return int(asked) if asked else int(time.time()) // SECONDS_OF_A_DAY


TURN = _turn()
"""The number of this run's turn, by default that of the day; None takes everything."""
os.environ["HUDIMETA_TURN"] = ALL if TURN is None else str(TURN)  # for the other processes of the run


def in_turn(of: Sequence[T], parts: int) -> Sequence[T]:
    """This turn's part of a set that one test goes through."""
    return of if TURN is None else of[TURN % parts :: parts]


def slow_tests() -> frozenset[str]:
    """Names of tests, without parameters, that take half a second or more."""
    lines = SLOW_TESTS.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def is_of_everything(arguments: Sequence[str]) -> bool:
    """Whether a run was asked for no file or folder in particular."""
    return all(argument.rstrip("/") in WHOLE_RUNS for argument in arguments)


def waiting(items: Sequence[pytest.Item], slow: Collection[str] | None = None) -> list[pytest.Item]:
    """Tests that other turns take, of the items as they are written: each turn takes as many of a set.

    Those of writes through the door of Spark are chosen by `tests/write/conftest.py`, and keep out of it.

    Args:
        items: All that were found.
        slow: In a run of everything, names of tests that go by turns of ten days at least, and then those with real Apache Hudi
            go by turns too; None in other runs, where only marked ones do.
    """
    if TURN is None:
        return []
    seen: Counter[str] = Counter()
    left = []
    for item in items:
        call = getattr(item, "callspec", None)
        name = item.nodeid.partition("[")[0]
        parts = _parts(item, name, slow)
        if parts == 1 or (call is not None and call.params.get("door") == "spark"):
            continue
        if (zlib.crc32(name.encode()) + seen[name]) % parts != TURN % parts:
            left.append(item)
        seen[name] += 1
    return left


def _parts(item: pytest.Item, name: str, slow: Collection[str] | None) -> int:
    marker = item.get_closest_marker("rotation")
    own = 1 if marker is None else int(marker.args[0])
    if slow is None:
        return own
    if marker is None and item.get_closest_marker("interop") is not None:
        return PARTS_OF_INTEROP
    return max(own, PARTS_OF_SLOW_TESTS) if name in slow else own


def title_of_turn() -> str:
    """For the head of a run."""
    return "large sets: whole" if TURN is None else f"large sets: HUDIMETA_TURN={TURN}"
