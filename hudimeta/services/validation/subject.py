"""The table that is validated: one snapshot of it, what storage holds, and the rows of its files and slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.engine import Engine
from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.keys import KeyGenerator
from hudimeta.metadata import MetadataTable
from hudimeta.read.request import ScanRequest
from hudimeta.read.scan import Scan
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.read_task import ReadTask
from hudimeta.slices.reader import SliceReader
from hudimeta.slices.single_files import SingleFile, parts_of
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["Subject", "Unreadable"]

R = TypeVar("R")

_PARTITION_FIELDS = "hoodie.table.partition.fields"


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read, which is a finding and no reason to stop."""

    what: str


class Subject:
    """A table while it is validated.

    Args:
        snapshot: The newest moment of the table.
        metadata: Its metadata table.
        engine: Runs work file by file.
    """

    def __init__(self, snapshot: Snapshot, metadata: MetadataTable, engine: Engine) -> None:
        self.snapshot, self.metadata, self.engine = snapshot, metadata, engine

    @cached_property
    def slices(self) -> list[FileSlice]:
        """The latest slices, as the metadata table lists them."""
        return list(slices_of(self.snapshot.slices()))

    @cached_property
    def parts(self) -> list[SingleFile]:
        """Every file of the latest slices; files of change images are none."""
        return [part for one in self.slices for part in parts_of(one)]

    def map(self, task: Callable[[SingleFile], R], parts: Sequence[SingleFile]) -> list[R | Unreadable]:
        """Run a task for each file; a file that is gone or damaged gives `Unreadable`."""

        def guarded(part: SingleFile) -> R | Unreadable:
            try:
                return task(part)
            except (NotFound, CorruptFileError) as error:
                return Unreadable(error.message)

        return self.engine.map(guarded, parts)

    def task(self, columns: Sequence[str]) -> ReadTask:
        """How rows with these top-level columns are read: as files hold them, since that is what indexes know.

        A reader shows of a partition column what the path says, even of a row that stayed there when its column changed.
        """
        task = Scan(self.snapshot, ScanRequest(columns=list(dict.fromkeys(columns)))).task
        if self.snapshot.properties.drop_partition_columns or self.virtual_keys:
            return task
        return replace(task, properties={k: v for k, v in task.properties.items() if k != _PARTITION_FIELDS})

    def rows(self, file_slice: FileSlice, task: ReadTask) -> Iterator[pa.Table]:
        """Rows of a slice, logs merged, in pieces."""
        return SliceReader(task, self.snapshot.storage).tables(file_slice)

    # Keys

    @property
    def virtual_keys(self) -> bool:
        """True when record keys are not stored but computed."""
        return not self.snapshot.properties.populate_meta

    @cached_property
    def key_columns(self) -> tuple[str, ...]:
        """Columns to read for a row's key."""
        if not self.virtual_keys:
            return (KEY_COLUMN,)
        return tuple(dict.fromkeys(name.split(".")[0] for name in self.generator.record_fields))

    @cached_property
    def generator(self) -> KeyGenerator:
        """Computes keys that are not stored."""
        found = KeyGenerator.from_properties(self.snapshot.properties)
        return replace(found, complex_single_field_prefix=True) if found.lacks_prefix else found

    def keys(self, rows: pa.Table) -> pa.ChunkedArray:
        """Record keys of rows that have `key_columns`."""
        return pa.chunked_array([self.generator.record_keys(rows)]) if self.virtual_keys else rows.column(KEY_COLUMN)
