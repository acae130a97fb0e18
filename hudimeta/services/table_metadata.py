"""`table.metadata`: the metadata table as people use it, to look into and to keep in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hudimeta.errors import IndexNotReady
from hudimeta.metadata import files
from hudimeta.metadata.metadata_table import MetadataTable

if TYPE_CHECKING:
    from hudimeta.read.snapshot import Snapshot
    from hudimeta.services.validation import ValidationReport

__all__ = ["TableMetadata"]

_OWN = ("snapshot",)


class TableMetadata(MetadataTable):
    """The metadata table of a snapshot, with the verbs that act on it.

    It is opened when it is first asked for something: verbs that repair it must work where it cannot be opened.

    Attributes:
        snapshot: The newest moment of the table.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there yet: everything of the opened metadata table."""
        if name in _OWN or "timeline" in vars(self):
            raise AttributeError(name)
        found = self.snapshot.metadata
        if found is None:
            raise IndexNotReady(files.PARTITION, f"not there: {self.snapshot.listing_reason}")
        vars(self).update(vars(found))
        return getattr(self, name)

    def __repr__(self) -> str:
        if self.snapshot.metadata is None:
            return f"TableMetadata({self.snapshot.storage.root}: {self.snapshot.listing_reason})"
        return super().__repr__()

    def validate(self, partitions: Sequence[str] | None = None) -> ValidationReport:
        """Compare the metadata table with the table: listing, statistics, filters, and the indexes of rows.

        Args:
            partitions: Metadata partitions to check; all when None.

        Returns:
            What holds, what differs (with counts and examples), and what cannot be told because the table moved meanwhile.
            It prints well.

        Raises:
            IndexNotReady: There is no metadata table. ConfigError: A name that is none of its partitions.
        """
        from hudimeta.services.validation import validate

        return validate(self.snapshot, partitions)
