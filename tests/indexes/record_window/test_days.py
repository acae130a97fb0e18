"""Which day a partition path names, and where a window of days begins."""

from __future__ import annotations

import datetime as dt

import pytest

from hudimeta.indexes.record_window.days import day_of_path, first_day

DAY = (dt.date(2026, 11, 27) - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    "path",
    [
        "2026-11-27",
        "20261127",
        "2026/11/27",
        "2026/11/27/08",
        "dt=2026-11-27",
        "dt=20261127",
        "year=2026/month=11/day=27",
        "region=7/2026-11-27",
        "2026112708",
        "day=2026-11-27/hour=8",
        "2026-11-27 08:30:00",
    ],
)
def test_paths_that_name_a_day(path: str) -> None:
    assert day_of_path(path) == DAY


def test_numbers_of_one_digit() -> None:
    assert day_of_path("year=2026/month=1/day=7") == (dt.date(2026, 1, 7) - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    "path", ["", "north", "2026", "2026-11", "202611", "2026-13-01", "20261327", "123456789012345", "7/8/9"]
)
def test_paths_that_name_none(path: str) -> None:
    assert day_of_path(path) is None


def test_a_window_ends_with_the_newest_day() -> None:
    assert first_day(3, [10, 8, None, 2], today=100) == 8


def test_a_wrong_day_in_the_future_ends_no_window() -> None:
    assert first_day(3, [10, 5_000, None], today=10) == 8
    assert first_day(3, [11, 10], today=10) == 9, "tomorrow is another zone's today"


def test_without_any_day_there_is_no_begin() -> None:
    assert first_day(3, [None], today=10) is None
    assert first_day(3, [5_000], today=10) is None
