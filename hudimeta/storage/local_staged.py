"""Staged files of a local disk: their bytes lie in nameless files, already durable, until a hard link names them.

A process that dies before that leaves nothing behind. The names of one folder are made durable together.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from hudimeta.errors import AlreadyExists
from hudimeta.storage.local_names import drop_checksum, give_name, open_nameless, sync_folder
from hudimeta.storage.staged import NewFile, wanted

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
        self._storage, self._files = storage, files
        self._open: dict[str, int] = {}
        try:
            for file in files:
                nameless = open_nameless(storage.place_of(file.path), file.data)
                if nameless is not None:
                    self._open[file.path] = nameless
        except BaseException:
            self.close()
            raise

    def publish(self, paths: Collection[str] | None = None) -> None:
        """See `Staged.publish`."""
        named: dict[str, str] = {}
        try:
            for file in chain(*wanted(self._files, paths)):
                target = self._storage.place_of(file.path)
                if self._is_named(file, target):
                    named[os.path.dirname(target)] = target
        finally:
            # When all have their names: most file systems write those of all folders with the first.
            for target in named.values():
                sync_folder(target)
            self.close()

    def _is_named(self, file: NewFile, target: str) -> bool:
        """Name one file; False when it was put, and is durable."""
        fd = self._open.get(file.path)
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
            _, fd = self._open.popitem()
            os.close(fd)
