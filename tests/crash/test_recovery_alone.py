"""Recovery without a write brings a table to before or after what died, and doing it twice is doing it once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.testing.builders import ModelledTable
from hudimeta.testing.invariants import check_all, recovering_twice_is_recovering_once
from tests.crash.killing import is_after, killed_at
from tests.crash.starts import Starts

STEP = 1 if os.environ.get("CRASH_FULL") else 6


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("upsert", "MERGE_ON_READ"),
        ("insert_overwrite", "COPY_ON_WRITE"),
        ("rollback", "MERGE_ON_READ"),
        ("make an index of bounds", "COPY_ON_WRITE"),
        ("drop an index", "MERGE_ON_READ"),
    ],
)
def test_recovery_alone_does_what_the_next_write_does(starts: Starts, tmp_path: Path, name: str, type: str) -> None:
    scene, calls = starts.scene(name, type), starts.calls(name, type)
    for at in range(len(calls) % STEP, len(calls), STEP):
        copy = scene.fresh(tmp_path / str(at))
        assert killed_at(scene, at, copy)
        table = ModelledTable(str(copy), exists=True)
        was_after = is_after(scene, table)
        recovering_twice_is_recovering_once(table.storage, Table(str(copy)).recover)
        assert is_after(scene, table) == was_after, f"recovery after a kill before {calls[at]} changed what readers see"
        check_all(table.storage)
        shutil.rmtree(copy)
