"""The files of a timeline's folder: each is read and decoded once, also by the next listing of the same folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from hudimeta.errors import NotFound
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import at_once
from hudimeta.timeline import content
from hudimeta.timeline.archived import archived_files
from hudimeta.timeline.history import History

__all__ = ["InstantFiles"]

DECODED_KEPT = 64
"""Decoded commit metadata kept in memory; the bytes of every file read are kept as well."""


class InstantFiles:
    """See the module.

    Args:
        storage: Rooted at the table.
        folder: The timeline's folder, relative to that root.
        history: Where the instants go when they are archived.
        place: Where the root is within the user's table, for errors.
    """

    def __init__(self, storage: Storage, folder: str, history: History, place: str) -> None:
        self._storage, self._folder, self._history, self._place = storage, folder, history, place
        self._bytes: dict[str, bytes] = {}
        self._earlier: InstantFiles | None = None
        self._same: Collection[str] = ()
        self._decoded = lru_cache(maxsize=DECODED_KEPT)(self._decode)

    def __getstate__(self) -> dict[str, Any]:
        """What was read travels to other processes; what was decoded from it does not."""
        return {name: value for name, value in vars(self).items() if name != "_decoded"} | {"_earlier": None, "_same": ()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._decoded = lru_cache(maxsize=DECODED_KEPT)(self._decode)

    def follow(self, earlier: InstantFiles, same: Collection[str]) -> None:
        """Take files from an earlier listing that has read them; `same` names those that cannot have changed since."""
        self._earlier, self._same = earlier, same

    def prefetch(self, names: Iterable[str]) -> None:
        """Read several files at once."""
        missing = [name for name in names if not self.is_read(name)]
        if len(missing) > 1:
            at_once(self.read, missing)

    def read(self, name: str) -> bytes:
        """The bytes of a file, wherever it lies by now. Raises NotFound when it was rolled back."""
        if self._earlier is not None and name in self._same:
            return self._earlier.read(name)
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
        if self._earlier is not None and name in self._same:
            return self._earlier.decoded(name, is_commit)
        return self._decoded(name, is_commit)

    def is_read(self, name: str) -> bool:
        """Whether a file was read already, so that asking for it is free."""
        if self._earlier is not None and name in self._same:
            return self._earlier.is_read(name)
        return name in self._bytes

    def _decode(self, name: str, is_commit: bool) -> dict[str, Any]:
        return content.decode_instant(self.read(name), join(self._place, self._folder, name), is_commit)
