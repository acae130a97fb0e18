"""Files whose bytes are brought to the store before anybody waits for them, and which get their names later.

What is published under a lock keeps others waiting. A local disk takes the bytes of a file before it has a name; the name is
then a matter of microseconds. Other stores take a file and its name at once: there the bytes stay here until then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hudimeta.storage.at_once import at_once

if TYPE_CHECKING:
    from hudimeta.storage.protocol import Storage

__all__ = ["BeforeNamed", "HeldFiles", "NewFile", "Staged", "put_file", "wanted"]


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is to be.

    Attributes:
        path: Relative to the storage's root.
        data: All of its bytes.
        replaces: It takes the place of a file that is there, as by `put`; else that is an error, as of `put_if_absent`.
    """

    path: str
    data: bytes
    replaces: bool = True


BeforeNamed = Callable[[NewFile], None]
"""Called with a file right before it gets its name; what it raises keeps the name from it."""


def wanted(files: Sequence[NewFile], paths: Collection[str] | None) -> tuple[list[NewFile], list[NewFile]]:
    """The files of `Staged.publish`: those that come first, and the others."""
    found = [file for file in files if paths is None or file.path in paths]
    return [file for file in found if not file.replaces], [file for file in found if file.replaces]


class Staged(Protocol):
    """Some files on their way; see the module."""

    def publish(self, paths: Collection[str] | None = None, before: BeforeNamed | None = None) -> None:
        """Give them their names, each atomically and durably; only once.

        Files that replace none come first, in their order; others may come side by side.

        Args:
            paths: Only these, the others are let go; None for all.
            before: Called with each file right before it gets its name. What it raises ends it there: that file and those after
                it stay without names.

        Raises:
            AlreadyExists: One that replaces none is there; those before it have their names.
        """

    def close(self) -> None:
        """Let go what has no name; a second time does nothing."""


def put_file(storage: Storage, file: NewFile) -> None:
    """Put a file that is not staged."""
    if file.replaces:
        storage.put(file.path, file.data)
    else:
        storage.put_if_absent(file.path, file.data)


class HeldFiles:
    """Files that a store takes with their names alone: they stay in memory until then, and are put one by one.

    Args:
        storage: Puts them.
        files: See `Staged`.
    """

    def __init__(self, storage: Storage, files: Sequence[NewFile]) -> None:
        self._storage, self._files = storage, files

    def publish(self, paths: Collection[str] | None = None, before: BeforeNamed | None = None) -> None:
        """See `Staged.publish`."""

        def put(file: NewFile) -> None:
            if before is not None:
                before(file)
            put_file(self._storage, file)

        first, others = wanted(self._files, paths)
        for file in first:
            put(file)
        at_once(put, others, self._storage)

    def close(self) -> None:
        """See `Staged.close`."""
        self._files = ()
