"""The metadata table of a far-away table is opened while something else is asked for, which it does not need."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from hudimeta.errors import HudiError
from hudimeta.storage.at_once import beside, reads_ahead

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.snapshot.table_schema import TableSchema

__all__ = ["open_ahead", "schema_of_a_plan"]


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


def _read_newest(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):  # whoever needs it meets it again, here and below
        snapshot.timeline.latest_schema()


def _open_metadata(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):
        if snapshot.metadata is not None and snapshot.for_writes:
            _ = snapshot.metadata.index_definitions
