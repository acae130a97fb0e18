"""The sound table that is spoilt, and who watches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hostile.trial import Watch, make_sound


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power failures."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `make_sound`."""
    path = tmp_path_factory.mktemp("hostile") / "table"
    make_sound(path)
    return path


@pytest.fixture(scope="session")
def watch() -> Watch:
    """One for all: an audit hook stays for good."""
    return Watch()
