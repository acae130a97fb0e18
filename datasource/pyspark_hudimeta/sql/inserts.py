"""FROM source INSERT … INSERT …: all queries are read at one moment, before the first of the tables is changed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hudimeta.config import refuse_on_write
from hudimeta.errors import UnsupportedFeature
from hudimeta.sql import Insert, InsertEach, quoted
from pyspark_hudimeta.sql.explanation import explain
from pyspark_hudimeta.sql.insertion import checked_rows, insert

if TYPE_CHECKING:
    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["explain_each", "has_ours", "insert_each"]

_NUMBER = count()


def has_ours(session: SqlSession, statement: InsertEach) -> bool:
    """True where one of the tables is a hudimeta table."""
    return any(session.entry(one.name) is not None for one in statement.inserts)


def insert_each(session: SqlSession, statement: InsertEach) -> DataFrame | None:
    """Run the INSERTs one after another, each a commit of its own.

    Args:
        session: Where it is run.
        statement: What is run.

    Returns:
        The counts of each INSERT, in their order; None where none of the tables is a hudimeta table.

    Raises:
        UnsupportedFeature: Some of the tables are none of hudimeta's; no table was changed.
        ConfigError: Columns or partitions that do not fit; no table was changed.
        AnalysisException, of Spark: Values that do not; no table was changed.
    """
    if not has_ours(session, statement):
        return None
    tables = _tables(session, statement)
    with ExitStack() as stack:
        checked = [_checked(session, entry, one) for entry, one in tables]
        # An attached session's queries stay at the moment at which they were analysed, others are planned when they run.
        stays = hasattr(session.spark, "is_attached")
        kept = [rows if stays or not number else rows.localCheckpoint() for number, rows in enumerate(checked)]
        read = [_named(session, one, rows, stack) for (_, one), rows in zip(tables, kept, strict=True)]
        return reduce(DataFrame.unionAll, [insert(session, entry, one) for (entry, _), one in zip(tables, read, strict=True)])


def explain_each(session: SqlSession, statement: InsertEach, mode: str) -> DataFrame | None:
    """How the rows of each INSERT are computed; None where none of the tables is a hudimeta table.

    Args:
        session: The session's SQL.
        statement: What is explained.
        mode: Of EXPLAIN.

    Raises:
        UnsupportedFeature: Some of the tables are none of hudimeta's.
    """
    if not has_ours(session, statement):
        return None
    shown = [explain(session, entry, one, mode) for entry, one in _tables(session, statement)]
    return reduce(DataFrame.unionAll, [frame for frame in shown if frame is not None])


def _tables(session: SqlSession, statement: InsertEach) -> list[tuple[Entry, Insert]]:
    """Each INSERT with the entry of its table."""
    found = []
    for one in statement.inserts:
        entry = session.entry(one.name)
        if entry is None:
            session.plain(f"DESCRIBE TABLE {one.name.sql}")  # where there is none, Spark says so
            feature = f"FROM … INSERT … INSERT … with {one.name.sql}, which is no hudimeta table, among the tables"
            raise UnsupportedFeature(feature, "Write an INSERT … SELECT for each table.")
        refuse_on_write(entry.options)
        found.append((entry, one))
    return found


def _checked(session: SqlSession, entry: Entry, one: Insert) -> DataFrame:
    """The rows of an INSERT's query, once nothing is found wrong with it."""
    rows = session.query(one.query)
    checked_rows(session, entry, one, rows)
    return rows


def _named(session: SqlSession, one: Insert, rows: DataFrame, stack: ExitStack) -> Insert:
    """The INSERT with a view of its rows as its query."""
    name = f"_hudimeta_insert_{next(_NUMBER)}"
    rows.createOrReplaceTempView(name)
    stack.callback(session.spark.catalog.dropTempView, name)
    return replace(one, query=f"SELECT * FROM {quoted(name)}")
