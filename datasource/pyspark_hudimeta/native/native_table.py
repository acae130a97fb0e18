"""One table at one moment as Spark's own Parquet reader sees it: a file relation whose files our planner chooses for each scan.

Where there can be log files, the relation has one more column, REPLACED: a constant of each file, bytes whose bits say which
of its rows a log has replaced or deleted. A filter over it and over the rows' positions drops these rows, inside Spark's
generated code, and what the logs say now stands in files beside (see `staging`). So base files are pruned and read as any
Parquet file is; only what was updated passes through Python.

Partition columns that the files do not hold are constants of each file too, under hidden names. Spark does not apply filters
over such constants alone to the rows, but trusts that no file comes which they exclude: Catalyst itself judges them here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, StructField, StructType

from hudimeta.cached import cached_property
from hudimeta.config.options import READ_CORRUPT
from hudimeta.formats.plain_arrays import single_array
from hudimeta.read.chosen_partitions import chosen_partitions
from hudimeta.read.native_files import foreign_instants, unlike_column
from hudimeta.read.request import ScanRequest
from hudimeta.read.scan import Scan
from hudimeta.redaction import hidden
from hudimeta.slices.bootstrap import BASE_PATH_KEY, METADATA_ONLY_INSTANT
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.partition_columns import path_values
from hudimeta.storage import check_native_files
from hudimeta.types import QueryType, TableType
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.native.file_directories import Directories, is_constant, satisfying
from pyspark_hudimeta.native.file_index import SparkFileIndex
from pyspark_hudimeta.native.manifest import MANIFEST_FILES, base_files, file_uri
from pyspark_hudimeta.native.parquet_options import NO_SKIPPING, PARQUET_OPTIONS
from pyspark_hudimeta.native.replaced_rows import current_rows
from pyspark_hudimeta.native.report import AttachedScan
from pyspark_hudimeta.native.staging import SliceJob, StagedSlice

if TYPE_CHECKING:
    from hudimeta.predicate import Expr
    from hudimeta.snapshot.snapshot import Snapshot
    from pyspark_hudimeta.native.jvm import Jvm
    from pyspark_hudimeta.native.report import ScanLog
    from pyspark_hudimeta.native.staging import Staging

__all__ = ["NativeTable"]

REPLACED = "__hudimeta_replaced"
_HIDDEN = "__hudimeta_"
_PLANS = 64
"""Plans that are kept by their filters: the same query is planned once."""
_MOST_CONVERTED = 2 << 30
"""Bytes of base files that Python writes anew for Spark at most, before reading them through Python each time is better."""
_SEVERAL_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
_PARQUET = "PARQUET"
_SKELETONS = frozenset({METADATA_ONLY_INSTANT})


class NativeTable:
    """A table at one moment.

    Args:
        jvm, staging, log: Of the attached session.
        snapshot: The table at its moment.
        query_type: SNAPSHOT or READ_OPTIMIZED.
        kept: A bound predicate that rows have to satisfy in any case, from the option `hudimeta.filter`; None for all rows.
    """

    def __init__(
        self, jvm: Jvm, staging: Staging, log: ScanLog, snapshot: Snapshot, query_type: QueryType, kept: Expr | None
    ) -> None:
        self.jvm, self._staging, self._log = jvm, staging, log
        self._snapshot, self._query_type, self._kept = snapshot, query_type, kept
        self.uri = file_uri(snapshot.storage.root, "").rstrip("/")
        self._plans: OrderedDict[tuple[str, ...], tuple[Any, AttachedScan]] = OrderedDict()
        self._held: dict[Any, StagedSlice] = {}
        self._lock = RLock()

    # What it is

    @property
    def merges(self) -> bool:
        """True where slices can have log files."""
        is_mor = self._snapshot.properties.type is TableType.MERGE_ON_READ
        return is_mor and self._query_type is QueryType.SNAPSHOT

    @cached_property
    def from_path(self) -> tuple[str, ...]:
        """Partition columns whose values come from partition paths: those that files do not hold, and those that paths state.

        Files can hold something else there: empty texts in a bootstrapped table and in the partition that stands for no value;
        anything in a row that Apache Hudi found by an index of the whole table, and left where it was.
        """
        snapshot = self._snapshot
        if not snapshot.properties.partition_fields:
            return snapshot.schema.dropped
        stated = self._path_values(single_array(snapshot.listing.partitions())).column_names
        return tuple(dict.fromkeys([*snapshot.schema.dropped, *stated]))

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Instants whose base files Spark cannot bring to the table's columns: they are written anew."""
        return foreign_instants(self._snapshot)

    @cached_property
    def why_not(self) -> str:
        """Why the Python source has to read the table; "" when it need not."""
        if self._snapshot.properties.get(BASE_PATH_KEY) and pc.any(_made_at(self._slices, _SKELETONS)).as_py():
            return "its rows lie in the files that it was bootstrapped from"
        if self._snapshot.options.get(READ_CORRUPT) == "skip":
            return NO_SKIPPING
        converted = self._bytes_to_convert
        if (self.merges or converted) and not self._staging.can_stage:
            return "rows must be merged or converted, and attach was given no staging folder that all machines reach"
        if converted > _MOST_CONVERTED:
            return f"{converted:,} bytes of its files are ORC, or older than a change of the types or names of columns"
        unlike = unlike_column(self._snapshot.schema, self._snapshot.schema.arrow.names)
        if unlike:
            return unlike
        stated = self._path_values(pa.array([], pa.string())).schema
        exact = {field.name for field in stated if is_constant(field.type)}
        unclear = [name for name in self.from_path if name not in exact]
        return f"column {unclear[0]} is nowhere but in the partition paths, which do not state it exactly" if unclear else ""

    @property
    def _bytes_to_convert(self) -> int:
        """Bytes of base files that Spark's Parquet reader does not read as the table's columns."""
        if not self.foreign and not self._has_other_formats:
            return 0
        return pc.sum(self._slices.filter(self._converted(self._slices)).column("base_size")).as_py() or 0

    @property
    def _has_other_formats(self) -> bool:
        """True where base files can be something else than Parquet."""
        properties = self._snapshot.properties
        return properties.base_file_format != _PARQUET or properties.get(_SEVERAL_FORMATS, "false").lower() == "true"

    def _converted(self, slices: pa.Table) -> pa.Array:
        """Which slices are written anew for Spark."""
        mask = _made_at(slices, self.foreign)
        if self._has_other_formats:
            is_parquet = pc.fill_null(pc.ends_with(slices.column("base_file"), ".parquet"), True)
            mask = pc.or_(mask, pc.invert(is_parquet))
        return mask

    @cached_property
    def schema(self) -> StructType:
        """The table's columns in Spark's types."""
        return spark_schema(self._snapshot.schema.arrow)

    @cached_property
    def partition_schema(self) -> StructType:
        """The constant columns."""
        columns = [StructField(_HIDDEN + name, self.schema[name].dataType) for name in self.from_path]
        return StructType([*columns, *([StructField(REPLACED, BinaryType())] if self.merges else [])])

    @cached_property
    def java_partition_schema(self) -> Any:
        """The same as Spark's object."""
        return self.jvm.schema(self.partition_schema)

    @cached_property
    def _relation(self) -> Any:
        """Spark's relation; the same for every reference to the table, so that Spark may share work among them."""
        sources = self.jvm.datasources
        return sources.HadoopFsRelation(
            SparkFileIndex(self),
            self.java_partition_schema,
            self.jvm.schema(self.schema),
            self.jvm.none(),
            sources.parquet.ParquetFileFormat(),
            self.jvm.map(PARQUET_OPTIONS),
            self.jvm.session,
        )

    def frame(self, where: str | None) -> Any:
        """A new reference to the table as a Dataset, with at least its columns.

        Args:
            where: SQL that drops rows.
        """
        with self._lock:
            relation = self._relation
        frame = self.jvm.session.baseRelationToDataFrame(relation)
        if self.merges:
            frame = self.jvm.filtered(frame, current_rows(self.jvm, REPLACED))
        column = self.jvm.view.org.apache.spark.sql.functions.col  # a frame's own `col` may take a name for a pattern
        for name in self.from_path:
            frame = frame.withColumn(name, column(_HIDDEN + name))
        if self._makes_files:
            frame = self.jvm.without_file_metadata(frame)
        return frame if where is None else frame.where(where)

    @property
    def _makes_files(self) -> bool:
        """True where rows can come from files that are made for Spark: what `_metadata` says of them is not of the table."""
        with self._lock:
            logs = pc.any(pc.greater(pc.list_value_length(self._slices.column("log_files")), 0)).as_py()
            return bool(logs) or self._bytes_to_convert > 0

    # What Spark asks

    @cached_property
    def _slices(self) -> pa.Table:
        return self._snapshot.slices(chosen_partitions(self._snapshot), self._query_type)

    @property
    def size(self) -> int:
        """Bytes of all files; at least 1, as Spark takes 0 for an empty table."""
        with self._lock:
            logs = pc.sum(pc.list_flatten(self._slices.column("log_sizes"))).as_py() or 0
            return max(1, (pc.sum(self._slices.column("base_size")).as_py() or 0) + logs)

    def input_files(self) -> Any:
        """URIs of all base files."""
        with self._lock:
            uris = base_files(self._slices, self._snapshot.storage.root).column("uri").to_pylist()
        return self.jvm.array(self.jvm.view.java.lang.String, uris)

    def files(self, partition_filters: Any, data_filters: Any) -> Any:
        """The files of one scan, as a Seq of PartitionDirectory.

        Args:
            partition_filters: The scan's filters on partition columns alone, as Catalyst's expressions.
            data_filters: Its other filters.
        """
        exact = self.jvm.items(partition_filters)
        texts = [self._shown(f.sql()) for f in (*exact, *self.jvm.items(data_filters))]
        filters = tuple(dict.fromkeys(text for text in texts if REPLACED not in text))
        zone = str(self.jvm.session.sessionState().conf().sessionLocalTimeZone())
        asked = (zone, *filters)
        with self._lock:
            planned = self._plans.pop(asked, None) or self._plan(filters, zone, exact)
            self._plans[asked] = planned
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        files, done = planned
        if done.merged_slices or done.converted_slices:
            self._staging.check_open()
        self._log.add(replace(done))
        return files

    def _shown(self, sql: str) -> str:
        """A filter's text with the table's own names."""
        for name in self.from_path:
            sql = sql.replace(_quoted(_HIDDEN + name), _quoted(name)).replace(_HIDDEN + name, name)
        return sql

    # Planning

    def _plan(self, filters: tuple[str, ...], zone: str, exact: list[Any]) -> tuple[Any, AttachedScan]:
        """The files of a scan.

        Args:
            filters: Of the scan, as SQL.
            zone: The session's time zone.
            exact: Those filters, as Catalyst's expressions, that nobody applies to the rows.
        """
        from hudimeta.predicate import bind_catalyst
        from hudimeta.predicate.tree import all_of

        bound, unknown = bind_catalyst(filters, self._snapshot.schema.arrow, timezone=zone)
        parts: list[Expr] = [bound.expr] if len(unknown) < len(filters) else []
        parts += [self._kept] if self._kept is not None else []
        where = all_of(parts) if parts else None
        scan = Scan(self._snapshot, ScanRequest(where, query_type=self._query_type, timezone=bound.timezone))
        plan = scan.plan()
        staged = self._stage(plan.slices)
        native = plan.slices.num_rows - plan.slices.column("base_file").null_count
        merged = [made.made for _, made in staged if not made.made.instead]
        done = AttachedScan(
            table=hidden(self._snapshot.storage.root),
            report=plan.report,
            filters=filters,
            not_understood=unknown,
            native_files=native - sum(1 for s, made in staged if s.base_file and made.made.instead),
            replaced_rows=sum(m.replaced_rows for m in merged),
            merged_slices=len(merged),
            merged_rows=sum(m.rows for m in merged),
            converted_slices=len(staged) - len(merged),
        )
        directories = self._directories(plan.slices, staged)
        return satisfying(self.jvm, directories, self.java_partition_schema, exact), done

    def _stage(self, slices: pa.Table) -> list[tuple[FileSlice, StagedSlice]]:
        """Make what Spark cannot read by itself of some slices."""
        whole = self._converted(slices)
        mask = pc.or_(whole, pc.greater(pc.list_value_length(slices.column("log_files")), 0))
        odd = list(slices_of(slices.filter(mask)))
        if not odd:
            return []
        keys = [(self._identity, s.partition_path, s.base_file, s.log_files) for s in odd]
        jobs = [
            (k, SliceJob(self._task, self.schema, s, s.base_instant in self.foreign, ""))
            for k, s in zip(keys, odd, strict=True)
        ]
        found = self._staging.staged(jobs, self._held)
        self._held.update(found)
        return [(s, found[k]) for k, s in zip(keys, odd, strict=True)]

    @cached_property
    def _task(self) -> Any:
        return replace(Scan(self._snapshot, ScanRequest(query_type=self._query_type)).task, predicate=None)

    @cached_property
    def _identity(self) -> tuple[str, ...]:
        """What a slice's rows depend on besides its files: in version 6 logs grow, and the moment says how far they count."""
        snapshot = self._snapshot
        moment = f"{snapshot.as_of} {snapshot.latest_write}" if snapshot.logs_name_base else ""
        return snapshot.storage.root, str(snapshot.schema.arrow), moment, self._query_type.value

    def _directories(self, slices: pa.Table, staged: list[tuple[FileSlice, StagedSlice]]) -> Any:
        """A java.util.ArrayList of the files of a plan: those without constants of their own together, or by partition."""
        make = Directories(self.jvm, self._staging, self.partition_schema, self.java_partition_schema)
        values = self._constants(slices)
        own = [None] if self.merges else []
        apart = {(s.partition_path, s.file_id) for s, m in staged if m.made.instead or m.made.replaced is not None}
        ids = zip(slices.column("partition_path").to_pylist(), slices.column("file_id").to_pylist(), strict=True)
        together = slices.filter(pa.array([pair not in apart for pair in ids], pa.bool_())) if apart else slices
        made_files = [
            {"partition": s.partition_path, "uri": made.uri, "size": made.made.size, "modified_ms": 0}
            for s, made in staged
            if made.uri is not None
        ]
        files = _listed(together, made_files, self._snapshot.storage.root)
        parts = _by_partition(files) if self.from_path else {None: files}
        listed = [(part.select(MANIFEST_FILES.names), [*values[path], *own]) for path, part in parts.items() if part.num_rows]
        found = make.directories(listed)
        for file_slice, made in staged:
            if made.made.replaced is not None:
                if made.directory is None:
                    constants = values.get(file_slice.partition_path, values.get(None, []))
                    root, path = self._snapshot.storage.root, file_slice.base_path or ""
                    check_native_files(root, [path])
                    one = pa.table([[file_uri(root, path)], [file_slice.base_size], [0]], schema=MANIFEST_FILES)
                    made.directory = make.directory(one, [*constants, made.made.replaced])
                found.add(made.directory)
        return found

    def _path_values(self, paths: pa.Array) -> pa.Table:
        """What partition paths state."""
        task = self._task
        return path_values(paths, task.partition_layout, task.table_schema, task.properties)

    def _constants(self, slices: pa.Table) -> Mapping[str | None, list[Any]]:
        """Values of the columns `from_path` by partition path; for None where there are no such columns."""
        if not self.from_path:
            return {None: []}
        paths = pc.unique(slices.column("partition_path"))
        found = self._path_values(paths)
        columns = [_plain(found.column(name)) for name in self.from_path]
        return {path: list(row) for path, *row in zip(paths.to_pylist(), *columns, strict=True)}


