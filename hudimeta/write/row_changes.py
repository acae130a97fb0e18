"""Writes whose rows come out of the table itself: delete where, update where.

The rows are read at the moment on which the write rests. Whoever changes one of their file groups before it is published makes
it begin again, reading anew, so that nobody's change is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.errors import CommitError, SchemaMismatch
from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.expression_index.expressions import Assigned, assigned_column, assigned_fields
from hudimeta.keys import FILE_NAME_COLUMN
from hudimeta.predicate import Where
from hudimeta.read.request import ScanRequest
from hudimeta.read.scan import Scan
from hudimeta.schema import conform
from hudimeta.slices.log_parts import deleted_rows
from hudimeta.slices.merge_rules import DELETED_COLUMN, KEY_COLUMN, OPERATION_COLUMN, PartialUpdateMode
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.types import Operation, TableType
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.carried_keys import PATH_COLUMN
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import Prepared, write_prepared

__all__ = [
    "WHERE_ROWS_LIE",
    "RowChange",
    "changed_batch",
    "delete_where",
    "known_batch",
    "named_by_deletes",
    "partial_columns",
    "read_rows",
    "scan_of",
    "update_where",
    "with_stated_keys",
]

WHERE_ROWS_LIE = (KEY_COLUMN, PATH_COLUMN, FILE_NAME_COLUMN)
"""Meta columns that say which row of the table one is."""


def read_rows(session: WriteSession, table: TableFiles, where: Where | None, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of the table as a write sees it, meta columns included, also those that the table does not store."""
    return with_stated_keys(session, table, scan_of(session, table, where, columns).to_table())


def scan_of(
    session: WriteSession, table: TableFiles, where: Where | None, columns: Sequence[str] | None = None, timezone: str = "UTC"
) -> Scan:
    """The read of `read_rows`; its rows may lack the keys that the table does not store."""
    if not session.properties.populate_meta and columns is not None:
        columns = list(dict.fromkeys([*columns, *table.generator().fixed_columns]))
    return Scan(table.snapshot.for_reading(), ScanRequest(where, columns, timezone=timezone))


def with_stated_keys(session: WriteSession, table: TableFiles, rows: pa.Table) -> pa.Table:
    """Rows of the table with their keys and partition paths, made again where the table does not store them."""
    if session.properties.populate_meta:
        return rows
    virtual = table.generator()
    for name, values in ((KEY_COLUMN, virtual.record_keys(rows)), (PATH_COLUMN, virtual.partition_paths(rows))):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), values)
    return rows


def known_batch(rows: pa.Table, schema: pa.Schema, *, deleted: bool) -> KeyedBatch:
    """Rows that were read from the table, as rows to write: they lie where their meta columns say.

    Args:
        rows: With meta columns.
        schema: Data columns to write.
        deleted: True to delete them.
    """
    keys, paths, names = (single_array(rows[name]).cast(pa.string()) for name in WHERE_ROWS_LIE)
    return KeyedBatch(conform(rows, schema), keys, paths, np.full(rows.num_rows, deleted), names)


def changed_batch(session: WriteSession, table: TableFiles, rows: pa.Table, before: pa.Table | None = None) -> KeyedBatch:
    """Rows of the table with new values, as rows to write: each in the partition that its columns name now.

    They lie where their meta columns say all the same: a global index moves them from there, or leaves them (see `moves`).
    What marks a row as a delete deletes it, as where it comes from outside.

    Args:
        session: The table.
        table: The table at the moment of the write.
        rows: With meta columns.
        before: The columns of the partition as they were; None where these do not change.

    Raises:
        SchemaMismatch: No ordering value.
        CommitError: A row would change its partition, and may not.
    """
    rules, generator = session.rules, table.generator()
    check_order(rows, rules.ordering_fields if rules.by_event_time else ())
    batch = known_batch(rows, table.snapshot.file_schema, deleted=False)
    batch = replace(batch, deleted=deleted_rows(batch.rows, rules))
    if before is None:
        return batch
    was, now = (single_array(generator.partition_paths(one)) for one in (before, rows))
    moved = pc.not_equal(was, now)
    if not pc.any(moved).as_py():
        return batch
    if not table.lookup.choice.finds_anywhere:
        first, columns = pc.index(moved, True).as_py(), " and ".join(before.column_names)
        raise CommitError(
            f"a MERGE would change column {columns} of a row of partition '{was[first]}', which would be of '{now[first]}'",
            "No row was changed; delete the row and insert it anew, or merge with an index that finds keys in every partition, "
            "such as hoodie.index.type=GLOBAL_SIMPLE, which moves it.",
        )
    return replace(batch, partitions=pc.if_else(moved, now, batch.partitions))


