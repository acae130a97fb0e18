"""What can be skipped is skipped, and reports can say by which part of the predicate."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudimeta.predicate import ColumnBounds, FileStats, bind, bind_value, equalities, may_match, parse, to_sql

D = decimal.Decimal
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("dec", pa.decimal128(10, 2)),
        ("da", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("bo", pa.bool_()),
        ("st", pa.struct([("a", pa.int32())])),
    ]
)


def bounds(t: pa.DataType, *files: tuple[Any, Any], rows: int = 10, nulls: int = 0, **more: Any) -> ColumnBounds:
    low, high = (pa.array([file[end] for file in files], t) for end in (0, 1))
    return ColumnBounds(low, high, pa.array([nulls] * len(files)), pa.array([rows] * len(files)), **more)


def day(n: int) -> dt.date:
    return dt.date(2024, 1, 1) + dt.timedelta(days=n)


def noon(n: int) -> dt.datetime:
    return dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc) + dt.timedelta(days=n)


STATS = FileStats(
    3,
    {
        "i": bounds(pa.int32(), (0, 9), (10, 19), (20, 29)),
        "l": bounds(pa.int64(), (0, 9), (10, 19), (20, 29)),
        "d": bounds(pa.float64(), (0.0, 0.9), (1.0, 1.9), (2.0, 2.9), nan_aware=True),
        "s": bounds(pa.string(), ("a", "azz"), ("b", "bzz"), ("c", "czz")),
        "dec": bounds(pa.decimal128(10, 2), (D("0.00"), D("0.99")), (D("1.00"), D("1.99")), (D("2.00"), D("2.99"))),
        "da": bounds(pa.date32(), (day(0), day(9)), (day(31), day(40)), (day(400), day(420))),
        "ts": bounds(pa.timestamp("us", "UTC"), (noon(0), noon(9)), (noon(31), noon(40)), (noon(400), noon(420))),
        "bo": bounds(pa.bool_(), (False, False), (False, True), (True, True)),
        "st.a": bounds(pa.int32(), (0, 9), (10, 19), (20, 29)),
    },
)


def kept(where: str, stats: FileStats = STATS, **more: Any) -> list[int]:
    return np.flatnonzero(may_match(bind(parse(where), SCHEMA, **more), stats).keep).tolist()


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("i = 15", [1]),
        ("i > 9", [1, 2]),
        ("i >= 29", [2]),
        ("i < 10", [0]),
        ("i <= 10", [0, 1]),
        ("i <> 5", [0, 1, 2]),
        ("i > 9.5", [1, 2]),
        ("i > 3000000000", []),
        ("i < 3000000000", [0, 1, 2]),
        ("15 = i", [1]),
        ("i BETWEEN 12 AND 21", [1, 2]),
        ("i IN (5, 25, 99)", [0, 2]),
        ("i IN (100, 200)", []),
        ("NOT (i < 10 OR i > 19)", [1]),
        ("i < 10 OR i > 19", [0, 2]),
        ("i = 15 AND s = 'c'", []),
        ("i <=> 15", [1]),
        ("i IS NULL", []),
        ("i IS NOT NULL", [0, 1, 2]),
        ("i = NULL", []),
        ("i + 1 > 20", [2]),
        ("-i > -10", [0]),
        ("i = '15'", [1]),
        ("CAST(i AS BIGINT) = 15", [1]),
        ("CAST(i AS DOUBLE) > 19.5", [2]),
        ("l = 15.0D", [1]),
        ("d > 1.95", [2]),
        ("d = double('NaN')", []),
        ("dec = 1.505", [1]),
        ("dec > 1.995", [2]),
        ("ceil(dec) = 3", [2]),
        ("s = 'bq'", [1]),
        ("s > 'bzz'", [2]),
        ("s LIKE 'b%'", [1]),
        ("s LIKE 'b_x%'", [1]),
        ("s LIKE 'bq'", [1]),
        ("s NOT LIKE 'b%'", [0, 2]),
        ("startswith(s, 'cz')", [2]),
        ("substring(s, 1, 1) = 'c'", [2]),
        ("left(s, 1) < 'b'", [0]),
        ("s IN ('aa', 'cc')", [0, 2]),
        ("da = '2024-02-03'", [1]),
        ("da >= DATE '2025-01-01'", [2]),
        ("year(da) = 2024", [0, 1]),
        ("year(ts) = 2025", [2]),
        ("trunc(da, 'MM') = '2024-02-01'", [1]),
        ("date_add(da, 5) < '2024-01-07'", [0]),
        ("ts < '2024-01-20'", [0]),
        ("to_date(ts) = '2024-02-03'", [1]),
        ("CAST(ts AS DATE) < '2024-01-20'", [0]),
        ("date_format(ts, 'yyyy-MM') = '2024-02'", [1]),
        ("unix_timestamp(ts) > 1735689600", [2]),
        ("bo", [1, 2]),
        ("NOT bo", [0, 1]),
        ("bo = FALSE", [0, 1]),
        ("st.a = 15", [1]),
        ("i < l AND i > 19", [2]),
        ("i > l + 10", []),
        ("i = l AND l = 15", [1]),
        # what no bound says anything about
        ("lower(s) = 'b'", [0, 1, 2]),
        ("i % 2 = 5", [0, 1, 2]),
        ("s LIKE '%b'", [0, 1, 2]),
        ("CAST(i AS STRING) = '15'", [0, 1, 2]),
        ("date_format(ts, 'MM/yyyy') = '02/2024'", [0, 1, 2]),
        ("month(da) = 2", [0, 1, 2]),
    ],
)
def test_files_left(where: str, files: list[int]) -> None:
    assert kept(where) == files


def test_local_clocks_give_no_order_but_utc_does() -> None:
    """Clocks that go back make later instants earlier times, so days by a local clock prove nothing."""
    assert kept("to_date(ts) = '2024-02-03'", timezone="Europe/Berlin") == [0, 1, 2]


def test_the_first_conjunct_that_excludes_a_file_is_named() -> None:
    bound = bind(parse("i >= 10 AND (s = 'bq' OR s = 'zz') AND d > 0"), SCHEMA)
    verdict = may_match(bound, STATS)
    assert verdict.keep.tolist() == [False, True, False]
    assert verdict.decided_by.tolist() == [0, -1, 1]
    assert len(bound.conjuncts) == 3


def float_stats(*files: tuple[Any, Any], **more: Any) -> FileStats:
    return FileStats(len(files), {"d": bounds(pa.float64(), *files, **more)})


@pytest.mark.parametrize(
    ("where", "footer", "aware"),
    [
        ("d > 5", [0, 1, 2, 3], [1, 2, 3]),
        ("d >= 5", [0, 1, 2, 3], [1, 2, 3]),
        ("d = 2", [0, 1, 2], [0, 1]),  # the third file is NaN only, which equals nothing but NaN; unaware, it has no bounds
        ("d < 2", [0, 1, 2], [0, 1]),
        ("NOT d < 5", [0, 1, 2, 3], [1, 2, 3]),
        ("NOT d <= 3", [0, 1, 2, 3], [1, 2, 3]),
        ("d = double('NaN')", [0, 1, 2, 3], [1, 2]),
        ("d <> double('NaN')", [0, 1, 2, 3], [0, 1, 3]),
        ("d BETWEEN 5 AND 6", [2], [1]),  # the upper end leaves NaN out; NaN as a maximum hides that of the numbers
        ("d > 5 AND d < 20", [2, 3], [1, 3]),
        ("d IN (2, 3)", [0, 1, 2], [0, 1]),
        ("d IN (99, double('NaN'))", [0, 1, 2, 3], [1, 2]),
        ("isnan(d)", [0, 1, 2, 3], [1, 2]),
    ],
)
def test_bounds_that_leave_nan_out_prove_less(where: str, footer: list[int], aware: list[int]) -> None:
    """Files: 1 to 3; 1 to 3 and NaN; NaN only; 10 to 11."""
    assert kept(where, float_stats((1.0, 3.0), (1.0, 3.0), (None, None), (10.0, 11.0))) == footer
    assert kept(where, float_stats((1.0, 3.0), (1.0, math.nan), (math.nan, math.nan), (10.0, 11.0), nan_aware=True)) == aware


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("CAST(l AS TINYINT) = 44", [0, 1]),  # 300 wraps around to 44
        ("CAST(i AS TINYINT) = 44", []),
        ("CAST(l AS SMALLINT) = 20", [0]),
        ("CAST(l AS BIGINT) = 44", [0]),
        ("CAST(d AS INT) = 2147483647", [1]),  # the nearest there is, for 3e9
        ("CAST(d AS INT) = 7", [1]),
        ("l + 9223372036854775507 < 0", [0]),
        ("l - 1 < 0", []),
    ],
)
def test_what_sessions_without_ansi_mode_let_wrap_around_is_kept(where: str, files: list[int]) -> None:
    columns = {
        "i": bounds(pa.int32(), (0, 43), (45, 127)),
        "l": bounds(pa.int64(), (5, 301), (200, 300)),
        "d": bounds(pa.float64(), (1.0, 5.0), (2e9, 3e9), nan_aware=True),
    }
    verdict = may_match(bind(parse(where), SCHEMA), FileStats(2, columns))
    assert np.flatnonzero(verdict.keep).tolist() == files


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("da < DATE '+10000-01-01'", [0, 1, 2]),
        ("da > DATE '+10000-01-01'", []),
        ("da = DATE '-0001-03-01'", []),
        ("da IN (DATE '+10000-01-01', DATE '2024-01-03')", [0]),
        ("da = DATE '+10000-01-01' OR da = DATE '2024-02-02'", [1]),
        ("ts <= TIMESTAMP '9999-12-31 23:59:59'", [0, 1, 2]),
        ("ts > TIMESTAMP '9999-12-31 23:59:59'", []),
        ("datediff(da, DATE '+10000-01-01') > 0", [0, 1, 2]),
    ],
)
def test_years_that_python_has_not_are_compared_too(where: str, files: list[int]) -> None:
    bound = bind(parse(where), SCHEMA, timezone="America/New_York")  # where the last second of 9999 is one of 10000 in UTC
    assert np.flatnonzero(may_match(bound, STATS).keep).tolist() == files
    assert equalities(bound).keys() <= {"da"}
    assert bind(parse(to_sql(bound.expr, exact=True)), SCHEMA).expr == bound.expr


def test_minus_zero_is_zero() -> None:
    assert kept("d > 0", float_stats((-0.0, -0.0), nan_aware=True)) == []
    assert kept("d = 0", float_stats((-0.0, -0.0), nan_aware=True)) == [0]


def test_counts_prove_nulls() -> None:
    low = high = pa.array([None, 1, None, None], pa.int32())
    rows = pa.array([5, 5, 5, 0])
    proven = FileStats(4, {"i": ColumnBounds(low, high, pa.array([5, 0, None, 0]), rows)})
    assert kept("i IS NULL", proven) == [0, 2]
    assert kept("i IS NOT NULL", proven) == [1, 2]
    assert kept("i = 1", proven) == [1, 2]
    assert kept("NOT i = 1", proven) == [2]
    assert kept("i <=> 1 OR l = 2", proven) == [0, 1, 2, 3]
    unknown = FileStats(4, {"i": ColumnBounds(low, high)})
    assert kept("i IS NULL", unknown) == [0, 1, 2, 3]
    assert kept("i = 2", unknown) == [0, 2, 3]


def test_nulls_are_there_although_the_count_of_values_leaves_them_out() -> None:
    """So Hudi before 1.0 counts in log files: three nulls alone are no value at all."""
    only_nulls = ColumnBounds(pa.nulls(1, pa.int32()), pa.nulls(1, pa.int32()), pa.array([3]), pa.array([0]))
    some_nulls = ColumnBounds(pa.array([1], pa.int32()), pa.array([2], pa.int32()), pa.array([3]), pa.array([2]))
    for known in (only_nulls, some_nulls):
        assert kept("i IS NULL", FileStats(1, {"i": known})) == [0]
    assert kept("i IS NOT NULL", FileStats(1, {"i": only_nulls})) == []
    assert kept("i = 1", FileStats(1, {"i": some_nulls})) == [0]


def test_bounds_that_contradict_counts_are_believed() -> None:
    odd = FileStats(1, {"i": ColumnBounds(pa.array([1], pa.int32()), pa.array([2], pa.int32()), pa.array([5]), pa.array([5]))})
    assert kept("i = 1", odd) == [0]


def test_cut_off_strings_are_bounds_of_all_that_they_may_continue() -> None:
    cut = FileStats(2, {"s": bounds(pa.string(), ("ab", "cd"), ("x", "xy"), truncated=np.array([True, False]))})
    assert kept("s = 'cdz'", cut) == [0]
    assert kept("s > 'cd'", cut) == [0, 1]
    assert kept("s > 'ce'", cut) == [1]
    assert kept("s > 'xy'", cut) == []
    assert kept("s LIKE 'cdq%'", cut) == [0]


def test_a_column_without_statistics_keeps_every_file() -> None:
    assert kept("l = 1", FileStats(2, {})) == [0, 1]
    assert kept("l = 1 AND i = 99", FileStats(1, {"i": bounds(pa.int32(), (0, 1))})) == []


def test_statistics_of_an_older_type_are_used_when_the_order_is_the_same() -> None:
    older = FileStats(2, {"l": bounds(pa.int32(), (0, 9), (10, 19)), "dec": bounds(pa.decimal128(30, 15), (1, 2), (3, 4))})
    assert kept("l = 15", older) == [1]
    assert kept("dec = 1.5", older) == [0]
    other = FileStats(2, {"l": bounds(pa.string(), ("0", "9"), ("10", "19")), "s": bounds(pa.int32(), (0, 9), (10, 19))})
    assert kept("l = 15", other) == [0, 1]
    assert kept("s = '15'", other) == [0, 1]


def test_statistics_of_an_expression_are_used_for_that_expression() -> None:
    expression = bind_value(parse("from_unixtime(l, 'MM/yyyy')"), SCHEMA).expr
    indexed = FileStats(2, expressions={expression: bounds(pa.string(), ("01/2024", "02/2024"), ("03/2024", "04/2024"))})
    assert kept("from_unixtime(l, 'MM/yyyy') = '03/2024'", indexed) == [1]
    assert kept("from_unixtime(l, 'yyyy') = '2024'", indexed) == [0, 1]


def test_texts_of_times_are_bounds_only_while_years_have_four_digits() -> None:
    far = 253_402_300_800  # 10000-01-01, whose text sorts before 9999
    stats = FileStats(2, {"l": bounds(pa.int64(), (0, far), (0, far - 1))})
    assert kept("from_unixtime(l, 'yyyy') > '9999'", stats) == [0]
    assert kept("from_unixtime(l, 'yyyy') < '1970'", stats) == [0]


def test_files_of_a_slice_are_judged_together() -> None:
    """Columns of an updated row may come from the base file and from a log file: neither file alone can be excluded."""
    columns = {
        "i": bounds(pa.int32(), (1, 1), (5, 5), (7, 8)),
        "s": ColumnBounds(pa.array(["a", "b", "a"]), pa.array(["a", "b", "c"]), pa.array([0, 0, 0]), pa.array([3, 3, 3])),
        "l": ColumnBounds(pa.array([1, None, 4]), pa.array([2, None, 4]), pa.array([0, 3, 0]), pa.array([3, 3, 3])),
        "d": ColumnBounds(pa.array([1.0, None, 4.0]), pa.array([2.0, None, math.nan]), None, None, nan_aware=True),
    }
    united = FileStats(3, {name: one.union(np.array([0, 0, 2]), 3) for name, one in columns.items()})
    assert kept("i = 1 AND s = 'b'", united) == [0]
    assert kept("i = 9", united) == []
    assert kept("l = 2", united) == [0]
    assert kept("l = 3", united) == []  # the log file holds only nulls
    assert kept("l IS NULL", united) == [0]
    assert kept("d > 99", united) == [0, 2]  # a file without bounds nor counts in one slice, NaN in the other
    assert kept("d < 3", united) == [0]


def test_a_hundred_thousand_files_take_no_more_steps_than_a_hundred() -> None:
    schema = pa.schema([(f"i{n}", pa.int64()) for n in range(8)] + [("s0", pa.string()), ("s1", pa.string())])
    one = bind(parse("i0 = 555"), schema)
    ten = bind(parse(" AND ".join(f"{name} >= {0 if name[0] == 'i' else repr('k')}" for name in schema.names)), schema)
    steps = []
    for count in (100, 100_000):
        low = np.arange(count, dtype=np.int64) * 10
        ints = ColumnBounds(pa.array(low), pa.array(low + 9), pa.array(np.zeros(count, np.int64)), pa.array(np.full(count, 10)))
        texts = ColumnBounds(pa.array([f"k{n:08d}" for n in low]), pa.array([f"k{n:08d}" for n in low + 9]))
        stats = FileStats(count, {name: ints if name.startswith("i") else texts for name in schema.names})
        assert may_match(one, stats).keep.sum() == 1
        assert may_match(ten, stats).keep.all()
        steps.append((_calls(lambda stats=stats: may_match(one, stats)), _calls(lambda stats=stats: may_match(ten, stats))))
    for few, many in zip(*steps, strict=True):
        assert many < 2 * few, "a call for each file would make a thousand times as many; a garbage collection adds some"


def _calls(run: Callable[[], object]) -> int:
    """How many functions a run calls, those of libraries included."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count
