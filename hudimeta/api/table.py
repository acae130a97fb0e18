"""`hudimeta.Table`: one object for everything that can be asked of a table. Each verb hands over to the module that does it.

Verbs that take rows are in `row_verbs`; `services`, `indexes` and `metadata` group the others.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudimeta.api.factories import TableFactories
from hudimeta.api.row_verbs import RowVerbs
from hudimeta.api.service_verbs import ServiceVerbs
from hudimeta.api.services import TableServices
from hudimeta.config import OPTIONS, HudiWarning, Options, checked, said_of_reads
from hudimeta.config.options import AS_OF
from hudimeta.engine.machine import monotonic
from hudimeta.observability import metered
from hudimeta.redaction import hidden
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.table.places import naming_table_above
from hudimeta.types import Operation, QueryType

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.api.indexes import TableIndexes
    from hudimeta.api.metadata import TableMetadata
    from hudimeta.commit.report import CommitReport
    from hudimeta.engine import Engine
    from hudimeta.predicate import Where
    from hudimeta.read.scan import Scan
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import Timeline
    from hudimeta.write.merge_builder import MergeBuilder

__all__ = ["Table"]

_STILL_NOW_S = 1.0
"""What a table showed as it was opened is what it shows to a first read so soon after."""


@checked
class Table(RowVerbs, ServiceVerbs, TableFactories):
    """A Hudi table.

    Args:
        path: Its folder: a local path, or a URI of an object store.
        options: Options by their names, such as `{"as.of.instant": "2026-01-02"}`; `scan` has those of a read as defaults.
        engine: Where services (compaction, cleaning, building and validating indexes) run their tasks; threads of this
            process when None. `pyspark_hudimeta.SparkEngine(spark)` is Spark's executors.

    Raises:
        TableNotFound: There is no table.
        UnsupportedTableVersion, UnsupportedFeature: There is one that cannot be read.
        ConfigError: An option that does not exist or has a value that it cannot have.
    """

    def __init__(
        self, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None, *, engine: Engine | None = None
    ) -> None:
        self._options, self._engine = OPTIONS.read(options), engine
        storage = CountingStorage(open_storage(path, self._options.texts))
        with naming_table_above(storage.root, self._options.texts):
            self._snapshot = Snapshot.open(storage, self._options)
        metered(storage, self._options, self._snapshot.properties.name)
        self._unread, self._opened_at, self._said_of_reads = True, monotonic(), False
        self._changed = False

    def __repr__(self) -> str:
        kind = self.properties.type.value.lower().replace("_", " ")
        return f"Table({hidden(self.path)!r}: {self.properties.name}, {kind}, version {self.version})"

    # What it is

    @property
    def path(self) -> str:
        """Where the table is: an absolute path or a URI."""
        return self._snapshot.storage.root

    @property
    def properties(self) -> TableProperties:
        """`hoodie.properties` as a mapping, with typed attributes."""
        return self._snapshot.properties

    @property
    def version(self) -> int:
        """The table's version: 6, 8 or 9."""
        return self.properties.version

    @property
    def schema(self) -> pa.Schema:
        """Columns of the newest write, the five meta columns first."""
        return self._now().schema.arrow

    @property
    def timeline(self) -> Timeline:
        """The instants of now; prints well."""
        return self._now().timeline

    @property
    def metadata(self) -> TableMetadata:
        """The metadata table of now: `.partitions()`, `.files()`, `.records(name)`, its indexes, and `.validate()`.

        Where the table has none, or reading it is switched off, what is read from it raises IndexNotReady.
        """
        from hudimeta.api.metadata import TableMetadata

        return TableMetadata(self._now(), self._reopen, self._engine)

    @property
    def indexes(self) -> TableIndexes:
        """Its indexes: `.list()`, `.create(…)`, `.drop(name)`, `.validate()`, `.rebuild()`."""
        from hudimeta.api.indexes import TableIndexes

        return TableIndexes(lambda: self.metadata, lambda: self.schema)

    @property
    def services(self) -> TableServices:
        """What keeps it small and quick: `.compact()`, `.schedule_compaction()`, `.clean()`, `.archive()`, `.recover()`."""
        return TableServices(self._changing, self._engine)

    def call(self, procedure: str, **arguments: Any) -> pa.Table:
        """Run a procedure of Hudi's SQL, by its name there; docs/procedures.md lists them.

        >>> table.call("show_commits", limit=5).to_pandas()                    # doctest: +SKIP

        Args:
            procedure: Its name; `table.call("help")` tells of all, `table.call("help", cmd="run_clean")` of one.
            arguments: Its own parameters, but those that name the table.

        Returns:
            What `CALL` shows in SQL, with Hudi's columns.

        Raises:
            ConfigError: No such procedure, or arguments that do not fit it.
            UnsupportedFeature: It does not run here; the text says why.
        """
        from hudimeta.api.calling import call_procedure

        return call_procedure(*self._changing(), self._engine, procedure, arguments, self._reopen)

    def history(self, limit: int | None = None, *, archived: bool = False) -> pa.Table:
        """What happened to the table, one row an instant, the newest first.

        >>> table.history(limit=10).to_pandas()                                # doctest: +SKIP

        Args:
            limit: Most rows; all when None.
            archived: Instants that archiving took off the active timeline too.

        Returns:
            instant, completion, action, state, operation, rows_inserted, rows_updated, rows_deleted, files, bytes, written_by;
            null where nothing is known, or there is nothing to know.
        """
        from hudimeta.commit.table_history import history_of

        return history_of(self._now().timeline, limit, archived=archived)

    def report(self, instant: str | None = None) -> CommitReport:
        """What a commit did, whoever wrote it; of our own commits also how, until the moment at which they were published.

        >>> print(table.report())                                              # doctest: +SKIP

        Args:
            instant: Requested time of a completed write; None for the newest.

        Raises:
            TableError: There is no such write on the active timeline.
        """
        from hudimeta.commit.report import CommitReport

        return CommitReport.found_on(self._now().timeline, instant)

    # Reading

    def snapshot(self, as_of: str | None = None) -> Snapshot:
        """The table at one moment, of now or as of an earlier one; what `scan` reads.

        >>> table.snapshot("2026-01-02").latest_write                          # doctest: +SKIP

        Raises:
            TableError: The cleaner has removed what the moment needs.
        """
        moment = as_of if as_of is not None else self._options.get(AS_OF)
        now = self._now()
        return now if moment is None else now.at(moment)

    def scan(
        self,
        where: Where | None = None,
        columns: str | Sequence[str] | None = None,
        *,
        as_of: str | None = None,
        query_type: str | QueryType | None = None,
        begin: str | None = None,
        end: str | None = None,
        limit: int | None = None,
        timezone: str = "UTC",
    ) -> Scan:
        """A read of the table. Nothing is read yet: the first verb of what comes back settles the moment, and checks names.

        >>> table.scan("fare > 60", ["id", "fare"], limit=10).to_table()       # doctest: +SKIP

        Args:
            where: SQL text in Spark's dialect, tuples such as `[("fare", ">", 60)]`, an expression such as
                `pyarrow.compute.field("fare") > 60`, or a JSON tree; it skips files and drops rows.
            columns: What to return: `["id", "place.x"]`, `"id, place.x"`; all when None. Of a struct only `place.x` is read.
            as_of: Time travel: an instant, or a date or time in the timeline's zone.
            query_type: `snapshot`, `read_optimized`, `incremental` or `cdc`.
            begin: Of incremental and CDC reads: a completion time, excluded, or `earliest`.
            end: Of incremental and CDC reads: a completion time, included; now when None.
            limit: Rows after which reading stops; all when None. Which rows come first is not said.
            timezone: Zone of texts in `where` that name none.

        Raises:
            ConfigError: A predicate or an argument that cannot be read, and, on first use, a column or moment that does not
                fit.
            UnsupportedFeature: A read that hudimeta does not do.
        """
        from hudimeta.api.reading import ReadRequest, scan_of

        return scan_of(
            ReadRequest(where, columns, as_of, query_type, begin, end, limit, timezone), self._options, self._moment_of_reads
        )

    def _moment_of_reads(self, as_of: str | None) -> tuple[Snapshot, int]:
        """The snapshot that a scan reads, and where the request log stood before it was asked for."""
        mark = 0 if self._unread else self._snapshot.storage.log.mark()
        return self.snapshot(as_of), mark

    def file_slices(self, as_of: str | None = None) -> pa.Table:
        """The visible file slices, one row a file group; log files that hold nothing visible are left out.

        >>> table.file_slices().num_rows                                       # doctest: +SKIP

        Returns:
            partition_path, file_id, base_instant, base_file string (null without a base file), base_size int64, log_files
            list of string, log_sizes list of int64.
        """
        return self.snapshot(as_of).file_slices()

    # Writing

    def update(self, set: Mapping[str, Any], where: Where | None = None) -> CommitReport:
        """Change columns of rows.

        >>> table.update({"fare": "fare * 1.1"}, where="month = '2026-01'")    # doctest: +SKIP

        Args:
            set: New values by column: text is a SQL expression over the row (`"fare * 2"`, `"'text'"`, `"null"`), anything
                else a constant. Columns of the key and of the partition cannot change.
            where: Which rows, as `scan` takes it; all when None.

        Raises:
            ConfigError, SchemaError: Columns, expressions or values that do not fit; nothing was written.
        """
        from hudimeta.api import verbs

        return verbs.update(*self._changing_rows(), set, where)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        target_alias: str = "target",
        source_alias: str = "source",
    ) -> MergeBuilder:
        """Begin to merge rows into the table; `execute()` on what comes back does it.

        >>> table.merge(rows, "id").when_matched_update().when_not_matched_insert().execute()      # doctest: +SKIP

        Args:
            source: Rows (see `upsert` for what they may be).
            on: What makes a row of the source and one of the table the same: a column, several, a mapping from the table's
                columns to the source's, or SQL such as `"target.id = source.id and source.ts > target.ts"`.
            target_alias: How expressions call a row of the table.
            source_alias: How they call a row of the source.
        """
        from hudimeta.api import verbs

        return verbs.merge(*self._changing_rows(), source, on, (target_alias, source_alias))

    def alter(
        self,
        *,
        add: Mapping[str, pa.DataType] | pa.Schema | Sequence[pa.Field] = (),
        rename: Mapping[str, str] | None = None,
        drop: str | Sequence[str] = (),
        retype: Mapping[str, pa.DataType] | None = None,
        nullable: str | Sequence[str] = (),
        move: Mapping[str, str | None] | None = None,
    ) -> CommitReport:
        """Change the table's columns in one commit; no file is rewritten.

        Before the first change, slices whose logs hold partial updates are compacted: Apache Hudi would leave their rows out.
        Drops go first, moves last. Dotted names lead into structs, by `value` into those of maps, by `element` into lists'.

        >>> table.alter(add={"note": pyarrow.string()}, rename={"fare": "price"})      # doctest: +SKIP

        Args:
            add: New columns, null in the rows that are there; a dotted name adds a field to a struct.
            rename: New names by old ones.
            drop: Columns to drop.
            retype: Wider types by column.
            nullable: Columns that may be null from now on.
            move: Which column each shall follow; None for the first place.

        Raises:
            ConfigError, UnsupportedEvolution: Columns of key, partition and ordering stay, types grow, no former name returns.
            TableError: A planned service takes file slices that would have to be compacted first.
        """
        from hudimeta.api import verbs

        return verbs.alter(*self._changing(), add=add, rename=rename, drop=drop, retype=retype, nullable=nullable, move=move)

    def delete_partition(self, partitions: str | Sequence[str]) -> CommitReport:
        """Take all rows of partitions out of the table; their files stay until a clean.

        >>> table.delete_partition("month=2024-*")                             # doctest: +SKIP

        Args:
            partitions: Paths as their folders are named, such as `2024-01` or `month=2024-01`; `*` stands for any text.
        """
        from hudimeta.api import verbs

        return verbs.delete_partition(*self._changing_rows(), partitions)

    def _write(self, operation: Operation, data: Any) -> CommitReport:
        from hudimeta.api import verbs
        from hudimeta.api.arguments import key_rows

        rows = key_rows(data, self.properties) if operation is Operation.DELETE else data
        return verbs.write(*self._changing_rows(), operation, rows)

    def _delete_where(self, where: Where) -> CommitReport:
        from hudimeta.api import verbs

        return verbs.delete_where(*self._changing_rows(), where)

    def _is_where(self, value: Any) -> bool:
        from hudimeta.api import verbs

        return verbs.is_predicate(value)

    def _changing(self) -> tuple[CountingStorage, Options]:
        """What a verb works on; what opening saw is the past from here on."""
        self._unread, self._changed = False, True
        return self._snapshot.storage, self._options

    def _changing_rows(self) -> tuple[CountingStorage, Options]:
        """The same for a verb that writes rows; with a warning once where the table was opened with options of its reads."""
        said, self._said_of_reads = said_of_reads({} if self._said_of_reads else self._options.given), True
        if said:
            why = "writes pass over what is said of reads, and see the whole table"
            text = f"{hidden(self.path)} was opened with {', '.join(said)}: {why}"
            warnings.warn(text, HudiWarning, stacklevel=4)
        return self._changing()

    def _reopen(self) -> None:
        self._snapshot = Snapshot.open(self._snapshot.storage, self._options)

    def _now(self) -> Snapshot:
        """The snapshot of now: the timeline is listed again, and what was read is kept while nothing has changed."""
        is_now = self._unread and monotonic() - self._opened_at < _STILL_NOW_S
        self._snapshot = self._snapshot if is_now else self._snapshot.refreshed(changed=self._changed)
        self._unread = self._changed = False
        return self._snapshot
