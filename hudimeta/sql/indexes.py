"""CREATE INDEX, DROP INDEX and REFRESH INDEX."""

from __future__ import annotations

from hudimeta.sql.cursor import Cursor
from hudimeta.sql.definition import properties
from hudimeta.sql.statement import CreateIndex, DropIndex, RefreshIndex, TableName

__all__ = ["create_index", "drop_index", "refresh_index"]


def create_index(cursor: Cursor) -> CreateIndex:
    """CREATE INDEX [IF NOT EXISTS] index ON [TABLE] name [USING kind] (column [OPTIONS (…)], …) [OPTIONS (…)]."""
    cursor.expect("CREATE", "INDEX")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    index = cursor.identifier()
    name = _table(cursor)
    kind = cursor.identifier().lower() if cursor.accept("USING") else ""
    inside = cursor.inside()
    columns, options = [], {}
    while True:
        columns.append(".".join(inside.dotted()))
        if inside.accept("OPTIONS"):
            options.update(_options(inside.inside()))
        if not inside.accept(","):
            break
    inside.finish()
    if cursor.accept("OPTIONS"):
        options.update(_options(cursor.inside()))
    cursor.finish()
    return CreateIndex(name, index, kind, tuple(columns), options, if_not_exists)


def drop_index(cursor: Cursor) -> DropIndex:
    """DROP INDEX [IF EXISTS] index ON [TABLE] name."""
    cursor.expect("DROP", "INDEX")
    if_exists = cursor.accept("IF", "EXISTS")
    index = cursor.identifier()
    name = _table(cursor)
    cursor.finish()
    return DropIndex(name, index, if_exists)


def refresh_index(cursor: Cursor) -> RefreshIndex:
    """REFRESH INDEX index ON [TABLE] name."""
    cursor.expect("REFRESH", "INDEX")
    index = cursor.identifier()
    name = _table(cursor)
    cursor.finish()
    return RefreshIndex(name, index)


def _options(inside: Cursor) -> dict[str, str]:
    """What stands in OPTIONS, whose names Spark compares without regard to case."""
    found = properties(inside)
    lower = {key.lower(): value for key, value in found.items()}
    return lower if len(lower) == len(found) else inside.fail()


def _table(cursor: Cursor) -> TableName:
    cursor.expect("ON")
    cursor.accept("TABLE")
    return TableName(cursor.dotted())
