"""UPDATE, DELETE and MERGE."""

from __future__ import annotations

from itertools import pairwise

from hudimeta.sql.cursor import Cursor
from hudimeta.sql.relations import moment
from hudimeta.sql.statement import Assignments, Delete, MergeAction, MergeClause, MergeRows, MergeStatement, TableName, Update

__all__ = ["delete", "merge", "update"]

_ORDER = (MergeRows.MATCHED, MergeRows.NOT_MATCHED, MergeRows.NOT_MATCHED_BY_SOURCE)
"""The order in which Spark takes the clauses of MERGE."""


def update(cursor: Cursor) -> Update:
    """[WITH …] UPDATE name [[AS] alias] SET column = expression, … [WHERE condition]."""
    queries = cursor.queries()
    cursor.expect("UPDATE")
    name = TableName(cursor.dotted())
    alias = _alias(cursor, "SET")
    cursor.expect("SET")
    assignments = _assignments(cursor, "WHERE")
    where = cursor.rest() if cursor.accept("WHERE") else None
    cursor.finish()
    return Update(name, alias, assignments, where, queries)


def delete(cursor: Cursor) -> Delete:
    """[WITH …] DELETE FROM name [[AS] alias] [WHERE condition]."""
    queries = cursor.queries()
    cursor.expect("DELETE", "FROM")
    name = TableName(cursor.dotted())
    alias = _alias(cursor, "WHERE")
    where = cursor.rest() if cursor.accept("WHERE") else None
    cursor.finish()
    return Delete(name, alias, where, queries)


def merge(cursor: Cursor) -> MergeStatement:
    """[WITH …] MERGE [WITH SCHEMA EVOLUTION] INTO name [[AS] alias] USING source [[AS] alias] ON condition WHEN … THEN … …."""
    queries = cursor.queries()
    cursor.expect("MERGE")
    evolves = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    name = TableName(cursor.dotted())
    alias = _alias(cursor, "USING")
    cursor.expect("USING")
    source, source_alias = _source(cursor)
    cursor.expect("ON")
    on = cursor.until("WHEN")
    clauses: list[MergeClause] = []
    while not cursor.done:
        clauses.append(_clause(cursor))
    places = [_ORDER.index(clause.rows) for clause in clauses]
    unreached = any(one.condition is None and one.rows is other.rows for one, other in pairwise(clauses))
    if not clauses or places != sorted(places) or unreached:
        cursor.fail()  # Spark says what is missing, where it reads no further, or which clause no row comes to
    return MergeStatement(name, alias, source, source_alias, on, tuple(clauses), evolves, queries)


def _alias(cursor: Cursor, end: str) -> str | None:
    if cursor.accept("AS"):
        return cursor.identifier()
    return None if cursor.done or cursor.peek() == end else cursor.identifier()


def _source(cursor: Cursor) -> tuple[str, str | None]:
    """A query in parentheses, a table, or a DataFrame between braces, and its alias."""
    begin = cursor.at
    if cursor.accept("{"):
        frame = cursor.identifier()
        cursor.expect("}")
        return cursor.between(begin, cursor.at), _alias(cursor, "ON") or frame
    if cursor.peek() == "(":
        cursor.inside()
        return cursor.between(begin, cursor.at), _alias(cursor, "ON")
    parts = cursor.dotted()
    moment(cursor)
    text = cursor.between(begin, cursor.at)
    return text, _alias(cursor, "ON") or parts[-1]


def _assignments(cursor: Cursor, *ends: str) -> Assignments:
    found = []
    while True:
        column = cursor.dotted()
        cursor.expect("=")
        found.append((column, cursor.until(",", *ends)))
        if not cursor.accept(","):
            return tuple(found)


def _clause(cursor: Cursor) -> MergeClause:
    cursor.expect("WHEN")
    if cursor.accept("MATCHED"):
        rows = MergeRows.MATCHED
    else:
        cursor.expect("NOT", "MATCHED")
        rows = MergeRows.NOT_MATCHED_BY_SOURCE if cursor.accept("BY", "SOURCE") else MergeRows.NOT_MATCHED
        cursor.accept("BY", "TARGET")
    condition = cursor.until("THEN") if cursor.accept("AND") else None
    cursor.expect("THEN")
    if cursor.accept("DELETE") and rows is not MergeRows.NOT_MATCHED:
        return MergeClause(rows, MergeAction.DELETE, condition)
    if rows is MergeRows.NOT_MATCHED:
        cursor.expect("INSERT")
        return MergeClause(rows, MergeAction.INSERT, condition, None if cursor.accept("*") else _inserted(cursor))
    cursor.expect("UPDATE", "SET")
    every = cursor.accept("*")
    if every and rows is MergeRows.NOT_MATCHED_BY_SOURCE:
        cursor.fail()
    return MergeClause(rows, MergeAction.UPDATE, condition, None if every else _assignments(cursor, "WHEN"))


def _inserted(cursor: Cursor) -> Assignments:
    names = cursor.inside()
    columns = [names.dotted()]
    while names.accept(","):
        columns.append(names.dotted())
    names.finish()
    cursor.expect("VALUES")
    inside = cursor.inside()
    values = [inside.until(",")]
    while inside.accept(","):
        values.append(inside.until(","))
    inside.finish()
    if len(columns) != len(values):
        cursor.fail()
    return tuple(zip(columns, values, strict=True))
