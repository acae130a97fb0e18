"""SQL, JSON trees, tuples and Catalyst's text all come to the same tree; what is no predicate is refused by name."""

from __future__ import annotations

import datetime as dt
import decimal
import subprocess
import sys
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

from hudimeta.errors import ConfigError, PredicateError
from hudimeta.predicate import bind, bind_catalyst, parse, to_sql

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("ratio", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("ok", pa.bool_()),
        ("odd name", pa.int32()),
        ("v", pa.struct([("id", pa.int64()), ("deep", pa.struct([("x", pa.string())]))])),
    ]
)

pytestmark = pytest.mark.oldest


def sql(where: Any, **more: Any) -> str:
    return str(bind(parse(where), SCHEMA, **more))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("id == 5", "id = 5"),
        ("5 < id", "id > 5"),
        ("id != 5L", "id <> 5"),
        ("ID = 5S", "id = 5"),
        ("`odd name` <=> -3Y", "`odd name` <=> -3"),
        ("price > 1.505BD", "CAST(price AS DECIMAL(11,3)) > 1.505"),
        ("price = 1.50", "price = 1.50"),
        ("price < 2", "price < 2.00"),
        ("ratio >= 3D", "ratio >= 3.0"),
        ("id > 2.5", "id > 2"),
        ("id <= 2.5", "id <= 2"),
        ("id < -2.5", "id <= -3"),
        ("id BETWEEN 1 AND 3", "id >= 1 AND id <= 3"),
        ("NOT id BETWEEN 1 AND 3", "id < 1 OR id > 3"),
        ("id NOT IN (1, 2, 2)", "NOT (id IN (1, 2))"),
        ("id IN (7)", "id = 7"),
        ("NOT (id = 1 OR name IS NULL)", "id <> 1 AND name IS NOT NULL"),
        ("!ok", "NOT (ok)"),
        ("ok IS TRUE", "ok <=> TRUE"),
        ("id IS DISTINCT FROM 3", "NOT (id <=> 3)"),
        ("day > '2024-1-5'", "day > DATE '2024-01-05'"),
        ("day >= DATE '2024-01-05'", "day >= DATE '2024-01-05'"),
        ("at < TIMESTAMP '2024-01-05 10:00:00'", "at < TIMESTAMP '2024-01-05 10:00:00Z'"),
        ("at < '2024-01-05T10:00:00+02:00'", "at < TIMESTAMP '2024-01-05 08:00:00Z'"),
        ("name = 'it''s' ' so'", r"name = 'it\'s so'"),
        (r"name = 'a\tb\'c'", r"name = 'a\tb\'c'"),
        ('name = "double"', "name = 'double'"),
        (r"name LIKE 'a\_b%' OR name LIKE 'x!%' ESCAPE '!'", r"name LIKE 'a\\_b%' OR name LIKE 'x!%' ESCAPE '!'"),
        (r"name RLIKE r'^\d+$'", r"name RLIKE '^\\d+$'"),
        ("startswith(name, 'ab')", "startswith(name, 'ab')"),
        ("v.deep.x = 'q'", "v.deep.x = 'q'"),
        ("`v`.`deep`.`x` = 'q'", "v.deep.x = 'q'"),
        ("CAST(id AS string) = '5'", "CAST(id AS STRING) = '5'"),
        ("id::int = 5", "CAST(id AS INT) = 5"),
        ("CASE WHEN ok THEN 1 ELSE 2 END = 1", "if(ok, 1, 2) = 1"),
        ("EXTRACT(YEAR FROM day) = 2024", "year(day) = 2024"),
        ("day + 1 > '2024-01-01'", "date_add(day, 1) > DATE '2024-01-01'"),
        ("name || 'x' = 'ax'", "concat(name, 'x') = 'ax'"),
        ("id > 1 AND TRUE", "id > 1"),
        ("id > 1 OR 1 = 1", "TRUE"),
        ("id + 1 > 2 * 3", "(id + 1) > 6"),
        ("id = 1 -- the first\n AND ok /* and good */", "id = 1 AND ok"),
    ],
)
def test_sql_means(written: str, meant: str) -> None:
    bound = bind(parse(written), SCHEMA)
    assert str(bound) == meant
    assert bind(parse(to_sql(bound.expr, exact=True)), SCHEMA).expr == bound.expr


