"""INSERT INTO and INSERT OVERWRITE as Apache Hudi's SQL has them, by the verbs of `HudiTable`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from hudimeta.config import OPTIONS
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.sql import Insert, quoted, with_defaults, with_literals
from pyspark_hudimeta.hudi_table import HudiTable
from pyspark_hudimeta.routed.assignment import assigned, assigned_as_named, column_of, filled
from pyspark_hudimeta.sql.column_defaults import defaults_of
from pyspark_hudimeta.sql.constants import raise_at_once
from pyspark_hudimeta.sql.partitions import as_session_reads, check_values, partition_path, partitions_like
from pyspark_hudimeta.sql.registering import literals
from pyspark_hudimeta.sql.replacing import replace_where
from pyspark_hudimeta.sql.session import Entry, SqlSession, options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudimeta.commit.report import CommitReport

__all__ = ["checked_rows", "explained_insert", "insert"]

_OF_CONSTANTS = re.compile(r"\s*(?:values|select)\b(?!.*\bfrom\b)", re.IGNORECASE | re.DOTALL)
"""Queries whose rows come from no table, as far as their words tell."""
_OVERWRITES = ("insert_overwrite", "insert_overwrite_table")
_OF_INSERTS = frozenset(
    option.key
    for option in (
        keys.SQL_INSERT_OPERATION,
        keys.SQL_INSERT_MODE,
        keys.SQL_BULK_INSERT,
        keys.OVERWRITE_MODE,
        keys.COMBINE_BEFORE_INSERT,
        keys.INSERT_DUPLICATES,
        keys.INSERT_DROP_DUPLICATES,
    )
)
"""What decides which rows an INSERT leaves; of these SET goes before properties of the table, as in Apache Hudi."""
_SPARK_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(session: SqlSession, entry: Entry, statement: Insert, rows: DataFrame | None = None) -> DataFrame:
    """Run an INSERT; says how many rows it wrote, and how many of them are new.

    Args:
        session: Where it is run.
        entry: Of the table in the catalog.
        statement: What is run.
        rows: Take the place of those of the statement's query.

    Raises:
        ConfigError: Columns or partitions that do not fit.
        AnalysisException, of Spark: Values that do not.
    """
    report = _Insertion(session, entry, statement, rows).run()
    inserted, updated = (0, 0) if report is None else (report.inserted, report.updated)
    return session.counts(num_affected_rows=inserted + updated, num_inserted_rows=inserted)


def checked_rows(session: SqlSession, entry: Entry, statement: Insert, rows: DataFrame) -> DataFrame:
    """The rows of an INSERT as rows of the table, analysed and not run.

    Raises:
        ConfigError: Columns or partitions that do not fit.
        AnalysisException, of Spark: Values that do not.
    """
    found = _Insertion(session, entry, statement, rows).rows()
    _ = found.schema  # through Connect nothing is analysed before
    return found


def explained_insert(session: SqlSession, entry: Entry, statement: Insert, mode: str) -> str:
    """How Spark computes the rows of an INSERT; nothing is written.

    Args:
        session: The session's SQL.
        entry: Of the table.
        statement: INSERT.
        mode: Of EXPLAIN.
    """
    return session.explained(_Insertion(session, entry, statement, None).rows(), mode)


class _Insertion:
    """One INSERT into one table."""

    def __init__(self, session: SqlSession, entry: Entry, statement: Insert, given: DataFrame | None) -> None:
        self._session, self._entry, self._statement, self._frame = session, entry, statement, given
        self._settings = options_of(session, entry)
        if given is None:  # options of a DataFrame's writer are among those of the entry
            first = {key: value for key, value in session.settings.items() if key in _OF_INSERTS}
            self._settings = OPTIONS.read(self._settings).having(first).given
        self._options = OPTIONS.read(self._settings)
        self._table = HudiTable(session.spark, entry.location, self._settings)
        properties = self._table.properties
        self._fields = properties.partition_fields
        self._ordered = bool(properties.record_keys and properties.ordering_fields)
        known = literals(session.parameters)
        self._given = {
            column_of(entry.columns, name): value if value is None else with_literals(value, known)
            for name, value in as_session_reads(session, statement.partition or ())
        }
        check_values(tuple(self._given.items()))
        self._defaults = defaults_of(entry, self._table)
        self._fixed = {name: value for name, value in self._given.items() if value is not None}

    def run(self) -> CommitReport | None:
        """Write the rows; None where IF NOT EXISTS leaves the partition that is there as it is."""
        rows = self.rows()
        if self._frame is None and _OF_CONSTANTS.match(self._statement.query):
            raise_at_once(self._session, rows)
        if self._statement.if_not_exists and self._partitions():
            return None
        if self._statement.where is not None:
            return replace_where(self._session, self._entry, self._statement.where, rows)
        if not self._statement.overwrite:
            return self._writer(self._operation())(rows)
        if self._fields and self._keeps_partitions():
            return self._overwrite_partitions(rows)
        return self._writer(_OVERWRITES[1])(rows)

    def _writer(self, verb: str, more: Mapping[str, str] | None = None) -> Callable[[DataFrame], CommitReport]:
        """A verb of the table that keeps one row a key where an order says which one, as Apache Hudi does. more: Options."""
        table, said = self._table, dict(more or {})
        if self._ordered and not self._options.is_set(keys.COMBINE_BEFORE_INSERT):
            said[keys.COMBINE_BEFORE_INSERT.key] = "true"
        if said:
            table = HudiTable(self._session.spark, self._entry.location, {**self._settings, **said})
        found: Callable[[DataFrame], CommitReport] = getattr(table, verb)
        return found

    def _operation(self) -> str:
        """What the option of writers says, else that of statements, else an upsert where rows have an order."""
        return self._of_writers() or self._options.get(keys.SQL_INSERT_OPERATION) or self._of_mode()

    def _of_writers(self) -> str | None:
        """What `hoodie.datasource.write.operation` says; statements ask the session alone: Hudi's CREATE TABLE drops it."""
        options = self._options if self._frame is not None else OPTIONS.read(self._session.settings)
        said = str(options.get(keys.OPERATION)).lower() if options.is_set(keys.OPERATION) else None
        if said == "delete_partition":
            hint = "Say ALTER TABLE … DROP PARTITION, or RESET the option."
            raise ConfigError(keys.OPERATION.key, said, "an operation that takes rows, for INSERT", hint)
        return said

    def _of_mode(self) -> str:
        """What the options ask for that Hudi had before; they choose nothing else in Hudi 1.0.2."""
        mode, is_bulk = self._options.get(keys.SQL_INSERT_MODE), self._options.get(keys.SQL_BULK_INSERT)
        if is_bulk and mode == "strict" and self._table.properties.record_keys:
            allowed = "non-strict, for bulk inserts into a table with key columns"
            raise ConfigError(keys.SQL_INSERT_MODE.key, mode, allowed, f"Or set {keys.SQL_INSERT_OPERATION.key}.")
        if self._ordered and mode != "non-strict":
            return "upsert"
        return "bulk_insert" if is_bulk else "insert"

    def _keeps_partitions(self) -> bool:
        """Whether INSERT OVERWRITE leaves partitions alone that are neither named nor a row's."""
        said = self._of_writers()
        if said in _OVERWRITES:
            return said == _OVERWRITES[0]
        return bool(self._fixed) or self._is_dynamic()

    def _is_dynamic(self) -> bool:
        if self._options.is_set(keys.OVERWRITE_MODE):
            return bool(self._options.get(keys.OVERWRITE_MODE) == "DYNAMIC")
        return str(self._session.spark.conf.get(_SPARK_MODE)).upper() == "DYNAMIC"

    def _overwrite_partitions(self, rows: DataFrame) -> CommitReport:
        """Replace the partitions that rows are for; those that values of PARTITION name also when there are none."""
        if 0 < len(self._fixed) < len(self._fields) and not self._is_dynamic():
            return self._writer(_OVERWRITES[0], self._replaced())(rows)
        report = self._writer(_OVERWRITES[0])(rows)
        if len(self._fixed) == len(self._fields) and not report.inserted:
            self._table.delete_partition(partition_path(self._session, self._entry, self._table, self._fixed))
        return report

    def _replaced(self) -> dict[str, str]:
        """The partitions that some values of PARTITION name, as the option of a write that replaces them."""
        paths = self._partitions()
        odd = [path for path in paths if "," in path or "*" in path or path != path.strip()]
        if odd:
            hint = f"Name all values, or SET {_SPARK_MODE} = dynamic to replace the partitions that the rows belong to."
            raise UnsupportedFeature(f"INSERT OVERWRITE that replaces {odd[0]!r} by some of its values", hint)
        return {keys.OVERWRITTEN_PARTITIONS.key: ",".join(paths)} if paths else {}

    def _partitions(self) -> list[str]:
        """Partitions that have rows and the values of PARTITION."""
        return partitions_like(self._session, self._entry, self._table, tuple(self._fixed.items()))

    # Rows

    def rows(self) -> DataFrame:
        """The query's rows as rows of the table."""
        entry, statement, jvm = self._entry, self._statement, self._session.jvm
        rows = self._frame if self._frame is not None else self._session.query(self._query())
        columns, name, by_name = entry.columns, entry.name.sql, statement.by_name
        if statement.partition is not None:
            rows, by_name = self._placed(rows), False
        elif statement.columns is not None or (by_name and self._frame is None):
            rows = filled(columns, rows, statement.columns or rows.columns, self._defaults)
        elif not by_name:
            return assigned_as_named(jvm, name, columns, rows)
        return assigned(jvm, name, columns, rows, by_name=by_name)

    def _query(self) -> str:
        """The query, with default values where it says DEFAULT."""
        if self._statement.by_name:
            return self._statement.query
        return with_defaults(self._statement.query, [self._defaults.get(name, "NULL") for name in self._from_query()])

    def _from_query(self) -> list[str]:
        """The columns of the table that the query's go into, in order."""
        columns = self._entry.columns
        if self._statement.columns is not None:
            return [column_of(columns, name) for name in self._statement.columns]
        return [name for name in columns.names if name not in self._fixed]

    def _placed(self, rows: DataFrame) -> DataFrame:
        """Rows with the values of PARTITION; what it leaves to the query is found there as without PARTITION."""
        columns = self._entry.columns
        if sorted(self._given) != sorted(self._fields):
            allowed = f"all partition columns: {', '.join(self._fields)}" if self._fields else "nothing, without partitions"
            raise ConfigError("PARTITION", ", ".join(self._given), allowed)
        kept = StructType([c for c in columns if c.name not in self._fixed])
        # As Spark takes them: `PARTITION (day = '2026-01-31')` is the text of a date, which a row's value must not be.
        constants = {name: expr(value).cast(columns[name].dataType) for name, value in self._fixed.items()}
        found = self._beside(kept, rows)
        found = found.withColumns(constants) if constants else found  # Connect takes no empty list
        return found.select(*map(quoted, columns.names))

    def _beside(self, kept: StructType, rows: DataFrame) -> DataFrame:
        """The columns that PARTITION gives no value."""
        statement, columns = self._statement, self._entry.columns
        if statement.columns is None and not statement.by_name:
            return assigned_as_named(self._session.jvm, self._entry.name.sql, kept, rows)
        named = [column_of(columns, name) for name in statement.columns or rows.columns]
        if set(named) & set(self._fixed):
            raise ConfigError("INSERT", ", ".join(named), "columns that PARTITION gives no value")
        return filled(kept, rows, named, self._defaults)
