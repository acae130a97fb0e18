"""Changes that somebody else computes from the table's rows, such as a SQL engine, written in one commit.

They are computed for the moment on which the write rests. Whoever changes one of their file groups before it is published makes
it begin again, computing anew, so that nobody's change is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import Options
from hudimeta.errors import CommitError, ConfigError
from hudimeta.keys import KeyGenerator
from hudimeta.read.merge_rules import KEY_COLUMN
from hudimeta.schema import conform
from hudimeta.storage import Storage
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.batch import KeyedBatch, keyed_batch
from hudimeta.write.combining import combine, combining_rules
from hudimeta.write.report import CommitReport
from hudimeta.write.row_changes import PATH_COLUMN, check_order, known_batch
from hudimeta.write.session import TableView, WriteSession
from hudimeta.write.table_writer import Prepared, write_prepared

__all__ = ["Changes", "write_changes"]

ROW_COLUMN = "_hoodie_commit_seqno"
"""With key and partition it says which row is meant, also where a key is there more than once."""


@dataclass(frozen=True)
class Changes:
    """What becomes of rows.

    Attributes:
        updated: Rows of the table with new values, and the meta columns that they had. deleted: Rows of the table, likewise.
        inserted: New rows: data columns only. Columns that they lack are null.
    """

    updated: pa.Table | None = None
    deleted: pa.Table | None = None
    inserted: pa.Table | None = None


def write_changes(
    storage: Storage, options: Options, operation: Operation, compute: Callable[[str | None, pa.Schema], Changes]
) -> CommitReport:
    """Write changes.

    Args:
        storage: Of the table. options: Of the write. operation: UPSERT, or DELETE for deletes alone.
        compute: Makes the changes of the table as of an instant (None while it has none), for its data columns; called again
            when that turns out not to be the newest.

    Raises:
        CommitError: Several rows would take the place of one, and no ordering column says which. CommitConflict: Other
            writers were first. HudiError: What `compute` raises; nothing was written.
    """
    from hudimeta.services.after_write import tend

    session = WriteSession(storage, options)

    def make(view: TableView) -> Prepared:
        moment = max((instant.time for instant in view.timeline.writes), default=None)
        changes = compute(moment, view.schema)
        return Prepared(_batch(session, view, changes), view.schema)

    return tend(session, write_prepared(session, operation, make))


def _batch(session: WriteSession, view: TableView, changes: Changes) -> KeyedBatch:
    schema = view.schema
    parts = [known_batch(_no_rows(schema), schema, deleted=False)]
    for rows, deleted in ((changes.updated, False), (changes.deleted, True)):
        if rows is not None and rows.num_rows:
            check_order(rows, session.rules.ordering_fields if session.rules.by_event_time and not deleted else ())
            parts.append(known_batch(_identified(_typed(rows, schema), session, view), schema, deleted=deleted))
    known = _joined(parts)
    if len(known):
        given = [t for t in (changes.updated, changes.deleted) if t is not None and t.num_rows]
        known = _one_a_row(session, known, given)
    if changes.inserted is None or not changes.inserted.num_rows:
        return known
    rows = _typed(changes.inserted, schema)
    made = keyed_batch(rows, schema, view.generator(), session.rules)
    if made.keys is None:
        hint = "Insert the rows of a table without key columns with INSERT INTO."
        raise ConfigError("merge", "insert", "a table with key columns", hint)
    return _joined([known, combine(made, combining_rules(session.properties, session.rules))])


def _one_a_row(session: WriteSession, known: KeyedBatch, given: list[pa.Table]) -> KeyedBatch:
    """Refuse, or settle by the order of rows, several changes of one row of the table."""
    seen = pa.concat_tables([t.select([KEY_COLUMN, PATH_COLUMN, ROW_COLUMN]) for t in given])
    pairs = pc.binary_join_element_wise(*[seen[name].cast(pa.string()).fill_null("") for name in seen.column_names], "\0")
    again = len(pairs) - len(pc.unique(pairs))
    if not again:
        return known
    if session.rules.by_event_time and session.rules.ordering_fields:
        return combine(known, combining_rules(session.properties, session.rules))
    raise CommitError(
        f"rows of the table match more than one row of the source, {again:,} times",
        "Nothing was written; keep one row a key in the source, narrow the condition, or give the table an ordering column.",
    )


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Columns in the table's types, where Arrow calls them otherwise only: zones of times, large strings."""
    for number, field in enumerate(rows.schema):
        at = schema.get_field_index(field.name)
        kind = schema.field(at).type if at >= 0 else pa.string() if field.name in META_COLUMNS else field.type
        if field.type != kind:
            rows = rows.set_column(number, field.name, rows.column(number).cast(kind))
    return rows


def _identified(rows: pa.Table, session: WriteSession, view: TableView) -> pa.Table:
    """With the keys of tables that do not store them."""
    if session.properties.populate_meta:
        return rows
    generator: KeyGenerator = view.generator()
    for name, values in ((KEY_COLUMN, generator.record_keys(rows)), (PATH_COLUMN, generator.partition_paths(rows))):
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    return rows


def _no_rows(schema: pa.Schema) -> pa.Table:
    meta = [pa.field(KEY_COLUMN, pa.string()), pa.field(PATH_COLUMN, pa.string())]
    return pa.schema([*meta, *schema]).empty_table()


def _joined(parts: list[KeyedBatch]) -> KeyedBatch:
    schema = parts[0].rows.schema
    return KeyedBatch(
        pa.concat_tables([conform(part.rows, schema) for part in parts]),
        pa.concat_arrays([part.keys for part in parts if part.keys is not None]),
        pa.concat_arrays([part.partitions for part in parts]),
        np.concatenate([part.deleted for part in parts]),
    )
