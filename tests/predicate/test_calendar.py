"""Dates and times: the calendar of Python's own dates, local times far ahead, and which patterns keep the order of times."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import pyarrow as pa
import pytest

from hudimeta.predicate.datetime_pattern import compile_pattern
from hudimeta.predicate.datetime_text import parse_date
from hudimeta.predicate.local_time import to_local

YEARS = [*range(1, 9), *range(1596, 1606), *range(1896, 1906), *range(1996, 2008), 2096, 2100, 2104, 9996, 9999]


def of_python(text: str) -> dt.date | None:
    """The date of a text; None where there is no such day."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


@pytest.mark.parametrize("month", range(1, 13))
def test_the_last_days_of_months_are_those_of_the_calendar(month: int) -> None:
    texts = [f"{year:04d}-{month:02d}-{day:02d}" for year in YEARS for day in (1, 28, 29, 30, 31, 32)]
    assert parse_date(pa.array(texts)).to_pylist() == [of_python(text) for text in texts]


@pytest.mark.parametrize(
    ("pattern", "ordered"),
    [
        ("yyyy", True),
        ("yyyy-MM", True),
        ("yyyy-MM-dd HH:mm:ss", True),
        ("yyyyMMddHH", True),
        ("yyyy-MM-dd HH:mm:ss.SSS", True),
        ("yyyy-M", False),
        ("yyyy-MMM", False),
        ("yyyy-MM-d", False),
        ("yy-MM", False),
        ("MM-yyyy", False),
        ("yyyy-dd", False),
    ],
)
def test_texts_of_a_pattern_are_in_the_order_of_times_where_no_field_varies_in_width(pattern: str, ordered: bool) -> None:
    assert compile_pattern(pattern).ordered == ordered


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Sydney"])
def test_local_times_after_2037_follow_the_rules_of_their_own_year(zone: str) -> None:
    """Where clocks change on certain weekdays, of years with and without a leap day; a step of 23 hours meets all hours."""
    begin, end = (int(dt.datetime(year, 1, 1, tzinfo=dt.timezone.utc).timestamp()) for year in (2036, 2110))
    seconds = range(begin, end, 23 * 3600)
    local = to_local(pa.array([s * 1_000_000 for s in seconds], pa.int64()).view(pa.timestamp("us", "UTC")), zone)
    there = zoneinfo.ZoneInfo(zone)
    assert local.to_pylist() == [dt.datetime.fromtimestamp(s, there).replace(tzinfo=None, fold=0) for s in seconds]
