"""What the acceptance tests share."""

from __future__ import annotations

import pytest

from tests.acceptance.counted import Counter


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Counts the requests of every `hudimeta.Table` that the test opens."""
    counter = Counter()
    monkeypatch.setattr("hudimeta.api.table.open_storage", counter.open)
    return counter
