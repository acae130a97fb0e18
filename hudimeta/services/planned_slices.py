"""What the runs of planned services share: the slices that a plan names, read whole at the moment of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.markers import files_of_write, has_markers
from hudimeta.commit.report import CommitReport
from hudimeta.commit.restoring import files_of_instants
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.formats.base_file import open_base_file
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.redaction import without_user
from hudimeta.schema import SchemaHistory, with_meta_columns
from hudimeta.slices.read_task import MERGE_OPTIONS, ReadTask, VisibleInstants, storage_options_of
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import at_once, delete_files

__all__ = ["columns_at", "reading", "remove_leftovers", "report_of", "stored_columns", "with_sizes"]


def remove_leftovers(session: WriteSession, instant: str) -> None:
    """Delete the files of a run that died: those that their markers name, or storage where not all markers are there."""
    paths = files_of_write(session.storage, instant)
    if paths is None and has_markers(session.storage, instant):
        found = files_of_instants(session.storage, [instant])
        folders = found["partition_path"].to_pylist()
        paths = [join(folder, name) for folder, name in zip(folders, found["name"].to_pylist(), strict=True)]
    delete_files(session.storage, paths or ())


def columns_at(session: WriteSession, snapshot: Snapshot, instant: str) -> tuple[pa.Schema, SchemaHistory | None]:
    """The table's columns and their history as they were at an instant.

    Readers take the names of a base file for those that were valid at its instant: where the table was altered after the
    service had been planned, its files must not have the names of today.
    """
    if snapshot.history is None or snapshot.history.at(instant) is snapshot.history.latest:
        return snapshot.file_schema, snapshot.history
    then = snapshot.history.until(instant)
    gone = session.properties.partition_fields if session.properties.drop_partition_columns else ()
    return pa.schema([f for f in then.latest.arrow if f.name not in gone]), then


def stored_columns(storage: Storage, slices: Sequence[FileSlice]) -> list[pa.Schema | None]:
    """The columns of each slice's base file, by its footer; None without one. Footers are read at once."""

    def columns_of(one: FileSlice) -> pa.Schema | None:
        if not one.base_file:
            return None
        with open_base_file(storage, join(one.partition_path, one.base_file), one.base_size) as file:
            return file.schema

    return at_once(columns_of, slices, storage)


def reading(session: WriteSession, snapshot: Snapshot, data: pa.Schema, history: SchemaHistory | None) -> ReadTask:
    """How whole slices are read for files with these data columns."""
    schema = with_meta_columns(data)
    return ReadTask(
        without_user(session.storage.root),
        dict(session.properties),
        schema,
        data,
        tuple(schema.names),
        None,
        VisibleInstants.of(snapshot.timeline),
        history=history,
        storage_options=storage_options_of(session.options.texts),
        merge_options={k: v for k, v in session.options.texts.items() if k in MERGE_OPTIONS},
        as_stored=True,
    )


def with_sizes(snapshot: Snapshot, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """The slices with the sizes of their files, of which a plan says nothing: damage would be permanent here."""
    listed = snapshot.files(sorted({one.partition_path for one in slices}))
    names = zip(listed.column("partition_path").to_pylist(), listed.column("name").to_pylist(), strict=True)
    sizes = dict(zip(names, listed.column("size").to_pylist(), strict=True))
    found = []
    for one in slices:
        base, *logs = (sizes.get((one.partition_path, name), 0) for name in (one.base_file, *one.log_files))
        found.append(replace(one, base_size=base, log_sizes=tuple(logs)))
    return found


def report_of(
    session: WriteSession, write: OpenWrite, completion: str, files: Sequence[WrittenFile], timings: Timings, **figures: Any
) -> CommitReport:
    """The report of a run that was published.

    Args:
        session: The table.
        write: The run.
        completion: When it was completed.
        files: That it wrote.
        timings: Of its phases.
        figures: What else its report says; notes come before those of the publication.
    """
    return CommitReport(
        write.instant,
        completion,
        write.operation.value,
        files_written=len(files),
        partitions=len({file.partition_path for file in files}),
        bytes_written=sum(file.size for file in files),
        column_chunks_kept=sum(file.chunks_kept for file in files),
        compacted_metadata=session.coordinator.compacted_metadata,
        seconds=timings.seconds,
        notes=(*figures.pop("notes", ()), *session.coordinator.notes),
        **figures,
    )
