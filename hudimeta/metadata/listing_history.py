"""What the listing of a table's files rests on, instant by instant: for whoever keeps a listing and asks later what came since.

The partition `files` is a base file and what later delta commits changed. The base file follows from the commits that may have
made it; so a kept listing is that of today without what today's further delta commits say, where the makers are the same and
each delta commit of then is there still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.formats.plain_arrays import no_rows
from hudimeta.metadata import file_deltas, files
from hudimeta.metadata.file_listing import FileListing
from hudimeta.metadata.groups import GroupFinder
from hudimeta.types import Instant

__all__ = ["ListingHistory", "ListingRoots"]


@dataclass(frozen=True)
class ListingRoots:
    """Where a listing comes from.

    Attributes:
        makers: Commits that may have made the base file, newest first, the one that made it at last; all of them where there is
            no base file.
        since: Delta commits that completed at or after this time lie on top of it; "" where there is none.
        deltas: These delta commits, oldest first.
    """

    makers: tuple[Instant, ...]
    since: str
    deltas: tuple[Instant, ...]


class ListingHistory:
    """The history of one metadata table's listing.

    Args:
        finder: Finds the files of the metadata table.
        listing: Of the partition `files`.
    """

    def __init__(self, finder: GroupFinder, listing: FileListing) -> None:
        self._finder, self._listing = finder, listing

    def roots(self) -> ListingRoots | None:
        """Where the listing comes from; None when commits alone do not tell. No request once the listing was read."""
        finder = self._finder
        if not self.is_plain:
            return None
        makers = self.makers
        for count, instant in enumerate(makers, 1):
            for base in finder.bases_in(instant, files.PARTITION).values():
                return ListingRoots(makers[:count], base.since, self.deltas(base.since))
        if finder.is_archived or self._listing.has_base:
            return None
        return ListingRoots(makers, "", self.deltas(""))

    @property
    def is_plain(self) -> bool:
        """False for tables of version 6, where files are listed that were cleaned after the moment that is looked at, and where
        a commit of the metadata table has lost its content.
        """
        return not (self._finder.logs_name_base or self._finder.lost or self._listing.names_cleaned)

    @property
    def makers(self) -> tuple[Instant, ...]:
        """Commits that may have made the base file, newest first; no request."""
        return self._finder.makers_of(files.PARTITION)

    @property
    def makers_of_any(self) -> tuple[Instant, ...]:
        """Commits that may have made base files of any partition, newest first; no request."""
        return self._finder.makers

    def deltas(self, since: str) -> tuple[Instant, ...]:
        """Delta commits that lie on top of a base file; no request."""
        return tuple(i for i in self._finder.deltas if self._finder.completion(i.time) >= since)

    def changes(self, deltas: Sequence[Instant]) -> pa.Table | None:
        """What some delta commits changed, as the table's own commits say: one request each, all at once.

        Returns:
            Rows of `files.SCHEMA`, oldest first; None when only the metadata table's logs tell.
        """
        finder = self._finder
        finder.prefetch_data(deltas)
        tables = [no_rows(files.SCHEMA)]
        for commit in deltas:
            instant = finder.data_instant(commit.time)
            rows = file_deltas.derive(instant, finder.data.metadata(instant)) if instant else None
            if rows is None:
                return None
            tables.append(rows)
        return pa.concat_tables(tables)
