"""How the columns of a table were called before, as a write must know it to read files that are older than an ALTER."""

from __future__ import annotations

from hudimeta.config import OPTIONS
from hudimeta.schema import LATEST_SCHEMA_KEY, SchemaHistory
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, Storage
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline

__all__ = ["column_history"]


def column_history(storage: Storage, properties: TableProperties, timeline: Timeline) -> SchemaHistory | None:
    """All versions of the columns of a table that was altered; None for all others, of which nothing is read.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        timeline: Of the table.
    """
    found = timeline.latest_schema()
    if found is None or LATEST_SCHEMA_KEY not in timeline.metadata(found[0])["extraMetadata"]:
        return None
    counted = storage if isinstance(storage, CountingStorage) else CountingStorage(storage)
    return Snapshot(counted, properties, timeline, OPTIONS.read({})).history
