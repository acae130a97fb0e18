"""Whatever the predicate, a scan returns the rows for which plain Python finds it true, with statistics and without them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudimeta
from tests.acceptance.builders import small_files, value_of
from tests.examples import at_most
from tests.rotation import in_turn

Row = dict[str, Any]
UTC = dt.timezone.utc
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("digits", pa.string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("place", pa.struct([("n", pa.int32()), ("city", pa.string())])),
    ]
)
ADDED = pa.field("added", pa.int32())
LISTED = "id,i,l,f,d,s,digits,day,moment,flag,place.n,place.city"
TEXTS = ["", "a", "ab", "abc", "abd", "b", "Ab", "é", "日本", "😀", "z" * 80 + "1", "z" * 80 + "2", "100%", "a_c"]
DAY, MOMENT = dt.date(1969, 12, 28), dt.datetime(1969, 12, 30, tzinfo=UTC)


def some_rows(generator: random.Random, ids: list[int]) -> list[Row]:
    """Rows whose values lie near each other within a file, with nulls and NaN among them."""

    def perhaps(value: Any) -> Any:
        return None if generator.random() < 0.15 else value

    rows = []
    for number in ids:
        near = number // 4 + generator.randrange(3)
        floats = [near / 4, -near / 4, 0.0, -0.0, math.nan, math.inf, -math.inf]
        rows.append(
            {
                "id": number,
                "part": None if number % 5 == 4 else f"p{number % 5}",
                "i": perhaps(near - 5),
                "l": perhaps((near - 5) * 2**40),
                "f": perhaps(generator.choice(floats[: 1 if near % 3 else None])),
                "d": perhaps(generator.choice(floats[: 2 if near % 3 else None])),
                "s": perhaps(TEXTS[near % len(TEXTS)]),
                "digits": perhaps(str(near * 7)),
                "day": perhaps(DAY + dt.timedelta(days=near)),
                "moment": perhaps(MOMENT + dt.timedelta(hours=6 * near, microseconds=near)),
                "price": perhaps(decimal.Decimal(near * 25 - 100) / 100),
                "flag": perhaps(near % 7 < 4),
                "place": perhaps({"n": perhaps(near), "city": perhaps(TEXTS[near % 5])}),
            }
        )
    return rows


@dataclass(frozen=True)
class Model:
    """A table, with and without skipping, and its rows."""

    table: hudimeta.Table
    unskipped: hudimeta.Table
    rows: list[Row]


def build(path: Path, options: dict[str, str], **creation: Any) -> Model:
    """A table that was loaded, updated, shrunk and then given one more column."""
    generator = random.Random(11)
    model: dict[int, Row] = {}
    options = {**small_files(6), "hoodie.parquet.small.file.limit": "0", **options}
    hudimeta.Table.create(path, SCHEMA, key="id", options=options, **creation)

    def write(verb: str, rows: list[Row], schema: pa.Schema) -> None:
        getattr(hudimeta.Table(path, options), verb)(pa.Table.from_pylist(rows, schema=schema))
        model.update({row["id"]: {"added": None, **row} for row in rows})

    write("bulk_insert", some_rows(generator, list(range(120))), SCHEMA)
    write("upsert", some_rows(generator, [*range(20, 26), *range(120, 132)]), SCHEMA)
    hudimeta.Table(path, options).delete("id IN (3, 4, 50)")
    for gone in (3, 4, 50):
        del model[gone]
    wider = SCHEMA.append(ADDED)
    late = [{**row, "added": row["id"] % 4} for row in some_rows(generator, [*range(60, 63), *range(132, 144)])]
    write("upsert", late, wider)
    unskipped = hudimeta.Table(path, {"hoodie.enable.data.skipping": "false"})
    return Model(hudimeta.Table(path), unskipped, list(model.values()))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Model]:
    """One partition and several, in both forms of statistics."""
    home = tmp_path_factory.mktemp("answers")
    listed = {"hoodie.metadata.index.column.stats.column.list": LISTED}
    return [build(home / "one", listed), build(home / "many", {"hoodie.write.table.version": "9"}, partition_by="part")]


# Predicates in two forms: SQL, and a function of a row that gives True, False or None as SQL does.


@dataclass(frozen=True)
class Predicate:
    """A predicate and its meaning."""

    sql: str
    holds: Callable[[Row], bool | None]

    def __repr__(self) -> str:
        return self.sql


def order(value: Any) -> Any:
    """NaN is equal to itself and above every number; texts are ordered by code point, as Python does."""
    return (math.isnan(value), 0 if math.isnan(value) else value) if isinstance(value, float) else value


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
CONSTANTS: dict[str, list[Any]] = {
    "id": [-1, 0, 7, 21, 60, 125, 500],
    "part": ["p0", "p3", "", "zz"],
    "i": [-6, -5, 0, 3, 17, 40],
    "l": [-(2**42), 0, 2**40, 2**44, 2**62],
    "f": [0.0, -0.0, 1.25, -1.0, math.nan, math.inf],
    "d": [0.0, 2.5, -2.0, math.nan, -math.inf],
    "s": ["", "ab", "b", "é", "z" * 80 + "1", "zz", "😀"],
    "digits": ["", "14", "7", "98"],
    "day": [DAY, DAY + dt.timedelta(days=4), dt.date(2020, 2, 29)],
    "moment": [MOMENT, MOMENT + dt.timedelta(hours=12, microseconds=2), dt.datetime(2020, 1, 1, tzinfo=UTC)],
    "price": [decimal.Decimal("-0.25"), decimal.Decimal("0.00"), decimal.Decimal("1.50")],
    "place.n": [-1, 3, 12],
    "place.city": ["", "ab", "abd"],
    "added": [0, 2, 9],
}


def sql(value: Any) -> str:
    """A constant as Spark's SQL spells it."""
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    return f"CAST('{value}' AS DOUBLE)" if isinstance(value, float) else str(value)