@pytest.mark.parametrize(
    ("where", "meant"),
    [
        ([("id", ">", 5), ("name", "in", ["a", "b"])], "id > 5 AND name IN ('a', 'b')"),
        (("id", "==", 5), "id = 5"),
        ([("name", "is not null")], "name IS NOT NULL"),
        ([("name", "not like", "a%")], "NOT (name LIKE 'a%')"),
        ([("id", "between", (1, 3))], "id >= 1 AND id <= 3"),
        ([("id", "not between", (1, 3))], "id < 1 OR id > 3"),
        ([[("id", "=", 5)], [("name", "=", "a"), ("ok", "=", True)]], "id = 5 OR (name = 'a' AND ok = TRUE)"),
        ([["id", "=", 5], ["name", "=", "a"]], "id = 5 AND name = 'a'"),
        ([("day", "in", np.array(["2024-01-05"], "datetime64[D]"))], "day = DATE '2024-01-05'"),
        ([("day", "=", np.datetime64("2024-02"))], "day = DATE '2024-02-01'"),
        ([("at", "<", np.datetime64("2024-01-05T00:00:00.000001000"))], "at < TIMESTAMP '2024-01-05 00:00:00.000001Z'"),
        ([("day", "<=>", np.datetime64("NaT", "D"))], "day <=> NULL"),
        ([("day", "<=>", pandas.NaT)], "day <=> NULL"),
        ([("v.deep.x", "!=", "q")], "v.deep.x <> 'q'"),
        ([("day", "=", dt.date(2024, 1, 5))], "day = DATE '2024-01-05'"),
        ([("price", "<", decimal.Decimal("1.5"))], "price < 1.50"),
        ([("at", "<", dt.datetime(2024, 1, 5, tzinfo=dt.timezone.utc))], "at < TIMESTAMP '2024-01-05 00:00:00Z'"),
        (["and", [">", {"col": "id"}, {"lit": 5}], ["not", ["in", {"col": "name"}, [{"lit": "a"}, {"lit": "b"}]]]],
         "id > 5 AND NOT (name IN ('a', 'b'))"),
        (["=", {"call": "lower", "args": [{"col": "name"}]}, {"lit": "a"}], "lower(name) = 'a'"),
        (["<", {"col": "price"}, {"lit": {"decimal": "1.50"}}], "price < 1.50"),
        ([">=", {"col": "day"}, {"lit": {"date": "2024-01-05"}}], "day >= DATE '2024-01-05'"),
        (["is null", {"col": "v.deep.x"}], "v.deep.x IS NULL"),
    ],
)  # fmt: skip
def test_trees_and_tuples_mean(where: Any, meant: str) -> None:
    assert sql(where) == meant


@pytest.mark.parametrize(
    ("where", "part"),
    [
        ("", "empty"),
        ("id = ", "Required keyword"),
        ("(id = 1", "Expecting )"),
        ("name = 'open", "quote"),
        ("id = 1; id = 2", "more than one statement"),
        ("id IN (SELECT 1)", "SELECT 1"),
        ("sum(id) > 1", "sum"),
        ("id = 1 AS x", "AS x"),
        ("id = 1 y", "y"),
        ("day > day - INTERVAL 1 DAY", "INTERVAL"),
        ("idd = 1", "'id'"),
        ("v.deep.y = 1", "'v.deep.x'"),
        ("uper(name) = 'A'", "'upper'"),
        ("ok > 1", "BOOLEAN and INT"),
        ("day = 5", "DATE and INT"),
        ("v = 1", "STRUCT"),
        ("id + 1", "BIGINT"),
        ("id = 'five'", "five"),
        ("day = 'tomorrow'", "tomorrow"),
        ("name LIKE name", "constant pattern"),
        ("date_format(at, 'VV') = 'x'", "VV"),
        ("300Y = id", "300"),
        ("name RLIKE '('", "'('"),
        ("regexp_extract(name, '(a)', 2) = 'a'", "group"),
        ("substring(name) = 'x'", "1 arguments"),
        ("id = :parameter", ":parameter"),
        ("CAST(id AS ARRAY<INT>) IS NULL", "ARRAY"),
        ([("id", "~", 5)], "~"),
        ([("id",)], "id"),
        ([("id", "in", "abc")], "list"),
        ([("id", "between", [1])], "lowest and the highest"),
        ([("id", "between", [1, 2, 3])], "lowest and the highest"),
        ([("id", "is null", False)], "takes no value"),
        (["=", {"col": "id"}, {"lit": 1}, {"lit": 2}], "3 arguments"),
        (["not", {"col": "ok"}, {"col": "ok"}], "2 arguments"),
        ([("at", "=", np.datetime64("2024-01-05T00:00:00.000000001"))], "microseconds"),
        ([("at", "=", np.datetime64("20000-01-05"))], "years 1 to 9999"),
        ([("at", "=", pandas.Timestamp("2024-01-05 00:00:00.000000001"))], "nanoseconds"),
        ([("at", "=", pa.scalar(1, pa.timestamp("ns")))], "would lose data"),
        ([("id", "=", object())], "constant"),
        (["wat", {"col": "id"}, {"lit": 1}], "wat"),
        (b"id = 1", "id = 1"),
    ],
)
def test_what_is_no_predicate_is_refused_by_name(where: Any, part: str) -> None:
    with pytest.raises(ConfigError) as error:
        sql(where)
    assert part in str(error.value)
    assert str(error.value).startswith("HUDIMETA_CONFIG:")


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(ConfigError):
        sql("NOT (" * 5000 + "id = 1" + ")" * 5000)


