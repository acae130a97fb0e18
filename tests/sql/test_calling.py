"""CALL as a value: names and expressions stay text."""

from __future__ import annotations

import pytest

from hudimeta.sql import CallProcedure, parse, target_of


def test_arguments_by_name_and_by_place() -> None:
    named = parse("CALL system.Show_Commits(table => 'a, b', limit => 1 + length('x,y'));")
    assert named == CallProcedure(("system", "Show_Commits"), (), (("table", "'a, b'"), ("limit", "1 + length('x,y')")))
    assert parse("call help()") == parse("call help;") == CallProcedure(("help",))
    assert parse("CALL p('t', -1)") == CallProcedure(("p",), ("'t'", "-1"))
    assert target_of("CALL p('t')") is None


def test_statements_about_compactions_are_calls() -> None:
    run = ("run_compaction",)
    assert parse("run compaction on a.`b'c`") == CallProcedure(run, (), (("op", "'run'"), ("table", "'`a`.`b\\'c`'")))
    planned = parse("SCHEDULE COMPACTION ON '/data/it\\'s' AT 20260102030405678")
    path, time = ("path", "'/data/it\\'s'"), ("timestamp", "20260102030405678")
    assert planned == CallProcedure(run, (), (("op", "'schedule'"), path, time))
    shown = parse("show compaction on hudimeta.`/t` limit 3")
    assert shown == CallProcedure(("show_compaction",), (), (("path", "'/t'"), ("limit", "3")))


@pytest.mark.parametrize(
    "text",
    [
        "CALL",
        "CALL p('a',)",
        "CALL p(a => )",
        "CALL p('a') x",
        "RUN COMPACTION",
        "RUN COMPACTION ON t AT now",
        "RUN COMPACTION ON t LIMIT 1",
        "SHOW COMPACTION ON t AT 1",
        "SCHEDULE COMPACTION ON t, u",
    ],
)
def test_what_is_no_call_is_left_to_spark(text: str) -> None:
    assert parse(text) is None
