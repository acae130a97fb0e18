"""Changes that somebody else computes from the table's rows, such as a SQL engine: tasks take them in and lay them aside.

They are computed for the moment on which the write rests. Whoever changes one of their file groups before it is published makes
it begin again, computing anew, so that nobody's change is lost.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.session import WriteSession
from hudimeta.errors import CommitError
from hudimeta.keys import FILE_NAME_COLUMN, generated_keys
from hudimeta.schema import conform_column
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.ordering import order_codes
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.batch import KeyedBatch, keyed_batch
from hudimeta.write.carried_keys import PATH_COLUMN
from hudimeta.write.routed.arrival import PORTION_BYTES, Arrived, few, gathered, see
from hudimeta.write.routed.context import OpenedTable, RoutedWrite
from hudimeta.write.routed.exchange import Span, StagedFile
from hudimeta.write.routed.files import RoutedFiles
from hudimeta.write.routed.places import PlacedRows
from hudimeta.write.routed.slots import Slots
from hudimeta.write.row_buckets import batch_of, table_of
from hudimeta.write.row_changes import (
    changed_batch,
    known_batch,
    named_by_deletes,
    scan_of,
    with_stated_keys,
)
from hudimeta.write.table_files import TableFiles

__all__ = [
    "ACTION",
    "AGE",
    "BEFORE",
    "ROW_COLUMNS",
    "RowAction",
    "Compute",
    "ComputedArrival",
    "changed_columns",
    "one_change_a_row",
]

Compute = Callable[[str | None, pa.Schema], None]
"""Lets the executors' input be the changes of the table as of an instant (None while it has none): a row for each, with
`ACTION`, `ROW_COLUMNS`, any that begin with `AGE` or `BEFORE`, and the columns of a schema. Called again, for the same instant
too, when others write."""

ACTION = "_hudimeta_action"
ROW_COLUMNS = {
    "_hoodie_commit_seqno": "_hudimeta_row",
    KEY_COLUMN: "_hudimeta_key",
    PATH_COLUMN: "_hudimeta_path",
    FILE_NAME_COLUMN: "_hudimeta_file",
}
"""Names under which computed rows carry meta columns of the row that they change: together they say which one it is, also where
a key is there more than once. Null for rows that are inserted."""
AGE = "_hudimeta_age_"
"""How columns begin that order several changes of one row of the table, before any of them is compared with it: the newest is
the one that counts, a delete as well. Apache Hudi compares the rows of a MERGE's source so before it looks at clauses."""
BEFORE = "_hudimeta_before_"
"""How columns begin that say what a column of the partition was, where changes may give it another value."""
_ROW = "\0row"
"""In staged rows: of a row of the table, what tells it from others of the same key. No column of a table begins with a zero."""


class RowAction(enum.IntEnum):
    """What a computed row asks for."""

    UPDATE = 0
    DELETE = 1
    INSERT = 2


def changed_columns(session: WriteSession, table: TableFiles, operation: Operation) -> pa.Schema:
    """The data columns that computed rows must have: for deletes alone those that name the rows and order them."""
    columns = _columns(session, table)
    if operation is not Operation.DELETE:
        return columns
    needed = set(named_by_deletes(session, table.snapshot).names)
    if not session.properties.populate_meta:
        needed |= set(table.generator().fixed_columns)
    return pa.schema([field for field in columns if field.name in needed])


def _columns(session: WriteSession, table: TableFiles) -> pa.Schema:
    """The table's data columns, those of partitions that its files do not hold last: new rows get their place by them."""
    if not session.properties.drop_partition_columns:
        return table.snapshot.file_schema
    partitions = {field.name.partition(".")[0] for field in table.generator().partitions} - set(
        table.snapshot.file_schema.names
    )
    return pa.schema(
        [*table.snapshot.file_schema, *(field for field in scan_of(session, table, None).schema if field.name in partitions)]
    )