def test_a_name_is_found_regardless_of_case_unless_two_are_alike() -> None:
    alike = pa.schema([("a", pa.int32()), ("A", pa.int32()), ("Bc", pa.int32())])
    assert str(bind(parse("a = 1 AND A = 2 AND bC = 3"), alike)) == "a = 1 AND A = 2 AND Bc = 3"
    with pytest.raises(ConfigError, match="can mean"):
        bind(parse("b = 1"), pa.schema([("B", pa.int32()), ("b ", pa.int32()), ("B", pa.int32())]))


def test_catalyst_text_is_read_with_its_alias() -> None:
    texts = ["(w.id < 10L)", "((w.name = 'zz') OR (spark_catalog.default.t.id IN (1L, 2L)))", "(w.name IS NOT NULL)"]
    texts += ["myudf(w.id)"]
    bound, unknown = bind_catalyst(texts, SCHEMA)
    assert str(bound) == "id < 10 AND (name = 'zz' OR id IN (1, 2)) AND name IS NOT NULL"
    assert unknown == ("myudf(w.id)",)


def test_what_is_understood_of_catalyst_text_is_kept() -> None:
    texts = ["((id < 10L) AND (odd(id) = 1))", "((id = 1L) OR ((id = 5L) AND odd(id)))", "((id = 1L) OR odd(id))"]
    bound, unknown = bind_catalyst([*texts, "(NOT ((id < 10L) AND odd(id)))"], SCHEMA)
    assert str(bound) == "id < 10 AND (id = 1 OR id = 5)"
    assert unknown == (*texts, "(NOT ((id < 10L) AND odd(id)))")


def test_catalyst_text_that_can_mean_two_columns_skips_nothing() -> None:
    """`v.id` is the field of the column v, or the column id of the relation v."""
    bound, unknown = bind_catalyst(["(v.id = 1L)", "(v.deep.x = 'q')"], SCHEMA)
    assert unknown == ("(v.id = 1L)",)
    assert str(bound) == "v.deep.x = 'q'"


def test_times_without_a_zone_are_those_of_the_session() -> None:
    assert sql("at = '2024-07-01 12:00:00'", timezone="Europe/Berlin") == "at = TIMESTAMP '2024-07-01 10:00:00Z'"
    with pytest.raises(ConfigError):
        sql("id = 1", timezone="Europe/Atlantis")


def test_reports_show_the_begin_of_long_lists() -> None:
    shown = sql([("id", "in", list(range(1000)))])
    assert shown.startswith("id IN (0, 1, 2")
    assert shown.endswith("… 980 more)")


def test_the_parser_is_loaded_only_for_text() -> None:
    program = (
        "import sys, pyarrow as pa; from hudimeta.predicate import bind, evaluate, parse;"
        "t = pa.table({'a': [1, 2]}); evaluate(bind(parse([('a', '>', 1)]), t.schema), t); sys.exit('sqlglot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("given", [{"fare": 3}, [">", {"fare": 3}, {"lit": 1}], {"call": "abs"}], ids=str)
def test_a_mapping_that_is_no_part_of_a_tree_says_what_would_be(given: Any) -> None:
    with pytest.raises(PredicateError, match="A mapping has a column as 'col', a constant as 'lit'"):
        parse(given)
