"""The keys that a write adds to the table, compared with those that other writes added meanwhile.

Two writes that add different keys do not meet, however many partitions they share. What this write adds is in memory where it
placed its rows itself; where tasks or portions did, its files tell. What the others added, the record index tells where the
write looked its keys up there, and else the key columns of the files that they wrote: of no other file anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.conflicts import ChangedFile
from hudimeta.errors import HudiError
from hudimeta.formats.plain_arrays import array_of
from hudimeta.indexes.tagging import IndexKind
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import answers
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage.at_once import at_once
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.key_file import KeyFile
from hudimeta.table.stated_keys import Stated, none_stated, stated
from hudimeta.types import FileGroupId
from hudimeta.write.execution import WrittenPieces
from hudimeta.write.operations import NewGroup
from hudimeta.write.table_files import TableFiles

__all__ = ["AddedKeys", "SharedKeys", "UnknownKeys"]

_POINT_LOOK_UPS = 50_000
"""Of more keys than these the files are asked rather than the record index, whose every key is a look-up."""


class UnknownKeys(Exception):
    """What another write added cannot be known; says why."""


@dataclass(frozen=True)
class SharedKeys:
    """Keys that both add. Attributes: count: How many. sample: One of them. group: Where the other write has it."""

    count: int
    sample: str
    group: FileGroupId


@dataclass(frozen=True)
class AddedKeys:
    """The keys that a write adds.

    Attributes:
        by_partition: The keys by partition path; None where only the files know them.
        files: Its files.
        own: By file group that it changes, the keys of rows that it knows to be there.
        anywhere: A key is unique in the table; else in its partition.
    """

    by_partition: Mapping[str, pa.StringArray] | None
    files: Sequence[WrittenFile]
    own: Mapping[FileGroupId, pa.StringArray] = field(default_factory=dict)
    anywhere: bool = False

    @classmethod
    def of(cls, pieces: WrittenPieces | None, files: Sequence[WrittenFile], *, anywhere: bool) -> AddedKeys:
        """The keys of a write.

        Args:
            pieces: What it wrote from memory; None where tasks or portions wrote.
            files: All its files.
            anywhere: See above.
        """
        if pieces is None or pieces.batch.keys is None or len(files) > len(pieces.all_files):
            return cls(None, files, anywhere=anywhere)
        added: dict[str, list[pa.StringArray]] = {}
        own: dict[FileGroupId, pa.StringArray] = {}
        for piece in pieces.pieces:
            rows = piece.rows if isinstance(piece, NewGroup) else piece.inserted
            added.setdefault(piece.partition_path, []).append(pieces.batch.keys.take(array_of(rows)))
            if not isinstance(piece, NewGroup):
                own[piece.group] = pieces.batch.keys.take(array_of(piece.known))
        return cls({path: pa.concat_arrays(found) for path, found in added.items()}, files, own, anywhere)

    def stated(self) -> dict[str, str]:
        """What a commit states of them for the writers beside it; see `table.stated_keys`."""
        return {} if self.by_partition is None else stated(Stated.ADDED, [*self.by_partition.values()])

    def none_stated(self, commits: Iterable[Mapping[str, Any]]) -> bool:
        """True when commits state that they added none of them, wherever; False also where that cannot be known."""
        return self.by_partition is not None and none_stated(Stated.ADDED, [*self.by_partition.values()], commits)

    def shared_with(
        self, theirs: Sequence[ChangedFile], table: TableFiles, touched: frozenset[FileGroupId]
    ) -> SharedKeys | None:
        """Keys that other writes added as well; None for none.

        Args:
            theirs: Files in which other writes added rows.
            table: The table with these writes.
            touched: File groups that they changed.

        Raises:
            UnknownKeys: Their keys cannot be known.
        """
        count = None if self.by_partition is None else sum(map(len, self.by_partition.values()))
        by_index = table.lookup.choice.kind is IndexKind.RECORD_INDEX
        try:
            if by_index and count is not None and count <= _POINT_LOOK_UPS:
                return self._in_index(table.snapshot, touched)
            return self._in_files(theirs, table)
        except HudiError as error:  # such as a file that was superseded and cleaned already
            raise UnknownKeys(str(error)) from error

    def _in_index(self, snapshot: Snapshot, touched: frozenset[FileGroupId]) -> SharedKeys | None:
        assert self.by_partition is not None
        assert snapshot.metadata is not None
        changed = {FileGroupId(file.partition_path, file.file_id) for file in self.files if not file.is_new_group}
        mine = pa.concat_arrays([_none(), *self.by_partition.values()]).unique()
        found = answers.record_locations(snapshot.metadata, mine)
        texts = (found[name].cast(pa.string()).to_pylist() for name in ("partition_path", "file_id", "record_key"))
        rows: dict[FileGroupId, list[str]] = {}
        for path, file_id, key in zip(*texts, strict=True):
            rows.setdefault(FileGroupId(path, file_id), []).append(key)
        # In a file group that this write changed, and nobody else, the key is where the write found it: it moves from there.
        places = [(group, array_of(keys)) for group, keys in rows.items() if group in touched or group not in changed]
        return self._common(places)

    def _in_files(self, theirs: Sequence[ChangedFile], table: TableFiles) -> SharedKeys | None:
        read = table.key_reader(alive=False)
        if self.by_partition is not None:
            return self._common(_keys_of_files(theirs, lambda file: read(file, self._in(file.partition_path))))
        places = _keys_of_files(theirs, lambda file: read(file, None))
        for file in self.files:
            rivals = [(group, keys) for group, keys in places if self.anywhere or group.partition_path == file.partition_path]
            if not file.inserted or not rivals:
                continue
            keys = read(_written(file), pa.concat_arrays([keys for _, keys in rivals]))
            one = replace(self, by_partition={file.partition_path: _none() if keys is None else keys})
            if (found := one._common(rivals)) is not None:
                return found
        return None

    def _in(self, partition_path: str) -> pa.StringArray:
        """The keys that no other write may have added in a partition."""
        assert self.by_partition is not None
        if self.anywhere:
            return pa.concat_arrays([_none(), *self.by_partition.values()])
        return self.by_partition.get(partition_path, _none())

    def _common(self, places: Iterable[tuple[FileGroupId, pa.StringArray]]) -> SharedKeys | None:
        found: list[tuple[FileGroupId, pa.StringArray]] = []
        for group, keys in places:
            both = keys.filter(pc.is_in(keys, value_set=self._in(group.partition_path)))
            if group in self.own:
                both = both.filter(pc.invert(pc.is_in(both, value_set=self.own[group])))
            if len(both):
                found.append((group, both.unique()))
        if not found:
            return None
        group, keys = found[0]
        return SharedKeys(sum(len(keys) for _, keys in found), keys[0].as_py(), group)


def _keys_of_files(
    files: Sequence[ChangedFile], read: Callable[[KeyFile], pa.StringArray | None]
) -> list[tuple[FileGroupId, pa.StringArray]]:
    """The keys of files that commits name; of the base files of one file group only of the newest, which has them all."""
    newest: dict[tuple[FileGroupId, str], KeyFile] = {}
    for file in files:
        group, base, log = file.group, parse_base_file(file.name), parse_log_file(file.name)
        if log is not None:
            logs = ((file.name,), False, (file.size,))
            newest[group, file.name] = KeyFile(group.partition_path, group.file_id, "", 0, None, None, *logs)
        elif base is None:
            raise UnknownKeys(f"{file.name!r} is no name of a base file or a log file")
        elif (group, "") not in newest or base.instant > newest[group, ""].newest_instant:
            newest[group, ""] = KeyFile(group.partition_path, group.file_id, file.name, file.size)
    keys = at_once(read, list(newest.values()))
    return [(group, found) for (group, _), found in zip(newest, keys, strict=True) if found is not None]


def _written(file: WrittenFile) -> KeyFile:
    """A file of the write itself."""
    if file.log_instant is None:
        return KeyFile(file.partition_path, file.file_id, file.name, file.size)
    return KeyFile(file.partition_path, file.file_id, "", 0, None, None, (file.name,), False, (file.size,))


def _none() -> pa.StringArray:
    return array_of([], pa.string())
