"""Both sides take random turns on tables of random kinds; see `random_turns.py` and `random_tables.py`.

A run plays a short history, another one each day, of those that were played before. HUDIMETA_RANDOM_TABLES asks for so many,
HUDIMETA_RANDOM_TABLES_SEED names the first seed, HUDIMETA_RANDOM_TABLES_STEPS their length.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.interop.apache_hudi import ApacheHudi, Installation
from tests.interop.random_turns import RandomTurns
from tests.interop.sides import FULL
from tests.rotation import TURN

FOUND = Installation.find()
RELEASE = "" if FOUND is None else FOUND.bundle.stem.rpartition("-")[2]
FIRST, PLAYED = 209, 8
"""Seeds that both releases have played to the end."""
HISTORIES = int(os.environ.get("HUDIMETA_RANDOM_TABLES", str(PLAYED) if FULL else "1"))
STEPS = int(os.environ.get("HUDIMETA_RANDOM_TABLES_STEPS", "8" if FULL else "4"))
SEED = int(os.environ.get("HUDIMETA_RANDOM_TABLES_SEED", str(FIRST if FULL else FIRST + (TURN or 0) % PLAYED)))


@pytest.mark.timeout(7200)
def test_random_tables(hudi: ApacheHudi, tmp_path: Path) -> None:
    for seed in range(SEED, SEED + HISTORIES):
        print(f"HUDIMETA_RANDOM_TABLES_SEED={seed}, {STEPS} steps", flush=True)
        RandomTurns(tmp_path / f"s{seed}", hudi, RELEASE, seed).run(STEPS)
