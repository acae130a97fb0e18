"""The files of a timeline's folder: each is read and decoded once, also by the next listing of the same folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hudimeta.errors import NotFound
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import at_once
from hudimeta.timeline import content
from hudimeta.timeline.archived import archived_files
from hudimeta.timeline.history import History

__all__ = ["InstantFiles"]

DECODED_KEPT = 64
"""Decoded records kept in memory; the bytes of every file read are kept as well."""
HANDED_ON_BYTES = 1 << 16
"""Larger files are read again by whoever lists the folder again after a while: a table may be open for days."""


class InstantFiles:
    """See the module.

    Args:
        storage: Rooted at the table.
        folder: The timeline's folder, relative to that root.
        history: Where the instants go when they are archived.
        place: Where the root is within the user's table, for errors.
        ages: Size and time of the last change of the completed files, by name.
    """

    def __init__(
        self, storage: Storage, folder: str, history: History, place: str, ages: Mapping[str, tuple[int, int]]
    ) -> None:
        self._storage, self._folder, self._history, self._place = storage, folder, history, place
        self._ages = ages
        self._bytes: dict[str, bytes] = {}
        self._records: dict[tuple[str, bool], dict[str, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What was read travels to other processes; what was decoded from it does not."""
        return vars(self) | {"_bytes": self._bytes.copy(), "_records": {}}

    def follow(self, earlier: InstantFiles, *, small: bool = False) -> None:
        """Take over what an earlier listing of the folder has read of completed files that have not changed since.

        Args:
            earlier: The files of that listing.
            small: Leave out large files, and those whose age the store does not tell.
        """
        # Another thread may be reading by the earlier listing just now.
        read, decoded = earlier._bytes.copy(), earlier._records.copy()
        same = {name for name in read if self._ages.get(name, ()) == earlier._ages.get(name)}
        if small:
            same = {name for name in same if self._ages[name][1] > 0 and len(read[name]) <= HANDED_ON_BYTES}
        self._bytes |= {name: read[name] for name in same}
        self._records |= {key: record for key, record in decoded.items() if key[0] in same}

    def prefetch(self, names: Iterable[str]) -> None:
        """Read several files at once."""
        missing = [name for name in names if not self.is_read(name)]
        if len(missing) > 1:
            at_once(self.read, missing, self._storage)

    def read(self, name: str) -> bytes:
        """The bytes of a file, wherever it lies by now. Raises NotFound when it was rolled back."""
        if name not in self._bytes:
            try:
                self._bytes[name] = self._storage.read(join(self._folder, name))
            except NotFound:
                # Who archived it since the listing wrote it into the history first.
                self._bytes |= archived_files(self._history, name.partition("_")[0].partition(".")[0])
                if name not in self._bytes:
                    raise
        return self._bytes[name]

    def decoded(self, name: str, is_commit: bool) -> dict[str, Any]:
        """The record in a file. Raises NotFound, CorruptFileError."""
        key = name, is_commit
        found = self._records.get(key)
        if found is None:
            found = content.decode_instant(self.read(name), join(self._place, self._folder, name), is_commit)
            for oldest in list(self._records)[: max(0, len(self._records) + 1 - DECODED_KEPT)]:
                self._records.pop(oldest, None)
            self._records[key] = found
        return found

    def is_read(self, name: str) -> bool:
        """Whether a file was read already, so that asking for it is free."""
        return name in self._bytes
