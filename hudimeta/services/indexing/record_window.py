"""Making and dropping the record window of a table: an index of the record keys of its last days.

It is no partition of the metadata table (see `indexes.record_window`); the table's properties say that it is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from hudimeta.commit.index_build import IndexReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, TableError
from hudimeta.indexes.record_window.folder import FOLDER
from hudimeta.indexes.record_window.settings import WindowSettings, check_fits
from hudimeta.metadata import record_index
from hudimeta.write.table_files import TableFiles

__all__ = ["NAME", "create_window", "drop_window"]

NAME = "record_window"
_OPTIONS = {"days": keys.WINDOW_DAYS.key, "older": keys.WINDOW_OLDER.key}


def create_window(session: WriteSession, columns: Sequence[str], given: Mapping[str, str]) -> IndexReport:
    """Make it: keys of the slices in it are read, then the properties name it.

    Args:
        session: The table.
        columns: The column of event time; none for the days of partition paths.
        given: `days`, and `older` (`bloom`, `refuse`).

    Raises:
        ConfigError: Arguments that mean nothing, or do not fit the table.
        TableError: It is there; or the table has a record index, which knows all keys.
        UnsupportedFeature: The table's keys are not stored, or decide in which bucket they are.
    """
    begin = time.perf_counter()
    if len(columns) > 1:
        raise ConfigError("columns", ",".join(columns), "one column of event time, or none")
    strange = [name for name in given if name not in _OPTIONS]
    if strange:
        raise ConfigError("options", strange[0], ", ".join(_OPTIONS))
    asked = {_OPTIONS[name]: value for name, value in given.items()}
    if columns:
        asked[keys.WINDOW_COLUMN.key] = columns[0]
    settings = WindowSettings.asked(OPTIONS.read({**session.options.texts, **asked}))
    if settings is None:
        raise ConfigError("days", None, "how many days are in the window", "Say so: options={'days': 3}.")
    with session.lock.held():
        session.reload()
        if WindowSettings.of(session.properties) is not None:
            raise TableError("the table has a record window already", "Drop it first, with t.indexes.drop('record_window').")
        if record_index.PARTITION in session.properties.metadata_partitions:
            hint = "Drop that first, with t.indexes.drop('record_index')."
            raise TableError("the table has a record index, which knows the keys of all days", hint)
        table = TableFiles.now(session)
        check_fits(settings, session.properties, table.snapshot.file_schema, table.snapshot.partitions().to_pylist())
        session.fenced.delete_folder(FOLDER)
        session.change_properties(lambda _: settings.properties())
    opened = TableFiles.now(session).window.opened(table.snapshot.key_files, ())
    groups = int(opened.keys.covered.sum())
    return IndexReport(NAME, "created", "", groups, opened.manifest.entries, time.perf_counter() - begin)


def drop_window(session: WriteSession) -> IndexReport:
    """Remove it.

    Raises:
        ConfigError: There is none.
    """
    begin = time.perf_counter()
    with session.lock.held():
        session.reload()
        if WindowSettings.of(session.properties) is None:
            raise ConfigError("name", NAME, "an index of the table")
        gone = (keys.WINDOW_DAYS.key, keys.WINDOW_COLUMN.key, keys.WINDOW_OLDER.key)
        session.change_properties(lambda _: dict.fromkeys(gone))
        session.fenced.delete_folder(FOLDER)
    return IndexReport(NAME, "dropped", seconds=time.perf_counter() - begin)
