"""Default values of columns: the table keeps them, and the entry says them to Spark, whose own INSERT takes them from there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from hudimeta.api.verbs import set_defaults
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.sql import has_query, quoted
from hudimeta.storage import open_storage
from hudimeta.table.column_defaults import column_defaults
from pyspark_hudimeta.plain.registration import DEFAULT_KEY
from pyspark_hudimeta.routed.assignment import assigned, column_of
from pyspark_hudimeta.sql.session import options_of

if TYPE_CHECKING:
    from pyspark_hudimeta.hudi_table import HudiTable
    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["checked_default", "checked_defaults", "defaults_of", "keep_defaults", "keep_defaults_at", "let_spark_alter"]

_PROVIDERS = "spark.sql.defaultColumn.allowedProviders"
_HINT = "A default value is a constant, or a function of constants such as current_date()."


def defaults_of(entry: Entry, table: HudiTable) -> dict[str, str]:
    """The default values of a table's columns, in SQL.

    Args:
        entry: Of the table.
        table: The same, opened.
    """
    return {name: value for name, value in column_defaults(table.properties).items() if name in entry.columns.names}


def checked_defaults(session: SqlSession, columns: StructType, found: Mapping[str, str]) -> dict[str, str]:
    """Default values by the columns' own spelling. Raises ConfigError: See `checked_default`."""
    spelt = {column_of(columns, name): text for name, text in found.items()}
    return {name: checked_default(session, columns[name], text) for name, text in spelt.items()}


def checked_default(session: SqlSession, column: StructField, text: str) -> str:
    """An expression that can be the default value of a column.

    Raises:
        ConfigError: It is no expression, reads rows, is another one each time, has no value, or does not fit the column.
    """
    option = f"DEFAULT of {column.name}"
    if has_query(text):
        raise ConfigError(option, text, "an expression without a query", _HINT)
    try:
        frame = session.plain(f"SELECT ({text}) AS {quoted(column.name)}")
        if session.jvm is not None:
            (alias,) = session.jvm.items(frame._jdf.queryExecution().analyzed().projectList())
            if not alias.child().foldable():
                raise ConfigError(option, text, "an expression with one value for all rows of a statement", _HINT)
        value = assigned(session.jvm, "DEFAULT", StructType([StructField(column.name, column.dataType)]), frame)
        value.collect()  # 1 / 0 is read without an error, and would fail in every INSERT
    except PySparkException as error:
        said = str(error).strip().partition("\n")[0].partition(" SQLSTATE:")[0]
        allowed = f"a constant expression for a column of type {column.dataType.simpleString()}"
        raise ConfigError(option, text, allowed, f"{_HINT} Spark says of this one: {said}") from error
    return text


@contextlib.contextmanager
def let_spark_alter(session: SqlSession, entry: Entry) -> Iterator[None]:
    """While Spark changes an entry whose columns have default values: it asks whether it knows their format."""
    if not any(DEFAULT_KEY in (column.metadata or {}) for column in entry.declared):
        yield
        return
    conf = session.spark.conf
    was_set = _PROVIDERS in conf.getAll
    before = conf.get(_PROVIDERS)
    conf.set(_PROVIDERS, f"{before},hudimeta")
    try:
        yield
    finally:
        conf.set(_PROVIDERS, before) if was_set else conf.unset(_PROVIDERS)


def keep_defaults(session: SqlSession, entry: Entry, changes: Mapping[str, str | None]) -> None:
    """Change default values of a table.

    Args:
        session: The session's SQL.
        entry: Of the table.
        changes: By column; None for those that go.
    """
    keep_defaults_at(entry.location, options_of(session, entry), changes)


def keep_defaults_at(location: str, given: Mapping[str, str], changes: Mapping[str, str | None]) -> None:
    """The same by the table's folder.

    Args:
        location: The table's folder.
        given: Options of its reads and writes.
        changes: By column; None for those that go.
    """
    options = OPTIONS.read(given)
    set_defaults(open_storage(location, options.texts), options, changes)
