"""The files of slices one by one: what each holds for itself, whatever lies above or below it.

Indexes speak of files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.table.file_names import parse_base_file, parse_log_file

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.slices.read_task import ReadTask
    from hudimeta.storage import Storage
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import Timeline

__all__ = ["SingleFile", "file_part", "held_by", "parts_of", "rows_of", "task_for"]


@dataclass(frozen=True)
class SingleFile:
    """One file of a slice, readable alone.

    Attributes:
        name: Of the file.
        is_log: Whether it is a log file.
        alone: A slice of nothing but this file.
    """

    name: str
    is_log: bool
    alone: FileSlice

    @property
    def partition_path(self) -> str:
        """Where it lies."""
        return self.alone.partition_path

    @property
    def path(self) -> str:
        """Relative to the table."""
        return self.alone.base_path or self.alone.log_paths[0]


def parts_of(one: FileSlice) -> Iterator[SingleFile]:
    """The files of a slice; files of change images are none."""
    if one.base_file is not None:
        yield SingleFile(one.base_file, False, replace(one, log_files=(), log_sizes=()))
    for name, size in zip(one.log_files, one.log_sizes, strict=True):
        alone = replace(one, base_file=None, base_size=0, log_files=(name,), log_sizes=(size,))
        yield SingleFile(name, True, alone)


def file_part(partition_path: str, name: str, size: int) -> SingleFile:
    """A file by its name.

    Raises:
        ValueError: The name is neither that of a base file nor that of a log file.
    """
    base = parse_base_file(name)
    if base is not None:
        return SingleFile(name, False, FileSlice(partition_path, base.file_id, base.instant, name, size))
    log = parse_log_file(name)
    if log is None:
        raise ValueError(f"{name} is no file of a file slice")
    return SingleFile(name, True, FileSlice(partition_path, log.file_id, log.instant, None, 0, (name,), (size,)))


def rows_of(part: SingleFile, task: ReadTask, storage: Storage) -> Iterator[pa.Table]:
    """Rows of a file, in pieces; those of a log file are the newest of each key in it, deletes left out.

    Raises:
        CorruptFileError, NotFound, UnsupportedFeature: It cannot be read.
    """
    from hudimeta.slices.reader import SliceReader

    return SliceReader(task, storage).tables(part.alone)


def held_by(part: SingleFile, task: ReadTask, storage: Storage) -> Iterator[pa.Table]:
    """As `rows_of`, for what an index says of a file: with the rows of a log that later ones in it replace or delete.

    A log file of a table of version 6 has blocks of several writes, and who reads the table as of the first sees its rows.
    """
    from hudimeta.slices.reader import SliceReader

    reader = SliceReader(task, storage)
    return reader.logged(part.alone) if part.is_log else reader.tables(part.alone)


def task_for(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    columns: Sequence[str],
    also: Collection[str] = (),
) -> ReadTask:
    """How rows of a table's files are read, for whoever is about to commit.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        timeline: Of the table.
        columns: Top-level columns to return.
        also: Instants whose blocks count although they are not completed yet.
    """
    from hudimeta.config import OPTIONS
    from hudimeta.slices.read_task import task_at
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.storage import CountingStorage

    counting = storage if isinstance(storage, CountingStorage) else CountingStorage(storage)
    task = task_at(Snapshot(counting, properties, timeline, OPTIONS.read({})), tuple(dict.fromkeys(columns)))
    return replace(task, instants=replace(task.instants, completed=task.instants.completed | frozenset(also)))
