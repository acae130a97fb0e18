"""What is stored: where Spark's ANSI mode raises an error, no null takes the place of a value."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudimeta
from hudimeta.errors import PredicateError
from hudimeta.predicate import bind_value, evaluate, evaluate_strictly, parse_sql

ROWS = pa.table({"id": ["a", "b"], "v": pa.array([1, 2], pa.int64()), "w": pa.array([None, 3], pa.int64())})

REFUSED = (
    "9223372036854775807 + v",
    "v / 0",
    "v % (v - 1)",
    "v DIV (v - 2)",
    "1 / 0",
    "CAST(id AS BIGINT)",
    "CAST(v * 1000 AS TINYINT)",
    "IF(id = 'b', 0, v DIV (v - 1))",
    "coalesce(w, v DIV 0)",
    "CASE WHEN w IS NULL THEN 1 / (w - 3) ELSE 1 / (w - 3) END",
)
ANSWERED = {
    "TRY_CAST(id AS BIGINT)": [None, None],
    "CASE WHEN v = 1 THEN 0 ELSE v DIV (v - 1) END": [0, 2],
    "IF(v = 1, 0, v DIV (v - 1))": [0, 2],
    "coalesce(v, v DIV 0)": [1, 2],
    "nvl2(w, v, v + 1)": [2, 2],
    "ifnull(w, v)": [1, 3],
    "IF(v <> 1 AND 1 DIV (v - 1) > 0, 5, 6)": [6, 5],
    "IF(v = 1 OR 1 DIV (v - 1) > 0, 5, 6)": [5, 5],
    "w + 1": [None, 4],
    "w DIV w": [None, 1],
    "nullif(v, 1)": [None, 2],
    "CAST(NULL AS BIGINT)": [None, None],
}


def strictly(text: str, rows: pa.Table = ROWS) -> list[object]:
    found: list[object] = evaluate_strictly(bind_value(parse_sql(text), rows.schema, strict=True), rows).to_pylist()
    return found


@pytest.mark.parametrize("text", REFUSED)
def test_no_value(text: str) -> None:
    with pytest.raises(PredicateError, match="an expression that has a value in every row"):
        strictly(text)


@pytest.mark.parametrize("text", ANSWERED)
def test_only_what_is_asked_for_is_computed(text: str) -> None:
    assert strictly(text) == ANSWERED[text]


@given(st.lists(st.tuples(*[st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))] * 2), max_size=20))
def test_as_evaluated_or_refused(pairs: list[tuple[int | None, int | None]]) -> None:
    """Strictly evaluated is either the same, or an error where a row with both operands has no value."""
    columns = {name: pa.array([pair[at] for pair in pairs], pa.int64()) for at, name in enumerate("xy")}
    rows = pa.table(columns)
    for text in ("x + y", "x * y", "x DIV y", "x % y", "CAST(x AS INT)"):
        bound = bind_value(parse_sql(text), rows.schema)
        usual = evaluate(bound, rows).to_pylist()
        needed = 1 if "CAST" in text else 2
        fails = any(value is None and None not in pair[:needed] for value, pair in zip(usual, pairs, strict=True))
        if fails:
            with pytest.raises(PredicateError):
                evaluate_strictly(bound, rows)
        else:
            assert evaluate_strictly(bound, rows).to_pylist() == usual


def test_nothing_is_written(tmp_path: Path) -> None:
    table = hudimeta.Table.create(str(tmp_path / "t"), ROWS.schema, key="id")
    table.upsert(ROWS)
    before = table.scan().to_table()
    with pytest.raises(
        PredicateError, match=r"overflows or divides by zero in 2 rows, such as 9223372036854775807, 1\. Choose"
    ):
        table.update({"v": "9223372036854775807 + v"})
    with pytest.raises(PredicateError, match="has no value of that type in 1 row, such as 'b'"):
        table.merge(ROWS, "id").when_matched_update({"v": "CAST(if(source.id = 'b', 'b', '1') AS BIGINT)"}).execute()
    assert hudimeta.Table(str(tmp_path / "t")).scan().to_table() == before
    assert table.update({"v": "v + 1"}, where="id = 'a'").updated == 1
