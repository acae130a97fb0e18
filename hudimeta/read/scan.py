"""A read of a table: planned once, then rows as tables, batches or splits, with a report of what it did."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.config.options import SPLIT_BYTES
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.indexes.scan_report import ScanReport
from hudimeta.read.incremental import IncrementalRange, moment_of, range_slices, with_commits
from hudimeta.read.planner import PlannedSlices, plan_slices, planned_range
from hudimeta.read.split import Split, pack_slices, read_split
from hudimeta.redaction import hidden
from hudimeta.reports import Report
from hudimeta.slices.read_task import ReadTask, VisibleInstants, task_at
from hudimeta.slices.reader import ReadCounts
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.predicate import ArrowPredicate, Bound, Where
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["Scan", "ScanPlan", "ScanRequest"]

_SHOWN = 20


@dataclass(frozen=True)
class ScanRequest:
    """What is asked of a table at one moment.

    Attributes:
        where: Predicate in any notation of `hudimeta.predicate.parse`; None for every row.
        columns: What to return, in this order; None for all. Names are matched exactly, else without case; `a.b` is a field of
            the struct `a`.
        query_type: SNAPSHOT, READ_OPTIMIZED or INCREMENTAL; CDC is a `ChangeScan`'s.
        timezone: Zone in which the predicate's texts without a zone are read.
        changes: The commits of an incremental read, or of a CDC query.
        skip_damage: Leave out file slices with a damaged file instead of failing; see `SliceReader.readable`.
        mark: Where the snapshot's request log stood when the scan was asked for; None for where it stands.
    """

    where: Where | None = None
    columns: Sequence[str] | None = None
    query_type: QueryType = QueryType.SNAPSHOT
    timezone: str = "UTC"
    changes: IncrementalRange | None = None
    skip_damage: bool = False
    mark: int | None = None


@dataclass(frozen=True, repr=False)
class ScanPlan(Report):
    """What a scan will read; prints as a list of files.

    Attributes:
        slices: Arrow table with the columns of `Table.file_slices()`, one row per file slice.
        report: What planning found and cost.
        split_bytes: Target size of a split.
    """

    slices: pa.Table
    report: ScanReport
    split_bytes: int

    def splits(self, target_bytes: int | None = None, at_most: int | None = None) -> list[Split]:
        """The slices packed for several readers; see `split.pack_slices`."""
        return pack_slices(slices_of(self.slices), target_bytes or self.split_bytes, at_most)

    @property
    def files(self) -> list[str]:
        """Paths of all base and log files, relative to the table, in the order of reading."""
        return [path for s in slices_of(self.slices) for path in ((s.base_path,) if s.base_path else ()) + s.log_paths]

    def __str__(self) -> str:
        lines = [str(self.report), ""]
        for file_slice in slices_of(self.slices.slice(0, _SHOWN)):
            lines += [f"  {path}" for path in (file_slice.base_path, *file_slice.log_paths) if path]
        if self.slices.num_rows > _SHOWN:
            lines.append(f"  ... and {self.slices.num_rows - _SHOWN:,} more slices")
        return "\n".join(lines)


class Scan:
    """A read of a snapshot. Nothing is read before it is asked for; the plan is made once and kept.

    Args:
        snapshot: The table at its moment.
        request: What is asked of it; every row and column when left out.

    Raises:
        ConfigError: A predicate or a column that does not fit the table.
        UnsupportedFeature: Another query type.
    """

    _beside: ArrowPredicate | None = None

    def __init__(self, snapshot: Snapshot, request: ScanRequest | None = None) -> None:
        request = request or ScanRequest()
        changes, where, columns = request.changes, request.where, request.columns
        if request.query_type is QueryType.CDC:
            raise UnsupportedFeature(f"hoodie.datasource.query.type={request.query_type.value}", "Read incrementally.")
        self._request = request
        self._range_slices = range_slices(snapshot, changes) if changes is not None else None
        snapshot = moment_of(snapshot, changes) if changes is not None else snapshot
        self._snapshot = snapshot
        self._mark = len(snapshot.storage.log) if request.mark is None else request.mark
        full = snapshot.schema.arrow
        self._columns = tuple(full.names) if columns is None else tuple(_found(name, full) for name in columns)
        if not self._columns:
            raise ConfigError("hudimeta.columns", columns, "at least one column", "Leave it out for all columns.")
        if len(set(self._columns)) < len(self._columns):
            raise ConfigError("hudimeta.columns", columns, "each column once")
        asked = changes if snapshot.properties.populate_meta else None
        self._beside = _evaluated_by_arrow(where, full)
        tree = where if self._beside is None else self._beside.tree
        self._bound = _bound(tree, full, request.timezone, asked) if tree is not None or asked is not None else None
        self._counts = ReadCounts()
        self._read_seconds = 0.0

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        return self.task.output_schema

    @property
    def snapshot(self) -> Snapshot:
        """The table at the moment that is read."""
        return self._snapshot

    def __repr__(self) -> str:
        where = f" where {self._condition}" if self._condition else ""
        return f"Scan({hidden(self._snapshot.storage.root)}: {', '.join(self._columns)}{where})"

    # Planning

    @cached_property
    def _planned(self) -> PlannedSlices:
        if self._range_slices is not None:
            return planned_range(self._snapshot, self._range_slices)
        return plan_slices(self._snapshot, self._bound, self._request.query_type)

    def plan(self) -> ScanPlan:
        """The files that will be read; reads metadata only."""
        planned = self._planned
        return ScanPlan(planned.slices, self.report, self._snapshot.options.get(SPLIT_BYTES))

    @cached_property
    def task(self) -> ReadTask:
        """What every split is read with; can be pickled."""
        task = task_at(self._snapshot, self._columns, self._bound)
        if self._request.changes is not None:
            task = replace(task, instants=VisibleInstants(frozenset(self._request.changes.times), None))
        return replace(
            task,
            read_optimized=self._request.query_type is QueryType.READ_OPTIMIZED,
            footers=self._bound is not None and _may_use_footers(self._snapshot),
            beside=self._beside,
            skip_damage=self._request.skip_damage,
        )

    # Rows

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; one file slice is in memory at a time."""
        batches = read_split(self.task, self._whole(), self._snapshot.storage, self._counts)
        begin = time.perf_counter()
        for batch in batches:
            self._read_seconds += time.perf_counter() - begin
            yield batch
            begin = time.perf_counter()
        self._read_seconds += time.perf_counter() - begin

    def _whole(self) -> Split:
        """Everything that is read, as one share."""
        return Split(tuple(slices_of(self._planned.slices)))

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """The rows for whoever speaks the Arrow PyCapsule protocol: Polars, DuckDB, pandas …"""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """All rows as a `pandas.DataFrame`, converted as `pyarrow.Table.to_pandas` does."""
        return self.to_table().to_pandas()

    def count(self) -> int:
        """How many rows there are: from statistics and footers where they tell, else from as few columns as possible."""
        columns = self._bound.columns if self._bound is not None else ()
        task = replace(self.task, columns=(columns[0].name if columns else _cheapest(self._snapshot.schema.arrow),))
        if not task.skip_damage and self._beside is None and (self._bound is None or self._is_decided_by_paths()):
            from hudimeta.read.counting import count_rows
            from hudimeta.slices.reader import SliceReader

            planned, reader = self._planned, SliceReader(task, self._snapshot.storage)
            return count_rows(
                planned.snapshot, planned.slices, lambda merged: sum(rows.num_rows for rows in reader.tables(merged))
            )
        return sum(batch.num_rows for batch in read_split(task, self._whole(), self._snapshot.storage, self._counts))

    def _is_decided_by_paths(self) -> bool:
        from hudimeta.read.counting import decided_by_paths

        return self._bound is not None and self._request.changes is None and decided_by_paths(self._snapshot, self._bound)

    # Report

    @property
    def _condition(self) -> str:
        """The predicate as text, "" without one."""
        if self._beside is not None:
            return str(self._beside.whole)
        return str(self._bound) if self._bound is not None else ""

    def _remarks(self) -> Iterator[str]:
        """What planning does not know of."""
        timeline = self._snapshot.timeline
        for instant in timeline.empty_writes:
            yield f"{timeline.path_of(instant)} is empty: the write counts as completed, but what it did is not known"
        if self._beside is not None:
            names = ", ".join(self._beside.unknown)
            part = f", and files are left out by {self._bound} only" if self._bound is not None else ", and no file is left out"
            yield f"where: PyArrow evaluates {names}{part}"

    @property
    def report(self) -> ScanReport:
        """What this scan has done so far; planning is done if it was not."""
        planned, snapshot, counts = self._planned, self._snapshot, self._counts
        slices = planned.slices
        log_files = int(_total(slices.column("log_files"), lengths=True))
        requests = snapshot.storage.log
        return ScanReport(
            table=hidden(snapshot.storage.root),
            instant=snapshot.latest_write,
            as_of=snapshot.as_of,
            query_type=self._request.query_type.value,
            predicate=self._condition,
            columns=self._columns,
            partitions=planned.partitions,
            partitions_kept=planned.partitions_kept,
            slices=planned.slices_total,
            slices_kept=slices.num_rows,
            files=planned.files_total,
            files_kept=slices.num_rows - slices.column("base_file").null_count + log_files,
            log_files_kept=log_files,
            bytes_kept=int(_total(slices.column("base_size")) + _total(slices.column("log_sizes"))),
            skipped=planned.skipped,
            unused=planned.unused,
            notes=(*planned.notes, *self._remarks()),
            fallbacks=(snapshot.listing_reason,) if snapshot.listing_reason else (),
            corrupt=tuple(counts.corrupt),
            rows=counts.rows,
            rows_read=counts.rows_read,
            rows_passed_by=counts.rows_passed_by,
            row_groups=counts.row_groups,
            row_groups_skipped=counts.row_groups_skipped,
            log_blocks=counts.log_blocks,
            blocks_ignored=counts.blocks_ignored,
            spilled=counts.spilled,
            requests=requests.by_purpose(self._mark),
            bytes_read=sum(r.n_bytes for r in requests.since(self._mark)),
            seconds={"open": snapshot.seconds, "plan": planned.seconds, "read": self._read_seconds},
            planned=replace(planned.decisions, ruled_out=dict(counts.ruled_out)),
        )


