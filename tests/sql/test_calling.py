"""CALL as a value: names and expressions stay text."""

from __future__ import annotations

import pytest

from hudimeta.sql import CallProcedure, parse, target_of


def test_arguments_by_name_and_by_place() -> None:
    named = parse("CALL system.Show_Commits(table => 'a, b', limit => 1 + length('x,y'));")
    assert named == CallProcedure(("system", "Show_Commits"), (), (("table", "'a, b'"), ("limit", "1 + length('x,y')")))
    assert parse("call help()") == CallProcedure(("help",))
    assert parse("CALL p('t', -1)") == CallProcedure(("p",), ("'t'", "-1"))
    assert target_of("CALL p('t')") is None


@pytest.mark.parametrize("text", ["CALL", "CALL p", "CALL p('a',)", "CALL p(a => )", "CALL p('a') x"])
def test_what_is_no_call_is_left_to_spark(text: str) -> None:
    assert parse(text) is None
