"""The metadata table of a far-away table is opened, and its listing looked into, beside requests that need neither."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from hudimeta.errors import HudiError
from hudimeta.storage.at_once import ahead, beside, reads_ahead

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.snapshot.table_schema import TableSchema

__all__ = ["list_ahead", "open_ahead", "schema_of_a_plan"]


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


def list_ahead(snapshot: Snapshot, index: str | None = None) -> Callable[[], object]:
    """Begin to open the listing of a far-away table, into which a write looks as soon as it has begun.

    Args:
        snapshot: Of the write.
        index: What it looks its keys up in, of the metadata table's.

    Returns:
        What waits for it. What was damaged or not there the write meets again.
    """
    return ahead(lambda: None if snapshot.metadata is None else snapshot.metadata.open_listing(index), snapshot.storage)


def _read_newest(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):  # whoever needs it meets it again, here and below
        snapshot.timeline.latest_schema()


def _open_metadata(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):
        if snapshot.metadata is not None and snapshot.for_writes:
            _ = snapshot.metadata.index_definitions
