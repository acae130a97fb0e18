"""CALL."""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.sql.cursor import Cursor

__all__ = ["CallProcedure", "call_procedure"]

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
    """CALL [system.]procedure ([parameter =>] expression, …)."""
    cursor.expect("CALL")
    name = cursor.dotted()
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
