"""Staged files of a local disk: their bytes lie in nameless files, already durable, until a hard link names them.

A process that dies before that leaves nothing behind. The names of one folder are made durable together.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from hudimeta.storage.local_names import drop_checksum, give_name, open_nameless, translated
from hudimeta.storage.staged import BeforeNamed, NewFile, put_file, wanted

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
                with translated(file.path):
                    nameless = open_nameless(storage.place_of(file.path), file.data)
                if nameless is not None:
                    self._open[file.path] = nameless
        except BaseException:
            self.close()
            raise

    def publish(self, paths: Collection[str] | None = None, before: BeforeNamed | None = None) -> None:
        """See `Staged.publish`."""
        named: dict[str, NewFile] = {}
        try:
            self._storage.order.wait()
            for file in chain(*wanted(self._files, paths)):
                if before is not None:
                    before(file)
                if self._is_named(file):
                    named[os.path.dirname(file.path)] = file
                else:
                    put_file(self._storage, file)
        finally:
            # When all have their names: most file systems write those of all folders with the first.
            self.close()
            for file in named.values():
                with translated(file.path):
                    self._storage.order.named(self._storage.place_of(file.path))

    def _is_named(self, file: NewFile) -> bool:
        """Name a file; False where it is to be put: its name is taken, or its folder was removed meanwhile."""
        fd, target = self._open.get(file.path), self._storage.place_of(file.path)
        if fd is None:
            return False
        with translated(file.path):
            try:
                if file.replaces:
                    drop_checksum(target)
                give_name(fd, target)
            except FileExistsError:
                if not file.replaces:
                    raise
                return False
            except FileNotFoundError:
                return False
        return True

    def close(self) -> None:
        """See `Staged.close`."""
        while self._open:
            _, fd = self._open.popitem()
            os.close(fd)
