"""`table.metadata`: the metadata table as people use it, to look into and to keep in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.config import OPTIONS
from hudimeta.errors import IndexNotReady
from hudimeta.metadata import MetadataTable, answers, files
from hudimeta.redaction import hidden

if TYPE_CHECKING:
    from hudimeta.engine import Engine
    from hudimeta.services.indexing import IndexReport, RebuildReport
    from hudimeta.services.validation import ValidationReport
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.write.session import WriteSession

__all__ = ["TableMetadata"]

_OWN = ("snapshot", "_on_change", "_engine")


class TableMetadata(MetadataTable):
    """The metadata table of a snapshot, with the verbs that act on it.

    It is opened when it is first asked for something: verbs that repair it must work where it cannot be opened.

    Args:
        snapshot: The newest moment of the table.
        on_change: Called when a verb has changed the table.
        engine: Where files are read and indexes are built; threads of this process when None.
    """

    def __init__(self, snapshot: Snapshot, on_change: Callable[[], None], engine: Engine | None = None) -> None:
        self.snapshot, self._on_change, self._engine = snapshot, on_change, engine

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there yet: everything of the opened metadata table."""
        if name in _OWN or "timeline" in vars(self):
            raise AttributeError(name)
        found = self.snapshot.metadata
        if found is None:
            raise IndexNotReady(files.PARTITION, f"not there: {self.snapshot.listing_reason}")
        vars(self).update(vars(found))
        return getattr(self, name)

    def __repr__(self) -> str:
        if self.snapshot.metadata is None:
            return f"TableMetadata({hidden(self.snapshot.storage.root)}: {self.snapshot.listing_reason})"
        return super().__repr__()

    def column_stats(self, columns: Mapping[str, pa.DataType], partitions: Sequence[str] | None = None) -> dict[str, pa.Table]:
        """Minimum, maximum and counts per file of some columns; see `hudimeta.metadata.answers.column_stats`."""
        return answers.column_stats(self, columns, partitions)

    def partition_stats(
        self, columns: Mapping[str, pa.DataType], partitions: Sequence[str] | None = None
    ) -> dict[str, pa.Table]:
        """As `column_stats`, of whole partitions; see `hudimeta.metadata.answers.partition_stats`."""
        return answers.partition_stats(self, columns, partitions)

    def expression_stats(self, name: str, wanted: pa.DataType, partitions: Sequence[str] | None = None) -> pa.Table:
        """Statistics of an expression, per file; see `hudimeta.metadata.answers.expression_stats`."""
        return answers.expression_stats(self, name, wanted, partitions)

    def expression_partition_stats(self, name: str, wanted: pa.DataType, partitions: Sequence[str] | None = None) -> pa.Table:
        """Statistics of an expression, per partition; see `hudimeta.metadata.answers.expression_partition_stats`."""
        return answers.expression_partition_stats(self, name, wanted, partitions)

    def record_index(self, keys: pa.Array | Sequence[str]) -> pa.Table:
        """Where some record keys live; see `hudimeta.metadata.answers.record_locations`."""
        return answers.record_locations(self, keys)

    def secondary_index(self, name: str, values: pa.Array | Sequence[str | None]) -> pa.Table:
        """Record keys that have some values; see `hudimeta.metadata.answers.keys_with_values`."""
        return answers.keys_with_values(self, name, values)

    def bloom_filters(self, of_files: Sequence[tuple[str, str]], name: str = "bloom_filters") -> pa.Table:
        """Bloom filters of some files; see `hudimeta.metadata.answers.file_filters`."""
        return answers.file_filters(self, of_files, name)

    def validate(self, partitions: Sequence[str] | None = None, *, prove: bool = False, deep: bool = False) -> ValidationReport:
        """Compare the metadata table with the table: listing, statistics, filters, and the indexes of rows.

        Args:
            partitions: Metadata partitions to check; all when None.
            prove: Record on the timeline that indexes of the whole table which hold lack no row, so that reads use them;
                nothing is recorded when the table moved meanwhile.
            deep: Read every byte of the table as well, and name each file that is damaged; works without a metadata table too.

        Returns:
            What holds, what differs (with counts and examples), and what cannot be told because the table moved meanwhile.
            It prints well.

        Raises:
            IndexNotReady: There is no metadata table.
            ConfigError: A name that is none of its partitions.
        """
        from hudimeta.services.validation import validate

        report = validate(self.snapshot, partitions, self._engine, deep=deep)
        if not prove or not report.proven:
            return report
        from hudimeta.services.indexing.proof import record_proof_of

        recorded = record_proof_of(self._session({}), report.proven, self.snapshot.timeline)
        self._on_change()
        return replace(report, recorded=recorded)

    def create_index(
        self,
        name: str | None = None,
        type: str = "secondary_index",
        columns: str | Sequence[str] = (),
        *,
        expression: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> IndexReport:
        """Build an index over the table as it is; every commit keeps it from then on. Writers wait meanwhile.

        Args:
            name: Of a secondary index or of one with an expression; the others have the name of their type.
            type: `record_index`, `secondary_index`, `bloom_filters`, `column_stats` or `partition_stats`.
            columns: What is indexed: one column of a secondary index or of an expression, several of `column_stats`.
            expression: A Spark function over the column, such as `lower`, `year` or `from_unixtime`: then `type` is
                `column_stats` (bounds of its values, file by file) or `bloom_filters`.
            options: Further arguments of the function (`format`, `days`, `pos`, `len`, `pattern`, `replacement`, `idx`), of
                filters (`filterType`, `numEntries`, `fpp`), and options by their full names, such as
                `hoodie.metadata.index.expression.file.group.count`.

        Returns:
            What was built, and what it took.

        Raises:
            ConfigError: Something that does not fit the table.
            TableError: The table has that index.
            UnsupportedFeature: An expression that is not known here.
            IndexNotReady: There is no metadata table.
        """
        from hudimeta.services.indexing import create_index

        given = {key: str(value) for key, value in (options or {}).items()}
        of_build = {key: value for key, value in given.items() if key.startswith(("hoodie.", "hudimeta."))}
        report = create_index(
            self._session(of_build),
            kind=type,
            name=name,
            columns=[columns] if isinstance(columns, str) else list(columns),
            expression=expression,
            index_options={key: value for key, value in given.items() if key not in of_build},
        )
        self._on_change()
        return report

    def drop_index(self, name: str) -> IndexReport:
        """Remove an index. No row changes, and readers that use it must open the table again.

        Args:
            name: As `create_index` was given it, or the metadata partition, such as `bloom_filters`.

        Raises:
            ConfigError: There is none.
            TableError: Another index needs it, or it is `files`.
        """
        from hudimeta.services.indexing import drop_index

        report = drop_index(self.snapshot.storage, self.snapshot.options, name)
        self._on_change()
        return report

    drop_partition = drop_index

    def rebuild(self) -> RebuildReport:
        """Make the metadata table anew from what lies on storage, with the indexes that it has; repairs whatever differs.

        What is made is validated before it is used, and readers use the old one until then; where that cannot be opened, they
        list storage meanwhile. Writers wait.

        Raises:
            TableError: Writes are under way.
            ValidationFailed: What was made is not true, so it is not used.
        """
        from hudimeta.services.indexing import rebuild

        report = rebuild(self._session({}))
        self._on_change()
        return report

    def _session(self, options: Mapping[str, str]) -> WriteSession:
        from hudimeta.write.session import WriteSession

        given = OPTIONS.read(self.snapshot.options.having(options).given)
        return WriteSession(self.snapshot.storage, given, engine=self._engine)