def _evaluated_by_arrow(where: Where | None, schema: pa.Schema) -> ArrowPredicate | None:
    """An expression of PyArrow's that PyArrow must evaluate; None for every predicate that is understood wholly."""
    if where is None:
        return None
    from hudimeta.predicate import is_arrow_expression, parse_arrow

    if not is_arrow_expression(where):
        return None
    found = parse_arrow(where)
    for name in found.columns:
        if _found(name, schema) != name:
            raise ConfigError("hudimeta.filter", str(where), f"the column as the table spells it: {_found(name, schema)}")
    return found if found.whole is not None else None


def _may_use_footers(snapshot: Snapshot) -> bool:
    from hudimeta.indexes.allowed import FOOTERS, may_use

    return may_use(snapshot, FOOTERS)


def _total(column: pa.ChunkedArray, lengths: bool = False) -> int:
    """Sum of numbers, or of the numbers in lists, or of the lists' lengths."""
    import pyarrow.compute as pc

    if lengths:
        column = pc.list_value_length(column)
    elif pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    return pc.sum(column).as_py() or 0


def _cheapest(schema: pa.Schema) -> str:
    """A column of fixed width where there is one: it is read for the number of its rows only."""
    fixed = [f.name for f in schema if not pa.types.is_nested(f.type) and _is_fixed(f.type)]
    return str(fixed[0] if fixed else schema.names[0])


