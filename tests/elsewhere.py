"""Tests that only some verbs run: `make …-full`, and those through Spark Connect or through a classic session.

Other runs leave them out, as they do slow tests whose turn it is not (`tests/rotation.py`), and do not skip them: a skipped
test says that something is missing here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

__all__ = ["REMOTE", "SAYS_STATEMENTS", "of_other_verbs", "only_when"]

REMOTE = bool(os.environ.get("HUDIMETA_TEST_REMOTE"))
"""Whether the session of this run goes through Spark Connect."""
CLASSIC_FIXTURES = frozenset({"attached"})
"""A session of Connect cannot be attached; modules that say `SAYS_STATEMENTS` do not need it to be."""
SAYS_STATEMENTS = pytest.mark.says_statements
"""Marks tests of an attached session whose statements are also said by `pyspark_hudimeta.sql` through Spark Connect."""


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
        or (
            remote
            and not CLASSIC_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
            and item.get_closest_marker(SAYS_STATEMENTS.name) is None
        )
    ]
