"""Writing through Spark's plain door: tasks write or stage rows, the coordinator's commit settles and publishes.

Spark gives this door no shuffle, so a key may come up in any task. Rows that go into file groups of their own are written by
the tasks: those of a bulk insert and of an overwrite, and an insert's where a task has enough of them for a whole file. All
others are *staged* (an Arrow file each) and the commit treats them as one batch: one row a key, looked
up, merged into their file groups or placed into small files. What a failed or repeated task left is deleted before publishing.
"""

from __future__ import annotations

import contextlib
import pickle
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hudimeta.api.verbs import run_write
from hudimeta.commit.attempts import until_no_conflict
from hudimeta.commit.concurrency import beat_s
from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.liveness import Heartbeat
from hudimeta.commit.markers import staging_folder
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.strays import delete_strays, refuse_when_over
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS, HudiWarning, Options
from hudimeta.config import options as keys
from hudimeta.errors import CommitError, ConfigError, NotFound, StorageError
from hudimeta.formats.arrow_ipc import decode_table, encode_table
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.observability import metered
from hudimeta.redaction import hidden, redacted
from hudimeta.schema import strip_meta_columns
from hudimeta.storage import CountingStorage, Storage, join, open_storage
from hudimeta.table.file_names import WriteToken
from hudimeta.types import Operation
from hudimeta.write.asked_indexes import ensure_metadata
from hudimeta.write.batch import keyed_batch
from hudimeta.write.bulk_sort import sorted_for_bulk_insert
from hudimeta.write.carried_keys import CARRYING_COLUMNS, carries_keys
from hudimeta.write.default_values import DefaultValues
from hudimeta.write.duplicates import DuplicatePolicy, combines, duplicate_policy, of_a_frame
from hudimeta.write.execution import FileWriters, execute_plan
from hudimeta.write.first_schema import with_first_schema
from hudimeta.write.no_rows import NO_ROWS, commits_no_rows, nothing_left
from hudimeta.write.opening import open_or_create
from hudimeta.write.operations import plan_inserts
from hudimeta.write.placement import FileSizing
from hudimeta.write.rows_in import joined_batches
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import (
    Prepared,
    WriteResult,
    overwritten,
    prepare,
    publish,
    replaced_by,
    write_batch,
)

__all__ = ["PlainWrite", "TaskResult", "operation_of", "without_deleting_payload"]

_DELETING_PAYLOAD = "EmptyHoodieRecordPayload"
_TASK_BITS = 12
_FIRST_OF_COMMIT = 1 << 30
"""Tasks number their files in steps of 4,096, the commit from far after them; Java wants numbers below 2^31."""
FLUSH_BYTES = 512 << 20
"""Arrow bytes that a task gathers before it writes files: bounds its memory."""


@dataclass(frozen=True)
class TaskResult:
    """What one task did: its files, the path of the rows that it staged (None for none), and the partitions of its deletes."""

    files: tuple[WrittenFile, ...] = ()
    staged: str | None = None
    emptied: frozenset[str] = frozenset()


def operation_of(options: Options, overwrite: bool) -> Operation:
    """The operation of a Spark write: the option, or what the save mode implies."""
    if not overwrite:
        if deletes_by_payload(options):
            return Operation.DELETE
        return of_a_frame(options, Operation((options.get(keys.OPERATION) or "upsert").upper()))
    given = options.get(keys.OPERATION) if options.is_set(keys.OPERATION) else None
    if given in ("delete", "delete_partition"):
        # The rows say what to delete: they must not become what the table holds.
        raise ConfigError(keys.OPERATION.key, given, "an operation that writes rows, in mode overwrite", "Use mode append.")
    if given == "insert_overwrite" or options.get(keys.OVERWRITE_MODE) == "DYNAMIC":
        return Operation.INSERT_OVERWRITE
    return Operation.INSERT_OVERWRITE_TABLE


