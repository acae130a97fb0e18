"""Which log files of a slice may touch some keys, by what their ends say of them (`formats.log.key_index`).

The newest log tells of those before it, each by itself and by its name. So whatever happened since is seen from the names that
the slice has now: files that a compaction took over, that another writer laid beside, or that others wrote. A name that the
newest does not tell of is asked itself, and so on backwards; a file of which nothing is known may touch every key. What was
found is remembered in this process, as are the keys of files that had to be read as a whole.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.log import KeyProbe, KeyTail, LogFileKeys, read_key_tail
from hudimeta.slices.log_records import file_order
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import PARALLEL_REQUESTS, at_once
from hudimeta.table.file_names import parse_log_file

__all__ = ["LogKeys", "newest_first"]

REMEMBERED_BYTES: Final = 64 << 20
"""Prints that a process keeps; the ones that were asked longest ago go first."""

_ENTRY_BYTES: Final = 4096
"""What a file counts for beside its prints. Of logs of a hundred rows the names, and the objects that the collector of garbage
visits again and again, are far more than the prints: a process that writes for days would grow, and get slower, with each."""

SILENT: Final = 2
"""So many files in a row that tell nothing are taken for a log of others, whose ends nobody needs to read."""

_Mask = npt.NDArray[np.bool_]


class LogKeys:
    """What is known of the keys in the log files of one table. May be used by several threads.

    Args:
        storage: Rooted at the table.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def known(self, partition_path: str, logs: Mapping[str, int], *, all_of_them: bool = True) -> list[LogFileKeys]:
        """What is known of some log files of a slice, the newest first.

        Args:
            partition_path: Of the slice.
            logs: Names and sizes.
            all_of_them: False to leave out what neither this process nor the newest file knows.
        """
        found: dict[str, LogFileKeys] = {}
        left = names = newest_first(logs)
        width, silent = 1, 0  # the newest may tell of all others
        while left and silent < SILENT:
            found |= {one.name: one for name in left if (one := self._remembered(partition_path, name, logs[name])) is not None}
            left = [name for name in left if name not in found and logs[name]]
            some, left = left[:width], left[width:] if all_of_them else []
            tails = at_once(lambda name: self.tail(join(partition_path, name), logs[name]), some)
            silent = silent + 1 if tails.count(None) == len(tails) else 0
            width = 1 if silent else PARALLEL_REQUESTS
            for tail in tails:
                listed = () if tail is None else (tail.index.own, *tail.index.others)
                for one in listed:
                    self.keep(join(partition_path, one.name), one)
                found |= {one.name: one for one in listed if logs.get(one.name) == one.size}
        return [found[name] for name in names if name in found]

    def _remembered(self, partition_path: str, name: str, size: int) -> LogFileKeys | None:
        return _REMEMBERED.get((self._storage.root, join(partition_path, name), size))

    def touching(self, partition_path: str, logs: Mapping[str, int], probe: KeyProbe, among: _Mask | None = None) -> list[str]:
        """The log files that may touch at least one of some keys, in the order in which they are given.

        Args:
            partition_path: Of the slice.
            logs: Names and sizes.
            probe: The keys.
            among: Which of them are meant; None for all.
        """
        if not logs or not (len(probe.keys) if among is None else among.any()):
            return []
        left_out = set()
        for one in self.known(partition_path, logs):
            touched = one.touched(probe)
            if not len(touched) or (among is not None and not among[touched].any()):
                left_out.add(one.name)
        return [name for name in logs if name not in left_out]

    def tail(self, path: str, size: int) -> KeyTail | None:
        """What stands at the end of a log file; None where it is not one of ours."""
        return read_key_tail(lambda offset, length: self._storage.read_range(path, offset, length), path, size)

    def remember(self, path: str, size: int, keys: pa.StringArray, false_positives: float) -> None:
        """Keep what is known of a log file that was read as a whole.

        Args:
            path: Of the file.
            size: Its bytes.
            keys: All that it touches.
            false_positives: Share of foreign keys that may pass.
        """
        if size:
            self.keep(path, LogFileKeys.of(path.rpartition("/")[2], size, keys, false_positives))

    def keep(self, path: str, known: LogFileKeys) -> None:
        """Keep what is known of a log file.

        Args:
            path: Of the file.
            known: Its keys, with its size.
        """
        _REMEMBERED.put((self._storage.root, path, known.size), known)


def newest_first(names: Sequence[str] | Mapping[str, int]) -> list[str]:
    """Names of log files, the newest first; those of change images, which hold no row, are left out."""
    parsed = [(name, parse_log_file(name)) for name in names]
    kept = [(name, file) for name, file in parsed if file is not None and not file.is_cdc]
    return [name for name, _ in sorted(kept, key=lambda pair: file_order(pair[1]), reverse=True)]


class Remembered:
    """What this process has seen, by table, path and size: log files never change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str, int], LogFileKeys] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[str, str, int]) -> LogFileKeys | None:
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, key: tuple[str, str, int], one: LogFileKeys) -> None:
        with self._lock:
            before = self._known.pop(key, None)  # of a run that died and is repeated, the last content counts
            self._known[key] = one
            self._bytes += _bytes_of(one) - (0 if before is None else _bytes_of(before))
            while self._bytes > REMEMBERED_BYTES and len(self._known) > 1:
                self._bytes -= _bytes_of(self._known.popitem(last=False)[1])


def _bytes_of(one: LogFileKeys) -> int:
    return _ENTRY_BYTES + one.prints.nbytes


_REMEMBERED = Remembered()


def _forget() -> None:
    """In a forked child the lock may be held by a thread that is not there."""
    global _REMEMBERED
    _REMEMBERED = Remembered()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
