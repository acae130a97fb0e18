"""Both sides take random turns on tables of random kinds; see `random_turns.py` and `random_tables.py`.

A run plays a short history, another one each day, of those that were played before. HUDIMETA_RANDOM_TABLES_SEED names the first
of others, HUDIMETA_RANDOM_TABLES how many, HUDIMETA_RANDOM_TABLES_STEPS their length. With HUDIMETA_RANDOM_TABLES_ALONE Apache
Hudi does all that it can, which tells its own faults from ours.

Histories from seed 800 on also make and drop indexes, merge some columns, compact logs, ask for changes since archived commits,
and have tables without record keys and more null and odd partition values. From seed 1500 on they also order rows by other
types, write keys several times at once, and lay out files in more ways (`random_typed.py`). From seed 3000 on writes die,
compactions stay planned, a MERGE deletes, and the metadata table and the type of the table change (`random_served.py`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interop.apache_hudi import ApacheHudi, Installation
from tests.interop.random_turns import RandomTurns
from tests.interop.sides import FULL
from tests.rotation import in_turn

FOUND = Installation.find()
RELEASE = "" if FOUND is None else FOUND.release
PLAYED = (403, 404, 405, 406, 407, 500, 501, 502, 808)
"""Seeds that both releases have played to the end."""
ALONE = True if os.environ.get("HUDIMETA_RANDOM_TABLES_ALONE") else None
STEPS = int(os.environ.get("HUDIMETA_RANDOM_TABLES_STEPS", "8" if FULL else "4"))


def seeds() -> Sequence[int]:
    """Which histories this run plays."""
    first, count = os.environ.get("HUDIMETA_RANDOM_TABLES_SEED"), int(os.environ.get("HUDIMETA_RANDOM_TABLES", "1"))
    if first is not None:
        return range(int(first), int(first) + count)
    return PLAYED if FULL else in_turn(PLAYED, len(PLAYED))


@pytest.mark.timeout(7200)
def test_random_tables(hudi: ApacheHudi, tmp_path: Path) -> None:
    for seed in seeds():
        print(f"HUDIMETA_RANDOM_TABLES_SEED={seed}, {STEPS} steps", flush=True)
        RandomTurns(tmp_path / f"s{seed}", hudi, RELEASE, seed, ALONE).run(STEPS)
