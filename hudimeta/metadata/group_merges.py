"""The next base files of file groups of the metadata table: logs merged into what there was, one task a file group.

Tasks that make files give their bytes back, for who brings them on their way before anybody may see them. Tasks that put
them write where they run, and give back a write stat each. They may run twice: the same file gets the same bytes under the same
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hudimeta.engine import Engine, LocalEngine
from hudimeta.formats.avro.commit_metadata import write_stat
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import files
from hudimeta.metadata.group_files import FileGroup
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.metadata.record import layout_of, schema_text
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.writer import WRITE_TOKEN, encode_base
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import engine_of_files, reads_ahead

__all__ = ["MergedGroup", "NamedGroup", "merge_and_put", "merge_in_memory", "stored_size", "write_base"]

_HELD_BYTES = 512 << 20
"""Of the stored files of groups that threads of one process merge at a time; each is held once more as the new base file."""
_IN_TURN_BYTES = 4 << 20
"""Nearby groups of so few bytes are merged sooner than threads wake up."""

NamedGroup: TypeAlias = tuple[str, FileGroup]
"""A file group with the metadata partition that it belongs to."""


@dataclass(frozen=True)
class MergedGroup:
    """The next base file of a file group, not written yet.

    Attributes:
        stat: Its write stat, which has its path below the metadata table.
        data: Its bytes.
    """

    stat: Mapping[str, Any]
    data: bytes


@dataclass(frozen=True)
class _Merge:
    """Makes the next base file of a file group, in this process or on an executor.

    Attributes:
        table: The metadata table whose logs are merged.
        instant: Of the compaction.
        version: Of the data table.
    """

    table: MetadataTable
    instant: str
    version: int

    def __call__(self, one: NamedGroup) -> MergedGroup:
        partition, group = one
        layout = layout_of(schema_text(self.version))
        return _merged(self.instant, self.version, one, self.table.group_pieces(partition, group, layout))


@dataclass(frozen=True)
class _Put:
    """Makes and writes it; `storage` is rooted at the data table."""

    storage: Storage
    merge: _Merge

    def __call__(self, one: NamedGroup) -> Mapping[str, Any]:
        merged = self.merge(one)
        self.storage.sub(METADATA_ROOT).put(merged.stat["path"], merged.data)
        return merged.stat


def merge_in_memory(
    storage: Storage, table: MetadataTable, instant: str, version: int, groups: Sequence[NamedGroup]
) -> list[MergedGroup]:
    """The next base files of some file groups, all of them in memory, by threads of this process.

    Args:
        storage: Rooted at the data table.
        table: The metadata table.
        instant: Of the compaction.
        version: Of the data table.
        groups: File groups of few bytes in all.
    """
    return _engine(LocalEngine(), storage, groups).map(_Merge(table, instant, version), groups)


def merge_and_put(
    engine: Engine, storage: Storage, table: MetadataTable, instant: str, version: int, groups: Sequence[NamedGroup]
) -> list[Mapping[str, Any]]:
    """Make and write the next base files of some file groups; returns their write stats.

    Args:
        engine: Where large ones are merged. That of the listing of files is merged here.
        storage: Rooted at the data table.
        table: The metadata table.
        instant: Of the compaction, which has been announced.
        version: Of the data table.
        groups: The file groups.
    """
    task = _Put(storage, _Merge(table, instant, version))
    here = [one for one in groups if one[0] == files.PARTITION]
    others = [one for one in groups if one[0] != files.PARTITION]
    return [*map(task, here), *_engine(engine, storage, others).map(task, others)]


def stored_size(group: FileGroup) -> int:
    """Bytes of the files of a file group, as far as they are known."""
    return sum(file.size or 0 for file in (group.base, *group.logs) if file is not None)


def _engine(engine: Engine, storage: Storage, groups: Sequence[NamedGroup]) -> Engine:
    """The engine for merging file groups: of a process not more at a time than its memory should hold."""
    sizes = [stored_size(group) for _, group in groups]
    chosen = engine_of_files(engine, storage, sizes)
    if not isinstance(chosen, LocalEngine):
        return chosen
    if not reads_ahead(storage) and sum(sizes) <= _IN_TURN_BYTES:
        return LocalEngine(1)
    return LocalEngine(max(1, min(chosen.workers, _HELD_BYTES // max([1, *sizes]))))


def write_base(
    inner: Storage, instant: str, version: int, partition: str, group: FileGroup, records: KeyValues
) -> Mapping[str, Any]:
    """Write the next base file of a file group, whatever it held; returns its write stat.

    Args:
        inner: Rooted at the metadata table.
        instant: Of the compaction.
        version: Of the data table.
        partition: Metadata partition of the file group.
        group: The file group.
        records: Everything that it holds from then on, sorted by key.
    """
    merged = _merged(instant, version, (partition, group), [records])
    inner.put(merged.stat["path"], merged.data)
    return merged.stat


def _merged(instant: str, version: int, one: NamedGroup, pieces: Iterable[KeyValues]) -> MergedGroup:
    partition, group = one
    name = f"{group.file_id}_{WRITE_TOKEN}_{instant}.hfile"
    data, records = encode_base(version, name, pieces)
    facts: dict[str, Any] = {
        "fileId": group.file_id,
        "path": join(partition, name),
        "partitionPath": partition,
        "fileSizeInBytes": len(data),
        "numWrites": records,
        "totalLogFilesCompacted": len(group.logs),
        "totalLogRecords": records,
    }
    if group.base is not None:
        facts |= {"prevCommit": group.base.instant, "prevBaseFile": group.base.path.rpartition("/")[2]}
    return MergedGroup(write_stat(**facts), data)