def _made_at(slices: pa.Table, instants: frozenset[str]) -> pa.ChunkedArray:
    """Which slices have a base file that one of the instants wrote."""
    made = pc.is_in(slices.column("base_instant"), value_set=pa.array(sorted(instants), pa.string()))
    return pc.and_(made, pc.is_valid(slices.column("base_file")))


def _listed(slices: pa.Table, made: list[dict[str, Any]], root: str) -> pa.Table:
    """Base files of slices, and files that were made for Spark: columns of `MANIFEST_FILES`, and `partition`."""
    held = slices.filter(pc.is_valid(slices.column("base_file")))
    files = base_files(held, root).append_column("partition", held.column("partition_path"))
    return pa.concat_tables([files, pa.Table.from_pylist(made, files.schema)]) if made else files


def _by_partition(files: pa.Table) -> dict[str | None, pa.Table]:
    """Files by the path of their partition."""
    ordered = files.sort_by("partition")
    runs = pc.run_end_encode(single_array(ordered.column("partition")))
    ends = runs.run_ends.to_pylist()
    starts = [0, *ends][: len(ends)]
    return {p: ordered.slice(a, b - a) for p, a, b in zip(runs.values.to_pylist(), starts, ends, strict=True)}


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Values in Catalyst's form: dates are days."""
    values: list[Any] = (column.cast(pa.int32()) if pa.types.is_date32(column.type) else column).to_pylist()
    return values


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
