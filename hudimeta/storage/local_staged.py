"""Staged files of a local disk: their bytes lie in nameless files, already durable, until a hard link names them.

A process that dies before that leaves nothing behind. The names of one folder are made durable together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hudimeta.errors import AlreadyExists
from hudimeta.storage.local_names import drop_checksum, give_name, open_nameless, sync_folder
from hudimeta.storage.staged import NewFile

if TYPE_CHECKING:
    from hudimeta.storage.local import LocalStorage

__all__ = ["LocalStaged"]


class LocalStaged:
    """See `Staged`.

    Args:
        storage: Puts what cannot be staged, or finds its name taken.
        files: What is to be.
    """

    def __init__(self, storage: LocalStorage, files: Sequence[NewFile]) -> None:
        self._storage = storage
        self._open: list[tuple[NewFile, int | None]] = []
        try:
            for file in files:
                self._open.append((file, open_nameless(storage.place_of(file.path), file.data)))
        except BaseException:
            self.close()
            raise

    def publish(self) -> None:
        """See `Staged.publish`."""
        synced: dict[str, str] = {}
        try:
            for file, fd in self._open:
                target = self._storage.place_of(file.path)
                if self._is_named(file, fd, target):
                    synced[os.path.dirname(target)] = target
        finally:
            for target in synced.values():
                sync_folder(target)
            self.close()

    def _is_named(self, file: NewFile, fd: int | None, target: str) -> bool:
        """Name one file; False when it was put, and is durable."""
        if fd is not None:
            if file.replaces:
                drop_checksum(target)
            try:
                give_name(fd, target)
                return True
            except FileExistsError as error:
                if not file.replaces:
                    raise AlreadyExists(file.path) from error
            except OSError:
                # Its folder was removed meanwhile: what is put has it made anew, or says what is wrong.
                pass
        if file.replaces:
            self._storage.put(file.path, file.data)
        else:
            self._storage.put_if_absent(file.path, file.data)
        return False

    def close(self) -> None:
        """See `Staged.close`."""
        while self._open:
            _, fd = self._open.pop()
            if fd is not None:
                os.close(fd)
