"""What crash tests share: the tables that they begin with, made once, and a place for the copies that they spoil."""

from __future__ import annotations

import pytest

from tests.crash.scenes import SCENES
from tests.crash.starts import Starts


@pytest.fixture(scope="session")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Starts:
    """The tables that scenes begin with. A killed process loses nothing that it wrote, so that they may lie in memory."""
    return Starts(tmp_path_factory.mktemp("crash"), SCENES)