def compared(text: str, read: Callable[[Row], Any], op: str, constant: Any) -> Predicate:
    def holds(row: Row) -> bool | None:
        value = read(row)
        return None if value is None else OPERATORS[op](order(value), order(constant))

    return Predicate(f"{text} {op} {sql(constant)}", holds)


def reader(column: str) -> Callable[[Row], Any]:
    return lambda row: value_of(row, column)


def cast_reader(column: str, convert: Callable[[Any], Any]) -> Callable[[Row], Any]:
    return lambda row: None if value_of(row, column) is None else convert(value_of(row, column))


CASTS: list[tuple[str, Callable[[Row], Any], list[Any]]] = [
    ("CAST(digits AS INT)", cast_reader("digits", int), [0, 14, 70, 99]),
    ("CAST(i AS STRING)", cast_reader("i", str), ["-1", "0", "10", "3"]),
    ("CAST(i AS DOUBLE)", cast_reader("i", float), [0.5, 3.0, -4.5]),
    ("CAST(moment AS DATE)", cast_reader("moment", lambda v: v.date()), [DAY + dt.timedelta(days=n) for n in (2, 3, 6)]),
    ("CAST(day AS STRING)", cast_reader("day", str), ["1969-12-31", "1970-01-02", "2"]),
    ("CAST(price AS INT)", cast_reader("price", int), [-1, 0, 1, 4]),
    ("CAST(l AS BIGINT) + 1", cast_reader("l", lambda v: v + 1), [1, 2**40 + 1]),
    ("year(day)", cast_reader("day", lambda v: v.year), [1969, 1970]),
    ("upper(place.city)", cast_reader("place.city", str.upper), ["AB", "ABD", "a"]),
]


def like(column: str, pattern: str) -> Predicate:
    expression = re.compile("".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern), re.DOTALL)
    read = reader(column)

    def holds(row: Row) -> bool | None:
        return None if read(row) is None else expression.fullmatch(read(row)) is not None

    return Predicate(f"{column} LIKE '{pattern}'", holds)


def is_null(column: str, wanted: bool) -> Predicate:
    read = reader(column)
    return Predicate(f"{column} IS {'' if wanted else 'NOT '}NULL", lambda row: (read(row) is None) is wanted)


def one_of(column: str, constants: list[Any], with_null: bool) -> Predicate:
    read, known = reader(column), {order(c) for c in constants}

    def holds(row: Row) -> bool | None:
        value = read(row)
        if value is None:
            return None
        return True if order(value) in known else (None if with_null else False)

    listed = [sql(c) for c in constants] + (["NULL"] if with_null else [])
    return Predicate(f"{column} IN ({', '.join(listed)})", holds)


