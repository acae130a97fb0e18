"""Writing rows to a table from this process: the operations, tried again when another writer was first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudimeta.commit.attempts import until_no_conflict
from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.report import REPORT_KEY, CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import options as keys
from hudimeta.indexes.apart import IndexesApart
from hudimeta.indexes.facts import refuse_long_values
from hudimeta.keys import generated_keys
from hudimeta.metadata.secondary_index import PREFIX as SECONDARY
from hudimeta.snapshot.named_partitions import named_partitions
from hudimeta.snapshot.opened_ahead import list_ahead
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.table.file_names import WriteToken
from hudimeta.table.key_file import KeyFile
from hudimeta.types import Operation
from hudimeta.write.asked_indexes import ensure_metadata
from hudimeta.write.batch import KeyedBatch, keyed_batch, keys_only_batch
from hudimeta.write.bulk_sort import sorted_for_bulk_insert
from hudimeta.write.carried_keys import CARRIED_NOTE, carries_keys
from hudimeta.write.combining import combine, combining_rules
from hudimeta.write.default_values import DefaultValues
from hudimeta.write.duplicates import combines, refuse_unheeded
from hudimeta.write.execution import FileWriters, execute_pieces
from hudimeta.write.no_rows import NO_ROWS, commits_no_rows, nothing_left
from hudimeta.write.partitions import check_new_partitions, partition_batch
from hudimeta.write.placing import INSERTS, KEYED, PlacedBatch, place
from hudimeta.write.renewed_rings import renew_rings
from hudimeta.write.settling import Settlement
from hudimeta.write.table_files import TableFiles
from hudimeta.write.write_result import WriteResult

__all__ = [
    "WriteResult",
    "Prepared",
    "delete_partitions",
    "overwritten",
    "prepare",
    "publish",
    "replaced_by",
    "write_batch",
    "write_prepared",
    "write_rows",
]


@dataclass(frozen=True)
class Prepared:
    """A batch and the schema that the table has after it is written.

    Attributes:
        only: Columns in which the rows differ from those that they replace, where log files may store these alone; else None.
        rests_on_rows: The rows were computed from what the table holds.
        defaults: What new rows get in columns that the batch came without.
    """

    batch: KeyedBatch
    schema: pa.Schema
    only: frozenset[str] | None = None
    rests_on_rows: bool = False
    defaults: DefaultValues | None = None


def write_rows(session: WriteSession, operation: Operation, rows: pa.Table) -> CommitReport:
    """Write rows.

    Args:
        session: The table.
        operation: What to do.
        rows: Data columns; for DELETE at least the key and partition columns.

    Raises:
        SchemaError, ConfigError: Bad input; nothing was written.
        CommitConflict: Other writers were first, several times.
        HudiError: Anything else; the write was rolled back.
    """
    return write_prepared(session, operation, lambda table: prepare(table, session, operation, rows))


@until_no_conflict
def write_prepared(session: WriteSession, operation: Operation, make: Callable[[TableFiles], Prepared]) -> CommitReport:
    """Write rows that may depend on what the table holds.

    Args:
        session: The table.
        operation: What to do.
        make: Makes the rows for a state of the table; called again when that turns out not to be the newest.

    Raises:
        CommitConflict: Other writers were first, several times.
        HudiError: What `make` raises; then nothing was written. Anything else; the write was rolled back.
    """
    timings = Timings()
    with timings.phase("check"):
        table = TableFiles.now(session)
        prepared = make(table)
    if not len(prepared.batch) and not commits_no_rows(session, operation):
        return nothing_left(session, operation, NO_ROWS)
    if ensure_metadata(session):
        table = TableFiles.now(session)
        prepared = make(table)
    listed = table.lookup.begin(prepared.batch) if operation in KEYED else list_ahead(table.snapshot)
    with session.coordinator.writing(operation, table.snapshot.timeline) as (write, begun):
        listed()
        if begun is not table.snapshot.timeline:
            # Dead writes were rolled back; whoever else committed meanwhile may have changed the schema.
            table = TableFiles.at(session, begun)
            prepared = make(table)
            if not len(prepared.batch) and not commits_no_rows(session, operation):
                return nothing_left(session, operation, NO_ROWS, write)
        outcome = write_batch(session, table, write, prepared, timings)
        return publish(session, table, write, prepared.schema, outcome, timings)


def delete_partitions(session: WriteSession, names: Sequence[str]) -> CommitReport:
    """Take all rows of some partitions out of the table.

    Args:
        session: The table.
        names: See `named_partitions`.

    Raises:
        ConfigError: No name.
        CommitConflict: Other writers were first, several times.
    """

    def named(snapshot: Snapshot) -> Sequence[str]:
        found, missing = named_partitions(snapshot, names)
        session.notes += [f"no partition {name!r} has rows" for name in missing]
        return found

    return delete_chosen_partitions(session, named)


@until_no_conflict
def delete_chosen_partitions(session: WriteSession, choose: Callable[[Snapshot], Sequence[str]]) -> CommitReport:
    """Take all rows of some partitions out of the table.

    Args:
        session: The table.
        choose: Says which, for a state of the table; asked again when that turns out not to be the newest.

    Raises:
        CommitConflict: Other writers were first, several times.
    """
    timings, operation = Timings(), Operation.DELETE_PARTITION
    with timings.phase("check"):
        snapshot = session.snapshot_now()
        found = choose(snapshot)
    if not found:
        return nothing_left(session, operation)
    if ensure_metadata(session):
        snapshot = session.snapshot_now()
    with session.coordinator.writing(operation, snapshot.timeline) as (write, begun):
        if begun is not snapshot.timeline:
            snapshot = session.snapshot_at(begun)
            found = choose(snapshot)
            if not found:
                return nothing_left(session, operation, write=write)
        outcome = WriteResult((), replaced_by(snapshot, operation, found), frozenset(found))
        return publish(session, TableFiles(session, snapshot), write, snapshot.file_schema, outcome, timings)


def prepare(table: TableFiles, session: WriteSession, operation: Operation, rows: pa.Table) -> Prepared:
    """Check rows against the table and give them keys; nothing is written. See `write_rows` for what may be raised."""
    generator = table.generator()
    in_buckets = table.lookup.fixes_places
    refuse_unheeded(session.options, operation, has_keys=not generator.generates_keys, in_buckets=in_buckets)
    carried = carries_keys(generator, operation, rows.column_names)
    if carried and CARRIED_NOTE not in session.notes:
        session.notes.append(CARRIED_NOTE)
    rules = combining_rules(session.properties, session.rules)
    whole_table = operation in KEYED and table.lookup.choice.is_global
    if operation is Operation.DELETE:
        named = keys_only_batch(rows, generator, table.snapshot.file_schema, session.rules, whole_table=whole_table)
        return Prepared(table.lookup.one_a_key(named, rules), table.snapshot.file_schema)
    if operation is Operation.DELETE_PARTITION:
        return Prepared(partition_batch(rows, generator, table.snapshot.file_schema, session.rules), table.snapshot.file_schema)
    change = table.evolve(rows.schema)
    batch = keyed_batch(rows, change.schema, generator, session.rules, carried=carried)
    if any(name.startswith(SECONDARY) for name in session.properties.metadata_partitions):
        refuse_long_values(batch.rows, batch.keys, table.facts_wanted())
    if not whole_table:  # else a row may stay where it is, whatever its partition
        check_new_partitions(session.storage, batch)
    if combines(session.options, operation) or (operation in INSERTS and table.lookup.fixes_places):
        # An overwrite replaces the partition of each of its rows.
        batch = combine(batch, rules) if operation.overwrites else table.lookup.one_a_key(batch, rules)
    if operation is Operation.BULK_INSERT:
        batch = sorted_for_bulk_insert(batch, session.options)
    return Prepared(batch, change.schema, defaults=DefaultValues.of(session.properties, change))


def write_batch(
    session: WriteSession,
    table: TableFiles,
    write: OpenWrite,
    prepared: Prepared,
    timings: Timings,
    *,
    first_task: int = 0,
) -> WriteResult:
    """Write the files of a batch; nothing becomes visible. `first_task` keeps write tokens apart from those of other tasks."""
    operation, replaced, touched = write.operation, dict[str, list[str]](), list[str]()
    if operation.replaces_groups:
        touched = overwritten(session, table.snapshot, operation, prepared.batch.partitions.unique().to_pylist())
        replaced = replaced_by(table.snapshot, operation, touched)
    placed = place(session, table, write, prepared.batch, timings)
    batch, plan = placed.batch, placed.plan
    if prepared.defaults is not None:
        batch = prepared.defaults.given_to(batch, plan.fresh)
    if batch.keys is None:
        # As Hudi makes them: counted through the rows as they came, whichever file each of them goes to.
        batch = replace(batch, keys=generated_keys(len(batch), write.instant, first_task))
    with timings.phase("write"):
        writers = FileWriters.of(session, table, write, prepared.schema, prepared.only)
        written = execute_pieces(plan.pieces, batch, writers, session.engine, WriteToken(first_task))
    sole: frozenset[str] | None = _sole_partitions(placed, operation) | set(touched)
    if placed.is_looked_up and table.lookup.choice.is_global and sole:
        sole = None  # a row of the same key could have come anywhere
    return replace(
        placed.result,
        files=written.all_files,
        replaced=replaced,
        keyed_partitions=sole,
        pieces=written,
        rests_on_rows=prepared.rests_on_rows,
    )


def overwritten(session: WriteSession, snapshot: Snapshot, operation: Operation, own: Iterable[str]) -> list[str]:
    """Partitions that a replacing write is about: those of its rows, and those that its options name.

    Raises:
        ConfigError: See `named_partitions`.
    """
    deletes = operation is Operation.DELETE_PARTITION
    names = session.options.get(keys.PARTITIONS_TO_DELETE if deletes else keys.OVERWRITTEN_PARTITIONS)
    if not names:
        return sorted(own)
    found, missing = named_partitions(snapshot, names)
    session.notes += [f"no partition {name!r} has rows" for name in missing]
    return found if deletes else sorted({*found, *own})


def replaced_by(snapshot: Snapshot, operation: Operation, partitions: Sequence[str]) -> dict[str, list[str]]:
    """File groups that an overwrite takes out, by partition."""
    files: Mapping[str, Sequence[KeyFile]] = snapshot.key_files(
        None if operation is Operation.INSERT_OVERWRITE_TABLE else partitions
    )
    return {partition: [f.file_id for f in found] for partition, found in files.items() if found}


def _sole_partitions(placed: PlacedBatch, operation: Operation) -> frozenset[str]:
    """Partitions to which nobody else may have added rows meanwhile: see `check_conflicts`."""
    plan = placed.plan
    if operation.overwrites:
        return frozenset(n.partition_path for n in plan.new_groups)
    if not placed.is_looked_up or operation is Operation.DELETE:
        return frozenset()
    grown = {n.partition_path for n in plan.new_groups}
    return frozenset(grown | {r.partition_path for r in plan.rewrites if len(r.inserted)})


def publish(
    session: WriteSession,
    table: TableFiles,
    write: OpenWrite,
    schema: pa.Schema,
    outcome: WriteResult,
    timings: Timings,
    apart: IndexesApart | None = None,
) -> CommitReport:
    """Make the files of a write visible and say what was done; `apart` writes indexes that this process does not."""
    stated = published_schema(schema, session.properties.name, table.snapshot.history, write.instant)

    def publication_of(result: WriteResult) -> Publication:
        report = _report(session, write, result, timings)
        extra = {**session.extra_metadata(), **stated.extra, REPORT_KEY: report.encoded()}
        keyed, known, history = result.keyed_partitions, table.snapshot.metadata, stated.history
        own = (result.files, schema, stated.avro, result.replaced, extra, keyed, known, history, apart, settlement)
        return Publication(*own, renamed=stated.renamed)

    # An overwrite takes the place of whatever is there: any row that came meanwhile is in its way.
    settles = not (write.operation.replaces_groups or outcome.rests_on_rows)
    settlement = Settlement(session, table, write, outcome, publication_of) if settles else None
    with timings.phase("publish"):
        if settlement is not None and settlement.expects_others:
            publication = settlement.settle(session.properties.load_timeline(session.storage))
        else:
            publication = publication_of(outcome)
        renew_rings(session, table, write, outcome)
        completion = session.coordinator.publish(write, publication)
        settled = outcome.files if settlement is None else settlement.outcome.files
        seen = {file.name for file in outcome.files}  # the others rest on slices that this write has not seen
        table.window.add([file for file in settled if file.name in seen or file.is_new_group], outcome.window_runs)
    report = replace(
        _report(session, write, outcome if settlement is None else settlement.outcome, timings),
        completion=completion,
        compacted_metadata=session.coordinator.compacted_metadata,
        seconds=timings.seconds,
        notes=tuple(dict.fromkeys((*session.notes, *session.coordinator.notes))),  # of several attempts
    )
    return session.reported(report, write.action)


def _report(session: WriteSession, write: OpenWrite, outcome: WriteResult, timings: Timings) -> CommitReport:
    """The report as far as it is known before publishing."""
    files = outcome.files
    return CommitReport(
        write.instant,
        None,
        write.operation.value,
        inserted=sum(f.inserted for f in files),
        updated=sum(f.updated for f in files),
        deleted=sum(f.deleted for f in files),
        unmatched_deletes=outcome.unmatched,
        files_written=len(files),
        log_files_written=sum(f.log_instant is not None for f in files),
        change_files_written=sum(len(f.change_files) for f in files),
        partitions=len({f.partition_path for f in files}),
        file_groups_added=sum(f.is_new_group for f in files),
        bytes_written=sum(f.size for f in files),
        file_groups_replaced=sum(len(ids) for ids in outcome.replaced.values()),
        rolled_back=write.rolled_back,
        index=outcome.index,
        looked_up=outcome.looked_up,
        found=outcome.found,
        moved=outcome.moved,
        dropped_duplicates=outcome.dropped,
        outdated=sum(f.outdated for f in files),
        row_groups_kept=sum(f.groups_kept for f in files),
        column_chunks_kept=sum(f.chunks_kept for f in files),
        seconds=dict(timings.seconds),
        requests=session.requests_since(session.mark),
        notes=tuple(session.notes),
    )
