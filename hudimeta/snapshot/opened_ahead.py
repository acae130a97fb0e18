"""What is asked of a far-away table side by side: requests that need nothing of each other wait for the store once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hudimeta.errors import HudiError
from hudimeta.storage.at_once import ahead, beside, reads_ahead
from hudimeta.table import properties as table_properties
from hudimeta.timeline import DEFAULT_FOLDER

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.snapshot.table_schema import TableSchema
    from hudimeta.storage import FileInfo, Storage
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import Timeline

__all__ = ["find_ahead", "list_ahead", "open_ahead", "properties_and_timeline", "schema_of_a_plan"]


def properties_and_timeline(storage: Storage) -> tuple[TableProperties, Timeline]:
    """The properties of a table and its timeline, which has the same folder in most tables.

    Raises:
        TableNotFound: There is no table. TableError and below: it cannot be read.
    """
    listed: list[FileInfo] = []

    def list_timeline() -> None:
        with contextlib.suppress(HudiError):  # whoever finds nothing here lists it again
            listed.extend(storage.list(DEFAULT_FOLDER))

    if not reads_ahead(storage):
        properties = table_properties.load(storage)
        return properties, properties.load_timeline(storage)
    properties = beside(lambda: table_properties.load(storage), list_timeline, storage)
    is_there = properties.timeline_folder == DEFAULT_FOLDER
    return properties, properties.load_timeline(storage, listed=listed if is_there else ())


def schema_of_a_plan(snapshot: Snapshot) -> TableSchema:
    """The schema of a table whose files are planned next, which takes the metadata table."""
    if reads_ahead(snapshot.storage):
        return beside(lambda: snapshot.schema, lambda: _open_metadata(snapshot), snapshot.storage)
    return snapshot.schema


def open_ahead(snapshot: Snapshot) -> Snapshot:
    """The snapshot of a write, which asks for the newest commit, the metadata table and its definitions of indexes next."""
    if reads_ahead(snapshot.storage):
        beside(lambda: _read_newest(snapshot), lambda: _open_metadata(snapshot), snapshot.storage)
    return snapshot


def list_ahead(snapshot: Snapshot) -> Callable[[], object]:
    """Begin to open the listing of a far-away table, into which a write looks as soon as it has begun.

    Args:
        snapshot: Of the write.

    Returns:
        What waits for it. What was damaged or not there the write meets again.
    """
    return ahead(lambda: None if snapshot.metadata is None else snapshot.metadata.open_listing(), snapshot.storage)


def find_ahead(snapshot: Snapshot, indexes: Sequence[str]) -> Callable[[], object]:
    """Begin to find the base files of indexes, which a plan asks as soon as it knows the files of the table.

    Args:
        snapshot: Of the plan.
        indexes: Partitions of the metadata table.

    Returns:
        What waits for it. What was damaged or not there the plan meets again.
    """
    metadata = snapshot.metadata
    if metadata is None or not indexes or not reads_ahead(snapshot.storage):
        return lambda: None
    metadata.find_listing()  # by a commit that most indexes are found by, too
    return ahead(lambda: metadata.find_indexes(indexes), snapshot.storage)


def _read_newest(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):  # whoever needs it meets it again, here and below
        snapshot.timeline.latest_schema()


def _open_metadata(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):
        _ = snapshot.metadata
