"""A hostile table folder harms nothing outside, takes little time and memory, and gives right rows or a typed error."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.hostile import folders_that_lead_out, folders_without_end
from tests.hostile.mutation import mutate
from tests.hostile.trial import Watch, try_everything

_RANDOM = int(os.environ.get("HUDIMETA_HOSTILE", "4"))
_SEED = int(os.environ.get("HUDIMETA_HOSTILE_SEED", "0"))
FOLDERS = folders_that_lead_out.FOLDERS | folders_without_end.FOLDERS


@pytest.mark.rotation(5)
@pytest.mark.filterwarnings("ignore::hudimeta.config.HudiWarning")  # of what a hostile file makes it leave to the next writer
@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_hostile_folder(name: str, sound: Path, tmp_path: Path, watch: Watch) -> None:
    serviced = any(word in name for word in ("plan", "marker", "savepoint", "pending", "replacement"))
    try_everything(sound, tmp_path, watch, FOLDERS[name], rows_are_right=True, serviced=serviced)


def test_there_are_sixty() -> None:
    assert len(FOLDERS) >= 60
    assert not folders_that_lead_out.FOLDERS.keys() & folders_without_end.FOLDERS.keys()


@pytest.mark.filterwarnings("ignore::hudimeta.config.HudiWarning")
@pytest.mark.parametrize("number", range(_RANDOM))
def test_hostile_texts_and_numbers_anywhere(number: int, sound: Path, tmp_path: Path, watch: Watch) -> None:
    """Of a table without seals one text or number says something hostile; who else wrote it may have meant it."""
    random_ = random.Random(f"{_SEED}-{number}")
    try_everything(sound, tmp_path, watch, lambda table: mutate(table, random_), rows_are_right=False)
