"""`table.metadata`: the metadata table as people use it, to look into and to keep in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hudimeta.api.metadata_verbs import MetadataVerbs
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, IndexNotReady
from hudimeta.metadata import answers, files
from hudimeta.metadata.whole_records import whole_records
from hudimeta.redaction import hidden

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.commit.session import WriteSession
    from hudimeta.engine import Engine
    from hudimeta.indexes.record_window.settings import WindowSettings
    from hudimeta.metadata import MetadataTable
    from hudimeta.metadata.group_files import FileGroup
    from hudimeta.metadata.index_definitions import IndexDefinition
    from hudimeta.services.indexing import IndexReport, RebuildReport
    from hudimeta.services.validation import ValidationReport
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.timeline import Timeline

__all__ = ["TableMetadata"]

_MODES = ("sync", "async")
_WINDOW = "record_window"


class TableMetadata(MetadataVerbs):
    """The metadata table of a table as it is now, to look into and to keep in order.

    It is opened when something is first read from it: verbs that repair it must work where it cannot be opened. Whatever reads
    raises IndexNotReady where the table has none, or lacks the index that is asked.

    >>> table.metadata.records("files").num_rows                               # doctest: +SKIP

    Args:
        snapshot: The newest moment of the table.
        on_change: Called when a verb has changed the table.
        engine: Where files are read and indexes are built; threads of this process when None.
    """

    def __init__(self, snapshot: Snapshot, on_change: Callable[[], None], engine: Engine | None = None) -> None:
        self._snapshot, self._on_change, self._engine = snapshot.with_metadata(), on_change, engine
        self._modes = snapshot.modes

    def __repr__(self) -> str:
        opened = self._snapshot.metadata
        what = repr(opened) if opened is not None else self._snapshot.listing_reason
        return f"TableMetadata({hidden(self._snapshot.storage.root)}: {what})"

    @property
    def _opened(self) -> MetadataTable:
        found = self._snapshot.metadata
        if found is None:
            raise IndexNotReady(files.PARTITION, f"not there: {self._snapshot.listing_reason}")
        return found

    # What it is

    @property
    def ready(self) -> tuple[str, ...]:
        """Names of its partitions that are complete, sorted: `files`, and the indexes."""
        return self._opened.ready

    @property
    def timeline(self) -> Timeline:
        """Its own timeline."""
        return self._opened.timeline

    @property
    def index_definitions(self) -> Mapping[str, IndexDefinition]:
        """What each index is of, by metadata partition; see also `Table.indexes.list`."""
        return self._opened.index_definitions

    @property
    def record_window(self) -> WindowSettings | None:
        """The record window of the table, which is kept beside it; None where it has none."""
        from hudimeta.indexes.record_window.settings import WindowSettings

        return WindowSettings.of(self._snapshot.properties)

    # What it holds

    def partitions(self) -> pa.StringArray:
        """Partition paths of the table, sorted; [""] for a table without partitions that has files.

        >>> table.metadata.partitions().to_pylist()                            # doctest: +SKIP
        """
        return self._opened.partitions()

    def files(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """Files of the table: base, log and CDC files of committed instants, superseded and replaced ones included.

        >>> table.metadata.files(["2026-01"])                                  # doctest: +SKIP

        Args:
            partitions: Partition paths ("" for a table without partitions): one look-up each. None reads all.

        Returns:
            partition_path string, name string, size int64; in no particular order.
        """
        return self._opened.files(partitions)

    def records(self, partition: str) -> pa.Table:
        """Everything that a metadata partition holds, merged; its shape is that of the kind of partition.

        >>> table.metadata.records("column_stats")                             # doctest: +SKIP

        Args:
            partition: Its name, one of `ready`.
        """
        return self._opened.records(partition)

    def whole_records(self) -> Iterator[pa.Table]:
        """The records of all partitions, merged, in the shape of the records that Apache Hudi stores.

        >>> rows = pa.concat_tables(table.metadata.whole_records())            # doctest: +SKIP

        Returns:
            Tables of one schema, one for each partition: key string, type int32, and a column for each kind of record, which
            is null in all others: filesystemMetadata, BloomFilterMetadata, ColumnStatsMetadata, recordIndexMetadata,
            SecondaryIndexMetadata.
        """
        return whole_records(self._opened)

    def record_schema(self, partition: str) -> pa.Schema:
        """The schema of `records`, of which nothing is read.

        >>> table.metadata.record_schema("record_index").names                 # doctest: +SKIP

        Args:
            partition: Its name, one of `ready`.
        """
        return self._opened.record_schema(partition)

    def file_groups(self, partition: str) -> tuple[FileGroup, ...]:
        """The file groups of a metadata partition.

        >>> len(table.metadata.file_groups("record_index"))                    # doctest: +SKIP

        Args:
            partition: Its name, one of `ready`.
        """
        return self._opened.file_groups(partition)

    # What its indexes know

    def column_stats(self, columns: Mapping[str, pa.DataType], partitions: Sequence[str] | None = None) -> dict[str, pa.Table]:
        """Bounds and counts of some columns, file by file; see `hudimeta.metadata.answers.column_stats`.

        >>> table.metadata.column_stats({"fare": pyarrow.float64()})["fare"]   # doctest: +SKIP

        Args:
            columns: Name (dotted when nested) and Arrow type of each.
            partitions: Only files of these; None for all.
        """
        return answers.column_stats(self._opened, columns, partitions)

    def partition_stats(
        self, columns: Mapping[str, pa.DataType], partitions: Sequence[str] | None = None
    ) -> dict[str, pa.Table]:
        """As `column_stats`, of whole partitions; values may be wider than the rows of today.

        >>> table.metadata.partition_stats({"fare": pyarrow.float64()})["fare"]        # doctest: +SKIP

        Args:
            columns: Name and Arrow type of each.
            partitions: Only these; None for all.
        """
        return answers.partition_stats(self._opened, columns, partitions)

    def expression_stats(self, name: str, wanted: pa.DataType, partitions: Sequence[str] | None = None) -> pa.Table:
        """Bounds of an expression's values, file by file.

        >>> table.metadata.expression_stats("expr_index_day", pyarrow.string())        # doctest: +SKIP

        Args:
            name: Metadata partition, `expr_index_…`.
            wanted: Arrow type of the expression's result.
            partitions: Only files of these; None for all.
        """
        return answers.expression_stats(self._opened, name, wanted, partitions)

    def expression_partition_stats(self, name: str, wanted: pa.DataType, partitions: Sequence[str] | None = None) -> pa.Table:
        """As `expression_stats`, of whole partitions.

        >>> table.metadata.expression_partition_stats("expr_index_day", pyarrow.string())      # doctest: +SKIP

        Args:
            name: Metadata partition, `expr_index_…`.
            wanted: Arrow type of the expression's result.
            partitions: Only these; None for all.
        """
        return answers.expression_partition_stats(self._opened, name, wanted, partitions)

    def record_index(self, keys: pa.Array | Sequence[str]) -> pa.Table:
        """Where some record keys live: partition, file group, instant; one row for each key that the index knows.

        >>> table.metadata.record_index(["t1", "t2"])                          # doctest: +SKIP

        Args:
            keys: Record keys, each once.
        """
        return answers.record_locations(self._opened, keys)

    def secondary_index(self, name: str, values: pa.Array | Sequence[str | None]) -> pa.Table:
        """Record keys of the rows that have some values.

        >>> table.metadata.secondary_index("secondary_index_by_rider", ["ada"])        # doctest: +SKIP

        Args:
            name: Metadata partition, `secondary_index_…`.
            values: Texts as Java spells the column's values; None for null.
        """
        return answers.keys_with_values(self._opened, name, values)

    def bloom_filters(self, of_files: Sequence[tuple[str, str]], name: str = "bloom_filters") -> pa.Table:
        """Bloom filters of some files: of their record keys, or of the values of an expression.

        >>> table.metadata.bloom_filters([("2026-01", "a-0_0-0-0_2026.parquet")])      # doctest: +SKIP

        Args:
            of_files: (partition path, file name) of each.
            name: Metadata partition: `bloom_filters`, or an `expr_index_…` of that kind.
        """
        return answers.file_filters(self._opened, of_files, name)

    # Keeping it in order

    def validate(self, partitions: Sequence[str] | None = None, *, prove: bool = False, deep: bool = False) -> ValidationReport:
        """Compare the metadata table with the table: listing, statistics, filters, and the indexes of rows.

        >>> print(table.metadata.validate())                                   # doctest: +SKIP

        Args:
            partitions: Metadata partitions to check; all when None.
            prove: Record on the timeline that indexes of the whole table which hold lack no row, so that reads use them;
                nothing is recorded when the table moved meanwhile.
            deep: Read every byte of the table as well, and name each file that is damaged; works without a metadata table too.

        Returns:
            What holds, what differs (with counts and examples), and what cannot be known because the table moved meanwhile.
            It prints well.

        Raises:
            IndexNotReady: There is no metadata table.
            ConfigError: A name that is none of its partitions.
        """
        from hudimeta.services.validation import validate

        report = validate(self._snapshot, partitions, self._engine, deep=deep)
        if not prove or not report.proven:
            return report
        from hudimeta.services.indexing.proof import record_proof_of

        recorded = record_proof_of(self._session({}), report.proven, self._snapshot.timeline)
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
        mode: str = "sync",
    ) -> IndexReport:
        """Build an index over the table as it is; every commit keeps it from then on.

        >>> table.metadata.create_index("by_rider", "secondary_index", "rider")# doctest: +SKIP

        Args:
            name: Of a secondary index or of one with an expression; the others have the name of their type.
            type: `record_index`, `secondary_index`, `bloom_filters`, `column_stats`, `partition_stats`; or
                `record_window`, an index of the record keys of the newest `days` alone, kept beside the metadata table.
            columns: What is indexed: one column of a secondary index or of an expression, several of `column_stats`; of
                a record window the column of event time, none where partition paths name days.
            expression: A Spark function over the column, such as `lower`, `year` or `from_unixtime`: then `type` is
                `column_stats` (bounds of its values, file by file) or `bloom_filters`.
            options: Further arguments of the function (`format`, `days`, `pos`, `len`, `pattern`, `replacement`, `idx`), of
                filters (`filtertype`, `numentries`, `fpp`), of a record window (`days`, `older`), and options by their full
                names, such as `hoodie.metadata.index.expression.file.group.count`.
            mode: `sync`, while writers wait; or `async`, where they go on while the table is read. What died is run again by
                the next call, or by `t.services.indexing.execute`.

        Returns:
            What was built, and what it took.

        Raises:
            ConfigError: Something that does not fit the table.
            TableError: The table has that index.
            UnsupportedFeature: An expression that is not known here.
            IndexNotReady: There is no metadata table.
        """
        from hudimeta.services.indexing import create_beside, create_index, create_window

        if mode not in _MODES:
            raise ConfigError("mode", mode, ", ".join(_MODES))
        given = {key: str(value) for key, value in (options or {}).items()}
        of_build = {key: value for key, value in given.items() if key.startswith(("hoodie.", "hudimeta."))}
        of_index = {key: value for key, value in given.items() if key not in of_build}
        wanted, session = [columns] if isinstance(columns, str) else list(columns), self._session(of_build)
        if type == _WINDOW:
            if expression is not None or name not in (None, _WINDOW):
                raise ConfigError("name, expression", (name, expression), "none: a table has one window, of its record keys")
            report = create_window(session, wanted, of_index)
        else:
            create = create_index if mode == "sync" else create_beside
            report = create(session, kind=type, name=name, columns=wanted, expression=expression, index_options=of_index)
        self._on_change()
        return report

    def drop_index(self, name: str) -> IndexReport:
        """Remove an index. No row changes, and readers that use it must open the table again.

        >>> table.metadata.drop_index("by_rider")                              # doctest: +SKIP

        Args:
            name: As `create_index` was given it, or the metadata partition, such as `bloom_filters`.

        Raises:
            ConfigError: There is none.
            TableError: Another index needs it, or it is `files`.
        """
        from hudimeta.services.indexing import drop_index, drop_window

        if name == _WINDOW:
            report = drop_window(self._session({}))
        else:
            report = drop_index(self._snapshot.storage, self._snapshot.options, name)
        self._on_change()
        return report

    def resize_index(self, groups: int, *, dry_run: bool = False) -> IndexReport:
        """Give the record index more or fewer file groups, from it alone: no data file is read, Apache Hudi goes on.

        Writers wait; readers go on.

        >>> print(table.metadata.resize_index(32))                             # doctest: +SKIP

        Args:
            groups: How many it shall have.
            dry_run: Only check and tell.

        Raises:
            ConfigError: None, or more than Hudi makes, or more than there are so soon after there were made fewer.
            IndexNotReady: There is no record index.
            UnsupportedFeature: It is kept by partition.
            TableError: A write is in doubt.
        """
        from hudimeta.services.indexing import resize

        report = resize(self._session({}), groups, dry_run=dry_run)
        if not dry_run:
            self._on_change()
        return report

    def drop_partition(self, name: str) -> IndexReport:
        """The same as `drop_index`.

        >>> table.metadata.drop_partition("bloom_filters")                     # doctest: +SKIP

        Args:
            name: The metadata partition.
        """
        return self.drop_index(name)

    def rebuild(self) -> RebuildReport:
        """Make the metadata table anew from what lies on storage, with the indexes that it has; repairs whatever differs.

        >>> print(table.metadata.rebuild())                                    # doctest: +SKIP

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
        from hudimeta.commit.session import WriteSession

        given = OPTIONS.read(self._snapshot.options.having(options).given)
        return WriteSession(self._snapshot.storage, given, engine=self._engine)
