"""CALL, and the statements about compactions that Apache Hudi had before it had procedures."""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.sql.cursor import Cursor
from hudimeta.sql.statement import TableName

__all__ = ["CallProcedure", "call_procedure", "compaction"]

_ENDS = (",",)


@dataclass(frozen=True)
class CallProcedure:
    """CALL.

    Attributes:
        name: Of the procedure, by its parts.
        positional: Expressions, in their order.
        named: Expressions by parameter, in the order of writing.
    """

    name: tuple[str, ...]
    positional: tuple[str, ...] = ()
    named: tuple[tuple[str, str], ...] = ()


def call_procedure(cursor: Cursor) -> CallProcedure:
    """CALL [system.]procedure [([parameter =>] expression, …)]."""
    cursor.expect("CALL")
    name = cursor.dotted()
    if cursor.done:  # Hudi takes `CALL help` for `CALL help()`
        return CallProcedure(name)
    inside = cursor.inside()
    cursor.finish()
    positional, named = [], []
    while not inside.done:
        if inside.peek(1) == "=>":
            parameter = inside.identifier()
            inside.expect("=>")
            named.append((parameter, inside.until(*_ENDS)))
        else:
            positional.append(inside.until(*_ENDS))
        if not inside.done:
            inside.expect(",")
            if inside.done:
                inside.fail()
    return CallProcedure(name, tuple(positional), tuple(named))


def compaction(cursor: Cursor) -> CallProcedure:
    """RUN|SCHEDULE COMPACTION ON table|'folder' [AT instant], SHOW COMPACTION ON table|'folder' [LIMIT n], as calls."""
    verb = cursor.next().upper
    cursor.expect("COMPACTION", "ON")
    named = [_table(cursor)]
    word, parameter = ("LIMIT", "limit") if verb == "SHOW" else ("AT", "timestamp")
    if cursor.accept(word):
        number = cursor.next().text
        if not number.isdecimal():
            cursor.fail()
        named.append((parameter, number))
    cursor.finish()
    if verb == "SHOW":
        return CallProcedure(("show_compaction",), (), tuple(named))
    return CallProcedure(("run_compaction",), (), (("op", f"'{verb.lower()}'"), *named))


def _table(cursor: Cursor) -> tuple[str, str]:
    """The parameter that names a table, and its value as an expression."""
    name = None if cursor.is_string else TableName(cursor.dotted())
    if name is not None and not name.is_folder:
        return "table", _literal(name.sql)
    return "path", _literal(cursor.string() if name is None else name.table)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
