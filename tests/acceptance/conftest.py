"""What the acceptance tests share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.acceptance.counted import Counter
from tests.acceptance.refusals import LAYOUT, ROWS, SCHEMA, Table


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Counts the requests of every `hudimeta.Table` that the test opens."""
    counter = Counter()
    monkeypatch.setattr("hudimeta.api.table.open_storage", counter.open)
    return counter


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two commits; tests that change it take a copy."""
    path = tmp_path_factory.mktemp("bad_input") / "t"
    Table.create(path, SCHEMA, **LAYOUT).insert(ROWS)
    Table(path).upsert(ROWS.slice(0, 2))
    return path


@pytest.fixture
def copy(written: Path, tmp_path: Path) -> Path:
    """One's own copy of the table."""
    shutil.copytree(written, tmp_path / "t")
    return tmp_path / "t"
