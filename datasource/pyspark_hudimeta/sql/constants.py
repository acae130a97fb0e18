"""Constants of a statement that are no value of their column: refused at once, as Spark does it, and not by the tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hudimeta.sql import is_constant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["check_constants", "raise_at_once"]


def check_constants(session: SqlSession, values: Mapping[str, str], assign: Callable[[str, DataFrame], DataFrame]) -> None:
    """Compute new values that name nothing of the table.

    Args:
        session: The session's SQL.
        values: Expressions in SQL, by column.
        assign: A row with a value of a column, as Spark assigns it.

    Raises:
        PySparkException: A value that is none of its column.
    """
    for column, value in values.items():
        if is_constant(value):
            raise_at_once(session, assign(column, session.query(f"SELECT {value} AS value")))


def raise_at_once(session: SqlSession, rows: DataFrame) -> None:
    """Let Spark compute the constants of rows. Raises PySparkException where they cannot be."""
    if session.jvm is not None:
        rows._jdf.queryExecution().optimizedPlan()
    else:
        session.explained(rows, "simple")  # a plan that is shown is optimised first, which computes constants
