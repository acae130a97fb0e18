"""PyArrow's expressions as predicates: the rows that PyArrow would choose, and the files that our notations leave out."""

from __future__ import annotations

import datetime
import functools
import operator
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudimeta
from hudimeta.errors import ConfigError, PredicateError
from hudimeta.predicate import bind, evaluate, parse, parse_arrow

ROWS = pa.table(
    {
        "id": [f"k{n}" for n in range(8)],
        "n": [1, 2, 3, None, 5, 6, 7, 8],
        "s": ["ab", "b", None, "abc", "xab", "", "%", "B"],
        "d": [datetime.date(2026, 1, n + 1) if n != 4 else None for n in range(8)],
        "st": [{"a": n} if n % 3 else None for n in range(8)],
        "x": [0.5, 1.5, None, 2.5, -1.0, 0.0, 9.0, 3.0],
    }
)
N, S, D, X = (pc.field(name) for name in "nsdx")
LEAVES = [
    N > 3,
    N == 5,
    N != 5,
    pc.scalar(6) <= N,
    N.is_null(),
    N.is_valid(),
    N.isin([1, 2, 99]),
    N.isin([1, None]),
    pc.is_in(N, pa.array([1, None]), skip_nulls=True),
    S == "ab",
    S.isin(["b", "%"]),
    pc.starts_with(S, "ab"),
    pc.ends_with(S, "ab"),
    pc.match_substring(S, "b"),
    pc.match_like(S, "_b%"),
    pc.match_like(S, "b", ignore_case=True),
    datetime.date(2026, 1, 4) <= D,
    pc.field("st", "a") > 3,
    X < 1,
    X >= 2.5,
    pc.scalar(True),
]
PARTLY = [pc.year(D) == 2026, N + 1 > 4, pc.utf8_length(S) == 2, X.cast("string") == "1.5", X.is_null(nan_is_null=True)]


def combined(leaves: list[Any]) -> st.SearchStrategy[Any]:
    def joined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        both = st.tuples(inner, inner)
        return both.map(lambda two: two[0] & two[1]) | both.map(lambda two: two[0] | two[1]) | inner.map(lambda one: ~one)

    return st.recursive(st.sampled_from(leaves), joined, max_leaves=6)


@given(combined(LEAVES))
@settings(deadline=None)
def test_our_tree_chooses_the_rows_that_pyarrow_chooses(expression: Any) -> None:
    matches = evaluate(bind(parse(expression), ROWS.schema), ROWS)
    assert ROWS.filter(matches).equals(ROWS.filter(expression))


@given(combined(LEAVES + PARTLY))
@settings(deadline=None)
def test_what_is_understood_of_others_loses_no_row(expression: Any) -> None:
    found = parse_arrow(expression)
    if found.tree is not None:
        weaker = ROWS.filter(evaluate(bind(found.tree, ROWS.schema), ROWS))
        assert weaker.filter(expression).equals(ROWS.filter(expression))
    if found.whole is not None:
        assert found.unknown
        assert set(found.columns) <= set(ROWS.column_names)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudimeta.Table:
    """Two file groups: n from 1 to 4 and from 5 to 8."""
    path: Path = tmp_path_factory.mktemp("arrow") / "t"
    made = hudimeta.Table.create(path, ROWS.schema, key="id", options={"hoodie.parquet.small.file.limit": "0"})
    made.bulk_insert(ROWS.slice(0, 4))
    made.bulk_insert(ROWS.slice(4))
    return made


@pytest.mark.parametrize("number", range(len(LEAVES) + len(PARTLY)))
def test_a_scan_takes_them(table: hudimeta.Table, number: int) -> None:
    expression = (LEAVES + PARTLY)[number]
    scan = table.scan(where=expression, columns=ROWS.column_names)
    assert scan.to_table().sort_by("id").equals(ROWS.filter(expression))
    assert table.scan(where=expression, columns=["id"]).count() == ROWS.filter(expression).num_rows
    assert (number >= len(LEAVES)) == any("PyArrow evaluates" in note for note in scan.report.notes)


