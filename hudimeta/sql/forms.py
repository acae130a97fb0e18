"""Statements that Spark does not know, as far as their table: for errors that say how the whole of them is written."""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.sql.cursor import Cursor, Unread
from hudimeta.sql.statement import TableName

__all__ = ["Form", "form_of"]


@dataclass(frozen=True)
class Form:
    """How a statement is written.

    Attributes:
        name: Of the table that it is about.
        said: The words that it begins with.
        form: The whole, with words for what varies.
    """

    name: TableName
    said: str
    form: str


_OF_TABLES = {
    "OPTIMIZE": "OPTIMIZE t [WHERE condition over partition columns] [ZORDER BY (columns)]",
    "VACUUM": "VACUUM t [RETAIN n HOURS] [DRY RUN]",
    "RESTORE TABLE": "RESTORE TABLE t TO VERSION AS OF instant, or TO TIMESTAMP AS OF time",
    "RESTORE": "RESTORE TABLE t TO VERSION AS OF instant, or TO TIMESTAMP AS OF time",
    "DESCRIBE HISTORY": "DESCRIBE HISTORY t [LIMIT n]",
    "DESC HISTORY": "DESCRIBE HISTORY t [LIMIT n]",
    "DESCRIBE DETAIL": "DESCRIBE DETAIL t",
    "DESC DETAIL": "DESCRIBE DETAIL t",
    "SHOW INDEXES FROM": "SHOW INDEXES FROM t",
    "SHOW INDEXES IN": "SHOW INDEXES FROM t",
}
_OF_INDEXES = {
    "CREATE INDEX IF NOT EXISTS": "CREATE INDEX i ON t [USING kind] (columns) [OPTIONS (…)]",
    "CREATE INDEX": "CREATE INDEX i ON t [USING kind] (columns) [OPTIONS (…)]",
    "DROP INDEX IF EXISTS": "DROP INDEX [IF EXISTS] i ON t",
    "DROP INDEX": "DROP INDEX [IF EXISTS] i ON t",
    "REFRESH INDEX": "REFRESH INDEX i ON t",
}


def form_of(text: str) -> Form | None:
    """How a statement is written that begins with these words and names a table; None for any other text."""
    try:
        cursor = Cursor(text)
        for said, form in _OF_TABLES.items():
            if cursor.accept(*said.split()):
                return Form(TableName(cursor.dotted()), said.removesuffix(" FROM").removesuffix(" IN"), form)
        for said, form in _OF_INDEXES.items():
            if cursor.accept(*said.split()):
                cursor.identifier()
                cursor.expect("ON")
                cursor.accept("TABLE")
                return Form(TableName(cursor.dotted()), said, form)
    except Unread:
        return None
    return None
