"""Pieces of a write whose file groups others changed meanwhile: kept, written again, or a conflict.

    only adds rows                     written again as a file group of its own; its first file is removed
    adds to a log, as the others did   kept when the rows differ: readers order log files by completion; so of new rows alone
    changes rows                       written again over the others' base file when the rows differ, and this write's instant
                                       is later than theirs: of two base files readers take that of the later instant
    all else                           a conflict; the whole write is tried again from its input

Rows of the others are found by what their files say: keys in their log files, commit times in their base file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.conflicts import TableChange, check_clusterings
from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.session import WriteSession
from hudimeta.errors import CommitConflict
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.slice_keys import touched_keys
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import join
from hudimeta.storage.at_once import delete_files
from hudimeta.table.file_names import parse_log_file
from hudimeta.types import FileGroupId
from hudimeta.write.execution import WrittenPieces
from hudimeta.write.operations import GroupRewrite, NewGroup
from hudimeta.write.write_result import WriteResult

__all__ = ["Rebase"]

_COMMIT_TIME = "_hoodie_commit_time"
_ALL_AGAIN = "other writers changed the same file groups, which tasks or portions had written: the whole write was tried again"


class Rebase:
    """Puts a write's files on top of what others did.

    Args:
        session: The table.
        now: The table with the others' commits.
        write: The write.
        outcome: What it wrote.
    """

    def __init__(self, session: WriteSession, now: Snapshot, write: OpenWrite, outcome: WriteResult) -> None:
        self._session, self._now, self._write, self._outcome = session, now, write, outcome

    def over(self, crossed: Mapping[FileGroupId, Sequence[TableChange]]) -> WriteResult:
        """What the write comes to; pieces that do not fit were written again, and their first files removed.

        Args:
            crossed: File groups that others changed, each with these changes; none where only a clustering is pending.

        Raises:
            CommitConflict: Rows are shared, or it cannot be known.
        """
        pieces = self._outcome.pieces
        if pieces is None:
            self._session.notes.append(_ALL_AGAIN)
        places = {} if pieces is None else _places(pieces)
        again: dict[int, GroupRewrite | NewGroup] = {}
        for group, changes in crossed.items():
            at = places.get(group)
            if pieces is None or at is None:
                raise self._conflict(group, changes)
            piece, files = pieces.pieces[at], pieces.files[at]
            if isinstance(piece, NewGroup):
                raise self._conflict(group, changes)
            if not len(piece.known) and not (piece.as_log and self._session.properties.populate_meta):
                again[at] = NewGroup(piece.partition_path, piece.inserted, as_log=piece.as_log)
                continue
            check_clusterings(self._now.timeline, self._write.operation.value, [group])
            if (other := self._beside(pieces, piece, files, changes)) is not None:
                again[at] = other
        if pieces is None or not again:
            return self._outcome
        return self._written_again(pieces, again)

    def _written_again(self, pieces: WrittenPieces, again: Mapping[int, GroupRewrite | NewGroup]) -> WriteResult:
        written = pieces.again(again)
        gone = {path for at in again for file in pieces.files[at] for path in file.paths}
        delete_files(self._session.storage, sorted(gone))
        files = [file for file in self._outcome.files if file.path not in gone]
        files += [file for at in again for file in written.files[at]]
        note = "other writers changed the same file groups, but not the same rows: {} of them written again"
        self._session.notes.append(note.format(len(again)))
        return replace(self._outcome, files=files, pieces=written)

    def _beside(
        self,
        pieces: WrittenPieces,
        piece: GroupRewrite,
        files: Sequence[WrittenFile],
        changes: Sequence[TableChange],
    ) -> GroupRewrite | None:
        """The piece over what others did, or None when it may stay as it is."""
        group = piece.group
        replaced = any(group in change.replaced or change.copies for change in changes)
        if replaced or pieces.batch.keys is None or not self._session.properties.populate_meta:
            raise self._conflict(group, changes)
        mine = pieces.batch.keys.take(pa.array(piece.known))
        theirs = [file for change in changes for file in change.files if file.group == group]
        logs = [file for file in theirs if parse_log_file(file.name) is not None]
        if len(logs) == len(theirs) and all(file.log_instant is not None for file in files):
            for file in logs:
                keys = touched_keys(self._session.storage, join(group.partition_path, file.name), file.size)
                self._refuse_shared(mine.filter(pc.is_in(mine, value_set=keys)), group, changes)
            return None
        return self._over_base(pieces, piece, mine, changes)

    def _over_base(
        self, pieces: WrittenPieces, piece: GroupRewrite, mine: pa.StringArray, changes: Sequence[TableChange]
    ) -> GroupRewrite:
        group, batch = piece.group, pieces.batch
        files = self._now.key_files([group.partition_path]).get(group.partition_path, ())
        base = next((file for file in files if file.file_id == group.file_id), None)
        if base is None or not base.name or base.logs or base.busy or base.newest_instant >= self._write.instant:
            raise self._conflict(group, changes)
        rows = pieces.writers.read_base(group.partition_path, base.name, base.size).rows
        keys = rows[KEY_COLUMN].combine_chunks().cast(pa.string())
        fresh = pa.array([i.time for i in self._now.timeline.writes if i.time not in self._write.seen], pa.string())
        changed = keys.filter(pc.is_in(rows[_COMMIT_TIME].combine_chunks().cast(pa.string()), value_set=fresh))
        self._refuse_shared(mine.filter(pc.is_in(mine, value_set=changed)), group, changes)
        assert batch.keys is not None
        there = pa.concat_arrays([batch.keys.take(pa.array(piece.changed)), batch.keys.take(pa.array(piece.removed))])
        self._refuse_shared(there.filter(pc.invert(pc.is_in(there, value_set=keys))), group, changes)
        return replace(piece, base=base)

    def _refuse_shared(self, keys: pa.StringArray, group: FileGroupId, changes: Sequence[TableChange]) -> None:
        if len(keys):
            raise self._conflict(group, changes, len(keys.unique()), keys[0].as_py())

    def _conflict(self, group: FileGroupId, changes: Sequence[TableChange], keys: int = 0, sample: str = "") -> CommitConflict:
        check_clusterings(self._now.timeline, self._write.operation.value, [group])
        winner = changes[-1].time
        place = (group.partition_path, group.file_id)
        return CommitConflict(self._write.operation.value, [place], winner, keys=keys, sample=sample)


def _places(pieces: WrittenPieces) -> dict[FileGroupId, int]:
    """The piece of each file group."""
    return {FileGroupId(f.partition_path, f.file_id): at for at, files in enumerate(pieces.files) for f in files}
