"""`table.indexes`: which indexes a table has, and making, checking and dropping them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.formats.plain_arrays import table_of
from hudimeta.metadata import files
from hudimeta.metadata.indexed_columns import column_type

if TYPE_CHECKING:
    from hudimeta.api.metadata import TableMetadata
    from hudimeta.services.indexing import IndexReport, RebuildReport
    from hudimeta.services.validation import ValidationReport

__all__ = ["TableIndexes"]

_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("expression", pa.string()),
    ]
)


class TableIndexes:
    """The indexes of a table. Each is a partition of its metadata table, but for a record window.

    >>> table.indexes.create("by_rider", "secondary_index", "rider")           # doctest: +SKIP

    Args:
        metadata: Gives the metadata table of now.
        schema: Gives the columns of the table, meta columns too.
    """

    def __init__(self, metadata: Callable[[], TableMetadata], schema: Callable[[], pa.Schema]) -> None:
        self._metadata, self._schema = metadata, schema

    def __repr__(self) -> str:
        return f"TableIndexes({', '.join(name for name in self._metadata().ready if name != files.PARTITION)})"

    def list(self) -> pa.Table:
        """The indexes that are complete.

        >>> table.indexes.list().to_pandas()                                   # doctest: +SKIP

        Returns:
            name (the metadata partition), type, columns (those that the table has; none where the index is not of some),
            expression (null without one).

        Raises:
            IndexNotReady: There is no metadata table.
        """
        metadata = self._metadata()
        schema = self._schema()
        rows = []
        for name in metadata.ready:
            if name == files.PARTITION:
                continue
            found = metadata.index_definitions.get(name)
            # Column statistics, as Apache Hudi's, remember columns that were dropped or renamed.
            columns = [c for c in found.source_fields if column_type(schema, c) is not None] if found is not None else []
            is_expression = found is not None and found.function not in ("identity", found.kind)
            rows.append(
                {
                    "name": name,
                    "type": found.kind if found is not None else name,
                    "columns": columns,
                    "expression": found.function if found is not None and is_expression else None,
                }
            )
        if (window := metadata.record_window) is not None:
            columns = [] if window.column is None else [window.column]
            rows.append({"name": "record_window", "type": "record_window", "columns": columns, "expression": None})
        return table_of(rows, _SCHEMA)

    def create(
        self,
        name: str | None = None,
        type: str = "secondary_index",
        columns: str | Sequence[str] = (),
        *,
        expression: str | None = None,
        options: Mapping[str, Any] | None = None,
        mode: str = "sync",
    ) -> IndexReport:
        """Build an index over the table as it is; see `TableMetadata.create_index`.

        >>> table.indexes.create("day", "column_stats", "ts", expression="from_unixtime")      # doctest: +SKIP

        Args:
            name: Of a secondary index or of one with an expression.
            type: `record_index`, `secondary_index`, `bloom_filters`, `column_stats`, `partition_stats` or `record_window`.
            columns: What is indexed.
            expression: A Spark function over the column.
            options: Further arguments.
            mode: `sync`, or `async` to build beside writers.
        """
        return self._metadata().create_index(name, type, columns, expression=expression, options=options, mode=mode)

    def drop(self, name: str) -> IndexReport:
        """Remove an index; see `TableMetadata.drop_index`.

        >>> table.indexes.drop("by_rider")                                     # doctest: +SKIP

        Args:
            name: As `create` was given it, or as `list` shows it.
        """
        return self._metadata().drop_index(name)

    def resize(self, groups: int, *, dry_run: bool = False) -> IndexReport:
        """Give the record index more or fewer file groups; see `TableMetadata.resize_index`.

        >>> print(table.indexes.resize(32))                                    # doctest: +SKIP

        Args:
            groups: How many it shall have.
            dry_run: Only check and tell.
        """
        return self._metadata().resize_index(groups, dry_run=dry_run)

    def validate(self, names: Sequence[str] | None = None, *, prove: bool = False) -> ValidationReport:
        """Compare indexes with the table; see `TableMetadata.validate`.

        >>> table.indexes.validate(["record_index"]).raise_if_differs()        # doctest: +SKIP

        Args:
            names: As `list` shows them; all, and the listing of files, when None.
            prove: Record on the timeline that indexes which hold lack no row.
        """
        return self._metadata().validate(names, prove=prove)

    def rebuild(self) -> RebuildReport:
        """Make all of them anew from what lies on storage; see `TableMetadata.rebuild`.

        >>> print(table.indexes.rebuild())                                     # doctest: +SKIP
        """
        return self._metadata().rebuild()