@dataclass(frozen=True)
class RowChange:
    """What becomes of rows of the table.

    Attributes:
        assignments: New values by column; None to delete the rows.
    """

    assignments: Mapping[str, Assigned] | None = None

    @property
    def operation(self) -> Operation:
        """What the commit calls it."""
        return Operation.DELETE if self.assignments is None else Operation.UPSERT

    def columns(self, session: WriteSession, snapshot: Snapshot) -> list[str] | None:
        """What must be read of the rows; None for everything."""
        return None if self.assignments is not None else [*WHERE_ROWS_LIE, *named_by_deletes(session, snapshot).names]

    def prepared(self, session: WriteSession, table: TableFiles, rows: pa.Table) -> Prepared:
        """The rows as a batch to write.

        Args:
            session: The table.
            table: The table at the moment of the write.
            rows: As `read_rows` gives them; none to check the assignments alone.

        Raises:
            ConfigError: Columns or expressions that do not fit.
            SchemaMismatch: Values that a column cannot hold.
        """
        schema = table.snapshot.file_schema
        if self.assignments is None:
            named = named_by_deletes(session, table.snapshot)
            return Prepared(known_batch(rows, named, deleted=True), schema, rests_on_rows=True)
        fixed = table.generator().fixed_columns
        fields = assigned_fields(schema, self.assignments, fixed)
        changed = rows
        for field, value in fields:
            at = rows.schema.get_field_index(field.name)
            changed = changed.set_column(at, field, assigned_column(value, field, rows))
        only = partial_columns(session, table, [field.name for field, _ in fields])
        return Prepared(changed_batch(session, table, changed), schema, only, rests_on_rows=True)


def named_by_deletes(session: WriteSession, snapshot: Snapshot) -> pa.Schema:
    """Columns of rows that are to be deleted: one at least, because rows without any would not count as rows."""
    tops = {name.partition(".")[0] for name in session.rules.ordering_fields} or {snapshot.file_schema.names[0]}
    return pa.schema([f for f in snapshot.file_schema if f.name in tops])


def delete_where(session: WriteSession, where: Where) -> CommitReport:
    """Delete the rows that a predicate is true of. See `write_prepared` for what may be raised."""
    return _change_where(session, RowChange(), where)


def update_where(session: WriteSession, assignments: Mapping[str, Assigned], where: Where | None) -> CommitReport:
    """Change columns of the rows that a predicate is true of; of all rows when it is None.

    Raises:
        ConfigError: Columns or expressions that do not fit.
        SchemaMismatch: Values that a column cannot hold.
        HudiError: See `write_prepared`.
    """
    return _change_where(session, RowChange(assignments), where)


def _change_where(session: WriteSession, change: RowChange, where: Where | None) -> CommitReport:
    def make(table: TableFiles) -> Prepared:
        return change.prepared(session, table, read_rows(session, table, where, change.columns(session, table.snapshot)))

    return write_prepared(session, change.operation, make)


def partial_columns(session: WriteSession, table: TableFiles, changed: Iterable[str]) -> frozenset[str] | None:
    """What log files need store of rows that only some columns change of; None for everything.

    Readers fill the rest from the version before, where they can. Indexes of values want whole rows, and a merger of the user's
    own too. Where a column may say of a row that it deletes, Apache Hudi's readers look for it in what was logged at its place
    among all columns, and take what lies there for it. Where columns have a history, they bring what was logged to all columns
    of today first, so that what was not logged comes as null; its writers log whole rows where they may get one.
    """
    rules, schema = session.rules, table.snapshot.file_schema
    facts = table.file_format(schema).facts
    needs_all = rules.partial_mode is not PartialUpdateMode.NONE or rules.merger is not None
    needs_all = needs_all or not session.properties.fills_partial_rows
    on_read = session.options.is_set(keys.SCHEMA_ON_READ) and session.options.get(keys.SCHEMA_ON_READ)
    needs_all = needs_all or on_read or table.snapshot.history is not None
    needs_all = needs_all or bool({DELETED_COLUMN, OPERATION_COLUMN, rules.delete_field} & set(schema.names))
    logs = session.properties.type is TableType.MERGE_ON_READ and session.properties.populate_meta
    if needs_all or facts.values or facts.expressions or not logs or not session.options.get(keys.PARTIAL_UPDATES):
        return None
    return frozenset({*changed, *(name.partition(".")[0] for name in rules.ordering_fields)})


def check_order(rows: pa.Table, fields: Sequence[str]) -> None:
    """Raise SchemaMismatch where an ordering column is null.

    Args:
        rows: With new values.
        fields: Ordering columns.
    """
    for name in {field.partition(".")[0] for field in fields}:
        if rows[name].null_count:
            raise SchemaMismatch(name, "null", "a value, because it decides which row is newer", "Set it to a value.")
