"""INSERT INTO and INSERT OVERWRITE, also after a WITH, and after a FROM that several of them share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudimeta.sql.cursor import Cursor
from hudimeta.sql.statement import Insert, PartitionValues, TableName

__all__ = ["InsertEach", "insert", "insert_from", "partition_values"]

_AFTER_FROM = ("SELECT", "MAP", "REDUCE")
_QUERY = (*_AFTER_FROM, "WITH", "VALUES", "FROM", "TABLE", "(")
_INTO = ("INTO", "OVERWRITE")


@dataclass(frozen=True)
class InsertEach:
    """FROM source INSERT … INSERT …. inserts: Each with a query of its own, in their order; two or more."""

    inserts: tuple[Insert, ...]

    @property
    def name(self) -> TableName:
        """The first table."""
        return self.inserts[0].name


def insert(cursor: Cursor) -> Insert:
    """[WITH …] INSERT INTO [TABLE] name [PARTITION (…)] [(columns)|BY NAME] [REPLACE WHERE condition] query.

    Also INSERT OVERWRITE, with IF NOT EXISTS after PARTITION.
    """
    before = cursor.queries()
    cursor.expect("INSERT")
    overwrite = cursor.accept("OVERWRITE")
    into = cursor.accept("INTO")
    if not overwrite and not into:
        cursor.fail()
    cursor.accept("TABLE")
    name = TableName(cursor.dotted())
    partition = partition_values(cursor.inside()) if cursor.accept("PARTITION") else None
    absent = overwrite and partition is not None and cursor.accept("IF", "NOT", "EXISTS")
    if absent and any(value is None for _, value in partition or ()):
        cursor.fail()  # Spark refuses it
    by_name = cursor.accept("BY", "NAME")
    replaces = not overwrite and cursor.accept("REPLACE", "WHERE")
    where = cursor.until(*(word for word in _QUERY if word != "(")) if replaces else None
    columns = _columns(cursor)
    if cursor.peek() not in _QUERY or (by_name and columns is not None):
        cursor.fail()
    query = f"{before} {cursor.rest()}".strip()
    return Insert(name, query, overwrite, columns, by_name, partition, where, absent)


def insert_from(cursor: Cursor) -> Insert | InsertEach:
    """[WITH …] FROM source INSERT … SELECT … [INSERT … SELECT …]: each SELECT reads the source."""
    before = cursor.queries()
    source = _up_to_insert(cursor)
    found = []
    while not cursor.done:
        begin = cursor.at
        cursor.expect("INSERT")
        _up_to_insert(cursor)
        one = insert(Cursor(cursor.text, cursor.words[begin : cursor.at]))
        if not one.query.upper().startswith(_AFTER_FROM):
            cursor.fail()
        found.append(replace(one, query=f"{before} {source} {one.query}".strip()))
    if not found:
        cursor.fail()
    return found[0] if len(found) == 1 else InsertEach(tuple(found))


def _up_to_insert(cursor: Cursor) -> str:
    """The text before the next INSERT INTO or OVERWRITE outside of parentheses, or before the end."""
    begin = cursor.at
    while not cursor.done:
        cursor.until("INSERT")
        if cursor.done or cursor.peek(1) in _INTO:
            break
        cursor.next()  # a column or an alias of this name
    return cursor.between(begin, cursor.at)


def _columns(cursor: Cursor) -> tuple[str, ...] | None:
    """The columns in parentheses that come next; None where a query does, in parentheses or not."""
    if cursor.peek() != "(":
        return None
    begin = cursor.at
    inside = cursor.inside()
    names = inside.words[::2]
    are_names = all(word.kind in ("name", "word") for word in names) and all(word.upper == "," for word in inside.words[1::2])
    if len(inside.words) % 2 and are_names and cursor.peek() in _QUERY:
        return tuple(word.text for word in names)
    if inside.peek() not in _QUERY:
        cursor.fail()
    cursor.at = begin
    return None


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
