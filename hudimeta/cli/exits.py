"""Exit codes, and which error means which."""

from __future__ import annotations

import enum

from hudimeta.errors import (
    ConfigError,
    CorruptFileError,
    HudiError,
    MetadataFileMissing,
    MetadataOutOfSync,
    PropertiesUnreadable,
    ValidationFailed,
)

__all__ = ["Exit", "exit_of"]


class Exit(enum.IntEnum):
    """What a command says to the shell."""

    DONE = 0
    FOUND = 1
    """A check found something."""
    USAGE = 2
    REFUSED = 3
    """The table does not allow it, or it is not there; nothing was changed."""
    DAMAGED = 5


def exit_of(error: HudiError) -> Exit:
    """The code for an error that ends a command."""
    if isinstance(error, ConfigError):
        return Exit.USAGE
    if isinstance(error, ValidationFailed):
        return Exit.FOUND
    if isinstance(error, (CorruptFileError, PropertiesUnreadable, MetadataFileMissing, MetadataOutOfSync)):
        return Exit.DAMAGED
    return Exit.REFUSED
