"""CREATE INDEX, DROP INDEX and REFRESH INDEX, with Apache Hudi's words for kinds and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hudimeta.errors import ConfigError, TableError
from hudimeta.sql import CreateIndex, DropIndex, RefreshIndex, quoted
from pyspark_hudimeta.sql.paths import spelt
from pyspark_hudimeta.sql.session import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.hudi_table import HudiTable
    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["create_index", "drop_index", "refresh_index"]

_RECORD, _SECONDARY, _BLOOM, _STATS = "record_index", "secondary_index", "bloom_filters", "column_stats"
_WINDOW = "record_window"
_TAKEN = ("files", "partition_stats", _RECORD, _SECONDARY, _BLOOM, _STATS, _WINDOW)
"""Names of indexes that a table has at most once."""
_PREFIXES = ("", "secondary_index_", "expr_index_")
_EXPRESSION, _FUNCTION = "expr", "func"
"""The option that names a function, and its name in Apache Hudi before 1.0."""


def create_index(session: SqlSession, entry: Entry, statement: CreateIndex) -> DataFrame:
    """Build an index.

    Raises:
        HudiError: Something that does not fit the table, or an index of that name.
    """
    table = opened(session, entry)
    columns = [spelt(entry.columns, name) for name in statement.columns]
    keys = table.properties.record_keys
    options = dict(statement.options)
    function = options.pop(_FUNCTION, None)
    expression = options.pop(_EXPRESSION, function)
    kind = statement.kind or (_RECORD if set(columns) == set(keys) else _SECONDARY)
    if kind == _BLOOM and expression is None and statement.index != _BLOOM:
        expression = "identity"  # as Apache Hudi makes one that is of a column
    if (kind == _SECONDARY or expression is not None) and statement.index in _TAKEN:
        hint = "A statement by this name would mean that index of the table's own."
        raise ConfigError("CREATE INDEX", f"{statement.index} ({', '.join(columns)})", "another name for it", hint)
    name, of = _named(kind, expression, statement.index)
    present = _found(table, of)
    if present is not None:
        if statement.if_not_exists:
            return session.nothing()
        raise TableError(f"the table has the index {present} already", f"DROP INDEX {statement.index} ON … removes it.")
    if kind == _SECONDARY and _found(table, _RECORD) is None:
        of = f"({', '.join(keys)})" if keys else f"USING record_index ({quoted(entry.columns.names[0])})"
        hint = f"Make it first: CREATE INDEX record_index ON {entry.name.sql} {of}."
        raise ConfigError("CREATE INDEX", statement.index, "a table with a record index, which tells where the rows are", hint)
    if kind == _RECORD and keys and set(columns) != set(keys):
        raise ConfigError("CREATE INDEX", ", ".join(columns), f"the record key: {', '.join(keys)}")
    if kind == _WINDOW and set(columns) <= set(table.properties.partition_fields):
        columns = []  # a statement names a column; days of partition paths are what is without one
    of_rows = kind == _RECORD or (kind == _BLOOM and expression is None)
    table.indexes.create(name, kind, () if of_rows else columns, expression=expression, options=options)
    return session.nothing()


def drop_index(session: SqlSession, entry: Entry, statement: DropIndex) -> DataFrame:
    """Remove an index.

    Raises:
        ConfigError: There is none.
        TableError: Another one needs it.
    """
    table = opened(session, entry)
    found = _found(table, statement.index)
    if found is None:
        if statement.if_exists:
            return session.nothing()
        raise _missing(table, "DROP INDEX", statement.index)
    table.indexes.drop(found)
    return session.nothing()


def refresh_index(session: SqlSession, entry: Entry, statement: RefreshIndex) -> DataFrame:
    """Compare an index with the table, which every commit keeps it in step with; make the indexes anew where it differs.

    Raises:
        ConfigError: There is none.
    """
    table = opened(session, entry)
    found = _found(table, statement.index)
    if found is None:
        raise _missing(table, "REFRESH INDEX", statement.index)
    if found == _WINDOW:
        return session.nothing()  # each look-up compares it with the table's files
    if not table.indexes.validate([found]).holds:
        table.indexes.rebuild()
    return session.nothing()


def _named(kind: str, expression: str | None, index: str) -> tuple[str | None, str]:
    """The name that an index is made with, and that of its partition; kinds of which a table has one have no other."""
    if expression is not None:
        return index, f"expr_index_{index}"
    return (index, f"secondary_index_{index}") if kind == _SECONDARY else (None, kind)


def _names(table: HudiTable) -> list[Any]:
    return list(table.indexes.list()["name"].to_pylist())


def _found(table: HudiTable, index: str) -> str | None:
    """The partition of an index, by its name or by that of its partition."""
    have = _names(table)
    return next((prefix + index for prefix in _PREFIXES if prefix + index in have), None)


def _missing(table: HudiTable, what: str, index: str) -> ConfigError:
    return ConfigError(what, index, f"an index of the table: {', '.join(_names(table)) or 'it has none'}")
