"""What crash tests share: the tables that they begin with, made once, and a place for the copies that they spoil."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.scenes import Starts

MEMORY = Path("/dev/shm")
"""A killed process loses nothing that it wrote, so a disk would only cost time."""


@pytest.fixture(scope="session")
def starts() -> Iterator[Starts]:
    """The tables that scenes begin with."""
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="crash", dir=where) as home:
        yield Starts(Path(home))