def _is_fixed(kind: pa.DataType) -> bool:
    try:
        return bool(kind.bit_width)
    except ValueError:
        return False


def _found(name: str, schema: pa.Schema) -> str:
    """The column, or field of a struct, that a name means. Raises ConfigError, naming the closest column."""
    if name in schema.names:
        return name
    same = [known for known in schema.names if known.lower() == name.lower()]
    if len(same) == 1:
        return str(same[0])
    nested = _nested(name, schema)
    if nested is not None:
        return nested
    import difflib

    close = difflib.get_close_matches(name, schema.names, n=1)
    hint = f"Did you mean {close[0]}?" if close else ""
    raise ConfigError("hudimeta.columns", name, f"columns of the table: {', '.join(schema.names)}", hint)


def _nested(name: str, schema: pa.Schema) -> str | None:
    """The dotted name of a field of a struct as the table spells it; None when there is none."""
    spelled: list[str] = []
    fields = list(schema)
    for part in name.split("."):
        found = [f for f in fields if f.name == part] or [f for f in fields if f.name.lower() == part.lower()]
        if len(found) != 1:
            return None
        spelled.append(found[0].name)
        fields = list(found[0].type) if pa.types.is_struct(found[0].type) else []
    return ".".join(spelled)


def _bound(where: Where | None, schema: pa.Schema, timezone: str, changes: IncrementalRange | None) -> Bound:
    from hudimeta.predicate import Expr, bind, parse

    tree: Expr | None = None if where is None else parse(where)
    if tree is None or changes is not None:
        assert changes is not None
        tree = with_commits(tree, changes)
    return bind(tree, schema, timezone=timezone)
