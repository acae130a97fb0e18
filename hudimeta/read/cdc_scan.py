"""A CDC query: what the commits of a range changed, row by row, with the images before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.config.options import INCREMENTAL_FALLBACK, SPLIT_BYTES
from hudimeta.errors import ConfigError, RangeLost, TableError
from hudimeta.indexes.scan_report import ScanReport
from hudimeta.read.archived_range import first_unarchived
from hudimeta.read.cdc_plan import GroupChange, known_changes, plan_changes
from hudimeta.read.cdc_reader import CHANGE_SCHEMA, ChangeTask
from hudimeta.read.column_names import found_column
from hudimeta.read.incremental import IncrementalRange, Moment, only_move_rows
from hudimeta.read.request import OpenedRequest, ScanRequest, limit_note, refuse_others
from hudimeta.read.scan import Scan
from hudimeta.read.scan_plan import ScanPlan
from hudimeta.read.split import Split, first_rows, pack_slices, read_split
from hudimeta.redaction import hidden
from hudimeta.slices.read_task import ReadTask
from hudimeta.table.slices import slices_schema
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.predicate import Bound, Where
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.types import Instant

__all__ = ["ChangePlan", "ChangeScan"]

_ENABLED = "hoodie.table.cdc.enabled"


@dataclass(frozen=True)
class ChangePlan(ScanPlan):
    """What a CDC query will read; prints as a list of files. `slices` are the files that the commits wrote.

    Attributes:
        changes: One entry for each commit and file group, in the order of the commits.
    """

    changes: tuple[GroupChange, ...] = ()

    def splits(self, target_bytes: int | None = None, at_most: int | None = None) -> list[Split]:
        """The changes packed for several readers; see `split.pack_slices`."""
        return pack_slices(self.changes, target_bytes or self.split_bytes, at_most)

    @property
    def files(self) -> list[str]:
        """Paths of all files that may be opened, relative to the table, each once."""
        return list(dict.fromkeys(path for change in self.changes for path in change.read_paths))

    def __str__(self) -> str:
        return "\n".join([str(self.report), "", *(f"  {path}" for path in self.files)])

    __repr__ = __str__


class ChangeScan(Scan):
    """A CDC query: a scan whose rows are changes (`cdc_reader.CHANGE_SCHEMA`), in the order of the commits.

    A change is found in the change file that the writer left, or follows from the files before and after; see `cdc_plan`.
    Images are JSON texts as Apache Hudi prints them, see `cdc_images`.

    Args:
        moment: Finds the table of now and the commits, when the scan is first used.
        request: A predicate over the four columns, and which of them to return; all when that is left out.

    Raises:
        ConfigError: A predicate or a column that does not fit.
        TableError: When it is first used: the table does not capture changes, or commits of the range are archived.
    """

    def __init__(self, moment: Callable[[], Moment], request: ScanRequest) -> None:
        super().__init__(moment, ScanRequest(timezone=request.timezone, skip_damage=request.skip_damage, limit=request.limit))
        self._shown = tuple(CHANGE_SCHEMA.names) if request.columns is None else _chosen(request.columns)
        if request.among is not None:
            refuse_others(self._shown, _chosen(request.among))
        conditions = [where for where in (request.where, request.kept) if where is not None]
        self._condition_of_changes = _condition(conditions, request.timezone)

    def _open(self, moment: Moment) -> OpenedRequest:
        snapshot = moment.snapshot
        if not snapshot.properties.cdc_enabled:
            raise TableError(
                f"the table {snapshot.properties.name} captures no changes: {_ENABLED} is not true in hoodie.properties",
                "Read it incrementally (query_type='incremental'), or have its writers set that property.",
            )
        opened = super()._open(replace(moment, changes=None))
        changes = _on_timeline(moment.changes, snapshot) if moment.changes is not None else None
        return replace(opened, columns=self._shown, bound=self._condition_of_changes, changes=changes)

    @property
    def _range(self) -> IncrementalRange:
        changes = self._opened.changes
        assert changes is not None, "a CDC query has a range"
        return changes

    def _lost(self) -> tuple[str, ...]:
        left = self._range.archived_shown
        lost = [f"{left} commits of the range are archived"] if left else []
        if self._known[1]:
            cleaned = ", ".join(instant.time for instant in self._known[1])
            lost.append(f"cleaning removed files that tell the changes of {cleaned}")
        return tuple(lost)

    @property
    def _notes(self) -> tuple[str, ...]:
        """What the rows do not show."""
        notes = (*(f"{fact}: left out" for fact in self._lost()), *self._again_notes())
        return notes if self._request.limit is None else (*notes, limit_note(self._request.limit))

    # Planning

    @cached_property
    def _group_changes(self) -> tuple[GroupChange, ...]:
        return tuple(self._known[0])

    @cached_property
    def _known(self) -> tuple[list[GroupChange], tuple[Instant, ...]]:
        """The changes, and the commits that are left out because they cannot be known any more."""
        if self._snapshot.options.get(INCREMENTAL_FALLBACK):
            return known_changes(self._snapshot, self._range.instants)
        return plan_changes(self._snapshot, self._range.instants), ()

    def plan(self) -> ChangePlan:
        """The files that will be read; reads metadata only."""
        changes = self._group_changes
        slices = pa.Table.from_pylist([_row(change) for change in changes], slices_schema())
        return ChangePlan(slices, self.report, self._snapshot.options.get(SPLIT_BYTES), self._lost(), changes)

    @cached_property
    def task(self) -> ChangeTask:
        """What every split is read with; can be pickled."""
        rows = Scan(self._snapshot, ScanRequest(skip_damage=self._request.skip_damage)).task
        given = {f.name: getattr(rows, f.name) for f in fields(ReadTask)}
        completions = dict(self._snapshot.timeline.completion_times)
        return ChangeTask(**given, shown=self._shown, condition=self._bound, completions=completions)

    # Rows

    def _whole(self) -> Split:
        return Split(self._group_changes)

    def _count(self) -> int:
        """How many changes there are; images are rendered only where the predicate looks at them."""
        task = replace(self.task, shown=("op",))
        batches = read_split(task, self._whole(), self._snapshot.storage, self._counts)
        return sum(batch.num_rows for batch in first_rows(self._request.limit, batches))

    # Report

    @property
    def report(self) -> ScanReport:
        """What this scan has done so far; planning is done if it was not. Slices are file groups of one commit each."""
        changes, snapshot, counts = self._group_changes, self._snapshot, self._counts
        partitions = len({change.partition_path for change in changes})
        files = {path for change in changes for path in change.read_paths}
        requests = snapshot.storage.log
        return ScanReport(
            table=hidden(snapshot.storage.root),
            instant=snapshot.latest_write,
            query_type=QueryType.CDC.value,
            predicate=str(self._bound) if self._bound is not None else "",
            columns=self._shown,
            partitions=partitions,
            partitions_kept=partitions,
            slices=len(changes),
            slices_kept=len(changes),
            files=len(files),
            files_kept=len(files),
            log_files_kept=sum(path.rpartition("/")[2].startswith(".") for path in files),
            bytes_kept=sum(change.size for change in changes),
            notes=self._notes,
            fallbacks=(snapshot.listing_reason,) if snapshot.listing_reason else (),
            corrupt=tuple(counts.corrupt),
            rows=counts.rows,
            rows_read=counts.rows_read,
            log_blocks=counts.log_blocks,
            blocks_ignored=counts.blocks_ignored,
            requests=requests.by_purpose(self._opened.mark),
            bytes_read=requests.n_bytes(self._opened.mark),
            seconds={"open": snapshot.seconds, "read": self._read_seconds},
        )


def _on_timeline(changes: IncrementalRange, snapshot: Snapshot) -> IncrementalRange:
    """The range without archived commits, of whose files nobody knows; refused where what they changed is asked for."""
    if not changes.archived_shown:
        return changes
    active = set(snapshot.timeline.writes)
    archived = [i for i in changes.instants if i not in active]
    on_timeline = replace(changes, instants=tuple(i for i in changes.instants if i in active))
    if not changes.by_time and only_move_rows(snapshot, archived):
        return replace(on_timeline, archived=0)
    if not snapshot.options.get(INCREMENTAL_FALLBACK):
        count, since = changes.archived_shown, first_unarchived(snapshot) or "the newest commit"
        raise RangeLost(
            f"the changes of {count} commits between {changes.since} and {changes.until} are archived with them",
            f"Begin at {since} or later, or set {INCREMENTAL_FALLBACK.key}=true to get the changes that are left.",
        )
    return on_timeline


def _row(change: GroupChange) -> dict[str, object]:
    return {name: getattr(change, name) for name in slices_schema().names}


def _chosen(columns: Sequence[str]) -> tuple[str, ...]:
    columns = [found_column(name, CHANGE_SCHEMA)[0] or name for name in columns]
    unknown = [name for name in columns if name not in CHANGE_SCHEMA.names]
    if unknown or not columns or len(set(columns)) < len(columns):
        allowed = f"columns of a CDC query, each once: {', '.join(CHANGE_SCHEMA.names)}"
        raise ConfigError("hudimeta.columns", list(columns), allowed, "Columns of the table stand in the images.")
    return tuple(columns)


def _condition(parts: Sequence[Where], timezone: str) -> Bound | None:
    if not parts:
        return None
    from hudimeta.predicate import all_of, bind, parse

    return bind(all_of([parse(part) for part in parts]), CHANGE_SCHEMA, timezone=timezone)
