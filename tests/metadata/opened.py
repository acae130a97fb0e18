"""Opening the metadata table of a recorded table, with every request counted."""

from __future__ import annotations

from pathlib import Path

from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.table.properties import load


def open_metadata(path: Path) -> tuple[MetadataTable, CountingStorage]:
    """The metadata table of the table at `path`, and the storage through which all its requests go."""
    storage = CountingStorage(open_storage(str(path)))
    properties = load(storage)
    return MetadataTable.open(storage, properties, properties.load_timeline(storage)), storage
