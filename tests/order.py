"""Tests in another order each run, so that none rests on what another left; files stay together for what their tests share.

The head of a run names the order. `HUDIMETA_ORDER=NUMBER` runs that order again, `HUDIMETA_ORDER=written` none at all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

WRITTEN = "written"
ORDERS = 1_000_000

os.environ.setdefault("HUDIMETA_ORDER", str(random.SystemRandom().randrange(ORDERS)))
ORDER = os.environ["HUDIMETA_ORDER"]
"""A number or `written`; the other processes of the run read the same from the environment."""


def in_order(items: Sequence[pytest.Item], order: str = ORDER) -> list[pytest.Item]:
    """The tests with their files, and those of each file, in the order of a number."""
    if order == WRITTEN:
        return list(items)
    dice = random.Random(order)
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    names = list(files)
    dice.shuffle(names)
    for name in names:
        dice.shuffle(files[name])
    return [item for name in names for item in files[name]]


def title_of_order() -> str:
    """For the head of a run."""
    return f"order of tests: HUDIMETA_ORDER={ORDER}"
