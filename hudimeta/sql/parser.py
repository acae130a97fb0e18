"""From text to a statement: a cheap look at its beginning first, the table that it changes next, all of it last."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from hudimeta.sql import asking, changes, definition, indexes, upkeep
from hudimeta.sql.asking import Ask
from hudimeta.sql.calling import CallProcedure, call_procedure, compaction
from hudimeta.sql.cursor import FIRST_WORD, Cursor, Unread
from hudimeta.sql.insertion import InsertEach, insert, insert_from
from hudimeta.sql.script import Script
from hudimeta.sql.script_reader import script
from hudimeta.sql.statement import (
    AlterEntry,
    AlterTable,
    Analyze,
    CreateIndex,
    CreateLike,
    CreateTable,
    Delete,
    DropIndex,
    DropTable,
    Execute,
    Explain,
    Insert,
    MergeStatement,
    Optimize,
    Partitions,
    RefreshIndex,
    Restore,
    SetOption,
    SetTableProperties,
    TableName,
    Update,
    Vacuum,
)

__all__ = ["Statement", "may_write", "name_of", "parse", "source_of", "target_of", "with_format"]

Statement: TypeAlias = (
    CreateTable
    | CreateLike
    | Insert
    | InsertEach
    | Update
    | Delete
    | MergeStatement
    | AlterTable
    | AlterEntry
    | DropTable
    | SetOption
    | Ask
    | CreateIndex
    | DropIndex
    | RefreshIndex
    | Partitions
    | SetTableProperties
    | Optimize
    | Vacuum
    | Restore
    | Analyze
    | Execute
    | Explain
    | CallProcedure
    | Script
)

_Rows: TypeAlias = Insert | InsertEach | Update | Delete | MergeStatement
_OWN = ("hoodie", "hudimeta")


def _create(cursor: Cursor) -> CreateTable | CreateLike | CreateIndex:
    return indexes.create_index(cursor) if cursor.peek(1) == "INDEX" else definition.create_table(cursor)


def _drop(cursor: Cursor) -> DropTable | DropIndex:
    return indexes.drop_index(cursor) if cursor.peek(1) == "INDEX" else definition.drop_table(cursor)


def _show(cursor: Cursor) -> Ask | CallProcedure:
    return compaction(cursor) if cursor.peek(1) == "COMPACTION" else asking.show(cursor)


def _after_queries(cursor: Cursor) -> _Rows:
    """What stands after a WITH clause, which each of them reads itself."""
    ahead = Cursor(cursor.text, cursor.words)
    ahead.queries()
    read = _WITH_QUERIES.get(ahead.peek())
    return read(cursor) if read is not None else cursor.fail()


_WITH_QUERIES: dict[str, Callable[[Cursor], _Rows]] = {
    "INSERT": insert,
    "UPDATE": changes.update,
    "DELETE": changes.delete,
    "MERGE": changes.merge,
    "FROM": insert_from,
}
_STATEMENTS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": _create,
    "REPLACE": definition.create_table,
    "DROP": _drop,
    "REFRESH": indexes.refresh_index,
    "ALTER": definition.alter_table,
    "TRUNCATE": definition.truncate_table,
    "MSCK": definition.repair_table,
    "REPAIR": definition.repair_table,
    "SET": definition.set_option,
    "INSERT": insert,
    "FROM": insert_from,
    "WITH": _after_queries,
    "UPDATE": changes.update,
    "DELETE": changes.delete,
    "MERGE": changes.merge,
    "OPTIMIZE": upkeep.optimize,
    "VACUUM": upkeep.vacuum,
    "RESTORE": upkeep.restore,
    "ANALYZE": upkeep.analyze,
    "EXECUTE": upkeep.execute,
    "EXPLAIN": upkeep.explain,
    "SHOW": _show,
    "DESCRIBE": asking.describe,
    "DESC": asking.describe,
    "CALL": call_procedure,
    "RUN": compaction,
    "SCHEDULE": compaction,
    "BEGIN": script,
}

_BEFORE_NAME = {
    "DROP": (("DROP", "TABLE", "IF", "EXISTS"), ("DROP", "TABLE")),
    "ALTER": (("ALTER", "TABLE"),),
    "TRUNCATE": (("TRUNCATE", "TABLE"),),
    "INSERT": (
        ("INSERT", "INTO", "TABLE"),
        ("INSERT", "INTO"),
        ("INSERT", "OVERWRITE", "INTO"),
        ("INSERT", "OVERWRITE", "TABLE"),
        ("INSERT", "OVERWRITE"),
    ),
    "UPDATE": (("UPDATE",),),
    "DELETE": (("DELETE", "FROM"),),
    "MERGE": (("MERGE", "INTO"), ("MERGE", "WITH", "SCHEMA", "EVOLUTION", "INTO")),
}
_OF_NO_TABLE = (CreateTable, CreateLike, SetOption, Explain, Execute, CallProcedure, Script)
_OF_HIVE, _QUERY = ("ROW", "STORED"), ("SELECT", "WITH", "(")
_ABOUT_OTHERS = re.compile(r"\bindex\b|\blike\b", re.IGNORECASE)
"""What a CREATE says that may be about a table of ours without naming the format."""


def may_write(text: str) -> str:
    """The first word, upper case, of a text that may be one of the statements; "" for any other text.

    It costs microseconds: all statements of a session pass here.
    """
    found = FIRST_WORD.match(text)
    word = found.group(1).upper() if found else ""
    if word in ("WITH", "FROM"):
        verbs = _WITH_QUERIES.keys() - {"FROM"} if word == "WITH" else ("INSERT",)
        return word if any(verb in text.upper() for verb in verbs) else ""
    if word in ("CREATE", "REPLACE") and "hudimeta" not in text.lower():
        return word if _ABOUT_OTHERS.search(text) else ""
    if word == "SET":
        return word if any(own in text.lower() for own in _OWN) else ""
    return word if word in _STATEMENTS else ""


def target_of(text: str) -> TableName | None:
    """The table that a statement is about; None for what is none of the statements, and for CREATE TABLE."""
    word = may_write(text)
    try:
        cursor = Cursor(text)
        if word == "WITH":
            cursor.queries()
            word = cursor.peek()
        if any(cursor.accept(*words) for words in _BEFORE_NAME.get(word, ())):
            return TableName(cursor.dotted())
    except Unread:
        return None
    statement = parse(text) if word else None
    return None if statement is None or isinstance(statement, _OF_NO_TABLE) else statement.name


def name_of(text: str) -> TableName | None:
    """A name that stands alone, of a table or a column, with or without backticks; None for any other text."""
    try:
        cursor = Cursor(text)
        name = TableName(cursor.dotted())
        cursor.finish()
    except Unread:
        return None
    return name


def source_of(statement: MergeStatement) -> TableName | None:
    """The table that a MERGE reads; None for a query, or a DataFrame."""
    cursor = Cursor(statement.source)
    return None if cursor.peek() in ("(", "{") else TableName(cursor.dotted())


def with_format(text: str) -> str:
    """A CREATE TABLE or REPLACE TABLE that names no format, with ours in its place; any other text as it is."""
    try:
        made = definition.create_table(Cursor(text))
        if not isinstance(made, CreateTable) or made.provider or (made.odd or "").startswith(_OF_HIVE):
            return text
        cursor = Cursor(text)
        while not cursor.accept("TABLE"):
            cursor.next()
        cursor.accept("IF", "NOT", "EXISTS")
        cursor.dotted()
        if cursor.peek() == "(" and cursor.peek(1) not in _QUERY:
            cursor.inside()
    except Unread:
        return text
    end = cursor.words[cursor.at - 1].end
    return f"{text[:end]} USING hudimeta{text[end:]}"


def parse(text: str) -> Statement | None:
    """The statement; None when the text is none that this package reads."""
    read = _STATEMENTS.get(may_write(text))
    if read is None:
        return None
    try:
        return read(Cursor(text))
    except Unread:
        return None
