"""What a new log file says of keys: of its own, and of those in the log files before it as far as nobody need read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa

from hudimeta.formats.log import LogFileKeys, encode_key_index
from hudimeta.slices.log_keys import LogKeys
from hudimeta.storage import Storage, join
from hudimeta.table.key_file import KeyFile

__all__ = ["KeysOfLogs"]

LEAST_ROOM: Final = 4 << 10
ROOM_PART: Final = 32
"""What is said of other files takes this part of a file, or so many bytes: files of few rows tell of others, not large ones."""


class KeysOfLogs:
    """Makes the entries for the log files that one write adds to a slice.

    Args:
        storage: Rooted at the table.
        false_positives: Share of foreign keys that may pass.
        partition_path: Of the slice.
        below: The slice; None where the log begins its file group.
    """

    def __init__(self, storage: Storage, false_positives: float, partition_path: str, below: KeyFile | None) -> None:
        self._logs, self._rate = LogKeys(storage), false_positives
        self._partition_path, self._below = partition_path, below
        self._own: list[LogFileKeys] = []

    def of(self, name: str, keys: pa.StringArray, size: int) -> dict[str, str]:
        """Entries of the footer of a file that touches some keys.

        Args:
            name: Of the file.
            keys: In any order, also several times.
            size: About how many bytes it has; what is said of other files takes a part of them.
        """
        room = max(LEAST_ROOM, size // ROOM_PART)
        self._own.insert(0, LogFileKeys.of(name, 0, keys, self._rate))
        return encode_key_index(self._own[0], (*self._own[1:], *self._before(room // len(name))), room)

    def wrote(self, size: int) -> None:
        """Tell how many bytes the file has that was asked for last."""
        self._own[0] = replace(self._own[0], size=size)
        self._logs.keep(join(self._partition_path, self._own[0].name), self._own[0])

    def _before(self, most: int) -> list[LogFileKeys]:
        """What is known of the newest of the files before. There is no room for more: what is said of one holds its name."""
        if self._below is None:
            return []
        logs = dict(zip(self._below.logs[-most:], self._below.log_sizes[-most:], strict=True))
        return self._logs.known(self._partition_path, logs, all_of_them=False)
