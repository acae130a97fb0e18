"""Where a reader learns of partitions and files: the metadata table, or storage where there is none (counted and reported)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from hudimeta.cached import cached_property
from hudimeta.config import HudiWarning
from hudimeta.errors import MetadataOutOfSync
from hudimeta.storage import Storage
from hudimeta.table.modes import MetadataModes
from hudimeta.types import Action

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.metadata import MetadataTable
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import Timeline

__all__ = ["TableListing", "StorageListing", "open_kept_metadata", "open_metadata", "without_log_files"]

_SHOWN = 5
_NO_METADATA = "the table has no metadata table"


class TableListing(Protocol):
    """What there is, superseded files included. `MetadataTable` is one."""

    def partitions(self) -> pa.StringArray:
        """Partition paths, sorted; [""] for a table without partitions."""

    def files(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """partition_path string, name string, size int64 of some partitions, None for all."""

    def file_pieces(self) -> Iterable[pa.Table]:
        """The same of all partitions, those of a partition together, some at a time where there are very many."""


class StorageListing:
    """Files found by walking the table's folders, once.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
    """

    def __init__(self, storage: Storage, timeline: Timeline) -> None:
        self._storage, self._timeline = storage, timeline

    @cached_property
    def _files(self) -> pa.Table:
        from hudimeta.table.discovery import PARTITION_METAFILE, find_files

        found = find_files(self._storage, self._timeline)
        cure = "t.repair.metafiles() writes it"
        if found.unmarked:
            lacking = f"{_shown(found.unmarked)} of {self._storage.root} without {PARTITION_METAFILE}"
            told = f"partitions {lacking} were read, since commits name files there; Apache Hudi passes them over: {cure}"
            warnings.warn(told, HudiWarning, stacklevel=2)
        if found.passed:
            lacking = f"{_shown(found.passed)} of {self._storage.root} without {PARTITION_METAFILE}"
            told = f"folders {lacking} have data files and were passed over. If they are partitions, {cure}"
            warnings.warn(told, HudiWarning, stacklevel=2)
        return found.files

    def partitions(self) -> pa.StringArray:
        """See `TableListing.partitions`; folders without a file are not among them."""
        return self._files.column("partition_path").unique().sort()

    def files(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """See `TableListing.files`."""
        if partitions is None:
            return self._files
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pc.is_in(self._files.column("partition_path"), value_set=pa.array(partitions, pa.string()))
        return self._files.filter(wanted)

    def file_pieces(self) -> Iterable[pa.Table]:
        """See `TableListing.file_pieces`."""
        return [self._files]


def _shown(folders: Sequence[str]) -> str:
    more = f" and {len(folders) - _SHOWN:,} more" if len(folders) > _SHOWN else ""
    return ", ".join(folder or "''" for folder in folders[:_SHOWN]) + more


def without_log_files(files: pa.Table) -> pa.Table:
    """Files of a listing but for log files, which begin with a dot."""
    import pyarrow.compute as pc

    return files.filter(pc.invert(pc.starts_with(files.column("name"), ".")))


def open_metadata(
    storage: Storage, properties: TableProperties, timeline: Timeline, modes: MetadataModes
) -> tuple[MetadataTable | None, str]:
    """The table's metadata table; without one, the reason why storage must be listed."""
    if not properties.has_metadata_table:
        return None, _NO_METADATA
    if not modes.enabled:
        return None, f"the metadata table is switched off by {modes.disabled_by}=false"
    if modes.validated:
        return None, "hoodie.metadata.validate: the metadata table is only compared with what is on storage"
    restore = next((i.time for i in timeline.pending if i.action is Action.RESTORE), None)
    if restore is not None:
        what = "the metadata table may know what it has undone; t.recover() finishes it"
        return None, f"the restore at {restore} is not finished: {what}"
    from hudimeta.metadata import MetadataTable

    try:
        return MetadataTable.open(storage, properties, timeline), ""
    except MetadataOutOfSync as error:
        # Nothing was ever completed there: the properties name a metadata table that is gone, and storage knows better.
        return None, f"{error.message}; t.metadata.rebuild() makes it anew"


def open_kept_metadata(storage: Storage, properties: TableProperties, timeline: Timeline) -> tuple[MetadataTable | None, str]:
    """`open_metadata` for a write, which keeps the metadata table whatever options say of reads.

    Raises:
        MetadataOutOfSync: The properties name a metadata table that is gone.
    """
    if not properties.has_metadata_table:
        return None, _NO_METADATA
    from hudimeta.metadata import MetadataTable

    return MetadataTable.open(storage, properties, timeline, to_write=True), ""
