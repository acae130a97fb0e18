"""Columns as ALTER TABLE declares them: a name, a type, and what else is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudimeta.sql.cursor import Cursor

__all__ = ["AFTER_TYPE", "ColumnPlace", "DeclaredColumn", "column_place", "declared_column", "declared_columns", "skip_type"]

AFTER_TYPE = ("NOT", "NULL", "COMMENT", "DEFAULT", "FIRST", "AFTER", ",")
"""Words that follow a column's type in declarations."""
_AFTER_DEFAULT = ("NOT", "COMMENT", "FIRST", "AFTER", ",")


@dataclass(frozen=True)
class ColumnPlace:
    """Where a column shall stand: after another one of its level; None for the first place."""

    after: str | None


@dataclass(frozen=True)
class DeclaredColumn:
    """A column as ALTER TABLE declares it.

    Attributes:
        path: Its name; more parts for a field of a struct.
        kind: Text of its type.
        required: NOT NULL.
        default: Text of its default value; None without.
        comment: None without.
        place: None where nothing is said.
    """

    path: tuple[str, ...]
    kind: str
    required: bool = False
    default: str | None = None
    comment: str | None = None
    place: ColumnPlace | None = None


def declared_columns(cursor: Cursor) -> Iterator[DeclaredColumn]:
    """One column after another, up to the end. Raises Unread for anything else."""
    yield declared_column(cursor, cursor.dotted())
    while cursor.accept(","):
        yield declared_column(cursor, cursor.dotted())
    cursor.finish()


def declared_column(cursor: Cursor, path: tuple[str, ...]) -> DeclaredColumn:
    """What follows a column's name: its type, then NOT NULL, DEFAULT, COMMENT and its place, each once at most.

    Args:
        cursor: After the name.
        path: The name.

    Raises:
        Unread: For anything else.
    """
    begin = cursor.at
    skip_type(cursor, *AFTER_TYPE)
    kind = cursor.between(begin, cursor.at)
    required, default, comment, place = False, None, None, None
    while not cursor.done and cursor.peek() != ",":
        if not required and cursor.accept("NOT", "NULL"):
            required = True
        elif default is None and cursor.accept("DEFAULT"):
            default = cursor.until(*_AFTER_DEFAULT)
        elif comment is None and cursor.accept("COMMENT"):
            comment = cursor.string()
        elif place is None:
            place = column_place(cursor)
        else:
            cursor.fail()
    return DeclaredColumn(path, kind, required, default, comment, place)


def column_place(cursor: Cursor) -> ColumnPlace:
    """FIRST | AFTER name. Raises Unread for anything else."""
    if cursor.accept("FIRST"):
        return ColumnPlace(None)
    cursor.expect("AFTER")
    return ColumnPlace(cursor.identifier())


def skip_type(cursor: Cursor, *ends: str) -> None:
    """Step over a type, up to one of these words outside of its own brackets, or to the end."""
    angles = 0
    while not cursor.done and not (angles == 0 and cursor.peek() in ends):
        if cursor.peek() == "(":
            cursor.inside()
        else:
            word = cursor.next()
            angles += (word.upper.count("<") - word.upper.count(">")) * (word.kind == "mark")
