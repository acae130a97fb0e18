"""`IDENTIFIER(expression)` in statements of ours: the name that the expression gives stands in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from hudimeta.sql import identifier_calls, name_of

if TYPE_CHECKING:
    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["with_names"]

_MAY = re.compile(r"\bidentifier\s*\(", re.IGNORECASE)


def with_names(session: SqlSession, text: str, parameters: Mapping[str, Any] | None) -> str:
    """A statement with names for its calls of IDENTIFIER.

    Args:
        session: Evaluates their arguments.
        text: The statement.
        parameters: Named parameters of the statement.

    Returns:
        The statement as it is where an argument gives no name: Spark then says why.
    """
    if _MAY.search(text) is None:
        return text
    named = text
    for expression, start, end in reversed(identifier_calls(text)):
        try:
            ((value,),) = session.plain(f"SELECT ({expression})", parameters).collect()
        except PySparkException:
            return text
        name = name_of(value) if isinstance(value, str) else None
        if name is None:
            return text
        named = f"{named[:start]}{name.sql}{named[end:]}"
    return named
