"""How the text of any statement is read: names, keywords, comments, constants, parameters and texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.sql import (
    CreateTable,
    Delete,
    Insert,
    MergeAction,
    MergeClause,
    MergeRows,
    MergeStatement,
    Optimize,
    Update,
    is_constant,
    named_parameters,
    parse,
    target_of,
    with_backticks,
    with_literals,
    without_database,
)
from tests.sql.test_parse import name


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("update db.t set x = db.t.x + 1 where `DB`.T.id = 3", "update db.t set x = t.x + 1 where T.id = 3"),
        ("delete from db.t where id in (select db.t.id from db.t)", "delete from db.t where id in (select t.id from db.t)"),
        ("delete from db.t where a.db.t.id = 'db.t.id' -- db.t.id", "delete from db.t where a.db.t.id = 'db.t.id' -- db.t.id"),
        ("delete from db.t where db.t", "delete from db.t where db.t"),
    ],
)
def test_columns_are_named_without_their_database(text: str, bare: str) -> None:
    assert without_database(text, name("db", "t")) == bare
    assert without_database(text, name("t")) == text


def test_question_marks_get_names_in_their_order() -> None:
    assert named_parameters("update t set a = ? where b = '?' -- ?\n and c = ?", [1, "x"]) == (
        "update t set a = :_hudimeta_0 where b = '?' -- ?\n and c = :_hudimeta_1",
        {"_hudimeta_0": 1, "_hudimeta_1": "x"},
    )
    assert named_parameters("select ?, ?", [1]) is None


WORDS = st.sampled_from(
    [
        "insert",
        "into",
        "t",
        "select",
        "(",
        ")",
        "'",
        '"',
        "`",
        ",",
        "=",
        "when",
        "matched",
        "then",
        "set",
        "*",
        "case",
        "end",
        ";",
    ]
    + ["--", "/*", "*/", "é", "values", "using", "on", "where", "update", "delete", "[", "{", "partition", "?", ":"]
)


@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    for beginning in ("", "insert into t ", "merge into t using s on ", "create table t using hudimeta ", "update t set "):
        parse(beginning + text)
        target_of(beginning + text)
        named_parameters(beginning + text, [])


@pytest.mark.parametrize(
    "text",
    [
        "/* a /* nested */ comment */ delete from t /* b /* c */ */ where id = 1",
        "-- a comment that goes on \\\n after the line\ndelete from t where id = 1",
        "delete from t -- that is \\\n where id = 2\n where id = 1",
        "delete from t where id = 1;;",
        "--c\r\ndelete/**/from/**/t where id = 1 /* ; */ ;",
    ],
)
def test_comments_stand_wherever_spark_takes_them(text: str) -> None:
    assert parse(text) == Delete(name("t"), None, "id = 1")
    assert target_of(text) == name("t")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "update t set end = 1, case = end where end = 2",
            Update(name("t"), None, ((("end",), "1"), (("case",), "end")), "end = 2"),
        ),
        ("update t set a = t.where where t.case = 1", Update(name("t"), None, ((("a",), "t.where"),), "t.case = 1")),
        (
            "update t set a == case when end = 1 then case else end end",
            Update(name("t"), None, ((("a",), "case when end = 1 then case else end end"),), None),
        ),
        ("insert into t (select, from) values (1, 2)", Insert(name("t"), "values (1, 2)", columns=("select", "from"))),
        ("insert into t (values) (select 1)", Insert(name("t"), "(select 1)", columns=("values",))),
        ("insert into t (table u)", Insert(name("t"), "(table u)")),
        ("insert into t () values (1)", None),
        (
            "merge into t using u on t.when = u.id when matched and u.then = when then update set when = u.when, b = when",
            MergeStatement(
                name("t"),
                None,
                "u",
                "u",
                "t.when = u.id",
                (
                    MergeClause(
                        MergeRows.MATCHED, MergeAction.UPDATE, "u.then = when", ((("when",), "u.when"), (("b",), "when"))
                    ),
                ),
            ),
        ),
    ],
)
def test_keywords_are_names_where_an_operand_must_come(text: str, found: object) -> None:
    assert parse(text) == found


@pytest.mark.parametrize(
    "text", ["('x')", "(1.5e3)", "cast(:p as decimal(9, 2))", "date'2026-01-02'", "f(null, x'00')", "1 / 0"]
)
def test_constants_name_no_column(text: str) -> None:
    assert is_constant(text)


@pytest.mark.parametrize("text", ["x", "`x` + 1", "t.x", "f(x)", "(select 1)", "{frame}", "case when x then 1 end", "'open"])
def test_what_may_name_a_column_is_no_constant(text: str) -> None:
    assert not is_constant(text)


def test_literals_stand_for_parameters() -> None:
    text = "create table t (i int comment :c, s struct<a:int>) using hudimeta location :l -- :c\n comment ':c' options (x = :x)"
    assert with_literals(text, {"c": "'it'", "l": "'/t'"}) == text.replace("comment :c", "comment 'it'").replace(":l", "'/t'")


def test_texts_side_by_side_are_one() -> None:
    made = parse("create table t (id int) using hudimeta comment 'it' \"'s\" location '/a' '/b' options (x = 'y' 'z', u 'v')")
    assert isinstance(made, CreateTable)
    assert (made.comment, made.location, made.options) == ("it's", "/a/b", {"x": "yz", "u": "v"})
    assert parse("create table t (id int) using hudimeta options (x = 'y' || 'z')") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('select "a" from "t"', "select `a` from `t`"),
        ('select "a""b", "c`d"', 'select `a"b`, `c``d`'),
        ('select \'"a"\', `"b` -- "c"', 'select \'"a"\', `"b` -- "c"'),
        ('select \'it\\\'s "a"\', "b"', "select 'it\\'s \"a\"', `b`"),
        ('select "open', 'select "open'),
        ('select "open"" from t', 'select "open"" from t'),
        ('select "a"""', 'select `a"`'),
    ],
)
def test_names_in_double_quotes_get_backticks(text: str, expected: str) -> None:
    assert with_backticks(text) == expected


def test_keywords_of_two_words_stand_where_they_are() -> None:
    text = "create table t (id int primary key) using hudimeta partitioned by (id)"
    made = parse(text)
    assert isinstance(made, CreateTable)
    assert (made.columns, made.partition_by) == ("id int primary key", ("id",))
    assert parse("optimize t where p = 1 group by") == Optimize(name("t"), "p = 1 group by", ())
