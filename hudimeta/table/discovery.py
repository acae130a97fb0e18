"""Finding partitions and files by listing storage: for tables without a metadata table, for rollback, and for its creation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudimeta.engine.machine import pool
from hudimeta.errors import CorruptFileError
from hudimeta.formats.plain_arrays import array_of, scalar_of, single_array
from hudimeta.storage import FileInfo, Storage
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.properties_file import PROPERTIES_PATH

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.timeline import Timeline

__all__ = [
    "PARTITION_METAFILE",
    "Found",
    "committed_files",
    "file_of_a_table",
    "find_files",
    "folders_with_files",
    "list_table",
    "partitions_on_storage",
]

PARTITION_METAFILE = ".hoodie_partition_metadata"
_HUDI_FOLDER = ".hoodie"
_PARALLEL_LISTS = 8


def partitions_on_storage(storage: Storage) -> list[str]:
    """Partition paths of a table, sorted: the folders that hold a partition metafile, of any form."""
    return sorted(folder for folder, entries in _walk(storage) if any(_is_metafile(e) for e in entries))


def folders_with_files(storage: Storage) -> list[tuple[str, list[FileInfo]]]:
    """Every folder that holds a file, metafiles included, with its files; sorted by path."""
    found = ((folder, [entry for entry in entries if not entry.is_folder]) for folder, entries in _walk(storage))
    return sorted((folder, files) for folder, files in found if files)


def list_table(storage: Storage) -> pa.Table:
    """All files of a table, as the metadata table would give them.

    Returns:
        partition_path string, name string, size int64. A folder that holds files but no partition metafile counts as a
        partition when no folder of the table has one (tables that other tools copied).
    """
    return _table(_split(storage)[0])


def file_of_a_table(storage: Storage) -> str | None:
    """A file in a folder, or in one below it, by which rows or a whole table are there already; None where there is none."""
    for folder, entries in _walk(storage):
        for entry in entries:
            properties = f"{entry.path}/{PROPERTIES_PATH.rpartition('/')[2]}"
            if folder and entry.is_folder and entry.name == _HUDI_FOLDER and storage.is_file(properties):
                return properties
            if not entry.is_folder and (parse_base_file(entry.name) or parse_log_file(entry.name)):
                return entry.path
    return None


@dataclass(frozen=True)
class Found:
    """What a listing of storage found for readers.

    Attributes:
        files: See `list_table`; those of `unmarked` as well, but none that another attempt at a task has left.
        unmarked: Partitions that lost their metafile: commits of the active timeline name files in them.
        passed: Other folders with names of data files, which do not count: copies, or partitions of archived commits.
    """

    files: pa.Table
    unmarked: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


def find_files(storage: Storage, timeline: Timeline) -> Found:
    """All files of a table that has no metadata table, for readers.

    Args:
        storage: Rooted at the table.
        timeline: Of the table; of its writes the metadata is read where a folder with data files has no metafile.

    Raises:
        CorruptFileError: A folder has the name of a data file.
    """
    from hudimeta.table.file_names import parse_base_file, parse_log_file
    from hudimeta.table.stated_sizes import without_other_attempts

    chosen, others = _split(storage)
    _refuse_folders(entry for _, entries in chosen for entry in entries if entry.is_folder)
    data = [(f, entries) for f, entries in others if any(parse_base_file(e.name) or parse_log_file(e.name) for e in entries)]
    if not data:
        return Found(without_other_attempts(_table(chosen), timeline))
    timeline.prefetch(timeline.writes)
    stated = {partition for i in timeline.writes for partition in timeline.metadata(i).get("partitionToWriteStats") or ()}
    unmarked = [(f, entries) for f, entries in data if f in stated]
    passed = tuple(sorted(f for f, _ in data if f not in stated))
    files = without_other_attempts(_table([*chosen, *unmarked]), timeline)
    return Found(files, tuple(sorted(f for f, _ in unmarked)), passed)


_Folders = list[tuple[str, list[FileInfo]]]


def _split(storage: Storage) -> tuple[_Folders, _Folders]:
    """The folders that are partitions, see `list_table`, and the others."""
    folders = list(_walk(storage))
    marked = {f for f, entries in folders if any(_is_metafile(e) for e in entries)}
    marked = marked or {f for f, entries in folders if any(not e.is_folder for e in entries)}
    return [one for one in folders if one[0] in marked], [one for one in folders if one[0] not in marked]


def _table(chosen: _Folders) -> pa.Table:
    import pyarrow as pa

    found = [
        (folder, entry.name, entry.size)
        for folder, entries in sorted(chosen)
        for entry in entries
        if not entry.is_folder and not _is_metafile(entry) and not entry.name.endswith(".crc")
    ]
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    return pa.table(
        [array_of(columns[0], pa.string()), array_of(columns[1], pa.string()), array_of(columns[2], pa.int64())],
        names=["partition_path", "name", "size"],
    )


def _refuse_folders(folders: Iterable[FileInfo]) -> None:
    """Whoever passed over a folder in place of a data file would show older versions of its rows, or none."""
    for folder in folders:
        if parse_base_file(folder.name) or parse_log_file(folder.name):
            raise CorruptFileError(folder.path, 0, "a file", "a folder", "Restore the file from a copy.")


def committed_files(listing: pa.Table, timeline: Timeline) -> pa.Table:
    """The files of a listing whose names bear a completed instant, with a size: an empty file is what a dead writer left."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from hudimeta.table.file_names import parse_names
    from hudimeta.table.text_arrays import instant_number

    parsed = parse_names(single_array(listing["name"]) if len(listing) else array_of([], pa.string()))
    # As numbers, in which instants of 14 digits and of 17 compare.
    done = np.array([instant_number(time) for time in timeline.completion_times], dtype=np.int64)
    committed = np.isin(parsed.instants, done)
    if timeline.first_active_write is not None:
        committed |= parsed.instants < instant_number(timeline.first_active_write)
    return listing.filter(pc.and_(array_of(parsed.valid & committed), pc.greater(listing["size"], scalar_of(0))))


def _walk(storage: Storage) -> Iterable[tuple[str, list[FileInfo]]]:
    """Every folder of the table with its entries; `.hoodie` is left out. Folders of one depth are listed side by side."""
    level = [""]
    with pool(_PARALLEL_LISTS, "list") as threads:
        while level:
            listings = list(zip(level, threads.map(storage.list, level), strict=True))
            yield from listings
            level = [
                entry.path
                for _, entries in listings
                for entry in entries
                if entry.is_folder and entry.path != _HUDI_FOLDER and not _is_metafile(entry)
            ]


def _is_metafile(entry: FileInfo) -> bool:
    """Its name is what counts: a partition does not go when something else stands there."""
    return entry.name.startswith(PARTITION_METAFILE)
