"""No file that holds a matching row is ever skipped, whatever the predicate, the rows, and the quality of the statistics."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import random
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import ConfigError
from hudimeta.predicate import Bound, ColumnBounds, FileStats, bind, evaluate, may_match, parse, to_parquet_filter
from hudimeta.predicate.tree import (
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
from tests.examples import at_most

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
FLOATS = [math.nan, 0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 0.1, 3.0]
MOMENTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 12)]
MOMENTS += [dt.datetime(2024, 3, 1), dt.datetime(1, 1, 1)]
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

Choice = tuple[Expr, list[Any]]
"""An expression, and constants that it is worth comparing with."""


def path(name: str) -> Column:
    return Column(tuple(name.split(".")))


def pool(name: str) -> list[Any]:
    return [*POOL[LEAVES[name]], *ODD]


def calls(results: list[Any] | None, *written: tuple[Any, ...]) -> list[Choice]:
    """Calls given as (column, function, constant, …); compared with `results`, or with values of the column."""
    return [
        (Call(function, (path(name), *map(literal, rest))), results if results is not None else pool(name))
        for name, function, *rest in written
    ]


COLUMNS: list[Choice] = [(path(name), pool(name)) for name in sorted(LEAVES)]
TIMES = ("ts", "tn", "da")
MOVED: list[Choice] = [
    (Arithmetic(op, path(name), literal(by)), pool(name))
    for op in (ArithmeticOp.ADD, ArithmeticOp.SUBTRACT, ArithmeticOp.MULTIPLY, ArithmeticOp.REMAINDER)
    for name in ("b", "i", "l", "dec", "d", "st.a")
    for by in (1, -1, 100, decimal.Decimal("0.5"))
]
MOVED += [(Arithmetic(ArithmeticOp.SUBTRACT, path("da"), literal(1)), pool("da"))]
CALLS: list[Choice] = [
    *calls(None, ("s", "lower"), ("s", "substring", 1, 2), ("s", "substring", 2), ("s", "left", 1), ("s", "trim")),
    *calls(None, ("i", "negative"), ("d", "negative"), ("d", "abs"), ("l", "identity"), ("d", "identity")),
    *calls(None, ("da", "last_day"), ("da", "add_months", 1), ("da", "trunc", "MM"), ("da", "date_sub", 30)),
    *calls(None, ("d", "round"), ("dec", "round", 1), ("d", "ceil"), ("dec", "floor"), ("d", "sqrt"), ("d", "sign")),
    *calls(POOL["da"], ("ts", "to_date"), ("s", "to_date"), ("da", "to_date")),
    *calls([1, 1969, 2023, 2024, 9999], *[(name, "year") for name in TIMES]),
    *calls([1, 2, 3, 12], *[(name, "month") for name in TIMES], ("s", "length")),
    *calls([0, 12, 23], *[(name, "hour") for name in TIMES]),
    *calls([-1, 0, 1709208000], ("ts", "unix_timestamp"), ("da", "unix_timestamp")),
    *calls([True, False], ("d", "isnan")),
    *calls(["2024-02-29", "1969-12-31", "0001-01-01", "2024-02"], *[(name, "date_format", "yyyy-MM-dd") for name in TIMES]),
    *calls(["2024-02", "9999-12", "1969"], ("da", "date_format", "yyyy-MM"), ("ts", "date_format", "yyyy")),
    *calls(["02/2024", "12/1969", "03/2024"], *[(name, "date_format", "MM/yyyy") for name in TIMES]),
    *calls(
        ["1970-01-01 00:00:05", "1970-01-01 00:00:00", "1969-12-31 23:59:58", "1969", "1970-01-01 00:00:01"],
        ("l", "from_unixtime"),
        ("b", "from_unixtime"),
    ),
]
TARGETS: dict[str, list[pa.DataType]] = {
    "i": [pa.int64(), pa.string(), pa.bool_(), pa.decimal128(10, 2)],
    "l": [pa.int32(), pa.float64(), pa.float32()],
    "d": [pa.int64(), pa.decimal128(10, 1), pa.float32()],
    "f": [pa.float64(), pa.int32()],
    "dec": [pa.int32(), pa.decimal128(8, 1), pa.float64()],
    "s": [pa.int32(), pa.date32(), pa.float64()],
    "ts": [pa.date32(), pa.int64(), pa.timestamp("us")],
    "da": [pa.timestamp("us", "UTC")],
    "bo": [pa.int32()],
}
CASTS: list[Choice] = [(Cast(path(name), target), pool(name)) for name, targets in TARGETS.items() for target in targets]
EVERY = [*COLUMNS, *MOVED, *CALLS, *CASTS]
PATTERNS = ["", "a", "a%", "%a", "a_c", "ab%c", "é%", "😀", "%", "_", "A", None]
MATCHES = [kind for kind in MatchKind if kind is not MatchKind.RLIKE]

chosen_values = st.one_of(*map(st.sampled_from, (COLUMNS, COLUMNS, MOVED, CALLS, CASTS)))


@st.composite
def leaves(draw: st.DrawFn) -> Expr:
    child, values = draw(chosen_values)
    against = st.sampled_from(values).map(literal)
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
        return Match(draw(st.sampled_from(MATCHES)), path("s"), draw(st.sampled_from(PATTERNS)))
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


def random_rows(length: int) -> pa.Table:
    cells = {name: [RANDOM.choice([*some, *some, *some, None]) for _ in range(length)] for name, some in POOL.items()}
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


@cache
def recorded(name: str, how: str) -> ColumnBounds:
    """Statistics of one column over all files, of a certain quality."""
    parts = [column_of(table, name) for table in FILES]
    cut = how == "cut" and name in ("s", "st.s", "bi")
    bounds = [ends(part, how == "aware", cut) for part in parts]
    if how == "no minimum":
        bounds = [(None, high) for _low, high in bounds]
    if how == "no maximum":
        bounds = [(low, None) for low, _high in bounds]
    nulls = pa.array([part.null_count for part in parts]) if how != "no null counts" else None
    counts = pa.array([len(part) for part in parts]) if how != "no row counts" else None
    low, high = (pa.array([bound[end] for bound in bounds], parts[0].type) for end in (0, 1))
    return ColumnBounds(low, high, nulls, counts, nan_aware=how == "aware", truncated=cut)


RANDOM = random.Random(20_240_229)
RANDOM_CONSTANTS = random.Random(5)
FILES = [random_rows(RANDOM.choice([0, 1, 1, 1, 1, 2, 2, 3])) for _ in range(400)]
FILE_OF_ROW = np.repeat(np.arange(len(FILES)), [table.num_rows for table in FILES])
ROWS = pa.concat_tables(FILES).combine_chunks()
QUALITIES = ("aware", "footer", "cut", "no minimum", "no maximum", "no null counts", "no row counts")
GROUP_OF_FILE = np.arange(len(FILES)) // 2

qualities = st.lists(st.integers(0, len(QUALITIES)), min_size=len(LEAVES), max_size=len(LEAVES))
"""Which statistics each column has; the highest number is none."""


def statistics(chosen: list[int]) -> FileStats:
    known = {
        name: recorded(name, QUALITIES[how]) for name, how in zip(sorted(LEAVES), chosen, strict=True) if how < len(QUALITIES)
    }
    return FileStats(len(FILES), known)


def bound_or_none(predicate: Expr) -> Bound | None:
    """None for combinations that Spark refuses as well, such as a date beside a boolean."""
    try:
        return bind(predicate, SCHEMA)
    except ConfigError:
        return None


def files_with_matches(bound: Bound) -> np.ndarray[Any, Any]:
    kept = np.asarray(pc.fill_null(evaluate(bound, ROWS).combine_chunks(), False))
    return np.bincount(FILE_OF_ROW[kept], minlength=len(FILES)) > 0


def assert_safe(predicate: Expr, stats: FileStats) -> None:
    bound = bound_or_none(predicate)
    if bound is None:
        return
    verdict = may_match(bound, stats)
    wrong = np.flatnonzero(files_with_matches(bound) & ~verdict.keep)
    assert not len(wrong), (str(bound), FILES[wrong[0]].to_pylist())
    assert ((verdict.decided_by >= 0) == ~verdict.keep).all()
    assert (verdict.decided_by < len(bound.conjuncts)).all()


@pytest.mark.rotation(3)
@pytest.mark.parametrize("quality", [0, 1, 2, 4, 5])
def test_every_kind_of_comparison_is_safe(quality: int) -> None:
    stats = statistics([quality] * len(LEAVES))
    for number, (child, values) in enumerate(EVERY):
        few = RANDOM_CONSTANTS.sample(values, min(5, len(values)))
        for step, one in enumerate(few):
            whole = Compare(list(CompareOp)[(number + quality + step) % len(CompareOp)], child, literal(one))
            assert_safe(whole, stats)
            assert_safe(IsNull(whole) if step % 2 else Not(whole), stats)
        assert_safe(Not(In(child, tuple(map(literal, few)))), stats)
        assert_safe(In(child, tuple(map(literal, few))), stats)


@pytest.mark.parametrize("quality", [0, 2, 3])
def test_every_pattern_is_safe(quality: int) -> None:
    stats = statistics([quality] * len(LEAVES))
    for kind in MATCHES:
        for pattern in PATTERNS:
            whole = Match(kind, path("s"), pattern)
            assert_safe(whole, stats)
            assert_safe(Not(whole), stats)


@pytest.mark.parametrize("quality", [0, 1])
def test_every_outcome_of_and_and_or_is_foreseen(quality: int) -> None:
    stats = statistics([quality] * len(LEAVES))
    tests: list[Expr] = [Compare(CompareOp.LE, path(name), literal(1)) for name in ("b", "i", "l", "d")]
    for join in (And, Or):
        for several in itertools.permutations(tests, 3):
            whole = join(several)
            for outcome in (whole, Not(whole), IsNull(whole), Compare(CompareOp.NULL_SAFE_EQ, whole, tests[3])):
                assert_safe(outcome, stats)


@settings(max_examples=at_most(1000))
@given(predicates, qualities)
def test_every_nesting_is_safe(predicate: Expr, chosen: list[int]) -> None:
    assert_safe(predicate, statistics(chosen))


@settings(max_examples=at_most(500))
@given(predicates, qualities, st.randoms(use_true_random=False))
def test_slices_with_matching_rows_are_kept(predicate: Expr, chosen: list[int], pick: random.Random) -> None:
    """Columns may come from different files of a slice, as when a log file holds some columns of an update."""
    bound = bound_or_none(predicate)
    if bound is None:
        return
    slices = int(GROUP_OF_FILE[-1]) + 1
    stats = statistics(chosen)
    united = FileStats(slices, {name: bounds.union(GROUP_OF_FILE, slices) for name, bounds in stats.columns.items()})
    keep = may_match(bound, united).keep
    group_of_row = GROUP_OF_FILE[FILE_OF_ROW]
    shuffled = {name: np.arange(len(group_of_row)) for name in SCHEMA.names}
    for rows in shuffled.values():  # each column takes its value from either row of neighbours in the same slice
        other = np.minimum(rows + pick.randint(0, 1), len(rows) - 1)
        rows[:] = np.where(group_of_row[other] == group_of_row, other, rows)
    merged = pa.table({name: ROWS[name].take(pa.array(rows)) for name, rows in shuffled.items()}, schema=SCHEMA)
    matching = np.asarray(pc.fill_null(evaluate(bound, merged).combine_chunks(), False))
    assert keep[group_of_row[matching]].all(), str(bound)


@settings(max_examples=at_most(500))
@given(predicates)
def test_the_parquet_filter_keeps_matching_rows(predicate: Expr) -> None:
    bound = bound_or_none(predicate)
    weaker = to_parquet_filter(bound) if bound is not None else None
    if bound is None or weaker is None:
        return
    numbered = ROWS.append_column("n", pa.array(range(ROWS.num_rows)))
    kept = set(numbered.filter(weaker)["n"].to_pylist())
    assert set(numbered.filter(evaluate(bound, ROWS))["n"].to_pylist()) <= kept, str(bound)


def test_nan_is_zero_once_it_is_whole() -> None:
    """Bounds of footers leave NaN out: they say nothing of `ceil` where NaN may be."""
    table = pa.table({"x": [math.nan, 5.5]})
    bound = bind(parse("ceil(x) = 0"), table.schema)
    assert evaluate(bound, table).to_pylist() == [True, False]
    stats = FileStats(1, {"x": ColumnBounds(pa.array([5.5]), pa.array([5.5]), pa.array([0]), pa.array([2]))})
    assert may_match(bound, stats).keep.tolist() == [True]


def test_a_pattern_that_is_null_leaves_every_row_unknown() -> None:
    table = pa.table({"s": ["a", "b"]})
    bound = bind(parse("(s LIKE NULL) IS NULL"), table.schema)
    assert evaluate(bound, table).to_pylist() == [True, True]
    stats = FileStats(1, {"s": ColumnBounds(pa.array(["a"]), pa.array(["b"]), pa.array([0]), pa.array([2]))})
    assert may_match(bound, stats).keep.tolist() == [True]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("x < 3", False),
        ("x <= 3", True),
        ("(x < 5) = false", True),
        ("(x <= 5) = false", False),
        ("(x > 3) = false", True),
        ("(x >= 3) = false", False),
    ],
)
def test_bounds_are_values_that_a_row_may_have(where: str, kept: bool) -> None:
    stats = FileStats(1, {"x": ColumnBounds(pa.array([3]), pa.array([5]), pa.array([0]), pa.array([3]))})
    assert may_match(bind(parse(where), pa.schema([("x", pa.int64())])), stats).keep.tolist() == [kept]
