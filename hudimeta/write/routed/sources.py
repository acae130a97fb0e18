"""Where the rows of a routed write come from: from outside, out of the table itself, from a merge of the two, or computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hudimeta.commit.session import WriteSession
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.predicate import Where
from hudimeta.read.scan import Scan
from hudimeta.timeline import Timeline
from hudimeta.types import Operation
from hudimeta.write.merge_builder import Merge
from hudimeta.write.merge_clauses import ClauseKind, merge_condition
from hudimeta.write.merge_keys import key_pairs
from hudimeta.write.routed.arrival import Arrival, Arrived, ChangedRows, Route
from hudimeta.write.routed.computed import Compute, ComputedArrival, changed_columns
from hudimeta.write.routed.context import RoutedWrite
from hudimeta.write.routed.executors import Executors
from hudimeta.write.routed.files import FactsSpec
from hudimeta.write.routed.merging import MergePlan, MergeSlots, SourceSide, TargetSide, merge_items, target_range
from hudimeta.write.routed.slots import Slots
from hudimeta.write.row_changes import WHERE_ROWS_LIE, RowChange, known_batch, scan_of, with_stated_keys
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import Prepared, prepare

__all__ = ["At", "ComputedRows", "FoundRows", "GivenRows", "MergedRows", "RowSource"]


@dataclass(frozen=True)
class At:
    """What a source works with, on the driver: the table, the write, and who runs its tasks."""

    session: WriteSession
    table: TableFiles
    routed: RoutedWrite
    executors: Executors
    facts: FactsSpec


class RowSource(Protocol):
    """Brings the rows of a write."""

    @property
    def operation(self) -> Operation:
        """What the commit calls it."""
        ...

    @property
    def knows_keys(self) -> bool:
        """True when rows have keys even where the table generates them."""
        ...

    def checked(self, session: WriteSession, table: TableFiles) -> Prepared:
        """The same without rows: the schema after the write, and whatever can be found wrong before it begins."""
        ...

    def arrived(self, at: At, route: Route, slots: Slots, whole_table: bool) -> list[Arrived]:
        """Let tasks take in the rows; see `Arrival`."""
        ...


@dataclass(frozen=True)
class GivenRows:
    """Rows from outside of the table.

    Attributes:
        operation: One of `hudimeta.write.routed.driver.ROUTED`.
        schema: Of the rows; meta columns are ignored.
        knows_keys: See `RowSource`.
    """

    operation: Operation
    schema: pa.Schema
    knows_keys: bool = False

    def checked(self, session: WriteSession, table: TableFiles) -> Prepared:
        """See `RowSource`."""
        return prepare(table, session, self.operation, no_rows(self.schema))

    def arrived(self, at: At, route: Route, slots: Slots, whole_table: bool) -> list[Arrived]:
        """See `RowSource`."""
        return at.executors.over_rows(Arrival(at.routed, route, slots, at.facts, whole_table))


@dataclass(frozen=True)
class FoundRows:
    """Rows of the table, as it is when the write begins.

    Attributes:
        change: What becomes of them.
        where: Which rows, as `scan` takes it; all when None.
        timezone: Zone of texts in `where` that name none.
        knows_keys: See `RowSource`.
    """

    change: RowChange
    where: Where | None
    timezone: str = "UTC"
    knows_keys: bool = True

    @property
    def operation(self) -> Operation:
        """See `RowSource`."""
        return self.change.operation

    def checked(self, session: WriteSession, table: TableFiles) -> Prepared:
        """See `RowSource`."""
        none = no_rows(self._scan(session, table).schema)
        return self.change.prepared(session, table, with_stated_keys(session, table, none))

    def arrived(self, at: At, route: Route, slots: Slots, whole_table: bool) -> list[Arrived]:
        """See `RowSource`."""
        scan = self._scan(at.session, at.table)
        plan = scan.plan()
        task = ChangedRows(at.routed, slots, scan.task, self.change)
        return at.executors.map(task, list(enumerate(plan.splits())), plan.report.bytes_kept)

    def _scan(self, session: WriteSession, table: TableFiles) -> Scan:
        return scan_of(session, table, self.where, self.change.columns(session, table.snapshot), self.timezone)


@dataclass(frozen=True)
class MergedRows:
    """Rows from outside, merged with those of the table."""

    merge: MergePlan
    schema: pa.Schema
    knows_keys: bool = True

    @property
    def operation(self) -> Operation:
        """See `RowSource`."""
        return Operation.UPSERT

    def checked(self, session: WriteSession, table: TableFiles) -> Prepared:
        """See `RowSource`."""
        sides, condition = self.merge.sides, merge_condition(self.merge.on, self.merge.sides)
        none = with_stated_keys(session, table, no_rows(scan_of(session, table, None).schema))
        return Merge(session, table, none, no_rows(self.schema), sides, condition, self.merge.clauses).prepared()

    def arrived(self, at: At, route: Route, slots: Slots, whole_table: bool) -> list[Arrived]:
        """Both sides are laid aside by the columns that must be equal; a task merges what meets there."""
        sides, condition = self.merge.sides, merge_condition(self.merge.on, self.merge.sides)
        of_target = scan_of(at.session, at.table, None).schema
        pairs = key_pairs(condition.pairs, of_target, self.schema, (sides.target, sides.source))
        source = at.executors.over_rows(SourceSide(at.routed, pairs))
        everything = any(clause.kind is ClauseKind.NOT_MATCHED_BY_SOURCE for clause in self.merge.clauses)
        where = None if everything else target_range(source, pairs)
        scan = scan_of(at.session, at.table, where)
        task, plan = TargetSide(at.routed, pairs, scan.task), scan.plan()
        target = at.executors.map(task, list(enumerate(plan.splits())), plan.report.bytes_kept)
        items = merge_items(source, target, at.executors.parallelism)
        size = sum(span.size for item in items for span in (*item.source, *item.target))
        return at.executors.map(MergeSlots(at.routed, slots, self.merge, self.schema), items, size)


@dataclass
class ComputedRows:
    """Changes of rows of the table that somebody else computes, as the table is when the write begins."""

    operation: Operation
    compute: Compute
    knows_keys: bool = True
    _computed: Timeline | None = None
    """What the executors' input was computed from."""

    def checked(self, session: WriteSession, table: TableFiles) -> Prepared:
        """See `RowSource`."""
        self._compute(session, table)
        named = [pa.field(name, pa.string()) for name in WHERE_ROWS_LIE]
        none = no_rows(pa.schema([*named, *table.snapshot.file_schema]))
        return Prepared(
            known_batch(none, table.snapshot.file_schema, deleted=False), table.snapshot.file_schema, rests_on_rows=True
        )

    def arrived(self, at: At, route: Route, slots: Slots, whole_table: bool) -> list[Arrived]:
        """See `RowSource`."""
        self._compute(at.session, at.table)
        return at.executors.over_rows(ComputedArrival(at.routed, slots))

    def _compute(self, session: WriteSession, table: TableFiles) -> None:
        if self._computed is table.snapshot.timeline:
            return
        moment = max((instant.time for instant in table.snapshot.timeline.writes), default=None)
        self.compute(moment, changed_columns(session, table, self.operation))
        self._computed = table.snapshot.timeline
