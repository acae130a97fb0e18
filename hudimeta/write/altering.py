"""ALTER: a commit without files that changes what the table's columns are called, or drops, widens, adds or moves some.

Files stay as they are. From then on each commit carries the history of the columns, by which readers find them in older files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.attempts import until_no_conflict
from hudimeta.commit.coordinator import Publication
from hudimeta.commit.published_schema import PublishedSchema
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.errors import ConfigError, UnsupportedEvolution, UnsupportedFeature
from hudimeta.metadata import column_stats
from hudimeta.metadata.indexed_columns import column_type, has_statistics
from hudimeta.read.request import ScanRequest
from hudimeta.read.scan import Scan
from hudimeta.schema import (
    SchemaChange,
    SchemaHistory,
    check_key_texts,
    conform_array,
    hudi_type_of,
    normalise_type,
    with_meta_columns,
)
from hudimeta.schema.alteration import Alteration, altered, internal_schema, refuse_former_names, renamed
from hudimeta.schema.hudi_types import declared_field
from hudimeta.schema.promotion import Fit, fit
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.snapshot.table_schema import files_hold
from hudimeta.table.column_defaults import changed_defaults, column_defaults
from hudimeta.types import Operation, is_text
from hudimeta.write.asked_indexes import ensure_metadata
from hudimeta.write.table_files import TableFiles

__all__ = ["alter", "alteration", "set_defaults"]

Prepare: TypeAlias = Callable[[WriteSession, Snapshot], bool]


def alteration(
    add: Mapping[str, pa.DataType] | pa.Schema | Sequence[pa.Field] = (),
    rename: Mapping[str, str] | None = None,
    drop: str | Sequence[str] = (),
    retype: Mapping[str, pa.DataType] | None = None,
    nullable: str | Sequence[str] = (),
    move: Mapping[str, str | None] | None = None,
) -> Alteration:
    """The change that the arguments of `Table.alter` ask for. Raises ConfigError when it is none."""
    fields = _fields_of("add", add)
    retyped = {field.name: field.type for field in _fields_of("retype", retype or {})}
    names, loosened = ((given,) if isinstance(given, str) else tuple(given) for given in (drop, nullable))
    moves = {name: after or "" for name, after in (move or {}).items()}
    change = Alteration(names, dict(rename or {}), retyped, loosened, tuple(fields), moves)
    if change == Alteration():
        raise ConfigError("alter", "nothing", "columns to add, rename, drop, retype, allow nothing in, or move")
    return change


def _fields_of(argument: str, given: Mapping[str, pa.DataType] | pa.Schema | Sequence[pa.Field] | None) -> list[pa.Field]:
    try:
        fields = [pa.field(name, kind) for name, kind in given.items()] if isinstance(given, Mapping) else list(given or ())
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _no_types(argument, given) from error
    if not all(isinstance(field, pa.Field) and is_text(field.name) for field in fields):
        raise _no_types(argument, given)
    _refuse_own_types(declared_field(field) for field in fields)
    return fields


def _no_types(argument: str, given: object) -> ConfigError:
    hint = 'Give {"note": pyarrow.string()}, or fields of an Arrow schema to add.'
    return ConfigError(argument, given, "a dictionary of columns and Arrow types", hint)


@until_no_conflict
def alter(session: WriteSession, change: Alteration, prepare: Prepare) -> CommitReport:
    """Alter the columns of a table.

    Args:
        session: The table.
        change: What to alter.
        prepare: Runs once the change is known to fit, before it is begun; whether it changed the table, which it notes.

    Raises:
        ConfigError, UnsupportedEvolution: See `altered`; nothing was written.
        CommitConflict: Other writers were first.
    """
    timings, operation = Timings(), Operation.ALTER_SCHEMA
    snapshot = session.snapshot_now()
    _refuse_own_types(snapshot.schema.stored)
    _check_indexes(snapshot, change)
    _next_version(session, snapshot, change, 1)  # whatever does not fit is refused before anything is written
    _check_values(snapshot, change)
    prepared = prepare(session, snapshot)
    if ensure_metadata(session) or prepared:
        snapshot = session.snapshot_now()
    # Former names mean no column any more and cannot come back: whoever dies in between leaves nothing that counts.
    defaults = column_defaults(session.properties)
    set_defaults(session, {new: defaults[old] for old, new in change.rename.items() if old in defaults})
    with session.coordinator.writing(operation, snapshot.timeline) as (write, begun):
        snapshot = snapshot if begun is snapshot.timeline else session.snapshot_at(begun)
        history = _next_version(session, snapshot, change, int(write.instant))
        schema = history.latest.arrow
        stated = PublishedSchema.of_history(schema, session.properties.name, history)
        extra = {**session.extra_metadata(), **stated.extra}
        in_files = files_hold(schema, session.properties)
        now = Publication((), in_files, stated.avro, extra=extra, known=snapshot.metadata, history=stated.history)
        publication = replace(now, renamed=renamed(history.versions[-2], history.latest))
        with timings.phase("publish"):
            completion = session.coordinator.publish(write, publication)
    set_defaults(session, {old: None for old in (*change.rename, *change.drop) if old in defaults})
    return session.reported(
        CommitReport(
            write.instant,
            completion,
            operation.value,
            rolled_back=write.rolled_back,
            seconds=timings.seconds,
            notes=(*session.notes, *session.coordinator.notes),
        ),
        write.action,
    )


def set_defaults(session: WriteSession, changes: Mapping[str, str | None]) -> None:
    """Change default values of columns.

    Args:
        session: Of the write.
        changes: Expressions of SQL by column; None for those that go.
    """
    if changes:
        with session.lock.held():
            session.change_properties(lambda properties: changed_defaults(properties, changes))


def _next_version(session: WriteSession, snapshot: Snapshot, change: Alteration, version: int) -> SchemaHistory:
    dropped = [snapshot.schema.arrow.field(name) for name in snapshot.schema.dropped]
    whole = pa.schema([*snapshot.file_schema, *dropped])
    history = snapshot.history or SchemaHistory((internal_schema(with_meta_columns(whole)),))
    ordering = tuple(name.partition(".")[0] for name in session.rules.ordering_fields)
    fixed = (*TableFiles(session, snapshot).generator().fixed_columns, *ordering)
    new = altered(history.latest, change, version, fixed)
    refuse_former_names(history, new)
    named = (*session.properties.record_keys, *session.properties.partition_fields)
    types = ((path, column_type(snapshot.file_schema, path), kind) for path, kind in change.retype.items() if path in named)
    widened = tuple((path, old, normalise_type(kind, path)) for path, old, kind in types if old is not None)
    check_key_texts(SchemaChange(snapshot.file_schema, widened=widened), named)
    return SchemaHistory((*history.versions, new))


def _check_values(snapshot: Snapshot, change: Alteration) -> None:
    """Values of columns that get a type which need not hold them all.

    Raises:
        UnsupportedEvolution: It does not hold one that is there, and readers would find nothing in its place.
    """
    for path, kind in change.retype.items():
        before, after = column_type(snapshot.file_schema, path), normalise_type(kind, path)
        if before is None or fit(before, after) is not Fit.ALTERED:
            continue
        column, *inside = path.split(".")
        for batch in Scan(snapshot.for_reading(), ScanRequest(None, [column])).to_batches():
            values = batch.column(column)
            for name in inside:
                values = pc.struct_field(values, name)
            shown = conform_array(values, pa.field(path, after), path, altered=True)
            lost = values.filter(pc.and_(values.is_valid(), shown.is_null()))
            if len(lost):
                said = f"from {before} to {after}, which does not hold {lost[0].as_py()!r}"
                raise UnsupportedEvolution(path, said, "Update such rows first, or add a column of the new type and fill it.")


def _refuse_own_types(columns: Iterable[pa.Field]) -> None:
    """Refuse columns of types that the history of a schema has no way to write which Apache Hudi would read again."""
    for column in columns:
        kind = hudi_type_of(column)
        if kind is not None:
            hint = "Add columns by writing rows that have them, or copy the rows into a new table."
            raise UnsupportedFeature(f"altering a table with column {column.name} of type {kind}", hint)


def _check_indexes(snapshot: Snapshot, change: Alteration) -> None:
    """Indexes name their columns: those of a column that goes, or that holds another type, would tell of another one."""
    touched = {path.partition(".")[0] for path in (*change.drop, *change.rename, *change.retype)}
    definitions = snapshot.metadata.index_definitions if snapshot.metadata is not None else {}
    for name, definition in definitions.items():
        both = touched & {field.partition(".")[0] for field in definition.source_fields}
        if both and name != column_stats.PARTITION:
            raise ConfigError("alter", sorted(both)[0], f"a column without the index {name}", f"Drop the index {name} first.")
        for path, kind in change.retype.items() if name == column_stats.PARTITION else ():
            if path in definition.source_fields and not has_statistics(normalise_type(kind, path), definition.version or "V1"):
                hint = "Take another type, or drop the indexes partition_stats and column_stats first."
                raise ConfigError("alter", f"{path} {kind}", "a type that the table's column statistics hold", hint)