@dataclass(frozen=True)
class ComputedArrival:
    """The task that takes computed rows in; see `RowTask`. Attributes: write: The write. slots: How keys are cut."""

    write: RoutedWrite
    slots: Slots

    def __call__(self, batches: Iterable[pa.RecordBatch], number: int, attempt: int) -> Arrived:
        """Lay the rows aside for the look-up.

        Raises:
            SchemaMismatch: Values that a column cannot hold.
        """
        opened = self.write.opened()
        path = self.write.staged_path("rows", number, attempt)
        slots: dict[int, list[Span]] = {}
        seen: set[str] = set()
        rows = made = 0
        with StagedFile(opened.storage, path) as file:
            for portion in gathered(batches, PORTION_BYTES, meta=True):
                for action in RowAction:
                    own = portion.filter(pc.equal(portion[ACTION], int(action))).drop_columns([ACTION])
                    if not own.num_rows:
                        continue
                    ages = own.select([name for name in own.column_names if name.startswith(AGE)])
                    before = own.select([name for name in own.column_names if name.startswith(BEFORE)])
                    own_columns = own.drop_columns([*ages.column_names, *before.column_names])
                    batch = self._batch(opened, action, own_columns, _unmarked(before))
                    if batch.keys is None:
                        batch = replace(batch, keys=generated_keys(len(batch), self.write.instant, number, made))
                        made += len(batch)
                    rows += len(batch)
                    see(seen, batch)
                    identified = table_of(batch).append_column(_ROW, _identities(action, own))
                    for name in ages.column_names:
                        identified = identified.append_column(name, ages[name])
                    for slot, spans in file.add_by(identified, self.slots.numbers(batch)).items():
                        slots.setdefault(slot, []).extend(spans)
        self.write.refuse_when_over(opened.storage, [path] if rows else [])
        return Arrived(rows, slots, PlacedRows({}, rows=rows), RoutedFiles(), few(seen))

    def _batch(self, opened: OpenedTable, action: RowAction, rows: pa.Table, before: pa.Table | None) -> KeyedBatch:
        session, table = opened.session, opened.table
        schema = (
            named_by_deletes(session, table.snapshot)
            if self.write.open_write.operation is Operation.DELETE
            else table.snapshot.file_schema
        )
        columns = _columns(session, table)
        if action is RowAction.INSERT:
            new = _typed(rows.drop_columns(list(ROW_COLUMNS.values())), columns)
            batch = keyed_batch(new, table.snapshot.file_schema, table.generator(), session.rules)
            return replace(batch, files=pa.nulls(len(batch), pa.string()))
        names = {carried: name for name, carried in ROW_COLUMNS.items()}
        meant = _typed(rows.rename_columns([names.get(name, name) for name in rows.column_names]), columns)
        keyed = with_stated_keys(session, table, meant)
        if action is RowAction.DELETE:
            return known_batch(keyed, schema, deleted=True)
        return changed_batch(session, table, keyed, None if before is None else _typed(before, columns))


def _unmarked(before: pa.Table) -> pa.Table | None:
    """What columns of the partition were, under their own names; None where no change gives them another value."""
    return before.rename_columns([name.removeprefix(BEFORE) for name in before.column_names]) if before.num_columns else None


def _identities(action: RowAction, rows: pa.Table) -> pa.ChunkedArray:
    """What tells rows of the table from others of the same key; null for rows that are new."""
    if action is RowAction.INSERT:
        return pa.chunked_array([pa.nulls(rows.num_rows, pa.string())])
    carried = rows[ROW_COLUMNS["_hoodie_commit_seqno"]].cast(pa.string())
    return pc.fill_null(carried, "")


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Columns in the table's types, where Arrow calls them otherwise only: zones of times, large strings.

    Raises:
        SchemaMismatch: A field of a struct is null that may not be.
    """
    for number, field in enumerate(rows.schema):
        at = schema.get_field_index(field.name)
        kind = schema.field(at).type if at >= 0 else pa.string() if field.name in META_COLUMNS else field.type
        if field.type != kind:
            column = rows.column(number)
            fitted = conform_column(column, pa.field(field.name, kind)) if pa.types.is_nested(kind) else column.cast(kind)
            rows = rows.set_column(number, field.name, fitted)
    return rows


def one_change_a_row(opened: OpenedTable, rows: pa.Table) -> tuple[KeyedBatch, bool]:
    """Staged rows, of all changes of their keys, as a batch, and whether the order of rows must settle several changes of one.

    Raises:
        CommitError: Several changes of one row, and no ordering column says which.
    """
    if _ROW not in rows.column_names:
        return batch_of(rows), False
    ages = rows.select([name for name in rows.column_names if name.startswith(AGE)])
    batch = batch_of(rows.drop_columns([_ROW, *ages.column_names]))
    names = pc.binary_join_element_wise(batch.keys, batch.partitions, rows[_ROW].combine_chunks(), "\0")
    known = pc.drop_null(names)
    again = len(known) - len(known.unique())
    rules = opened.session.rules
    if again and not ages.num_columns and not (rules.by_event_time and rules.ordering_fields):
        raise CommitError(
            f"rows of the table match more than one row of the source, {again:,} times",
            "No row was changed; keep one row a key in the source, narrow the condition, or give the table an order.",
        )
    if again and ages.num_columns:
        return batch.take(_newest(names, ages)), False
    return batch, bool(again)


def _newest(names: pa.Array, ages: pa.Table) -> npt.NDArray[np.int64]:
    """Of the changes of each row the newest, of equal ones the last; and all that have no name, because their rows are new."""
    codes = names.dictionary_encode().indices
    alone = np.flatnonzero(codes.is_null().to_numpy(zero_copy_only=False))
    rows = pc.fill_null(codes, -1).to_numpy()
    order = np.lexsort((np.arange(len(rows)), order_codes(ages.columns), rows))
    order = order[rows[order] >= 0]
    last = np.r_[rows[order][1:] != rows[order][:-1], True]
    return np.sort(np.concatenate([alone, order[last]]))
