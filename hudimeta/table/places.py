"""From a path or a pattern of paths to the tables that it leads to, and to the partitions in them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from hudimeta.config import HudiWarning
from hudimeta.errors import HudiError, TableNotFound
from hudimeta.redaction import hidden
from hudimeta.storage import absolute_location, open_storage
from hudimeta.storage.at_once import at_once
from hudimeta.table.globs import has_glob, literal_glob, matches
from hudimeta.table.properties_file import BACKUP_PATH, PROPERTIES_PATH

__all__ = ["Place", "file_above", "find_places", "naming_table_above", "place_within", "table_above"]

_HUDI_FOLDER = PROPERTIES_PATH.partition("/")[0]
_OF_TABLES = (PROPERTIES_PATH, BACKUP_PATH)
_OTHER_FORMATS = (("_delta_log", "Delta Lake", "deltalake"), ("metadata", "Apache Iceberg", "pyiceberg"))
_NAMED = 5
"""Folders that a message names; it counts the others."""


@dataclass(frozen=True)
class Place:
    """A table, or some of its partitions.

    Attributes:
        location: The table's folder.
        partitions: The value of the option `hudimeta.partitions`; None for the whole table.
    """

    location: str
    partitions: str | None


def find_places(paths: Iterable[str], options: Mapping[str, str]) -> list[Place]:
    """The tables that paths lead to, each once, in the order of the paths.

    Folders that a pattern means beside tables, and that neither are a table nor lie in one, are passed over with a warning.

    Args:
        paths: Of tables or of folders in them; patterns as in `hudimeta.table.globs`.
        options: Of the tables, for the store.

    Raises:
        TableNotFound: A path leads to no table.
        ConfigError: A pattern that means nothing.
        StorageError: A folder that a pattern means cannot be looked at.
    """
    found: dict[str, list[str] | None] = {}
    for path in paths:
        matched = list(_matched(path, options))
        places = [one for one in matched if isinstance(one, Place)]
        others = [one for one in matched if isinstance(one, str)]
        if not places:
            raise TableNotFound(path, _why_no_table(path, others))
        if others:
            text = f"{path} also matches folders that are no Hudi table, and are passed over: {_shown(others)}"
            warnings.warn(hidden(text), HudiWarning, stacklevel=2)
        for place in places:
            chosen = found.setdefault(place.location, [])
            found[place.location] = None if chosen is None or place.partitions is None else [*chosen, place.partitions]
    return [Place(location, None if chosen is None else ",".join(chosen)) for location, chosen in found.items()]


def place_within(path: str, options: Mapping[str, str]) -> Place | None:
    """The partitions that a folder inside of a table holds, by their paths; None where no folder above it is a table.

    The metadata table and all else in `.hoodie` holds none.

    Args:
        path: Without a table of its own.
        options: Of the table, for the store.
    """
    location = absolute_location(path)
    above = table_above(location, options)
    if above is None:
        return None
    within = _parts(location)[1][len(_parts(above)[1]) :]
    return None if within[0] == _HUDI_FOLDER else Place(above, "/".join(map(literal_glob, within)))


def table_above(path: str, options: Mapping[str, str]) -> str | None:
    """The nearest folder above a folder that is a table's; None where none is.

    Args:
        path: Of a folder, which need not be there.
        options: Of the table, for the store.
    """
    root, names = _parts(absolute_location(path))
    above = [_joined(root, names[:depth]) for depth in range(len(names) - 1, 0, -1)]
    asked = [(folder, path) for folder in above for path in _OF_TABLES]
    there = at_once(lambda one: _is_file(*one, options), asked)
    return next((folder for (folder, _), is_there in zip(asked, there, strict=True) if is_there), None)


def file_above(path: str) -> str | None:
    """The file of the local disk below which a path can lead to nothing; None where there is none."""
    root, names = _parts(absolute_location(path))
    if root != "/":
        return None
    for depth in range(len(names) - 1, 0, -1):
        above = _joined(root, names[:depth])
        place = open_storage(above).stat("")
        if place is not None:
            return None if place.is_folder else above
    return None


@contextmanager
def naming_table_above(path: str, options: Mapping[str, str]) -> Iterator[None]:
    """Let an error that says there is no table name the one in whose folder the path lies, or what else is there.

    Raises:
        TableNotFound: As the block raises it, or with the table above, or with what is there.
    """
    try:
        yield
    except TableNotFound as error:
        inside = place_within(path, options)
        if inside is None:
            why, hint = "", ""
            with suppress(HudiError):  # who may not look there is told nothing more
                why, hint = _what_else(path, options)
            if not why:
                raise
            raise TableNotFound(path, why, hint) from error
        hint = f"Open {inside.location}; the option hudimeta.partitions={inside.partitions} limits a read to this folder."
        raise TableNotFound(path, f"it is in the folder of the table at {inside.location!r}", hint) from error


def _what_else(path: str, options: Mapping[str, str]) -> tuple[str, str]:
    """What is at a path where no table is, and what to do; empty texts where that says nothing."""
    file = path if (place := open_storage(path, options).stat("")) is not None and not place.is_folder else None
    file = file or (file_above(path) if place is None else None)
    if file is not None:
        return f"{'it' if file == path else file} is a file", "Give the folder of the table."
    if place is not None:
        names = {found.name for found in open_storage(path, options).list("") if found.is_folder}
        for folder, name, library in _OTHER_FORMATS:
            if folder in names and (folder != "metadata" or _has_iceberg(path, options)):
                return f"it is a table of {name}", f"Read it with a library for that format, such as {library}."
    return "", ""


def _has_iceberg(path: str, options: Mapping[str, str]) -> bool:
    return any(found.name.endswith(".metadata.json") for found in open_storage(path, options).list("metadata"))


def _why_no_table(path: str, others: Sequence[str]) -> str:
    if others:
        return f"none of the folders that match it is a table: {_shown(others)}"
    why = "neither there nor in a folder above it is .hoodie/hoodie.properties"
    return f"{why}, and no folder fits the pattern" if has_glob(path) else why


def _shown(folders: Sequence[str]) -> str:
    more = len(folders) - _NAMED
    return ", ".join(folders[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _matched(path: str, options: Mapping[str, str]) -> Iterator[Place | str]:
    """The tables that a path means; of a pattern also, as texts, the folders that it means and that are no table."""
    where = absolute_location(path)
    if _is_table(where, options):
        yield Place(where, None)
        return
    root, names = _parts(where)
    plain = next((n for n, name in enumerate(names) if has_glob(name)), len(names))
    beginning = _joined(root, names[:plain])
    if plain < len(names) and _is_table(beginning, options):
        yield Place(beginning, "/".join(names[plain:]))
        return
    inside = place_within(beginning, options)
    if inside is not None:
        yield Place(inside.location, "/".join((inside.partitions or "", *names[plain:])))
    elif plain < len(names):
        yield from _expanded(beginning, names[plain:], options)


def _expanded(folder: str, names: list[str], options: Mapping[str, str]) -> Iterator[Place | str]:
    """As `_matched`, below a folder that lies in no table.

    Args:
        folder: Its path.
        names: The pattern, and what follows it.
        options: Of storage.
    """
    first, *rest = names
    for name in sorted(_folders(folder, options)):
        if name.startswith(".") or not matches(first, name):
            continue
        below = f"{folder.rstrip('/')}/{name}"
        if _has_properties(below, options):
            yield Place(below, "/".join(rest) or None)
            continue
        deeper = list(_expanded(below, rest, options)) if rest else []
        yield from deeper or [below]


def _folders(folder: str, options: Mapping[str, str]) -> list[str]:
    return [found.name for found in open_storage(folder, options).list("") if found.is_folder]


def _is_table(folder: str, options: Mapping[str, str]) -> bool:
    try:
        return _has_properties(folder, options)
    except HudiError:
        return False  # who may not look there opens no table there either


def _is_file(folder: str, path: str, options: Mapping[str, str]) -> bool:
    try:
        return open_storage(folder, options).is_file(path)
    except HudiError:
        return False  # as in `_is_table`


def _has_properties(folder: str, options: Mapping[str, str]) -> bool:
    storage = open_storage(folder, options)
    return any(storage.is_file(path) for path in _OF_TABLES)


def _parts(location: str) -> tuple[str, list[str]]:
    """What a location begins with, `/` or scheme and bucket, and the names of folders after it."""
    scheme, found, rest = location.partition("://")
    if not found:
        return "/", [name for name in location.split("/") if name]
    bucket, _, path = rest.partition("/")
    return f"{scheme}://{bucket}/", [name for name in path.split("/") if name]


def _joined(root: str, names: list[str]) -> str:
    return root + "/".join(names)
