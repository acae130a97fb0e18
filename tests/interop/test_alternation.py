"""Both sides take random turns, with the verbs that the matrix does not have; see `alternation.py`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.interop.alternation import Alternation
from tests.interop.apache_hudi import ApacheHudi, Installation
from tests.interop.sides import FULL

FOUND = Installation.find()
RELEASE = "" if FOUND is None else FOUND.release
VERSIONS = ("8",) if RELEASE == "1.0.2" else ("8", "9")
HISTORIES = int(os.environ.get("HUDIMETA_ALTERNATIONS", "3" if FULL else "1"))
"""How many on each kind of table."""
STEPS = int(os.environ.get("HUDIMETA_ALTERNATION_STEPS", "20" if FULL else "3"))
SEED = int(os.environ.get("HUDIMETA_ALTERNATION_SEED", "1"))
"""Of the first history; the others follow."""


@pytest.mark.rotation(1)  # in every run
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", VERSIONS if FULL else VERSIONS[-1:])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_random_turns(hudi: ApacheHudi, tmp_path: Path, kind: str, version: str) -> None:
    for seed in range(SEED, SEED + HISTORIES):
        print(f"HUDIMETA_ALTERNATION_SEED={seed}, {STEPS} steps", flush=True)
        Alternation(tmp_path / f"{seed}", hudi, RELEASE, kind, version, seed).run(STEPS)
