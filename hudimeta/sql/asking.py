"""SHOW and DESCRIBE: statements that ask what a table is."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from hudimeta.sql.cursor import Cursor
from hudimeta.sql.insertion import partition_values
from hudimeta.sql.statement import PartitionValues, TableName

__all__ = ["Ask", "TableQuestion", "describe", "show"]


class TableQuestion(enum.Enum):
    """What is asked."""

    CREATE = "SHOW CREATE TABLE"
    PROPERTIES = "SHOW TBLPROPERTIES"
    PARTITIONS = "SHOW PARTITIONS"
    INDEXES = "SHOW INDEXES"
    COLUMNS = "DESCRIBE TABLE"
    EXTENDED = "DESCRIBE EXTENDED"
    HISTORY = "DESCRIBE HISTORY"
    DETAIL = "DESCRIBE DETAIL"


@dataclass(frozen=True)
class Ask:
    """SHOW or DESCRIBE.

    Attributes:
        key: The one property that is asked for; None for all.
        partition: Of PARTITION; None without.
        limit: Rows of a history; None for all.
    """

    name: TableName
    question: TableQuestion
    key: str | None = None
    partition: PartitionValues | None = None
    limit: int | None = None


def show(cursor: Cursor) -> Ask:
    """SHOW CREATE TABLE | TBLPROPERTIES name [(key)] | PARTITIONS name [PARTITION (…)] | INDEXES FROM|IN name."""
    cursor.expect("SHOW")
    if cursor.accept("CREATE", "TABLE"):
        found = Ask(TableName(cursor.dotted()), TableQuestion.CREATE)
    elif cursor.accept("TBLPROPERTIES"):
        name = TableName(cursor.dotted())
        found = Ask(name, TableQuestion.PROPERTIES, key=_key(cursor.inside()) if cursor.peek() == "(" else None)
    elif cursor.accept("PARTITIONS"):
        name = TableName(cursor.dotted())
        values = partition_values(cursor.inside()) if cursor.accept("PARTITION") else None
        found = Ask(name, TableQuestion.PARTITIONS, partition=values)
    else:
        cursor.expect("INDEXES")
        if not cursor.accept("FROM"):
            cursor.expect("IN")
        cursor.accept("TABLE")
        found = Ask(TableName(cursor.dotted()), TableQuestion.INDEXES)
    cursor.finish()
    return found


def describe(cursor: Cursor) -> Ask:
    """DESC[RIBE] HISTORY name [LIMIT n] | DETAIL name | [TABLE] [EXTENDED|FORMATTED] name."""
    if not cursor.accept("DESC"):
        cursor.expect("DESCRIBE")
    for question in (TableQuestion.HISTORY, TableQuestion.DETAIL):
        if cursor.peek() == question.name and cursor.accept(question.name):
            name = TableName(cursor.dotted())
            limit = _limit(cursor) if question is TableQuestion.HISTORY and cursor.accept("LIMIT") else None
            cursor.finish()
            return Ask(name, question, limit=limit)
    cursor.accept("TABLE")
    question = TableQuestion.EXTENDED if cursor.accept("EXTENDED") or cursor.accept("FORMATTED") else TableQuestion.COLUMNS
    name = TableName(cursor.dotted())
    cursor.finish()
    return Ask(name, question)


def _limit(cursor: Cursor) -> int:
    text = cursor.next().text
    if not text.isdecimal():
        cursor.fail()
    return int(text)


def _key(inside: Cursor) -> str:
    word = inside.next()
    key = word.text
    while word.kind != "string" and inside.accept("."):
        key += "." + inside.next().text
    inside.finish()
    return key
