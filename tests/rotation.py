"""Large sets of tests by turns: each run takes a part of them, and each part has its turn after so many days.

What a set holds in all is run by `make test-full`. `HUDIMETA_TURN` names a turn by its number, `all` takes every part.
"""

from __future__ import annotations

import os
import time
import zlib
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


def has_its_turn(item: pytest.Item) -> bool:
    """False for a test marked `rotation(of)` that another turn takes; its name decides which."""
    marker = item.get_closest_marker("rotation")
    if marker is None or TURN is None:
        return True
    (parts,) = marker.args
    return bool(zlib.crc32(item.nodeid.encode()) % parts == TURN % parts)


def title_of_turn() -> str:
    """For the head of a run."""
    return "large sets: whole" if TURN is None else f"large sets: HUDIMETA_TURN={TURN}"
