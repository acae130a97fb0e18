"""Which doors the tests of a folder go through: the engine's own verbs, routed writes in this process, and those of Spark."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import pytest

from tests.write.doors import by_tasks
from tests.write.spark_door import by_spark

__all__ = ["FULL", "door", "through_doors"]

DOORS = ("engine", pytest.param("routed", marks=pytest.mark.rotation(2)))
"""In every run and in every second one: each of the two takes as long, and both end in the same modules."""
FULL = "HUDIMETA_DOORS_FULL"
"""Set, everything goes through the door of Spark as well: half an hour in a classic session, and as much through Connect."""


@pytest.fixture(autouse=True)
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The door that the verbs of all tables go through in this test."""
    found: str = getattr(request, "param", "engine")
    if found == "routed":
        by_tasks(monkeypatch, request.module)
    elif found == "spark":
        by_spark(monkeypatch, request.module, request.getfixturevalue("spark"))
    return found


def through_doors(
    metafunc: pytest.Metafunc,
    modules: Collection[str],
    engine_only: Collection[str],
    *,
    smoke: Collection[str] = (),
    not_through_spark: Collection[str] = (),
    full_only: Collection[str] = (),
) -> None:
    """Run a test once for each door, the routed one by turns where the test itself does not go by turns.

    Args:
        metafunc: The test.
        modules: Whose tests do.
        engine_only: Their tests that do not.
        smoke: Tests that go through Spark's door in every run.
        not_through_spark: Tests that never do.
        full_only: Modules that go through other doors than the engine's in full runs only.
    """
    module, test = metafunc.module.__name__.rpartition(".")[2], metafunc.function.__name__
    full = bool(os.environ.get(FULL))
    if module not in modules or test in engine_only or (module in full_only and not full):
        return
    doors: list[Any] = list(DOORS)
    if (full or test in smoke) and test not in not_through_spark:
        doors.append(pytest.param("spark", marks=pytest.mark.spark))
    metafunc.parametrize("door", doors, indirect=True)
