"""The record window as writes ask it: a key is known wherever it is in the window, and in its row's own partition before that.

Rows that the window does not know in their own partition are looked up in those slices of it that are not in the window, by
bloom filters; so keys stay unique in every partition, whatever the window's length, and unique in the whole table over the days
of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import options
from hudimeta.errors import ConfigError, CorruptFileError, NotFound
from hudimeta.indexes.record_window.days import day_of_path
from hudimeta.indexes.record_window.runs import Prints
from hudimeta.indexes.record_window.settings import REFUSE
from hudimeta.indexes.record_window.window import OpenWindow
from hudimeta.indexes.tagging import Index, IndexKind, Tagging
from hudimeta.table.key_file import FilesOf, KeyFile

__all__ = ["RecordWindowLookUp"]

_Numbers = np.ndarray[Any, np.dtype[np.int64]]


class OpensWindow(Protocol):
    """Opens a window."""

    def __call__(self, asked: Sequence[str], /, *, anew: bool = False) -> OpenWindow:
        """For some partitions; `anew` believes nothing of what was kept."""
        ...


class RecordWindowLookUp:
    """Asks the window.

    Args:
        opened: Opens it.
        bloom_over: A bloom index, not a global one, over the files that a function gives; it tells keys that are not deleted.
    """

    kind = IndexKind.RECORD_WINDOW
    is_global = True

    def __init__(
        self,
        opened: OpensWindow,
        bloom_over: Callable[[FilesOf], Index],
    ) -> None:
        self._opened, self._bloom_over = opened, bloom_over

    def tag(self, keys: pa.StringArray, partitions: pa.StringArray) -> Tagging:
        """See `Index`.

        Raises:
            ConfigError: A row of a partition before the window, where the table refuses such.
        """
        asked: list[str] = sorted(partitions.unique().to_pylist())
        window = self._opened(asked)
        refuse_older(window, asked)
        prints = Prints.of(keys)
        row, group = np.empty(0, np.int64), np.empty(0, np.int64)
        for last in (False, True):
            try:
                row, group = window.keys.find(prints)
                break
            except (CorruptFileError, NotFound) as error:
                # Of a run that is gone, since others merged it, the newest manifest knows.
                anew = last or isinstance(error, CorruptFileError)
                window = self._opened(asked, anew=anew)
                if anew:
                    window.notes.append(f"the record window was made anew: {error}")
        else:
            row, group = window.keys.find(prints)
        held = pa.array([file.partition_path for file in window.inside], pa.string()).take(pa.array(group))
        own = pc.equal(partitions.take(pa.array(row)), held).to_numpy(zero_copy_only=False).astype(bool)
        # A row may have its key in an older file of its partition although the window knows it in another one.
        rest = np.setdiff1d(np.arange(len(keys)), row[own])
        older = self._older(window, keys, partitions, rest)
        files = [*window.inside, *older.files]
        number = np.concatenate([group, older.file + len(window.inside)])
        row = np.concatenate([row, rest[older.row]])
        order = np.argsort(row, kind="stable")
        row, number = row[order], number[order]
        used, number = np.unique(number, return_inverse=True)
        return replace(
            older,
            row=row,
            file=number.astype(np.int64),
            files=[files[int(n)] for n in used],
            asked=len(keys),
            title=self.kind.title,
            note="; ".join([_told(window, older.asked), *window.notes]),
        )

    def _older(self, window: OpenWindow, keys: pa.StringArray, partitions: pa.StringArray, rest: _Numbers) -> Tagging:
        """Where the other rows are among the slices of their partitions that are not in the window."""
        inside = window.groups
        files = {
            path: outside
            for path, own in window.files.items()
            if (outside := [file for file in own if (file.partition_path, file.file_id) not in inside])
        }
        of_rest = partitions.take(pa.array(rest))
        asked = np.flatnonzero(pc.is_in(of_rest, value_set=pa.array(list(files), pa.string())).to_numpy(zero_copy_only=False))
        if not len(asked):
            nothing = np.empty(0, np.int64)
            return Tagging(nothing, nothing, ())
        at = pa.array(asked)
        found = self._bloom_over(_only(files)).tag(keys.take(pa.array(rest)).take(at), of_rest.take(at))
        return replace(found, row=asked[found.row])


def _only(files: Mapping[str, Sequence[KeyFile]]) -> FilesOf:
    def files_of(partitions: Sequence[str] | None) -> Mapping[str, Sequence[KeyFile]]:
        return {path: files[path] for path in (files if partitions is None else partitions) if path in files}

    return files_of


def refuse_older(window: OpenWindow, partitions: Sequence[str]) -> None:
    """Refuse rows of partitions before the window, where the table does. Raises ConfigError."""
    if window.settings.older != REFUSE or window.first_day is None:
        return
    days = {path: day_of_path(path) for path in partitions}
    older = [path for path, day in days.items() if day is not None and day < window.first_day]
    if older:
        raise ConfigError(
            options.WINDOW_OLDER.key,
            REFUSE,
            f"rows of the window's {window.settings.days} days, not of partition {older[0]!r}"
            + (f" and {len(older) - 1} more" if len(older) > 1 else ""),
            "Leave these rows out, or make the index again with older=bloom.",
        )


def _told(window: OpenWindow, older: int) -> str:
    days = f"{window.settings.days} days" + (f" of {window.settings.column}" if window.settings.column else "")
    text = f"{days}, {len(window.inside):,} file slices in it"
    text += f", {window.read_anew:,} of them read anew" if window.read_anew else ""
    if window.settings.column is not None and window.first_day is None and window.inside:
        text += ", since no statistics tell of their days"
    return text + (f"; {older:,} rows looked up in older files by bloom filters" if older else "")
