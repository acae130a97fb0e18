"""`IDENTIFIER(expression)` and `${variable}` in statements of ours: the name or the value stands in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from hudimeta.sql import identifier_calls, name_of, with_backticks

if TYPE_CHECKING:
    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["with_ansi_names", "with_names", "with_variables"]

_MAY = re.compile(r"\bidentifier\s*\(", re.IGNORECASE)

_VARIABLE = re.compile(r"\$\{(?:(?:hiveconf|hivevar|sparkconf|spark):)?([^}$\s]+)\}")
_ANSI_NAMES = ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers")
_SUBSTITUTE = "spark.sql.variable.substitute"


def with_variables(session: SqlSession, text: str) -> str:
    """A statement with what SET gave in the places of `${…}`, as Spark reads it; what nobody set stays.

    Args:
        session: Whose variables.
        text: The statement.
    """
    if "${" not in text or str(session.spark.conf.get(_SUBSTITUTE)).lower() != "true":
        return text
    known = session.spark.conf.getAll
    return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), text)


def with_ansi_names(session: SqlSession, text: str) -> str:
    """A statement with backticks in the places of double quotes, where the session reads these as quotes of names.

    Args:
        session: The session's SQL.
        text: The statement.
    """
    conf = session.spark.conf
    are_names = '"' in text and all(str(conf.get(key)).lower() == "true" for key in _ANSI_NAMES)
    return with_backticks(text) if are_names else text


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
