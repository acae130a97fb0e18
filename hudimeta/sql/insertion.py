"""INSERT INTO and INSERT OVERWRITE, also after a WITH."""

from __future__ import annotations

from hudimeta.sql.cursor import Cursor
from hudimeta.sql.statement import Insert, PartitionValues, TableName

__all__ = ["insert", "partition_values"]

_QUERY = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(", "MAP", "REDUCE")


def insert(cursor: Cursor) -> Insert:
    """[WITH …] INSERT INTO|OVERWRITE [TABLE] name [PARTITION (…)] [(columns)|BY NAME] [REPLACE WHERE condition] query."""
    before = cursor.queries()
    cursor.expect("INSERT")
    overwrite = cursor.accept("OVERWRITE")
    into = cursor.accept("INTO")
    if not overwrite and not into:
        cursor.fail()
    cursor.accept("TABLE")
    name = TableName(cursor.dotted())
    partition = partition_values(cursor.inside()) if cursor.accept("PARTITION") else None
    by_name = cursor.accept("BY", "NAME")
    replaces = not overwrite and cursor.accept("REPLACE", "WHERE")
    where = cursor.until(*(word for word in _QUERY if word != "(")) if replaces else None
    columns = _columns(cursor.inside()) if cursor.peek() == "(" and cursor.peek(1) not in _QUERY else None
    if cursor.peek() not in _QUERY:
        cursor.fail()
    query = f"{before} {cursor.rest()}".strip()
    return Insert(name, query, overwrite, columns, by_name, partition, where)


def _columns(inside: Cursor) -> tuple[str, ...]:
    names = [inside.identifier()]
    while inside.accept(","):
        names.append(inside.identifier())
    inside.finish()
    return tuple(names)


def partition_values(inside: Cursor) -> PartitionValues:
    """What stands in the parentheses of PARTITION."""
    found: list[tuple[str, str | None]] = []
    while True:
        name = inside.identifier()
        if name.lower() in (other.lower() for other, _ in found):
            inside.fail()  # Spark refuses a column that comes twice
        found.append((name, inside.until(",") if inside.accept("=") else None))
        if not inside.accept(","):
            inside.finish()
            return tuple(found)
