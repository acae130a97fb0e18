"""The record window of one write: opened as the write sees the table, and told of what the write did."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.errors import CommitConflict, HudiError
from hudimeta.formats.plain_arrays import numpy_of, single_array
from hudimeta.indexes.record_window.keep import add_changes, write_changes
from hudimeta.indexes.record_window.runs import Prints, RunStamp
from hudimeta.indexes.record_window.settings import WindowSettings
from hudimeta.indexes.record_window.window import OpenWindow, WindowTable, open_window
from hudimeta.indexes.tagging import Tagging
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import answers, column_stats
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.table.key_file import FilesOf
from hudimeta.timeline import Clock, SystemClock
from hudimeta.write.batch import KeyedBatch

if TYPE_CHECKING:
    from hudimeta.commit.session import WriteSession
    from hudimeta.write.table_files import TableFiles

__all__ = ["TableWindow"]

_Flags = np.ndarray[Any, Any]


class TableWindow:
    """See the module's head; it does nothing for a table without a record window.

    Args:
        session: The write.
        table: The table as it sees it.
        clock: The present.
    """

    def __init__(self, session: WriteSession, table: TableFiles, clock: Clock | None = None) -> None:
        self._session, self._table, self._clock = session, table, clock or SystemClock()
        self._seen: OpenWindow | None = None

    @cached_property
    def settings(self) -> WindowSettings | None:
        """Of the table's window; None where it has none. Raises ConfigError."""
        return WindowSettings.of(self._session.properties)

    def opened(self, files_of: FilesOf, asked: Sequence[str], *, anew: bool = False) -> OpenWindow:
        """Open it; see `open_window`.

        Args:
            files_of: The table's latest slices.
            asked: Partitions whose slices are wanted as well.
            anew: Believe nothing of what was kept.
        """
        assert self.settings is not None
        session, snapshot = self._session, self._table.snapshot
        table = WindowTable(
            session.storage,
            lambda: snapshot.partitions().to_pylist(),
            files_of,
            self._newest_days,
            self._table.key_reader(alive=True),
            session.engine.map,
            self._clock.now_ms(),
            keeps=not session.in_task,
        )
        self._seen = open_window(table, self.settings, asked, anew=anew)
        return self._seen

    def apart(self, batch: KeyedBatch, files_of: FilesOf) -> _Flags:
        """Rows of a write whose key is unique in their partition alone: neither the window has it nor the window's days.

        Args:
            batch: The rows.
            files_of: The table's latest slices.
        """
        none = np.zeros(len(batch), dtype=bool)
        if batch.keys is None:
            return none
        keys, pairs = (batch.names(whole_table=whole).dictionary_encode() for whole in (True, False))
        if len(keys.dictionary) == len(pairs.dictionary):
            return none  # no key comes in two partitions
        if batch.deleted.all():
            return ~none  # each names a row to look for in its partition as well
        window = self.opened(files_of, sorted(batch.partitions.unique().to_pylist()))
        codes = numpy_of(keys.indices)
        known = np.zeros(len(keys.dictionary), dtype=bool)
        known[codes[~self._is_older(batch, window)]] = True
        known[codes[window.keys.find(Prints.of(batch.keys))[0]]] = True
        unknown: _Flags = ~known[codes]
        return unknown

    def _is_older(self, batch: KeyedBatch, window: OpenWindow) -> _Flags:
        """Rows of days before the window."""
        column = window.settings.column
        if column is None:
            return numpy_of(window.are_before(batch.partitions)).astype(bool)
        if column not in batch.rows.column_names:
            return np.zeros(len(batch), dtype=bool)
        return numpy_of(window.is_before(_days_of(single_array(batch.rows[column])))).astype(bool)

    def settled(self, batch: KeyedBatch, tagging: Tagging, *, moves: bool) -> Tagging:
        """The places that count of keys which are in the window and in an older file of the row's partition.

        A delete is about both. Any other row changes the one in the window, or, where rows move, leaves it for the older one.

        Args:
            batch: The rows.
            tagging: All places of their keys; one of each row that was read from the table.
            moves: A row whose partition changed leaves its old partition.

        Raises:
            CommitConflict: Two rows are one key since another writer brought it into the window.
        """
        assert self._seen is not None
        row, inside = tagging.row, self._seen.groups
        within = np.array([(file.partition_path, file.file_id) in inside for file in tagging.files], dtype=bool)[tagging.file]
        beside = ~within & (np.bincount(row[within], minlength=len(batch))[row] > 0)
        again = _is_again(batch, tagging)
        if (again & ~batch.deleted[row]).any():
            raise CommitConflict("look-up", (), "another write", what="the record window", did="brought a key into")
        dropped = again if moves else again | (beside & ~batch.deleted[row])
        if dropped.any():
            tagging = replace(tagging, row=row[~dropped], file=tagging.file[~dropped])
        return tagging

    def run_of(self, written: Sequence[WrittenFile]) -> tuple[RunStamp, ...]:
        """What a task did, written as a run that nobody names yet: see `add`. Without one the next look-up reads these keys."""
        if self.settings is None or not written:
            return ()
        with contextlib.suppress(HudiError):
            storage, slices = self._session.storage, self._table.snapshot.key_files
            return tuple(write_changes(storage, self.settings, written, slices, self._clock.now_ms()))
        return ()

    def add(self, written: Sequence[WrittenFile], runs: Sequence[RunStamp] = ()) -> None:
        """Tell it of files that were published. What goes wrong is a note: the next look-up reads these keys.

        Args:
            written: The files.
            runs: What tasks wrote of files whose facts they kept.
        """
        if self.settings is None or not written:
            return
        known, storage = None if self._seen is None else self._seen.keys, self._session.storage
        try:
            add_changes(storage, self.settings, written, self._table.snapshot.key_files, known, self._clock.now_ms(), runs)
        except HudiError as error:
            # Of this publication, as reports of writes and of services have it.
            self._session.coordinator.notes.append(f"the record window hears of this write by the next one: {error}")

    def add_compacted(self, written: Sequence[WrittenFile], merged: Sequence[FileSlice]) -> None:
        """Tell it of base files that a compaction has published, made of some slices.

        A log file that came since the compaction was planned is not in them; what is read of such a slice next tells.
        """
        if self.settings is None or not written:
            return
        logs = {(one.partition_path, one.file_id): set(one.log_files) for one in merged}
        now = self._table.snapshot.key_files(sorted({file.partition_path for file in written}))
        same = {
            (file.partition_path, file.file_id)
            for own in now.values()
            for file in own
            if set(file.logs) == logs.get((file.partition_path, file.file_id))
        }
        self.add([file for file in written if (file.partition_path, file.file_id) in same])

    def _newest_days(self, column: str) -> Mapping[str, int | None]:
        """Of each file the day of its newest value, by its statistics; none where there are no statistics."""
        snapshot = self._table.snapshot
        metadata, kind = snapshot.metadata, column_type(snapshot.file_schema, column)
        if metadata is None or kind is None or column_stats.PARTITION not in metadata.ready:
            return {}
        found = answers.column_stats(metadata, {column: kind})[column]
        values = found["max"]
        days = _days_of(values)
        newest: dict[str, int | None] = {}
        for name, day in zip(found["file_name"].to_pylist(), days.to_pylist(), strict=True):
            other = newest.get(name, day)  # files of several partitions may have one name
            newest[name] = None if day is None or other is None else max(day, other)
        return newest


def _days_of(moments: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Days of dates or moments, counted from 1970-01-01."""
    dates = moments if pa.types.is_date(moments.type) else moments.cast(pa.timestamp("ms"), safe=False)
    return pc.cast(pc.cast(dates, pa.date32()), pa.int32())


def _is_again(batch: KeyedBatch, tagging: Tagging) -> _Flags:
    """Places that an earlier row has whose key is the same and whose partition is another."""
    keys, pairs = (numpy_of(batch.names(whole_table=whole).dictionary_encode().indices) for whole in (True, False))
    of_key = np.stack([keys[tagging.row], tagging.file])
    of_pair = np.stack([pairs[tagging.row], *of_key])
    again = np.ones(len(tagging.row), dtype=bool)
    again[np.unique(of_key, axis=1, return_index=True)[1]] = False
    first = np.unique(of_pair, axis=1, return_index=True)[1]
    others = np.ones(len(tagging.row), dtype=bool)
    others[first] = False
    return again & ~others