def negated(inner: Predicate) -> Predicate:
    def holds(row: Row) -> bool | None:
        found = inner.holds(row)
        return None if found is None else not found

    return Predicate(f"NOT ({inner.sql})", holds)


def joined(word: str, parts: list[Predicate]) -> Predicate:
    decisive = word == "OR"

    def holds(row: Row) -> bool | None:
        found = [part.holds(row) for part in parts]
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    return Predicate(f" {word} ".join(f"({part.sql})" for part in parts), holds)


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    """One comparison, list, range, pattern, test for null, cast or flag."""
    kind = draw(st.sampled_from(["compare"] * 4 + ["in", "between", "like", "null", "cast", "cast", "flag", "nan"]))
    column = draw(st.sampled_from(sorted(CONSTANTS)))
    constant = draw(st.sampled_from(CONSTANTS[column]))
    if kind == "compare":
        return compared(column, reader(column), draw(st.sampled_from(sorted(OPERATORS))), constant)
    if kind == "in":
        return one_of(column, draw(st.lists(st.sampled_from(CONSTANTS[column]), min_size=1, max_size=3)), draw(st.booleans()))
    if kind == "between":
        high = draw(st.sampled_from(CONSTANTS[column]))
        both = joined("AND", [compared(column, reader(column), ">=", constant), compared(column, reader(column), "<=", high)])
        return Predicate(f"{column} BETWEEN {sql(constant)} AND {sql(high)}", both.holds)
    if kind == "like":
        patterns = ["a%", "ab%", "%b%", "_b", "a_c", "z%2", "", "%", "é%", "日%"]
        return like(draw(st.sampled_from(["s", "place.city", "part"])), draw(st.sampled_from(patterns)))
    if kind == "null":
        return is_null(draw(st.sampled_from([*sorted(CONSTANTS), "place", "flag"])), draw(st.booleans()))
    if kind == "cast":
        text, read, constants = draw(st.sampled_from(CASTS))
        return compared(text, read, draw(st.sampled_from(sorted(OPERATORS))), draw(st.sampled_from(constants)))
    if kind == "nan":
        return Predicate("isnan(d)", lambda row: row["d"] is not None and math.isnan(row["d"]))
    return Predicate("flag", reader("flag"))


predicates = st.recursive(
    leaves(),
    lambda inner: (
        st.builds(negated, inner) | st.builds(joined, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=3))
    ),
    max_leaves=5,
)


@settings(max_examples=at_most(80))
@given(predicate=predicates)
def test_scans_answer_as_plain_python_does(models: list[Model], predicate: Predicate) -> None:
    for model in in_turn(models, 2):
        expected = sorted(row["id"] for row in model.rows if predicate.holds(row))
        kept = []
        for table in (model.table, model.unskipped):
            scan = table.scan(where=predicate.sql, columns=["id"])
            assert sorted(scan.to_table().column("id").to_pylist()) == expected
            kept.append(scan.report.files_kept)
        assert kept[0] <= kept[1]


def test_the_predicates_do_skip(models: list[Model]) -> None:
    """The comparison above would prove nothing of skipping if nothing were skipped."""
    for model in models:
        for where in ("i = 3", "s LIKE 'abc%'", "moment < TIMESTAMP '1969-12-31 00:00:00'", "id > 130"):
            report = model.table.scan(where=where).report
            assert report.files_kept < report.files, where
    report = models[0].table.scan(where="place.n = 3").report
    assert report.files_kept < report.files, "a nested field that is listed has statistics"


def test_rows_come_back_as_they_were_written(models: list[Model]) -> None:
    """Every column of every row, nulls, NaN and the sign of zero included."""
    for model in models:
        found = model.table.scan(columns=[*SCHEMA.names, "added"]).to_table().sort_by("id")
        written = pa.Table.from_pylist(model.rows, schema=SCHEMA.append(ADDED)).sort_by("id")
        assert found.schema.types == written.schema.types
        assert repr(found.to_pylist()) == repr(written.to_pylist())