def deletes_by_payload(options: Options) -> bool:
    """Whether an upsert has the payload class by which Apache Hudi makes a delete of it."""
    named = (options.get(keys.PAYLOAD_CLASS) or "").rpartition(".")[2]
    return named == _DELETING_PAYLOAD and (options.get(keys.OPERATION) or "upsert").lower() == "upsert"


def without_deleting_payload(options: Options) -> Options:
    """The options of such a write, of which the table shall not have that class."""
    return options.without(keys.PAYLOAD_CLASS) if deletes_by_payload(options) else options


@redacted
@dataclass(frozen=True)
class PlainWrite:
    """One write of a DataFrame: begun on the driver, pickled to the tasks, committed on the driver by another process.

    Attributes:
        location: The table.
        options: Of the write.
        open_write: The instant and what it knows.
        schema: Data columns of the table after the write.
        defaults: What new rows get in columns that the rows came without; None for nothing.
        carried: Meta columns by which rows say which rows of the table they are; none where key columns do, or none shall.
    """

    location: str
    options: Options
    open_write: OpenWrite
    schema: pa.Schema
    defaults: DefaultValues | None = None
    carried: tuple[str, ...] = ()

    @classmethod
    def begin(cls, location: str, options: Mapping[str, str], schema: pa.Schema, *, overwrite: bool) -> PlainWrite:
        """Check everything that can be checked, create the table when there is none, and put an instant on its timeline.

        Args:
            location: Absolute path or URI.
            options: Of the write.
            schema: Of the rows; of meta columns it may have those of `carries_keys`.
            overwrite: Spark's mode.

        Raises:
            ConfigError, SchemaError, TableError: Bad input; nothing was written.
        """
        given = {k: v for k, v in options.items() if k.lower() != keys.PATH.key}
        parsed = OPTIONS.read(given)
        storage = metered(CountingStorage(open_storage(location, parsed.texts)), parsed)
        operation = operation_of(parsed, overwrite)
        if operation is Operation.DELETE:
            parsed = without_deleting_payload(parsed)
        session = open_or_create(storage, parsed, strip_meta_columns(schema), operation)
        check = partial(cls._checked, session, operation, schema)
        table, carried, checked = with_first_schema(session, operation, schema, check)
        ensure_metadata(session)  # before there is a coordinator, which has to know of it
        undone = session.coordinator.recover_from_tasks()
        write, _ = session.coordinator.begin(operation, None if undone else table.snapshot.timeline, heartbeat=True)
        begun = replace(write, rolled_back=(*undone, *write.rolled_back))
        return cls(location, parsed, begun, checked.schema, checked.defaults, carried)

    @staticmethod
    def _checked(
        session: WriteSession, operation: Operation, schema: pa.Schema
    ) -> tuple[TableFiles, tuple[str, ...], Prepared]:
        """The table, the meta columns that say which rows of it these are, and what a batch of none of them would be."""
        table = TableFiles.now(session)
        carried = CARRYING_COLUMNS if carries_keys(table.generator(), operation, schema.names) else ()
        return table, carried, prepare(table, session, operation, no_rows(schema))

    def _storage(self) -> CountingStorage:
        return CountingStorage(open_storage(self.location, self.options.texts))

    # In a task

    def write(self, batches: Iterable[pa.RecordBatch], task: int, attempt: int) -> bytes:
        """Write or stage the rows of one task.

        Args:
            batches: Rows.
            task: Number of the partition.
            attempt: Of the task; attempts must not share names.

        Returns:
            The message for `commit`.
        """
        storage = self._storage()
        with Heartbeat(storage, self.open_write.instant).beating(beat_s(self.options)):
            files: list[WrittenFile] = []
            rest: list[pa.Table] = []
            emptied: set[str] = set()
            for rows in joined_batches(batches, FLUSH_BYTES):
                written, left, deleted = self._write_own_groups(storage, rows, task, attempt, len(files))
                files += written
                emptied |= deleted
                rest += [left] if left.num_rows else []
            staged = self._stage(storage, pa.concat_tables(rest), task, attempt) if rest else None
        return pickle.dumps(TaskResult(tuple(files), staged, frozenset(emptied)))

    def _write_own_groups(
        self, storage: Storage, rows: pa.Table, task: int, attempt: int, number: int
    ) -> tuple[list[WrittenFile], pa.Table, set[str]]:
        """Write what goes into new file groups of its own; returns the files, the rows left, and where deletes were."""
        operation = self.open_write.operation
        if not operation.begins_groups and not self._fills_files(rows):
            return [], rows, set()
        session = WriteSession(storage, self.options, in_task=True)
        table = TableFiles.now(session)
        one_a_key = combines(session.options, operation) and not table.generator().generates_keys
        if table.lookup.fixes_places or one_a_key:
            return [], rows, set()  # two tasks would both begin the file group of a bucket, or bring a row of one key
        batch = keyed_batch(rows, self.schema, table.generator(), session.rules)
        if operation is Operation.BULK_INSERT:
            batch = sorted_for_bulk_insert(batch, session.options)
        batch = batch if self.defaults is None else self.defaults.given_to(batch)
        plan = plan_inserts(batch, {}, FileSizing.of(session, table.snapshot.timeline, operation, into_bases=True))
        writers = FileWriters.of(session, table, self.open_write, self.schema)
        # Tasks count in steps, so that no two files of a write share the first number of their token.
        files = execute_plan(plan, batch, writers, session.engine, WriteToken((task << _TASK_BITS) + number, attempt))
        paths = [path for file in files for path in file.paths]
        refuse_when_over(storage, table.snapshot.timeline.folder, self.open_write, paths)
        return files, rows.slice(0, 0), batch.partitions_of_deletes()

    def _fills_files(self, rows: pa.Table) -> bool:
        """Whether an insert's rows are enough for a file, and may be written before anybody has looked for their keys."""
        operation, options = self.open_write.operation, self.options
        if operation is not Operation.INSERT or duplicate_policy(options, operation) is not DuplicatePolicy.NONE:
            return False
        return bool(rows.nbytes >= options.get(keys.MAX_FILE_SIZE))

    def _stage(self, storage: Storage, rows: pa.Table, task: int, attempt: int) -> str:
        path = join(staging_folder(self.open_write.instant), f"{task}-{attempt}.arrow")
        storage.put(path, encode_table(rows))
        return path

    # The commit

    def commit(self, messages: Sequence[bytes]) -> CommitReport:
        """Settle staged rows, delete what failed tasks left, and publish.

        Args:
            messages: What `write` returned, of the successful attempts.

        Raises:
            HudiError: Nothing was published; call `abort`.
        """
        storage = metered(self._storage(), self.options)  # what tasks do stands in the report
        mark = storage.log.mark()
        results: list[TaskResult] = [pickle.loads(message) for message in messages if message]
        session = WriteSession(storage, self.options)
        report = run_write(session, partial(self._settled_and_published, results))
        return replace(report, rolled_back=self.open_write.rolled_back, requests=session.requests_since(mark))

    def _settled_and_published(self, results: Sequence[TaskResult], session: WriteSession) -> CommitReport:
        heartbeat = Heartbeat(session.storage, self.open_write.instant)
        with heartbeat.beating(beat_s(self.options)):
            staged = self._staged(session, results)
            rows = pa.concat_tables(staged) if staged else None
            report = until_no_conflict(self._publish)(session, results, rows, Timings())
            if report.instant != self.open_write.instant:
                self.abort()  # published at another instant, or a batch of a stream that was in the table already
        with contextlib.suppress(StorageError):
            # Once more: the beat may have gone on for a moment after the write was published.
            heartbeat.stop()
        return report

    def _staged(self, session: WriteSession, results: Sequence[TaskResult]) -> list[pa.Table]:
        try:
            return [decode_table(session.storage.read(result.staged)) for result in results if result.staged is not None]
        except NotFound as error:
            raise CommitError(
                f"instant {self.open_write.instant} was taken for dead, and its staged rows ({error.path}) are gone",
                "Nothing was published; run the write again.",
            ) from error

    def _publish(
        self, session: WriteSession, results: Sequence[TaskResult], rows: pa.Table | None, timings: Timings
    ) -> CommitReport:
        """Settle and publish, once. When others completed writes with later instants, staged rows move to a new instant.

        Readers take the file of the latest instant in each file group: one of our instant would be hidden by a younger one.
        """
        table = TableFiles.now(session)
        self._refuse_after_an_alter(table)
        write = self.open_write
        if (
            any(result.files for result in results)
            or rows is None
            or not any(i.time > write.instant for i in table.snapshot.timeline.writes)
        ):
            # Staged rows are looked up and merged now, so the write knows everything that is completed now.
            write = replace(write, seen=frozenset(table.snapshot.timeline.completion_times))
            return self._publish_at(write, session, table, results, rows, timings)
        with session.coordinator.writing(write.operation, table.snapshot.timeline) as (renewed, begun):
            return self._publish_at(renewed, session, TableFiles.at(session, begun), results, rows, timings)

    def _refuse_after_an_alter(self, table: TableFiles) -> None:
        """The tasks wrote under the names of before, which from the ALTER on mean other columns, or none."""
        for instant in table.snapshot.timeline.writes:
            fresh = instant.time not in self.open_write.seen and table.snapshot.history is not None
            if fresh and table.snapshot.timeline.metadata(instant).get("operationType") == Operation.ALTER_SCHEMA.value:
                why = f"the table's columns were altered at {instant.time}, while rows with the columns of before were written"
                raise CommitError(why, "Run the write again.")

    def _publish_at(
        self,
        write: OpenWrite,
        session: WriteSession,
        table: TableFiles,
        results: Sequence[TaskResult],
        rows: pa.Table | None,
        timings: Timings,
    ) -> CommitReport:
        files = [file for result in results for file in result.files]
        own = {file.partition_path for file in files}.union(*(result.emptied for result in results))
        outcome = self._settle(write, session, table, own, rows, timings)
        outcome = replace(outcome, files=[*files, *outcome.files])
        delete_strays(session.storage, write.instant, outcome.files)
        has_nothing = rows is None and not outcome.files and not outcome.replaced
        if has_nothing and not commits_no_rows(session, write.operation):
            return nothing_left(session, write.operation, NO_ROWS, write)
        # Other writers may have added columns since the write began.
        return publish(session, table, write, table.evolve(self.schema).schema, outcome, timings)

    def _settle(
        self,
        write: OpenWrite,
        session: WriteSession,
        table: TableFiles,
        own: Collection[str],
        rows: pa.Table | None,
        timings: Timings,
    ) -> WriteResult:
        operation = write.operation
        if rows is None and operation is Operation.DELETE_PARTITION:
            rows = no_rows(self.schema)  # the options may name partitions
        if rows is not None:
            prepared = prepare(table, session, operation, rows)
            # After the numbers of all tasks, and of earlier attempts.
            first = _FIRST_OF_COMMIT + (session.attempt << _TASK_BITS)
            return write_batch(session, table, write, prepared, timings, first_task=first)
        if operation.overwrites:
            touched = overwritten(session, table.snapshot, operation, own)
            return WriteResult((), replaced_by(table.snapshot, operation, touched), frozenset(touched))
        return WriteResult((), {}, frozenset())

    def abort(self) -> None:
        """Roll the write back unless it is published already. Never raises: the next writer finishes what is left."""
        storage = self._storage()
        try:
            WriteSession(storage, self.options).coordinator.abort(self.open_write)
        except Exception as error:
            warnings.warn(
                f"instant {self.open_write.instant} is left to the next writer: {hidden(str(error))}", HudiWarning, stacklevel=2
            )
