"""The tables that a text reads: by name, moment and place, wherever a query may name them."""

from __future__ import annotations

import pytest

from hudimeta.sql import (
    CreateIndex,
    DropIndex,
    RefreshIndex,
    TableName,
    function_tables,
    identifier_calls,
    parse,
    references,
    target_of,
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "select * from a timestamp as of '2020' x join b version as of 1, c where a.x in (select y from d) order by e, f",
            ["a timestamp as of '2020'", "b version as of 1", "c", "d"],
        ),
        ("with q as (select 1) select extract(year from ts) from q join hudimeta.`/x/y` z", ["hudimeta.`/x/y`"]),
        ("with q (n) as (select 1 from t), r as (select 2) select * from q, r, u", ["t", "u"]),
        ("select * from (e join f on 1 = 1), (g) union all from h select i", ["e", "f", "g", "h"]),
        (
            "select 1 from s for system_time as of cast('x' as date) where a",
            ["s for system_time as of cast('x' as date)"],
        ),
        (
            "select 1 from s timestamp as of date_sub(current_date(), 1) - interval '1' day limit 2",
            ["s timestamp as of date_sub(current_date(), 1) - interval '1' day"],
        ),
        ("select 1 from s timestamp as of :moment where a", ["s timestamp as of :moment"]),
        ("select * from t lateral view explode(x) e as a, b join u", ["t", "u"]),
        ("insert into p select 'from x', /* from y */ z from t", ["t"]),
        ("select * from range(3), values (1), t", ["t"]),
        ("select 1 from order join when w on 1 = 1, set where a order by b", ["order", "when", "set"]),
        ("select ) from t", []),
    ],
)
def test_tables_that_a_text_reads(text: str, read: list[str]) -> None:
    assert [text[one.start : one.end] for one in references(text)] == read


def test_what_is_known_of_a_reference() -> None:
    text = "select * from a version as of 7 as x join b on 1 = 1 join `c d` using (e) join f `g`"
    found = {one.name.table: (one.moment, one.by_version, one.has_alias) for one in references(text)}
    assert found == {"a": ("7", True, True), "b": (None, False, False), "c d": (None, False, False), "f": (None, False, True)}


@pytest.mark.parametrize("sample", ["(5 rows)", "(10 percent) repeatable (3)", "(bucket 1 out of (2) on rand())"])
def test_an_alias_stands_after_a_sample(sample: str) -> None:
    text = f"select * from a version as of 7 tablesample {sample} x join b timestamp as of '2020' tablesample {sample} where c"
    named, bare = references(text)
    assert (named.has_alias, bare.has_alias) == (True, False)
    assert [text[: one.alias_at].endswith(sample) for one in (named, bare)] == [True, True]
    assert [text[one.start : one.end] for one in (named, bare)] == ["a version as of 7", "b timestamp as of '2020'"]


def test_statements_of_indexes() -> None:
    t = TableName(("db", "t"))
    options = {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    text = (
        "CREATE INDEX IF NOT EXISTS i ON TABLE db.t USING Column_Stats(ts) OPTIONS(expr='from_unixtime', format 'yyyy-MM-dd')"
    )
    assert parse(text) == CreateIndex(t, "i", "column_stats", ("ts",), options, True)
    assert parse("create index i on db.t (a, b.c)") == CreateIndex(t, "i", "", ("a", "b.c"), {})
    assert parse("drop index if exists i on db.t") == DropIndex(t, "i", True)
    assert parse("refresh index i on db.t") == RefreshIndex(t, "i")
    for text in ("create index i on db.t (a)", "drop index i on db.t", "refresh index i on db.t", "show indexes from db.t"):
        assert target_of(text) == t
    for text in ("create index on t", "drop index i", "refresh table t", "refresh index", "create table index (a int)"):
        assert target_of(text) is None


def test_calls_of_identifier_are_found_with_their_arguments() -> None:
    text = "update Identifier(:t) set x = 'identifier(' where identifier('a' || lower('B')) = 1 -- identifier(z)"
    found = identifier_calls(text)
    assert [argument for argument, *_ in found] == [":t", "'a' || lower('B')"]
    assert [text[start:end] for _, start, end in found] == ["Identifier(:t)", "identifier('a' || lower('B'))"]
    assert identifier_calls("select `identifier` (1), identifier, 'open") == []


FUNCTIONS = {"hudi_timeline": {"path": 0}, "hudi_table_changes": {"path": 0}, "both": {"path": 0, "query_path": 2}}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("select * from hudi_timeline('t'), HUDI_TIMELINE ( 'db.u', true ) where x = 'hudi_timeline(''v'')'", ["t", "db.u"]),
        ("select * from hudi_table_changes(query_type => 'cdc', begin => f(1, 2), path => 't')", ["t"]),
        ("select * from both('t', 'c', 'u', 'd', 5), both(query_path => 'v', k => g('w'), path => 'x')", ["t", "u", "v", "x"]),
        ("select * from hudi_timeline('t' || 'u')", []),
        ("select * from hudi_timeline(:name) join other('t')", []),
        ("select hudi_timeline from hudi_timeline", []),
    ],
)
def test_tables_of_table_functions_are_found(text: str, named: list[str]) -> None:
    found = function_tables(text, FUNCTIONS)
    assert [name for name, _, _ in found] == named
    assert [text[start:end] for _, start, end in found] == [f"'{name}'" for name in named]