def test_files_are_left_out_as_with_any_other_notation(table: hudimeta.Table) -> None:
    scan = table.scan(where=N > 6)
    assert scan.plan().report.files_kept == 1
    assert [s.conjunct for s in scan.report.skipped] == ["n > 6"]
    partly = table.scan(where=(N > 6) & (pc.utf8_length(S) == 1))
    assert partly.to_table()["id"].to_pylist() == ["k6", "k7"]
    assert partly.report.files_kept == 1
    assert "where: PyArrow evaluates utf8_length, and files are left out by n > 6 only" in partly.report.notes
    unknown = table.scan(where=pc.utf8_length(S) == 1)
    assert unknown.report.files_kept == 2
    assert "where: PyArrow evaluates utf8_length, and no file is left out" in unknown.report.notes
    assert "utf8_length" in unknown.report.predicate


def test_workers_evaluate_them(table: hudimeta.Table) -> None:
    scan = table.scan(where=pc.utf8_length(S) == 1, columns=["id"])
    task, splits = pickle.loads(pickle.dumps((scan.task, scan.plan().splits())))
    rows = [row["id"] for split in splits for batch in hudimeta.read_split(task, split) for row in batch.to_pylist()]
    assert sorted(rows) == ["k1", "k6", "k7"]


def test_nan_is_what_it_is_in_spark_unless_pyarrow_evaluates() -> None:
    rows = pa.table({"x": [1.0, float("nan")], "n": [1, 2]})
    above = rows.filter(evaluate(bind(parse(X > 5), rows.schema), rows))
    assert above["n"].to_pylist() == [2]
    found = parse_arrow(~(X > 5) & (pc.add(N, 0) > 0))
    assert found.tree is None, "NaN would be lost: PyArrow keeps it here"


def test_deletes_take_them(tmp_path: Path) -> None:
    made = hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id")
    made.insert(ROWS)
    made.delete(N > 3)
    assert made.scan().count() == 4


def test_values_that_pyarrow_cannot_do_are_told(table: hudimeta.Table) -> None:
    with pytest.raises(ConfigError, match="truncated converting"):
        table.scan(where=X.cast("int64") == 1).to_table()


def test_what_cannot_be_written_is_refused(table: hudimeta.Table) -> None:
    with pytest.raises(ConfigError, match="Name columns"):
        table.scan(where=pc.field(0) > 1).plan()
    with pytest.raises(ConfigError, match="nosuch"):
        table.scan(where=pc.field("nosuch") > 1).plan()
    with pytest.raises(ConfigError, match="nosuch"):
        table.scan(where=pc.year(pc.field("nosuch")) > 1).plan()


def test_many_conditions_that_are_joined_one_by_one(table: hudimeta.Table) -> None:
    either = functools.reduce(operator.or_, [n == N for n in range(3000)])
    all_of_them = functools.reduce(operator.and_, [n + 3 != N for n in range(3000)])
    assert sorted(table.scan(either).to_table()["n"].to_pylist()) == [1, 2, 3, 5, 6, 7, 8]
    assert sorted(table.scan(all_of_them).to_table()["n"].to_pylist()) == [1, 2]
    with pytest.raises(PredicateError, match=r"at most 1,000 conditions.*sqrt.*isin"):
        table.scan(either & (pc.sqrt(X) > 1)).to_table()


def test_what_is_nested_too_deep_is_refused(table: hudimeta.Table) -> None:
    turned = functools.reduce(lambda inner, _: ~inner, range(3000), N == 1)
    tree = functools.reduce(lambda inner, _: ["not", inner], range(3000), ["=", {"col": "n"}, {"lit": 1}])
    for where in (turned, tree):
        with pytest.raises(PredicateError, match="nested at most 400 deep"):
            table.scan(where).to_table()


def test_of_an_expression_that_is_understood_in_part_no_part_stands_for_all() -> None:
    with pytest.raises(PredicateError, match="Not utf8_reverse"):
        parse((pc.field("s") == "a") & (pc.utf8_reverse(pc.field("s")) == "b"))
