"""DEFAULT in declarations and in the place of values."""

from __future__ import annotations

import pytest

from hudimeta.sql import AlterTable, ColumnPlace, parse, with_defaults, without_defaults

DECLARED = {
    "id INT, n INT DEFAULT 3": ("id INT, n INT", {"n": "3"}),
    "id INT, n INT NOT NULL DEFAULT 3 + 4 COMMENT 'default 5', m DATE DEFAULT current_date()": (
        "id INT, n INT NOT NULL  COMMENT 'default 5', m DATE",
        {"n": "3 + 4", "m": "current_date()"},
    ),
    "m map<string, array<int>> DEFAULT map(), `default` decimal(5, 2) DEFAULT 1.5 NOT NULL": (
        "m map<string, array<int>> , `default` decimal(5, 2)  NOT NULL",
        {"m": "map()", "default": "1.5"},
    ),
    "default INT, s STRING COMMENT 'no DEFAULT 3'": ("default INT, s STRING COMMENT 'no DEFAULT 3'", {}),
    "s STRING DEFAULT": ("s STRING DEFAULT", {}),
}


@pytest.mark.parametrize("text", DECLARED)
def test_default_values_are_taken_out_of_declarations(text: str) -> None:
    columns, defaults = without_defaults(text)
    expected, found = DECLARED[text]
    assert (columns.split(), defaults) == (expected.split(), found)


QUERIES = {
    "VALUES (1, DEFAULT), (default, 2)": "VALUES (1, (b)), ((a), 2)",
    "values (1, f(2, default), default)": "values (1, f(2, default), (c))",
    "SELECT 1, DEFAULT FROM t WHERE x = DEFAULT": "SELECT 1, (b) FROM t WHERE x = DEFAULT",
    "WITH q AS (SELECT DEFAULT) SELECT DEFAULT, x FROM q": "WITH q AS (SELECT DEFAULT) SELECT (a), x FROM q",
    "SELECT *, DEFAULT FROM t": "SELECT *, DEFAULT FROM t",
    "SELECT 1, DEFAULT + 1": "SELECT 1, DEFAULT + 1",
    "SELECT 1, DEFAULT UNION ALL SELECT DEFAULT, 2": "SELECT 1, (b) UNION ALL SELECT (a), 2",
    "VALUES ('DEFAULT', `default`)": "VALUES ('DEFAULT', `default`)",
    "SELECT a.x, count(*), DEFAULT FROM a": "SELECT a.x, count(*), (c) FROM a",
    "VALUES (1, 2, 3, DEFAULT)": "VALUES (1, 2, 3, DEFAULT)",
}


@pytest.mark.parametrize("text", QUERIES)
def test_the_word_stands_for_the_value_of_its_column(text: str) -> None:
    assert with_defaults(text, ["a", "b", "c"]) == QUERIES[text]


def test_columns_get_defaults_and_places() -> None:
    def altered(what: str) -> AlterTable:
        found = parse(f"ALTER TABLE t ALTER COLUMN {what}")
        assert isinstance(found, AlterTable)
        return found

    assert altered("n SET DEFAULT 3 + 4").default == ("n", "3 + 4")
    assert altered("n DROP DEFAULT").default == ("n", None)
    assert altered("s.a FIRST, `b` AFTER c").move == {"s.a": ColumnPlace(None), "b": ColumnPlace("c")}
