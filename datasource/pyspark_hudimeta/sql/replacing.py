"""INSERT … REPLACE WHERE: rows of the table that a condition is true of give way to those of a query, in one commit."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hudimeta.errors import ConfigError
from hudimeta.metadata import record_index
from hudimeta.sql import quoted
from hudimeta.types import Operation
from hudimeta.write.routed.computed import ROW_COLUMNS, RowAction
from pyspark_hudimeta.sql.change import Change
from pyspark_hudimeta.sql.session import Entry, SqlSession, opened, options_of

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.commit.report import CommitReport

__all__ = ["replace_where"]


def replace_where(session: SqlSession, entry: Entry, where: str, rows: DataFrame) -> CommitReport:
    """Delete the rows that a condition is true of, and write others that it is true of as well.

    Args:
        session: Where it is run.
        entry: Of the table.
        where: The condition, in SQL.
        rows: As the table's columns.

    Raises:
        ConfigError: The condition is not true of every row.
        AnalysisException, of Spark: It does not fit.
    """
    return _Replacing(session, entry, where, rows).write_all()


class _Replacing(Change):
    def __init__(self, session: SqlSession, entry: Entry, where: str, rows: DataFrame) -> None:
        super().__init__(session, entry, None)
        self.options = options_of(session, entry)  # among them those of a DataFrame's writer
        self._where, self._rows = where, rows.persist()  # read twice, and of rand() it must be the same
        self.stack.callback(self._rows.unpersist)

    def write_all(self) -> CommitReport:
        """Write both in one commit."""
        with self.stack:
            new = self.named(self._rows)
            odd = self.session.query(f"SELECT 1 FROM {new} AS {quoted(self.alias)} WHERE NOT coalesce({self._where}, false)")
            if odd.take(1):
                hint = "Widen the condition, or filter the query by it."
                raise ConfigError("REPLACE WHERE", self._where, "true of every row of the query", hint)
            return self.write(Operation.UPSERT, self._made)

    def _made(self, moment: str | None, schema: pa.Schema) -> DataFrame:
        new = self.named(self._rows)
        gone = self.found(moment, schema, RowAction.DELETE, {}, f"({self._where}){self._unlike(new)}")
        shown = [f"null AS {quoted(alias)}" for alias in ROW_COLUMNS.values()] + [quoted(name) for name in schema.names]
        come = self.changes(f"SELECT {', '.join(shown)} FROM {new}", RowAction.INSERT, schema)
        return reduce(DataFrame.unionAll, [gone, come])

    def _unlike(self, new: str) -> str:
        """Rows whose key comes again are not deleted but written over."""
        properties = opened(self.session, self.entry).properties
        if not properties.record_keys:
            return ""
        anywhere = record_index.PARTITION in properties.metadata_partitions
        names = properties.record_keys if anywhere else (*properties.record_keys, *properties.partition_fields)
        alike = " AND ".join(f"_hudimeta_new.{quoted(name)} <=> {self.own(name)}" for name in names)
        return f" AND NOT EXISTS (SELECT 1 FROM {new} AS _hudimeta_new WHERE {alike})"
