"""After kill -9 or an error at any request of any operation or service, with every index, the table goes on by itself."""

from __future__ import annotations

import pytest

from tests.crash.killing import Point, survive_all, usual_points
from tests.crash.scenes import LOGS_ALONE, SCENES
from tests.crash.starts import TYPES, Starts
from tests.rotation import in_turn

CASES = [(name, type) for name in SCENES for type in TYPES if name not in LOGS_ALONE or type == "MERGE_ON_READ"]
LEAST_POINTS = 400
PARTS = 8
"""Of the points of an act each run takes one part, by turns; of the acts a third, so that 24 turns take every point of each."""


def points_of(starts: Starts, name: str, type: str) -> list[Point]:
    return usual_points(len(starts.calls(name, type)), CASES.index((name, type)))


@pytest.mark.rotation(3)
@pytest.mark.parametrize(("name", "type"), CASES)
def test_whatever_breaks_the_table_goes_on(starts: Starts, name: str, type: str) -> None:
    home = starts.home / f"copies {name} {type}"
    home.mkdir()
    points = in_turn(points_of(starts, name, type), PARTS)
    survive_all(starts.scene(name, type), points, starts.calls(name, type), home)


@pytest.mark.rotation(3)
def test_so_many_points_are_enough(starts: Starts) -> None:
    """Counted with what the usual runs of all turns take of every operation and service."""
    counts = {case: len(points_of(starts, *case)) for case in CASES}
    print(f"{sum(counts.values())} points in {len(counts)} scenes: {counts}")
    assert min(counts.values()) >= 4, "a savepoint has four"
    assert sum(counts.values()) >= LEAST_POINTS
