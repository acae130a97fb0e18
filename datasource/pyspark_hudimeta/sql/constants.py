"""Constants of a statement that are no value of their column: refused at once, as Spark does it, and not by the tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["check_constants", "raise_at_once"]


def check_constants(session: SqlSession, values: Mapping[str, str], assign: Callable[[str, DataFrame], DataFrame]) -> None:
    """Compute new values that name nothing of the table.

    Args:
        session: The session's SQL. Through Connect nothing is computed here, and tasks find what is wrong.
        values: Expressions in SQL, by column.
        assign: A row with a value of a column, as Spark assigns it.

    Raises:
        PySparkException: A value that is none of its column.
    """
    for column, value in values.items() if session.jvm is not None else ():
        if "SELECT" in value.upper():
            continue  # a query is run once, with the statement
        try:
            one = session.query(f"SELECT {value} AS value")
        except AnalysisException:
            continue  # it names columns, or is found to be wrong with the statement
        raise_at_once(session, assign(column, one))


def raise_at_once(session: SqlSession, rows: DataFrame) -> None:
    """Let Spark compute the constants of rows. Raises PySparkException where they cannot be."""
    if session.jvm is not None:
        rows._jdf.queryExecution().optimizedPlan()
