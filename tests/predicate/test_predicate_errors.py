"""An error about a predicate names the part that is in the way and what to do, and nothing that the user did not write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.errors import ConfigError, PredicateError
from hudimeta.predicate import FUNCTION_NAMES, bind, evaluate, parse

SCHEMA = pa.schema([(f"c{n}", pa.int32()) for n in range(200)] + [("s", pa.string()), ("ai", pa.list_(pa.int32()))])
TWO_ROWS = pa.table({field.name: pa.array([None, "a"] if field.name == "s" else [None] * 2, field.type) for field in SCHEMA})
DOCS = Path(__file__).resolve().parents[2] / "docs" / "predicates.md"


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("levenshtein(s, 'a') > 2", "levenshtein"),
        ("siz(ai) > 2", "'size'"),
        ("colum = 2", "column of the table"),
        ("exists(ai, x -> x > 1)", "exists"),
        ("s = (SELECT 1)", "SELECT"),
        ("c1 = INTERVAL 1 DAY", "INTERVAL"),
        ("ai = 1", "compares"),
        ("s RLIKE '(?=a)'", "looks ahead"),
        ("s LIKE 'a!b' ESCAPE '!'", "only before"),
        ("s LIKE 'a!' ESCAPE '!'", "only before"),
        ("regexp_replace(s, '(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)', '$11') = 'a'", "up to 9"),
        ("c1 = '" + "x" * 10_000 + "'", "INT"),
        ([("c1", "~~", 5)], "~~"),
        ("c1 >", "c1 >"),
        ("c1" + " + 1" * 5000 + " > 0", "nested"),
        ("(" * 3000 + "c1 = 1" + ")" * 3000, "breaks off"),
        ("repeat(s, 2000000000) = 'a'", "at most"),
        ("lpad(s, 2000000000, 'x') = 'a'", "at most"),
        ("array_position(ai, 1.5) = 0", "CAST(… AS INT)"),
        ("array_contains(ai, NULL)", "a value of its elements' type"),
        ("element_at(ai, NULL) = 1", "an INT"),
        ("CAST(s AS STRING COLLATE UTF8_LCASE) = 'A'", "collation"),
        ("s COLLATE UTF8_LCASE = 'A'", "COLLATE"),
        (f"c1 > {'9' * 5000}", "38 digits"),
        (f"c1 > -{'9' * 5000}", "38 digits"),
        (f"c1 > {'9' * 5000}L", "out of the range"),
        (f"CAST(c1 AS DECIMAL({'9' * 5000}, 2)) > 1", "does not exist"),
        (f"s RLIKE 'a{{{'9' * 5000}}}'", "begins no quantifier"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_error_is_short_and_to_the_point(where: Any, named: str) -> None:
    with pytest.raises(PredicateError) as caught:
        evaluate(bind(parse(where), SCHEMA), TWO_ROWS)
    text = str(caught.value)
    assert isinstance(caught.value, ConfigError)  # what callers caught before
    assert named in text
    assert len(text) < 1500
    assert "option" not in text


def test_the_page_lists_every_function() -> None:
    page = DOCS.read_text(encoding="utf-8").split("## Where the answer")[0]
    listed = set(re.findall(r"`([a-z_0-9]+)(?:\(…\))?`", page))
    assert set(FUNCTION_NAMES) <= listed


@pytest.mark.parametrize("text", ["now", "Today", " yesterday ", "tomorrow", "epoch UTC"])
def test_texts_that_mean_another_moment_each_time_are_refused(text: str) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    with pytest.raises(PredicateError, match="one moment"):
        bind(parse(f"TRY_CAST('{text}' AS TIMESTAMP) < ts"), schema)


def test_unix_date_is_of_dates() -> None:
    with pytest.raises(PredicateError, match="a DATE"):
        bind(parse("unix_date(ts) > 1"), pa.schema([("ts", pa.timestamp("us", "UTC"))]))
