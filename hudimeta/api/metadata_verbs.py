"""Verbs about the metadata table as a whole: made, brought up to date, removed, switched, counted, timed, listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hudimeta.config import checked

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.commit.session import WriteSession
    from hudimeta.services.metadata_table import ListingCost, MetadataChange, MetadataStats
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.table.modes import MetadataModes

__all__ = ["MetadataVerbs"]


@checked
class MetadataVerbs:
    """See `TableMetadata`."""

    _snapshot: Snapshot
    _modes: MetadataModes
    _on_change: Callable[[], None]

    def __init_subclass__(cls) -> None:
        checked(cls)

    def _session(self, options: Mapping[str, str]) -> WriteSession:
        raise NotImplementedError

    @property
    def modes(self) -> MetadataModes:
        """How it is used: `enabled`, `validated`; by options, and by what `set` wrote down for the table."""
        return self._modes

    def create(self, *, dry_run: bool = False) -> MetadataChange:
        """Make it for a table that has none, with the indexes that options ask for.

        >>> print(table.metadata.create(dry_run=True))                         # doctest: +SKIP

        Args:
            dry_run: Only tell which partitions it would have.

        Raises:
            TableError: There is one, or its properties say that it has none.
        """
        from hudimeta.services.metadata_table import create

        return self._changed(create(self._session({}), dry_run=dry_run))

    def update(self, *, dry_run: bool = False) -> MetadataChange:
        """Bring it into step with the table after crashes, or after writers that left it out; in step nothing is done.

        >>> print(table.metadata.update())                                     # doctest: +SKIP

        Args:
            dry_run: Only tell what would be done.

        Raises:
            TableError: There is none.
        """
        from hudimeta.services.metadata_table import update

        return self._changed(update(self._session({}), dry_run=dry_run))

    def delete(self, *, dry_run: bool = False) -> MetadataChange:
        """Remove it with all indexes; the next write makes it anew, unless `set(enable=False)` was called.

        >>> print(table.metadata.delete(dry_run=True))                         # doctest: +SKIP

        Args:
            dry_run: Only tell how much would be removed.

        Raises:
            TableError: There is none.
        """
        from hudimeta.services.metadata_table import delete

        return self._changed(delete(self._session({}), dry_run=dry_run))

    def set(self, *, enable: bool | None = None, validate: bool | None = None, dry_run: bool = False) -> MetadataChange:
        """Write down how it is used where no option says so: `modes` tells. Apache Hudi goes by its own options.

        >>> print(table.metadata.set(validate=True))                           # doctest: +SKIP

        Args:
            enable: Reads plan from it, and writes make it where it is not there; None leaves it as it is.
            validate: Reads plan from a listing of storage and only compare it; None leaves it as it is.
            dry_run: Only tell what would change.
        """
        from hudimeta.services.metadata_table import set_modes

        return self._changed(set_modes(self._session({}), enable, validate, dry_run=dry_run))

    def stats(self) -> MetadataStats:
        """Its files and bytes by partition, its last compaction, and whether it is in step with the table.

        >>> print(table.metadata.stats())                                      # doctest: +SKIP

        Raises:
            IndexNotReady: There is none.
        """
        from hudimeta.services.metadata_table import stats_of

        return stats_of(self._snapshot)

    def measure(self, partition: str | None = None, *, rounds: int = 3) -> ListingCost:
        """Time listings and views of the table with it and without it, as the first draft of RFC-15 did.

        >>> print(table.metadata.measure())                                    # doctest: +SKIP

        Args:
            partition: For calls about one partition; None for that with the most files.
            rounds: How often each call is made; the quickest counts.

        Raises:
            ConfigError: No round, or a partition that the table does not have.
        """
        from hudimeta.services.metadata_table import measure

        return measure(self._snapshot, partition, rounds)

    @property
    def listing_reason(self) -> str:
        """Why storage is listed instead of asking it; "" where it is asked."""
        return self._snapshot.listing_reason

    def list_partitions(self) -> pa.StringArray:
        """Partition paths of the table, sorted; by a listing of storage where it cannot be asked, see `listing_reason`.

        >>> table.metadata.list_partitions().to_pylist()                       # doctest: +SKIP
        """
        return self._snapshot.listing.partitions()

    def list_files(self, partition: str = "") -> pa.Table:
        """Files of completed writes in one partition; by a listing of storage where it cannot be asked.

        >>> table.metadata.list_files("2026-01")["name"].to_pylist()           # doctest: +SKIP

        Args:
            partition: Its path; "" for a table without partitions.

        Returns:
            partition_path string, name string, size int64, by name.

        Raises:
            ConfigError: The table has no such partition.
        """
        from hudimeta.errors import ConfigError
        from hudimeta.table.discovery import committed_files

        listing = self._snapshot.listing
        if partition not in (known := listing.partitions().to_pylist()):
            raise ConfigError(
                "partition", partition, f"one of the table's {len(known):,} partitions", "list_partitions tells them."
            )
        return committed_files(listing.files([partition]), self._snapshot.timeline).sort_by("name")

    def _changed(self, change: MetadataChange) -> MetadataChange:
        if change.steps and not change.dry_run:
            self._on_change()
        return change
