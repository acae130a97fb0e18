"""A table laid open for the invariants: its timeline, its metadata table and everything that lies on storage, read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.cached import cached_property
from hudimeta.commit.restoring import pending_restores
from hudimeta.config import OPTIONS
from hudimeta.metadata import MetadataTable
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, FileInfo, Storage, join
from hudimeta.table import properties as table_properties
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.slices import build_slices
from hudimeta.table.visibility import Visibility
from hudimeta.timeline import Timeline
from hudimeta.timeline.clean_record import being_cleaned
from hudimeta.timeline.history import decode_manifest, is_history_file, is_manifest
from hudimeta.timeline.naming import LAYOUT_V1, parse_instant_name
from hudimeta.types import Action, Instant

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DataFile", "Inspection"]

_HUDI_FOLDER = ".hoodie"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base or log file found by listing storage: partition path, name, size, and the instant that its name states."""

    partition_path: str
    name: str
    size: int
    instant: str

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join(self.partition_path, self.name)


class Inspection:
    """One look at a table. Make a new one after a change.

    Args:
        storage: Rooted at the table.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.properties = table_properties.load(storage)
        self.timeline: Timeline = self.properties.load_timeline(storage)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The same moment for readers, who trust every index here: whether they may is what is checked."""
        options = OPTIONS.read({"hudimeta.index.trust": "true"})
        return Snapshot(CountingStorage(self.storage), self.properties, self.timeline, options)

    @cached_property
    def metadata(self) -> MetadataTable | None:
        """The metadata table, None for a table without one, and for one that nobody asks: a restore is not finished."""
        if not self.properties.has_metadata_table or pending_restores(self.timeline):
            return None
        return MetadataTable.open(self.storage, self.properties, self.timeline)

    @cached_property
    def everything(self) -> list[FileInfo]:
        """Every file and folder below the table."""
        return list(self._walk(""))

    def _walk(self, folder: str) -> Iterator[FileInfo]:
        for entry in self.storage.list(folder):
            yield entry
            if entry.is_folder:
                yield from self._walk(entry.path)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Size of every file by path."""
        return {entry.path: entry.size for entry in self.everything if not entry.is_folder}

    @cached_property
    def data_files(self) -> list[DataFile]:
        """Base and log files in the partitions, whoever wrote them."""
        found = []
        for path, size in self.sizes.items():
            folder, _, name = path.rpartition("/")
            parsed = parse_base_file(name) or parse_log_file(name)
            if parsed is not None and path.partition("/")[0] != _HUDI_FOLDER:
                found.append(DataFile(folder, name, size, parsed.instant))
        return found

    @cached_property
    def foreign_files(self) -> list[str]:
        """Files outside `.hoodie` that are neither data nor partition metafiles, nor Hadoop's checksums of either."""
        known = {file.path for file in self.data_files}
        known |= {join(file.partition_path, f".{file.name}.crc") for file in self.data_files}
        return sorted(
            path
            for path in self.sizes
            if path.partition("/")[0] != _HUDI_FOLDER
            and path not in known
            and not path.rpartition("/")[2].startswith((PARTITION_METAFILE, f".{PARTITION_METAFILE}"))
        )

    @cached_property
    def unnamed_history(self) -> list[str]:
        """Files in the histories of both timelines that no manifest names."""
        wrong: list[str] = []
        inner = [] if self.metadata is None else [(METADATA_ROOT, self.metadata.timeline.history)]
        for root, history in [("", self.timeline.history), *inner]:
            folder = join(root, history.folder)
            names = {path.rpartition("/")[2]: path for path in self.sizes if path.startswith(folder + "/")}
            manifests = [name for name in names if is_manifest(name)]
            entries = [entry for name in manifests for entry in decode_manifest(self.storage.read(names[name]), name)]
            files = {name for name in names if is_history_file(name)} - {entry.name for entry in entries}
            wrong += [names[name] for name in sorted(files)]
        return wrong

    @cached_property
    def unknown_files(self) -> list[str]:
        """Files of the table's own timelines whose names say nothing: neither of an instant nor of a history."""
        timelines = [("", self.timeline)] + ([] if self.metadata is None else [(METADATA_ROOT, self.metadata.timeline)])
        return sorted(
            path
            for folder in (join(root, timeline.folder) for root, timeline in timelines if timeline.layout > LAYOUT_V1)
            for path in self.sizes
            if path.rpartition("/")[0] == folder
            and parse_instant_name(path.rpartition("/")[2]) is None
            and not path.endswith(".crc")
        )

    @cached_property
    def metadata_files(self) -> list[DataFile]:
        """Base and log files of the metadata table; partition paths are relative to it."""
        found = []
        for path, size in self.sizes.items():
            if path.startswith(METADATA_ROOT + "/") and not path.startswith(METADATA_ROOT + "/.hoodie/"):
                folder, _, name = path[len(METADATA_ROOT) + 1 :].rpartition("/")
                parsed = parse_base_file(name) or parse_log_file(name)
                if parsed is not None:
                    found.append(DataFile(folder, name, size, parsed.instant))
        return found

    @cached_property
    def stats(self) -> list[tuple[Instant, str, dict[str, Any]]]:
        """Every write stat of the completed writes on the active timeline: (instant, partition path, stat)."""
        self.timeline.prefetch(self.timeline.writes)
        return [
            (instant, partition, stat)
            for instant in self.timeline.writes
            for partition, stats in self.timeline.metadata(instant)["partitionToWriteStats"].items()
            for stat in stats
        ]

    @cached_property
    def being_cleaned(self) -> set[str]:
        """Paths that pending cleans remove: each may be there, or not any more."""
        return {join(partition, name) for partition, name in being_cleaned(self.timeline)}

    @cached_property
    def cleaned(self) -> set[str]:
        """Paths that completed cleans removed, or that a pending one may have."""
        gone = set(self.being_cleaned)
        for instant in self.timeline.completed:
            if instant.action is Action.CLEAN:
                for partition, part in (self.timeline.metadata(instant).get("partitionMetadata") or {}).items():
                    gone |= {join(partition, path.rpartition("/")[2]) for path in part["successDeleteFiles"] or ()}
        return gone

    def is_committed(self, file: DataFile) -> bool:
        """True when the instant in the file's name is completed, here or in the history."""
        return self.timeline.is_committed(file.instant)

    @cached_property
    def visibility(self) -> Visibility:
        """What the timeline says of files, for the newest moment."""
        return Visibility.of(self.timeline)

    @cached_property
    def slices(self) -> pa.Table:
        """The newest file slices as the metadata table (without one, a listing) gives them."""
        return build_slices(self.listing, self.visibility)

    @cached_property
    def listing(self) -> pa.Table:
        """partition_path, name, size of all files, from the metadata table where there is one."""
        if self.metadata is not None:
            return self.metadata.files()
        return self.storage_listing

    @cached_property
    def storage_listing(self) -> pa.Table:
        """partition_path, name, size of all data files on storage."""
        import pyarrow as pa

        text = pa.string()
        files = self.data_files
        columns = [pa.array([f.partition_path for f in files], text), pa.array([f.name for f in files], text)]
        return pa.table([*columns, pa.array([f.size for f in files], pa.int64())], names=["partition_path", "name", "size"])
