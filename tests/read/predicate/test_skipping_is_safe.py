"""No file that holds a matching row is ever skipped, whatever the predicate, the rows, and the quality of the statistics."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import ConfigError
from hudimeta.read.predicate import ColumnBounds, FileStats, bind, evaluate, may_match, to_parquet_filter
from hudimeta.read.predicate.tree import (
    And,
    Arithmetic,
    ArithmeticOp,
    Call,
    Cast,
    Column,
    Compare,
    CompareOp,
    Expr,
    In,
    IsNotNull,
    IsNull,
    Match,
    MatchKind,
    Not,
    Or,
    between,
    literal,
)

UTC = dt.timezone.utc
STRUCT = pa.struct([("a", pa.int32()), ("s", pa.string())])
SCHEMA = pa.schema(
    [
        ("b", pa.int8()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("t", pa.string()),
        ("dec", pa.decimal128(10, 2)),
        ("big", pa.decimal128(38, 18)),
        ("da", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("tn", pa.timestamp("us")),
        ("bo", pa.bool_()),
        ("bi", pa.binary()),
        ("st", STRUCT),
    ]
)
FLOATS = [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 0.1, 3.0]
MOMENTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 12), dt.datetime(2024, 3, 1), dt.datetime(1, 1, 1)]
POOL: dict[str, list[Any]] = {
    "b": [-128, -1, 0, 1, 127],
    "i": [-(2**31), -3, 0, 1, 2, 7, 2**31 - 1],
    "l": [-(2**63), -1, 0, 5, 2**53 + 1, 2**63 - 1],
    "f": FLOATS,
    "d": [*FLOATS, float(2**53), 1e300],
    "s": ["", "a", "ab", "abc", "b", "B", "é", "日本", "😀", "5", "1.5", "2024-02-29", " a", "a\x00", "\U0010ffff"],
    "t": ["a", "b", "c", "aa"],
    "dec": [decimal.Decimal(x) for x in ("0.00", "-0.01", "1.50", "99999999.99", "-99999999.99", "2.00")],
    "big": [decimal.Decimal(x) for x in ("0.000000000000000001", "1.5", "-12345678901234567890.123456789012345678")],
    "da": [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "ts": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    "tn": MOMENTS,
    "bo": [True, False],
    "bi": [b"", b"a", b"a\xff", b"\xff\xff"],
}
LEAVES = {**{name: name for name in POOL}, "st.a": "i", "st.s": "s"}
ODD = [0, 1, 2.5, decimal.Decimal("1.505"), 2**40, decimal.Decimal(2**70), "1", None, 3000000000, math.nan, 0.1]

columns = st.sampled_from(sorted(LEAVES))


@st.composite
def constants(draw: st.DrawFn, column: str) -> Expr:
    return literal(draw(st.sampled_from(POOL[LEAVES[column]] * 3 + ODD)))


def path(name: str) -> Column:
    return Column(tuple(name.split(".")))


@st.composite
def values(draw: st.DrawFn) -> tuple[Expr, Any]:
    """An expression over a column, and a strategy for constants to compare it with."""
    kind = draw(st.integers(0, 9))
    if kind <= 4:
        name = draw(columns)
        return path(name), constants(name)
    if kind == 5:
        name = draw(st.sampled_from(["b", "i", "l", "dec", "d", "st.a", "da"]))
        op = draw(st.sampled_from([ArithmeticOp.ADD, ArithmeticOp.SUBTRACT, ArithmeticOp.MULTIPLY, ArithmeticOp.REMAINDER]))
        by = literal(draw(st.sampled_from([1, 2, -1, 100] if name == "da" else [1, 2, -1, 100, decimal.Decimal("0.5")])))
        return Arithmetic(op, path(name), by), constants(name)
    if kind == 6:
        name, call, *rest = draw(
            st.sampled_from(
                [
                    ("s", "lower"),
                    ("s", "substring", 1, 2),
                    ("s", "substring", 2),
                    ("s", "left", 1),
                    ("s", "trim"),
                    ("s", "identity"),
                    ("i", "negative"),
                    ("d", "negative"),
                    ("d", "abs"),
                    ("l", "identity"),
                    ("da", "last_day"),
                    ("da", "add_months", 1),
                    ("da", "trunc", "MM"),
                    ("da", "date_sub", 30),
                    ("ts", "identity"),
                    ("d", "identity"),
                    ("d", "round"),
                    ("dec", "round", 1),
                ]
            )
        )
        return Call(call, (path(name), *[literal(arg) for arg in rest])), constants(name)
    if kind == 7:
        name, call, results = draw(
            st.sampled_from(
                [
                    ("da", "year", [1, 1969, 2024, 9999, 2023]),
                    ("ts", "year", [1, 1969, 2024]),
                    ("da", "month", [1, 2, 3, 12]),
                    ("ts", "hour", [0, 12, 23]),
                    ("s", "length", [0, 1, 2, 3]),
                    ("d", "ceil", [0, 2, -2, 1]),
                    ("dec", "floor", [0, 1, -1, 99999999]),
                    ("ts", "to_date", POOL["da"]),
                    ("ts", "unix_timestamp", [-1, 1709208000]),
                    ("d", "isnan", [True, False]),
                    ("d", "sqrt", FLOATS),
                ]
            )
        )
        return Call(call, (path(name),)), st.sampled_from(results).map(literal)
    if kind == 8:
        name, pattern, texts = draw(
            st.sampled_from(
                [
                    ("ts", "yyyy-MM-dd", ["2024-02-29", "1969-12-31", "0001-01-01", "2024-03-01"]),
                    ("ts", "yyyy", ["2024", "1969"]),
                    ("ts", "MM/yyyy", ["02/2024", "12/1969"]),
                    ("da", "yyyy-MM", ["2024-02", "9999-12"]),
                ]
            )
        )
        return Call("date_format", (path(name), literal(pattern))), st.sampled_from(texts).map(literal)
    name, target = draw(
        st.sampled_from(
            [
                ("i", pa.int64()),
                ("l", pa.int32()),
                ("l", pa.float64()),
                ("l", pa.float32()),
                ("d", pa.int64()),
                ("d", pa.decimal128(10, 1)),
                ("dec", pa.int32()),
                ("dec", pa.decimal128(8, 1)),
                ("s", pa.int32()),
                ("s", pa.date32()),
                ("i", pa.string()),
                ("ts", pa.date32()),
                ("ts", pa.int64()),
                ("da", pa.timestamp("us", "UTC")),
                ("bo", pa.int32()),
                ("i", pa.bool_()),
            ]
        )
    )
    return Cast(path(name), target), constants(name)


@st.composite
def leaves(draw: st.DrawFn) -> Expr:
    child, against = draw(values())
    kind = draw(st.integers(0, 9))
    if kind <= 4:
        return Compare(draw(st.sampled_from(list(CompareOp))), child, draw(against))
    if kind == 5:
        return In(child, tuple(draw(st.lists(against, min_size=1, max_size=4))))
    if kind == 6:
        return between(child, draw(against), draw(against))
    if kind == 7:
        return IsNull(child) if draw(st.booleans()) else IsNotNull(child)
    if kind == 8:
        pattern = draw(st.sampled_from(["", "a", "a%", "%a", "a_c", "ab%c", "é%", "😀", "%", "_", "A", None]))
        return Match(draw(st.sampled_from([kind for kind in MatchKind if kind is not MatchKind.RLIKE])), path("s"), pattern)
    return draw(
        st.sampled_from(
            [
                Compare(CompareOp.LT, path("i"), path("l")),
                Compare(CompareOp.EQ, path("s"), path("t")),
                Compare(CompareOp.GE, path("d"), path("f")),
                Compare(CompareOp.NULL_SAFE_EQ, path("d"), path("f")),
                Compare(CompareOp.LE, path("da"), path("ts")),
                Compare(CompareOp.NE, path("dec"), path("i")),
                path("bo"),
                literal(None),
            ]
        )
    )


def joined(children: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(children, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        several.map(And),
        several.map(Or),
        children.map(Not),
        st.tuples(children, st.booleans()).map(lambda pair: Compare(CompareOp.EQ, pair[0], literal(pair[1]))),
        children.map(IsNull),
    )


predicates = st.recursive(leaves(), joined, max_leaves=6)


@st.composite
def files(draw: st.DrawFn) -> list[pa.Table]:
    return draw(st.lists(rows(), min_size=1, max_size=4))


@st.composite
def rows(draw: st.DrawFn) -> pa.Table:
    length = draw(st.integers(0, 3))
    cells = {
        name: draw(st.lists(st.sampled_from([*pool, *pool, None]), min_size=length, max_size=length)) for name, pool in POOL.items()
    }
    structs = [{"a": i, "s": s} if b is not None else None for i, s, b in zip(cells["i"], cells["t"], cells["bo"], strict=True)]
    return pa.table({**cells, "st": structs}, schema=SCHEMA)


def column_of(table: pa.Table, name: str) -> pa.Array:
    values = table[name.split(".")[0]].combine_chunks()
    return pc.struct_field(values, name.split(".")[1]) if "." in name else values


def ends(values: pa.Array, aware: bool, cut: bool) -> tuple[Any, Any]:
    """Bounds as a writer records them; NaN is left out, or counted as the largest."""
    known = values.drop_null()
    nan = pa.types.is_floating(values.type) and pc.any(pc.is_nan(known)).as_py()
    if nan:
        numbers = known.filter(pc.invert(pc.is_nan(known)))
        if not len(numbers):
            return (math.nan, math.nan) if aware else (None, None)
        low, high = ends(numbers, aware, cut)
        return low, (math.nan if aware else high)
    if not len(known):
        return None, None
    ordered = known.take(pc.array_sort_indices(known)).to_pylist()
    return (ordered[0][:1], ordered[-1][:1]) if cut else (ordered[0], ordered[-1])


@st.composite
def statistics(draw: st.DrawFn, tables: list[pa.Table]) -> FileStats:
    known: dict[str, ColumnBounds] = {}
    for name in sorted(LEAVES):
        parts = [column_of(table, name) for table in tables]
        t = parts[0].type
        how = draw(st.integers(0, 6))
        if how == 0:
            continue
        aware, cut = how == 1, how == 2 and name in ("s", "st.s", "bi")
        bounds = [ends(part, aware, cut) for part in parts]
        if how == 3:  # a bound is unknown
            bounds = [(None, high) for _low, high in bounds]
        nulls = pa.array([part.null_count for part in parts]) if how != 4 else None
        counts = pa.array([len(part) for part in parts]) if how != 5 else None
        low, high = (pa.array([bound[end] for bound in bounds], t) for end in (0, 1))
        known[name] = ColumnBounds(low, high, nulls, counts, nan_aware=aware, truncated=cut)
    return FileStats(len(tables), known)


@settings(max_examples=1500)
@given(st.data(), predicates, files())
def test_files_with_matching_rows_are_kept(data: st.DataObject, predicate: Expr, tables: list[pa.Table]) -> None:
    try:
        bound = bind(predicate, SCHEMA)
    except ConfigError:
        return
    stats = data.draw(statistics(tables))
    verdict = may_match(bound, stats)
    matching = np.array([pc.any(evaluate(bound, table)).as_py() is True for table in tables])
    assert not (matching & ~verdict.keep).any(), str(bound)
    assert ((verdict.decided_by >= 0) == ~verdict.keep).all()
    assert (verdict.decided_by < len(bound.conjuncts)).all()


@settings(max_examples=300)
@given(st.data(), predicates, files())
def test_slices_with_matching_rows_are_kept(data: st.DataObject, predicate: Expr, tables: list[pa.Table]) -> None:
    """Columns may come from different files of a slice, as when a log file holds some columns of an update."""
    try:
        bound = bind(predicate, SCHEMA)
    except ConfigError:
        return
    stats = data.draw(statistics(tables))
    groups = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(tables), max_size=len(tables))), dtype=np.int64)
    united = FileStats(2, {name: bounds.union(groups, 2) for name, bounds in stats.columns.items()})
    keep = may_match(bound, united).keep
    for group in (0, 1):
        members = [table for table, of in zip(tables, groups, strict=True) if of == group and table.num_rows]
        if members:
            picks = {name: data.draw(st.sampled_from(members))[name].combine_chunks().slice(0, 1) for name in SCHEMA.names}
            merged = pa.table(picks, schema=SCHEMA)
            assert keep[group] or pc.any(evaluate(bound, merged)).as_py() is not True, str(bound)


@settings(max_examples=300)
@given(predicates, rows())
def test_the_parquet_filter_keeps_matching_rows(predicate: Expr, table: pa.Table) -> None:
    try:
        bound = bind(predicate, SCHEMA)
    except ConfigError:
        return
    weaker = to_parquet_filter(bound)
    if weaker is None:
        return
    numbered = table.append_column("n", pa.array(range(table.num_rows)))
    kept = set(numbered.filter(weaker)["n"].to_pylist())
    assert set(numbered.filter(evaluate(bound, table))["n"].to_pylist()) <= kept
