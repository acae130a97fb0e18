"""A read of a table: planned once, then rows as tables, batches or splits, with a report of what it did.

Nothing is read before it is asked for. The first thing asked for *opens* the scan: it settles the moment, and what the
request means in the table of that moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.config.options import LOG_KEYS, RETRY_ON_CLEAN, SPLIT_BYTES
from hudimeta.errors import ConfigError, FileRemoved, UnsupportedFeature
from hudimeta.indexes.scan_report import ScanReport
from hudimeta.read.column_names import cheapest_column
from hudimeta.read.holes import holes_before_moment
from hudimeta.read.incremental import Moment, ReadMoment
from hudimeta.read.planner import PlannedSlices, plan_slices, planned_range
from hudimeta.read.request import OpenedRequest, ScanRequest, limit_note, opened, shown_condition
from hudimeta.read.scan_plan import ScanPlan, total
from hudimeta.read.split import Split, first_rows, read_split, rows_of_split
from hudimeta.redaction import hidden
from hudimeta.slices.read_task import MergedRange, ReadTask, VisibleInstants, task_at
from hudimeta.slices.reader import ReadCounts
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.predicate import Bound
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["Scan"]

T = TypeVar("T")

MOST_PLANS = 5
"""How often a read is planned whose files cleaners remove again and again."""


class Scan:
    """A read of a table. Nothing is read before it is asked for; the plan is made once and kept.

    Args:
        moment: The table at its moment, or what finds it when the scan is first used.
        request: What is asked of it; every row and column when left out.

    Raises:
        ConfigError: A limit below 0, or no column. What does not fit the table is an error when the scan is first used.
        UnsupportedFeature: Another query type.
    """

    def __init__(self, moment: Snapshot | Callable[[], Moment], request: ScanRequest | None = None) -> None:
        self._moment, self._request = moment, request or ScanRequest()
        columns, limit, kind = self._request.columns, self._request.limit, self._request.query_type
        if kind is QueryType.CDC:
            raise UnsupportedFeature(f"hoodie.datasource.query.type={kind.value}", "Read incrementally.")
        if columns is not None and not columns:
            raise ConfigError("hudimeta.columns", columns, "at least one column", "Leave it out for all columns.")
        if columns is not None and not all(isinstance(name, str) for name in columns):
            raise ConfigError("hudimeta.columns", columns, "names of columns", "Leave it out for all columns.")
        if limit is not None and not (isinstance(limit, int) and limit >= 0):
            raise ConfigError("limit", limit, "a number of rows, 0 or more", "Leave it out for all rows.")
        self._counts = ReadCounts()
        self._removed: list[str] = []
        self._read_seconds = 0.0

    @cached_property
    def _opened(self) -> OpenedRequest:
        """The first thing that is read: see the head of the module."""
        return self._open(self._moment() if callable(self._moment) else Moment(self._moment))

    def _open(self, moment: Moment) -> OpenedRequest:
        return opened(moment, self._request)

    @property
    def _snapshot(self) -> Snapshot:
        return self._opened.snapshot

    @property
    def _bound(self) -> Bound | None:
        return self._opened.bound

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
        return f"Scan({hidden(self._snapshot.storage.root)}: {', '.join(self._opened.columns)}{where})"

    def __getstate__(self) -> dict[str, Any]:
        """For copies and other processes: what is asked, of the moment that is shown here. They plan for themselves."""
        state = {n: value for n, value in vars(self).items() if not isinstance(getattr(type(self), n, None), cached_property)}
        if "_opened" in vars(self) and isinstance(self._moment, ReadMoment):
            state["_moment"] = self._moment.settled(Moment(self._snapshot, self._opened.changes))
        return {**state, "_counts": ReadCounts(), "_removed": [], "_read_seconds": 0.0}

    # Planning

    @cached_property
    def _planned(self) -> PlannedSlices:
        if self._opened.range_slices is not None:
            return planned_range(self._snapshot, self._opened.range_slices)
        planned = plan_slices(self._snapshot, self._bound, self._request.query_type)
        if self._bound is not None and self._opened.changes is None:
            from hudimeta.read.noting import note_read

            note_read(self._snapshot, self._bound, planned)
        return planned

    def plan(self) -> ScanPlan:
        """The files that will be read; reads metadata only.

        >>> print(table.scan("fare > 60").plan())                              # doctest: +SKIP
        """
        planned = self._planned
        return ScanPlan(planned.slices, self.report, self._snapshot.options.get(SPLIT_BYTES), self._lost())

    @cached_property
    def task(self) -> ReadTask:
        """What every split is read with; can be pickled."""
        opened = self._opened
        task = task_at(opened.snapshot, opened.columns, opened.bound)
        if opened.range_slices is not None and opened.changes is not None:
            commits = frozenset(opened.changes.times)
            merged = MergedRange(commits, opened.snapshot.unseen) if opened.snapshot.properties.populate_meta else None
            task = replace(task, instants=VisibleInstants(commits, None), merged_range=merged)
        footers = opened.bound is not None and _may_use_footers(opened.snapshot)
        return replace(
            task,
            read_optimized=self._request.query_type is QueryType.READ_OPTIMIZED,
            footers=footers,
            log_keys=footers and opened.snapshot.options.get(LOG_KEYS),
            beside=opened.beside,
            skip_damage=self._request.skip_damage,
        )

    # Rows

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; one file slice is in memory at a time, of a far-away store some small ones, and none is
        opened after the last row of a limit.

        >>> sum(batch.num_rows for batch in table.scan().to_batches())         # doctest: +SKIP
        """
        if self._request.limit == 0:
            return
        handed_out = False
        while True:
            try:
                for batch in self._batches():
                    handed_out = True
                    yield batch
                return
            except FileRemoved as error:
                if handed_out or not self._plans_again(error):
                    raise

    def _batches(self, task: ReadTask | None = None) -> Iterator[pa.RecordBatch]:
        limit = self._request.limit
        rows = rows_of_split(task or self.task, self._whole(), self._snapshot.storage, self._counts, ahead=limit is None)
        batches = first_rows(limit, rows)
        begin = time.perf_counter()
        for batch in batches:
            self._read_seconds += time.perf_counter() - begin
            yield batch
            begin = time.perf_counter()
        self._read_seconds += time.perf_counter() - begin

    def _all_batches(self, task: ReadTask | None = None) -> Iterable[pa.RecordBatch]:
        return self._batches(task) if self._request.limit != 0 else ()

    def _undisturbed(self, read: Callable[[], T]) -> T:
        """What a read returns, planned again where a cleaner removed a file of it."""
        while True:
            try:
                return read()
            except FileRemoved as error:
                if not self._plans_again(error):
                    raise

    def _plans_again(self, error: FileRemoved) -> bool:
        """Forget the plan, of which a cleaner has removed a file, when the option says so; False when the read fails."""
        again = callable(self._moment) and self._snapshot.options.get(RETRY_ON_CLEAN)
        if not again or len(self._removed) == MOST_PLANS - 1:
            return False
        self._removed.append(error.path)
        self._counts = ReadCounts()
        for planned in ("_opened", "_planned", "task", "_known", "_group_changes"):
            self.__dict__.pop(planned, None)
        return True

    def _lost(self) -> tuple[str, ...]:
        return self._opened.changes.lost if self._opened.changes is not None else ()

    def _again_notes(self) -> Iterator[str]:
        return (f"{path} was removed after the read had been planned: it was planned again" for path in self._removed)

    def _whole(self) -> Split:
        """Everything that is read, as one share."""
        return Split(tuple(slices_of(self._planned.slices)))

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream.

        >>> table.scan().to_reader().read_next_batch()# doctest: +SKIP
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """All rows.

        >>> table.scan(columns=["id"], limit=10).to_table()                    # doctest: +SKIP
        """
        return self._undisturbed(lambda: pa.Table.from_batches(self._all_batches(), self.schema))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """The rows for whoever speaks the Arrow PyCapsule protocol: Polars, DuckDB, pandas …"""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """All rows as a `pandas.DataFrame`, converted as `pyarrow.Table.to_pandas` does.

        >>> table.scan("fare > 60").to_pandas().describe()                     # doctest: +SKIP

        Raises:
            MissingLibrary: pandas is not installed.
        """
        from hudimeta.read.frames import pandas_frame

        return pandas_frame(self.to_table)

    def to_polars(self) -> Any:
        """All rows as a `polars.DataFrame`.

        >>> table.scan("fare > 60").to_polars().group_by("month").len()        # doctest: +SKIP

        Raises:
            MissingLibrary: Polars is not installed.
        """
        from hudimeta.read.frames import polars_frame

        return polars_frame(self.to_table)

    def to_duckdb(self, connection: Any = None) -> Any:
        """All rows as a DuckDB relation, which SQL can be asked of again and again.

        >>> table.scan().to_duckdb().aggregate("month, max(fare)")             # doctest: +SKIP

        Args:
            connection: Of DuckDB, whose queries shall see the relation; DuckDB's default one when None.

        Raises:
            MissingLibrary: DuckDB is not installed.
        """
        from hudimeta.read.frames import duckdb_relation

        return duckdb_relation(self.to_table, connection)

    def nearest(self, column: str, vectors: Any, k: int = 10, metric: str = "cosine") -> pa.Table:
        """The rows of this scan whose vectors lie nearest to one or several others, as Apache Hudi's `hudi_vector_search`.

        >>> table.scan("lang = 'en'").nearest("emb", [0.1, 0.9, 0.3], k=5).to_pandas()                 # doctest: +SKIP

        Args:
            column: A VECTOR, or any list of float, double or int8; rows without one are left out.
            vectors: What is looked for: a list of numbers, or a list of such lists.
            k: Rows for each vector.
            metric: `cosine`, `l2` or `dot_product`.

        Returns:
            The columns of the scan without `column`, then `_hudi_query_index` int64 (which of several vectors, from 0 on) and
            `_hudi_distance` double; the nearest first.

        Raises:
            ConfigError: No such column, or arguments that do not fit it.
        """
        from hudimeta.read.nearest import nearest_rows

        return self._undisturbed(lambda: nearest_rows(self.task, self._all_batches, column, vectors, k, metric))

    def count(self) -> int:
        """How many rows there are: from statistics and footers where they tell, else from as few columns as possible.

        >>> table.scan("month = '2026-01'").count()                            # doctest: +SKIP
        """
        return self._undisturbed(self._count) if self._request.limit != 0 else 0

    def _count(self) -> int:
        limit = self._request.limit
        columns, full = self._bound.columns if self._bound is not None else (), self._snapshot.schema.arrow
        task = replace(self.task, columns=(columns[0].name if columns else cheapest_column(full),))
        slices = None if task.skip_damage or task.beside is not None else self._slices_to_count()
        if slices is not None:
            from hudimeta.read.counting import count_rows
            from hudimeta.slices.reader import SliceReader

            reader = SliceReader(task, self._snapshot.storage)
            with task.telling_removals():
                found = count_rows(
                    self._planned.snapshot, slices, lambda merged: sum(rows.num_rows for rows in reader.tables(merged))
                )
            return found if limit is None else min(found, limit)
        batches = read_split(task, self._whole(), self._snapshot.storage, self._counts)
        return sum(batch.num_rows for batch in first_rows(limit, batches))

    def _slices_to_count(self) -> pa.Table | None:
        """The slices that have nothing but rows that are asked for; None where only their rows tell."""
        from hudimeta.read.counting import matching_by_paths

        slices = self._planned.slices
        if self._bound is None:
            return slices
        return None if self._opened.changes is not None else matching_by_paths(self._snapshot, self._bound, slices)

    # Report

    @property
    def _condition(self) -> str:
        """The predicate as text, "" without one."""
        return shown_condition(self._opened, self._request)

    def _remarks(self) -> Iterator[str]:
        """What planning does not know of."""
        timeline = self._snapshot.timeline
        for instant in timeline.empty_writes:
            yield f"{timeline.path_of(instant)} is empty: the write counts as completed, but what it did is not known"
        yield from holes_before_moment(self._snapshot)
        yield from (f"{fact}: what today's table still has of its rows is read" for fact in self._lost())
        yield from self._again_notes()
        if self._request.limit is not None:
            yield limit_note(self._request.limit)
        beside = self._opened.beside
        if beside is not None:
            names = ", ".join(beside.unknown)
            part = f", and files are left out by {self._bound} only" if self._bound is not None else ", and no file is left out"
            yield f"where: PyArrow evaluates {names}{part}"

    @property
    def report(self) -> ScanReport:
        """What this scan has done so far; planning is done if it was not."""
        planned, snapshot, counts = self._planned, self._snapshot, self._counts
        slices = planned.slices
        log_files = int(total(slices.column("log_files"), lengths=True))
        requests = snapshot.storage.log
        return ScanReport(
            table=hidden(snapshot.storage.root),
            instant=snapshot.latest_write,
            as_of=snapshot.as_of,
            query_type=self._request.query_type.value,
            predicate=self._condition,
            columns=self._opened.columns,
            partitions=planned.partitions,
            partitions_kept=planned.partitions_kept,
            slices=planned.slices_total,
            slices_kept=slices.num_rows,
            files=planned.files_total,
            files_kept=slices.num_rows - slices.column("base_file").null_count + log_files,
            log_files_kept=log_files,
            bytes_kept=int(total(slices.column("base_size")) + total(slices.column("log_sizes"))),
            skipped=planned.skipped,
            unused=planned.unused,
            notes=(*planned.notes, *self._remarks()),
            fallbacks=(snapshot.listing_reason,) if snapshot.listing_reason else (),
            corrupt=tuple(counts.corrupt),
            rows=counts.rows if self._request.limit is None else min(counts.rows, self._request.limit),
            rows_read=counts.rows_read,
            rows_passed_by=counts.rows_passed_by,
            rows_ruled_out=counts.rows_ruled_out,
            row_groups=counts.row_groups,
            row_groups_skipped=counts.row_groups_skipped,
            logs_asked=counts.logs,
            logs_passed_by=counts.logs_passed_by,
            log_blocks=counts.log_blocks,
            blocks_ignored=counts.blocks_ignored,
            blocks_outdone=counts.blocks_outdone,
            spilled=counts.spilled,
            requests=requests.by_purpose(self._opened.mark),
            bytes_read=requests.n_bytes(self._opened.mark),
            seconds={"open": snapshot.seconds, "plan": planned.seconds, "read": self._read_seconds},
            planned=replace(planned.decisions, ruled_out=dict(counts.ruled_out)),
        )


def _may_use_footers(snapshot: Snapshot) -> bool:
    from hudimeta.indexes.allowed import FOOTERS, may_use

    return may_use(snapshot, FOOTERS)
