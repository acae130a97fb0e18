"""Dates and times of texts: the calendar of Python's own dates, and which patterns keep the order of times."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hudimeta.predicate.datetime_pattern import compile_pattern
from hudimeta.predicate.datetime_text import parse_date

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
