"""Large sets of tests by turns: each run takes a part of them, and each part has its turn after so many days.

What a set holds in all is run by `make test-full`. `HUDIMETA_TURN` names a turn by its number, `all` takes every part.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")
ALL = "all"
SECONDS_OF_A_DAY = 86_400


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


def waiting(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Tests marked `rotation(of)` that other turns take, of the items as they are written: each turn takes as many of a set.

    Those through the door of Spark are chosen by `tests/write/conftest.py`, and keep out of it.
    """
    if TURN is None:
        return []
    seen: Counter[str] = Counter()
    left = []
    for item in items:
        marker = item.get_closest_marker("rotation")
        call = getattr(item, "callspec", None)
        if marker is None or (call is not None and call.params.get("door") == "spark"):
            continue
        (parts,) = marker.args
        name = item.nodeid.partition("[")[0]
        if (zlib.crc32(name.encode()) + seen[name]) % parts != TURN % parts:
            left.append(item)
        seen[name] += 1
    return left


def title_of_turn() -> str:
    """For the head of a run."""
    return "large sets: whole" if TURN is None else f"large sets: HUDIMETA_TURN={TURN}"
