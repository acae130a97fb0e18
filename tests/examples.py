"""How many examples property tests take: a fast run (`HYPOTHESIS_PROFILE=quick`) takes few of each."""

from __future__ import annotations

import os

__all__ = ["FEW", "at_most"]

FEW = 20
_IS_FAST = os.environ.get("HYPOTHESIS_PROFILE") == "quick"


def at_most(most: int) -> int:
    """For a test that takes another number of examples than most do.

    Args:
        most: In other runs than fast ones.
    """
    return min(most, FEW) if _IS_FAST else most
