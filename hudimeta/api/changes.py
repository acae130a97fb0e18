"""`table.repair` and its likes: what a person calls once, when something is wrong with a table or shall be otherwise."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hudimeta.api.grouped import GroupedVerbs
from hudimeta.config import checked

if TYPE_CHECKING:
    from hudimeta.commit.session import WriteSession
    from hudimeta.config import Options
    from hudimeta.engine import Engine
    from hudimeta.services.bucket_rescaling import RescaleReport
    from hudimeta.services.repair import DuplicatesReport, RepairReport
    from hudimeta.services.table_type import TypeReport
    from hudimeta.storage import Storage

__all__ = ["ChangeVerbs", "Changing", "TableRepairs"]


class TableRepairs(GroupedVerbs):
    """Repairs of what went wrong around a table: what `table.repair` gives.

    >>> print(table.repair.orphans())                                          # doctest: +SKIP
    """

    def deduplicate(self, partitions: str | Sequence[str] = (), *, dry_run: bool = False) -> DuplicatesReport:
        """Drop all but the newest of the rows that have a record key in common within their partition, in one commit.

        The newest has the greatest ordering value, then the latest commit.

        >>> print(table.repair.deduplicate("2026-01", dry_run=True))           # doctest: +SKIP

        Args:
            partitions: Only these, by their paths; none for all.
            dry_run: Only find them; the report's `plan.rows` has them all.

        Raises:
            ConfigError: No such partition.
            TableError: A service is planned for a file group that has to be written anew.
        """
        from hudimeta.services import repair

        names = [partitions] if isinstance(partitions, str) else list(partitions)
        return repair.deduplicate(self._session(), names, dry_run=dry_run)

    def orphans(self, *, dry_run: bool = True) -> RepairReport:
        """List the data files that no write owns; delete them with `dry_run=False`.

        Files of pending writes, of savepoints, of archived writes and those of which too little is known are none.

        >>> print(table.repair.orphans())                                      # doctest: +SKIP

        Args:
            dry_run: Only list them.
        """
        from hudimeta.services import repair

        return repair.repair_orphans(self._session(), dry_run=dry_run)

    def metafiles(self, *, dry_run: bool = False) -> RepairReport:
        """Write the `.hoodie_partition_metadata` that partitions lack, without which listings pass them over.

        >>> print(table.repair.metafiles())                                    # doctest: +SKIP

        Args:
            dry_run: Only look.
        """
        from hudimeta.services import repair

        return repair.repair_metafiles(self._session(), dry_run=dry_run)

    def cleans(self, *, dry_run: bool = False) -> RepairReport:
        """Remove the plans of cleans that nobody can run, and write damaged records of cleans anew.

        >>> print(table.repair.cleans())                                       # doctest: +SKIP

        Args:
            dry_run: Only look.
        """
        from hudimeta.services import repair

        return repair.repair_cleans(self._session(), dry_run=dry_run)

    def properties(self, *, dry_run: bool = False) -> RepairReport:
        """Write a damaged `hoodie.properties` anew from its backup, and remove a backup that a dead writer left.

        >>> print(table.repair.properties())                                   # doctest: +SKIP

        Args:
            dry_run: Only look.

        Raises:
            TableError, CorruptFileError: Neither the file nor its backup is sound.
        """
        from hudimeta.services import repair

        return repair.repair_properties(self._session(), dry_run=dry_run)

    def _session(self) -> WriteSession:
        from hudimeta.commit.session import WriteSession

        return WriteSession(*self._changing(), engine=self._engine)


@checked
class Changing:
    """Gives `TableServices` what a person calls once."""

    _changing: Callable[[], tuple[Storage, Options]]
    _engine: Engine | None

    @property
    def repair(self) -> TableRepairs:
        """Repairs: `deduplicate`, `orphans`, `metafiles`, `cleans`, `properties`."""
        return TableRepairs(self._changing, self._engine)

    def change_type(self, to: str, *, dry_run: bool = False) -> TypeReport:
        """Make a copy-on-write table merge-on-read, or the other way round; no row changes.

        A table that becomes copy-on-write is compacted first. One request decides.

        >>> print(table.services.change_type("MERGE_ON_READ", dry_run=True))   # doctest: +SKIP
        COPY_ON_WRITE -> MERGE_ON_READ
          set the type in hoodie.properties

        Args:
            to: `COPY_ON_WRITE` or `MERGE_ON_READ`; `COW` and `MOR` are short for them.
            dry_run: Only say what would be done.

        Raises:
            ConfigError: No such type.
            UnsupportedFeature: The table's index needs the type that it has.
            TableError: Writes or services are pending.
        """
        from hudimeta.commit.session import WriteSession
        from hudimeta.services import table_type

        return table_type.change_type(WriteSession(*self._changing(), engine=self._engine), to, dry_run=dry_run)

    def rescale_buckets(self, rules: str, *, dry_run: bool = False) -> RescaleReport:
        """Give partitions of a table with a fixed bucket index other numbers of buckets, in one commit.

        Rows of partitions whose number changes are written anew, and keep their commit times. The first rule that is found in a
        partition's path counts; a partition without any has as many buckets as the table was made with. Stop writers of
        Apache Hudi meanwhile. Source: RFC-89.

        >>> print(table.services.rescale_buckets("2026-01,8;2025-.*,2", dry_run=True))  # doctest: +SKIP
        buckets by 2026-01,8;2025-.*,2
          rows move in 1 partitions with 4 file groups, 52,114 bytes
          2026-01: 4 -> 8 buckets, 52,114 bytes

        Args:
            rules: `<regular expression>,<buckets>;…`; `.*,8` as the last one is for all other partitions.
            dry_run: Only say what would be done.

        Raises:
            ConfigError: Rules that cannot be read; a table without a bucket index, or in other buckets than its options say.
            UnsupportedFeature: Consistent hashing, whose buckets a clustering splits and merges.
            TableError: A service is planned for a file group that has to be written anew.
            CommitConflict: Other writers were first, several times.
        """
        from hudimeta.commit.session import WriteSession
        from hudimeta.services import bucket_rescaling

        session = WriteSession(*self._changing(), engine=self._engine)
        return bucket_rescaling.rescale_buckets(session, rules, dry_run=dry_run)

    def rename(self, name: str) -> None:
        """Give the table another name (`hoodie.table.name`); its folder and its rows stay, and so does its name in catalogs.

        `ALTER TABLE … RENAME TO` of an attached session renames both. Writers that state a name must state the new one.

        >>> table.services.rename("trips_2026")                                # doctest: +SKIP

        Args:
            name: The new one.

        Raises:
            ConfigError: No name.
        """
        from hudimeta.api import verbs

        verbs.rename(*self._changing(), name)


class ChangeVerbs(abc.ABC):
    """The same on the table itself."""

    @property
    @abc.abstractmethod
    def services(self) -> Changing:
        """See `ServiceVerbs.services`."""

    @property
    def repair(self) -> TableRepairs:
        """See `services.repair`."""
        return self.services.repair

    def change_type(self, to: str, *, dry_run: bool = False) -> TypeReport:
        """See `services.change_type`."""
        return self.services.change_type(to, dry_run=dry_run)

    def rescale_buckets(self, rules: str, *, dry_run: bool = False) -> RescaleReport:
        """See `services.rescale_buckets`."""
        return self.services.rescale_buckets(rules, dry_run=dry_run)

    def rename(self, name: str) -> None:
        """See `services.rename`."""
        self.services.rename(name)
