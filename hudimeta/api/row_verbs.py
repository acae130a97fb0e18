"""The verbs that take rows, for both faces: `Table` takes Arrow and what can become it, `HudiTable` takes DataFrames."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from hudimeta.errors import ConfigError
from hudimeta.types import Operation

if TYPE_CHECKING:
    from hudimeta.commit.report import CommitReport
    from hudimeta.predicate import Where

__all__ = ["RowVerbs"]


class RowVerbs(abc.ABC):
    """Verbs that write rows. What rows may be, the face says; see `upsert`."""

    def insert(self, data: Any) -> CommitReport:
        """Add rows without looking for their keys: small files are filled first. See `upsert` for what `data` may be.

        >>> table.insert([{"id": "t1", "month": "2026-01", "fare": 9.5}])      # doctest: +SKIP
        """
        return self._write(Operation.INSERT, data)

    def bulk_insert(self, data: Any) -> CommitReport:
        """Add rows in new file groups only, the quickest way to load. See `upsert` for what `data` may be.

        >>> table.bulk_insert(pyarrow.parquet.read_table("trips.parquet"))     # doctest: +SKIP
        """
        return self._write(Operation.BULK_INSERT, data)

    def upsert(self, data: Any) -> CommitReport:
        """Update the rows whose key is in the table, in their own partition, and insert the others.

        >>> print(table.upsert(rows))                                          # doctest: +SKIP

        Args:
            data: Of a `Table`: pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars frame, a dict of columns, a
                list of dicts. Of a `HudiTable`: a DataFrame of Spark. Columns `_hoodie_*` are ignored.

        Returns:
            What was done, at what cost.

        Raises:
            SchemaError: Rows that do not fit; nothing was written.
            CommitConflict: Other writers were first, repeatedly.
            UnsupportedFeature: The table uses something that hudimeta cannot write.
        """
        return self._write(Operation.UPSERT, data)

    def insert_overwrite(self, data: Any) -> CommitReport:
        """Replace the partitions that the rows belong to. See `upsert` for what `data` may be.

        >>> table.insert_overwrite(january)                                    # doctest: +SKIP
        """
        return self._write(Operation.INSERT_OVERWRITE, data)

    def insert_overwrite_table(self, data: Any) -> CommitReport:
        """Replace all rows of the table. See `upsert` for what `data` may be.

        >>> table.insert_overwrite_table(all_trips)                            # doctest: +SKIP
        """
        return self._write(Operation.INSERT_OVERWRITE_TABLE, data)

    def delete(self, keys_or_where: Any = None, *, where: Where | None = None, keys: Any = None) -> CommitReport:
        """Delete rows: those that a predicate chooses, or those of some keys. Give one argument.

        >>> table.delete(where="fare < 0")                                     # doctest: +SKIP
        >>> table.delete(keys=[{"id": "t1", "month": "2026-01"}])              # doctest: +SKIP

        Args:
            keys_or_where: Either; text, lists of tuples and expressions of PyArrow are predicates, all else is rows.
            where: A predicate in any notation that `scan` takes.
            keys: Rows with at least the key and partition columns; see `upsert` for what rows may be. Of a `Table` whose key is
                one column, and which has no partitions, also a list or Arrow array of keys.

        Raises:
            ConfigError: No argument, or more than one; a predicate that does not fit.
            SchemaError: Rows that do not fit.
        """
        arguments = {"keys_or_where": keys_or_where, "where": where, "keys": keys}
        given = [name for name, value in arguments.items() if value is not None]
        if len(given) != 1:
            raise ConfigError(
                "delete", ", ".join(given) or None, "either where=… or keys=…", "insert_overwrite_table takes all rows out."
            )
        if where is None and keys_or_where is not None and self._is_where(keys_or_where):
            where = keys_or_where
        if where is not None:
            return self._delete_where(where)
        return self._write(Operation.DELETE, keys if keys is not None else keys_or_where)

    @abc.abstractmethod
    def _write(self, operation: Operation, data: Any) -> CommitReport:
        """Write rows."""

    @abc.abstractmethod
    def _delete_where(self, where: Where) -> CommitReport:
        """Delete what a predicate chooses."""

    @abc.abstractmethod
    def _is_where(self, value: Any) -> bool:
        """True for a predicate, false for rows."""
