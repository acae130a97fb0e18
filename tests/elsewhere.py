"""Tests that only some verbs run: `make …-full`, and those through Spark Connect or through a classic session.

Other runs leave them out, as they do slow tests whose turn it is not (`tests/rotation.py`), and do not skip them: a skipped
test says that something is missing here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

__all__ = ["REMOTE", "of_other_verbs", "only_when"]

REMOTE = bool(os.environ.get("HUDIMETA_TEST_REMOTE"))
"""Whether the session of this run goes through Spark Connect."""
CLASSIC_FIXTURES = frozenset({"attached"})
"""A session of Connect cannot be attached."""


def only_when(condition: object, where: str) -> pytest.MarkDecorator:
    """Marks a test that runs only when a condition holds.

    Args:
        condition: That of this run.
        where: The verb that runs it, or what it needs.
    """
    return pytest.mark.only_when(bool(condition), where)


def of_other_verbs(items: Iterable[pytest.Item], remote: bool = REMOTE) -> list[pytest.Item]:
    """Those of the tests that this run leaves to others."""
    return [
        item
        for item in items
        if not all(marker.args[0] for marker in item.iter_markers("only_when"))
        or (remote and not CLASSIC_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())))
    ]
