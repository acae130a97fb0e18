"""Where a new table goes: what is there already, and how what was begun there goes again when something fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, NotFound
from hudimeta.sql import CreateTable
from hudimeta.storage import open_storage

__all__ = ["a_place", "place_of", "refuse_occupied", "taken_back", "taken_place"]


def refuse_occupied(location: str, options: dict[str, str]) -> None:
    """Rows are only written where everything can be deleted again when the catalog refuses the table afterwards.

    Args:
        location: Of the new table.
        options: With which it is made.

    Raises:
        ConfigError: Something is there.
    """
    storage = open_storage(location, options)
    with a_place(location):
        found = storage.list("")
        if storage.list(".hoodie"):
            raise taken_place(location)
    if found:
        hint = f"It holds {found[0].name}: empty it, name another folder, or CREATE TABLE with columns and INSERT INTO it."
        raise ConfigError("LOCATION", location, "an empty folder, or one that is not there yet", hint)


def taken_place(location: str) -> ConfigError:
    """What is said of a place where a table is."""
    hint = "INSERT INTO the table that is there; CREATE TABLE without a query registers it where LOCATION names its folder."
    return ConfigError("LOCATION", location, "a folder without a table", hint)


@contextlib.contextmanager
def taken_back(location: str, options: dict[str, str]) -> Iterator[None]:
    """Delete what was created when something fails: the whole folder when it is new, or else only Hudi's own.

    Args:
        location: Of the new table.
        options: With which it is made.
    """
    storage = open_storage(location, options)
    # By a listing: a store without folders may know nothing of `.hoodie` itself, and a table that was there must not go.
    with a_place(location):
        new, empty = not storage.list(".hoodie"), not storage.list("")
    above = _missing_above(location)
    try:
        yield
    except BaseException:
        if new:
            storage.delete_folder("" if empty else ".hoodie")
        for folder in above:
            with contextlib.suppress(OSError):  # somebody else has put something there meanwhile
                folder.rmdir()
        raise


@contextlib.contextmanager
def a_place(location: str) -> Iterator[None]:
    """Say of a place where no folder can be that it is none.

    Args:
        location: Where something is listed or made.

    Raises:
        ConfigError: A file is there or above, or nothing can be made there.
    """
    try:
        yield
    except NotFound as error:
        raise ConfigError("LOCATION", location, "a folder, or a place where one can be made") from error


def _missing_above(location: str) -> list[Path]:
    """Folders above a new table in the local file system that are not there yet either, the deepest first."""
    if not location.startswith("/"):
        return []
    return list(takewhile(lambda folder: not folder.exists(), Path(location).parents))


def place_of(statement: CreateTable) -> str | None:
    """What LOCATION or the option `path` names; None for the warehouse. Raises ConfigError: Two places, or a blank one."""
    stated = [value for key, value in statement.options.items() if key.lower() == keys.PATH.key]
    if statement.location is not None:
        stated.append(statement.location)
    if len(set(stated)) > 1:
        raise ConfigError("LOCATION", stated[-1], f"one place, and OPTIONS names {stated[0]}")
    if stated and not stated[0].strip():
        raise ConfigError("LOCATION", stated[0], "a folder", "Leave LOCATION out for a table in the warehouse.")
    return stated[0] if stated else None
