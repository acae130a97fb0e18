"""EXECUTE IMMEDIATE of a statement that is ours: its text, its parameters, and the variables that its row goes into."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from hudimeta.errors import UnsupportedFeature
from hudimeta.sql import Execute, quoted
from pyspark_hudimeta.sql.explanation import reads_rows
from pyspark_hudimeta.sql.registering import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["execute", "execute_in_spark", "text_of"]

_NUMBER = count()


def text_of(session: SqlSession, statement: Execute) -> str | None:
    """The statement that EXECUTE IMMEDIATE names; None where Spark has to say what is wrong with its expression."""
    if statement.literal is not None:
        return statement.literal
    try:
        value = session.plain(f"SELECT {statement.text}", session.parameters, **session.frames).collect()[0][0]
    except PySparkException:
        return None  # Spark meets the same when it runs the whole, and says it as it does in any session
    return value if isinstance(value, str) else None


def execute(session: SqlSession, statement: Execute, text: str) -> DataFrame:
    """Run it.

    Args:
        session: The session's SQL.
        statement: EXECUTE IMMEDIATE.
        text: See `text_of`.

    Raises:
        UnsupportedFeature: INTO with a statement that is no query.
        HudiError, PySparkException: The statement failed, or its row does not fit the variables.
    """
    if statement.into and not reads_rows(text):
        raise UnsupportedFeature("EXECUTE IMMEDIATE … INTO with a statement that is no query", "Leave INTO out.")
    names = [name or f"_{number}" for number, (name, _) in enumerate(statement.given)]
    shown = ", ".join(f"{value} AS {quoted(name)}" for name, (_, value) in zip(names, statement.given, strict=True))
    values = list(session.query(f"SELECT {shown}").collect()[0]) if shown else []
    named = any(name for name, _ in statement.given)
    found = session.own(text, dict(zip(names, values, strict=True)) if named else values or None)
    return _kept(session, statement, found) if statement.into else found


def execute_in_spark(session: SqlSession, statement: Execute, text: str) -> DataFrame:
    """Let Spark run a statement that is none of ours: as the text that it is, so that its expression is evaluated once.

    Args:
        session: The session's SQL.
        statement: EXECUTE IMMEDIATE.
        text: See `text_of`.

    Raises:
        PySparkException: What Spark says of it.
    """
    into = ", ".join(one.sql for one in statement.into)
    given = ", ".join(f"{value} AS {quoted(name)}" if name else value for name, value in statement.given)
    words = ["EXECUTE IMMEDIATE", literal(text), *(["INTO", into] if into else []), *(["USING", given] if given else [])]
    return session.plain(" ".join(words), session.parameters, **session.frames)


def _kept(session: SqlSession, statement: Execute, row: DataFrame) -> DataFrame:
    """Set the variables of INTO, which Spark does: it knows them, and what a row for them must be."""
    name = f"_hudimeta_into_{next(_NUMBER)}"
    row.createOrReplaceTempView(name)
    try:
        session.plain(f"SET VARIABLE ({', '.join(one.sql for one in statement.into)}) = (SELECT * FROM {name})")
    finally:
        session.spark.catalog.dropTempView(name)
    return session.nothing()
