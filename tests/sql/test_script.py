"""Several statements in one text."""

from __future__ import annotations

import pytest

from hudimeta.sql import Execute, Script, TableName, parse, split

SPLIT = {
    "select 1; select 2;": ["select 1", "select 2"],
    "select ';' ; -- ; here\n select `a;b` /* ; */;;": ["select ';'", "-- ; here\n select `a;b` /* ; */"],
    "update t set a = 1; begin delete from t; select 2; end": ["update t set a = 1", "begin delete from t; select 2; end"],
    "beginning; of": ["beginning", "of"],
}


@pytest.mark.parametrize("text", SPLIT)
def test_statements_end_at_semicolons(text: str) -> None:
    assert list(split(text)) == SPLIT[text]


def test_compound_statements_are_read_as_far_as_they_are_lists() -> None:
    assert parse("BEGIN update t set a = ';'; delete from t; END;") == Script(("update t set a = ';'", "delete from t"))
    for flow in ("declare x int; delete from t;", "if true then delete from t; end if;", "a: begin delete from t; end a;", ""):
        assert parse(f"begin {flow} end") is None, flow


def test_rows_go_into_variables() -> None:
    found = parse("execute immediate 'select ?, 2' into a, system.session.b using 1")
    assert found == Execute("select ?, 2", (("", "1"),), (TableName(("a",)), TableName(("system", "session", "b"))))
