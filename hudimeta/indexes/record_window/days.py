"""Days: of a partition path, and where a window of the last days begins."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["day_of_moment", "day_of_path", "first_day"]

_DAY_MS = 86_400_000
_MOST_PATHS = 1 << 17
"""Of so many a process remembers the day: every write asks for all partitions of the table."""
_PARTED = re.compile(r"(?<!\d)(\d{4})\D{1,16}(\d{1,2})\D{1,16}(\d{1,2})(?!\d)")
_TOGETHER = re.compile(r"(?<!\d)(\d{4})(\d{2})(\d{2})(?:\d{2}|\d{4}|\d{6})?(?!\d)")
_EPOCH = dt.date(1970, 1, 1)


@lru_cache(_MOST_PATHS)
def day_of_path(path: str) -> int | None:
    """The day of a partition, counted from 1970-01-01; None for a path that names none.

    Year, month and day stand in this order, as numbers apart (`2026-11-27`, `2026/11/27/08`, `year=2026/month=11/day=27`) or
    together (`20261127`, `dt=2026112708`).

    >>> day_of_path("dt=1970-01-02"), day_of_path("north")
    (1, None)
    """
    found = _PARTED.search(path) or _TOGETHER.search(path)
    if found is None:
        return None
    try:
        return (dt.date(int(found[1]), int(found[2]), int(found[3])) - _EPOCH).days
    except ValueError:
        return None


def day_of_moment(epoch_ms: int) -> int:
    """The day in UTC of a moment."""
    return epoch_ms // _DAY_MS


def first_day(days: int, known: Iterable[int | None], today: int) -> int | None:
    """The first day of a window that ends with the newest of some days.

    A day after tomorrow ends no window: one row with a wrong date would leave all others out of it. It is in the window.

    Args:
        days: Length of the window.
        known: Days of what the table holds; None for what has none.
        today: By the clock.

    Returns:
        None when no day is known: everything is in the window then.
    """
    newest = max((day for day in known if day is not None and day <= today + 1), default=None)
    return None if newest is None else newest - days + 1
