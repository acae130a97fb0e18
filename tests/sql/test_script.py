"""Several statements in one text: lists of them, and scripts."""

from __future__ import annotations

import pytest

from hudimeta.sql import (
    Assign,
    Block,
    Choice,
    Declare,
    Execute,
    For,
    Handler,
    Jump,
    Loop,
    Run,
    Script,
    TableName,
    parse,
    split,
    texts_of,
)

SPLIT = {
    "select 1; select 2;": ["select 1", "select 2"],
    "select ';' ; -- ; here\n select `a;b` /* ; */;;": ["select ';'", "-- ; here\n select `a;b` /* ; */"],
    "update t set a = 1; begin delete from t; select 2; end": ["update t set a = 1", "begin delete from t; select 2; end"],
    "beginning; of": ["beginning", "of"],
    "select 1 /* ; /* ; */ ; */; select 2 -- to be \\\n; here": ["select 1 /* ; /* ; */ ; */", "select 2 -- to be \\\n; here"],
}


@pytest.mark.parametrize("text", SPLIT)
def test_statements_end_at_semicolons(text: str) -> None:
    assert list(split(text)) == SPLIT[text]


SCRIPTS = {
    "update t set a = ';'; delete from t;": (Run("update t set a = ';'"), Run("delete from t")),
    "declare x, `y z` int default 1; set x = 2; set var y = case x when 1 then 2 end; set hoodie.a = b;": (
        Declare(("x", "`y z`"), "int default 1"),
        Assign("x = 2"),
        Assign("y = case x when 1 then 2 end"),
        Run("SET hoodie.a = b"),
    ),
    "if a > case b when 1 then 2 end then delete from t; elseif (c) then select 1; else select 2; select 3; end if;": (
        Choice(
            "CASE WHEN (a > case b when 1 then 2 end) THEN 0 WHEN ((c)) THEN 1 ELSE 2 END",
            ((Run("delete from t"),), (Run("select 1"),), (Run("select 2"), Run("select 3"))),
        ),
    ),
    "case x when 1 then select 1; end case;": (Choice("CASE (x) WHEN (1) THEN 0 ELSE 1 END", ((Run("select 1"),), ())),),
    "o: while x < 3 do set x = x + 1; leave o; end while o;": (
        Loop("o", "x < 3", "", (Assign("x = x + 1"), Jump(False, "o"))),
    ),
    "repeat set x = 1; until x > 2 end repeat;": (Loop("", "", "x > 2", (Assign("x = 1"),)),),
    "o: loop iterate O; end loop;": (Loop("o", "", "", (Jump(True, "O"),)),),
    "for r as select 1 as a -- ; do\n do delete from t where id = a; end for;": (
        For("", "r", "select 1 as a", (Run("delete from t where id = a"),)),
    ),
    "a: begin select 1; end a;": (Block("a", (Run("select 1"),)),),
}


@pytest.mark.parametrize("body", SCRIPTS)
def test_the_flow_of_scripts_is_read(body: str) -> None:
    assert parse(f"BEGIN {body} END;") == Script(Block("", SCRIPTS[body]))


def test_handlers_name_errors_by_name_state_and_kind() -> None:
    text = """begin
        declare gone condition for sqlstate value '42p01';
        declare exit handler for gone, DIVIDE_BY_ZERO begin select 1; end;
        declare continue handler for sqlexception, not found, sqlstate '22012' set x = 1;
        delete from t;
    end"""
    found = parse(text)
    assert isinstance(found, Script)
    assert found.body.handlers == (
        Handler(("'42P01'", "DIVIDE_BY_ZERO"), False, (Block("", (Run("select 1"),)),)),
        Handler(("SQLEXCEPTION", "NOT FOUND", "'22012'"), True, (Assign("x = 1"),)),
    )
    assert list(texts_of((found.body,))) == ["delete from t", "select 1"]


LEFT_TO_SPARK = [
    "select 1",
    "select 1; declare x int;",
    "leave a;",
    "a: begin iterate a; end;",
    "a: begin select 1; end b;",
    "if x then end if;",
    "while x do select 1; end loop;",
    "declare exit handler for sqlexception select 1; declare x int;",
    "case when end case;",
]


@pytest.mark.parametrize("body", LEFT_TO_SPARK)
def test_what_does_not_fit_the_grammar_is_left_to_spark(body: str) -> None:
    assert parse(f"begin {body} end") is None


def test_execute_immediate_takes_any_expression() -> None:
    found = parse("execute immediate 'select ?, 2' into a, system.session.b using 1")
    into = (TableName(("a",)), TableName(("system", "session", "b")))
    assert found == Execute("'select ?, 2'", (("", "1"),), into, literal="select ?, 2")
    assert parse("execute immediate q") == Execute("q")
    assert parse("execute immediate session.q using (1 as n, m)") == Execute("session.q", (("n", "1"), ("", "m")))
    made = "concat('delete ', 'from t using ') || :rest"
    assert parse(f"execute immediate {made} into a") == Execute(made, into=into[:1])
    assert parse("execute immediate using 1") is None
