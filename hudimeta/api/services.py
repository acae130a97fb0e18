"""`table.services`: what keeps a table small and quick. Services change no row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from hudimeta.api.advising import Advising
from hudimeta.api.changes import Changing
from hudimeta.api.grouped import GroupedVerbs
from hudimeta.api.maintaining import Maintaining
from hudimeta.api.service_steps import CleaningVerbs, ClusteringVerbs, CompactionVerbs, IndexingVerbs, LogCompactionVerbs

if TYPE_CHECKING:
    from hudimeta.commit.report import CommitReport
    from hudimeta.reports import Reports
    from hudimeta.services.archival import ArchivalPlan, ArchivalReport
    from hudimeta.services.clean import CleanReport
    from hudimeta.services.clustering import ClusteringPlan, ClusteringReport
    from hudimeta.services.compaction import CompactionPlan
    from hudimeta.services.log_compaction import LogCompactionPlan
    from hudimeta.services.restore import RestoreReport
    from hudimeta.services.rollback import RollbackReport
    from hudimeta.services.savepoints import Savepoint
    from hudimeta.services.ttl import TtlReport
    from hudimeta.services.versions import VersionPlan, VersionReport
    from hudimeta.timeline.clean_record import CleanPlan

__all__ = ["TableServices"]


class TableServices(GroupedVerbs, Maintaining, Advising, Changing):
    """The services of a table.

    >>> table.services.compact()                                               # doctest: +SKIP
    """

    @overload
    def compact(self) -> Reports[CommitReport]: ...

    @overload
    def compact(self, *, dry_run: bool) -> Reports[CommitReport] | CompactionPlan: ...

    def compact(self, *, dry_run: bool = False) -> Reports[CommitReport] | CompactionPlan:
        """Merge the log files of a merge-on-read table into new base files; rows do not change.

        Compactions that were planned before are run first.

        >>> print(table.services.compact())                                    # doctest: +SKIP

        Args:
            dry_run: Only plan.

        Returns:
            A report for each compaction, none when no file group has log files; the plan alone of a dry run.
        """
        from hudimeta.api import verbs

        return verbs.compact(*self._changing(), self._engine, dry_run=dry_run)

    def schedule_compaction(self) -> str | None:
        """Plan a compaction and leave it on the timeline, for `compact` or another process to run.

        >>> instant = table.services.schedule_compaction()                     # doctest: +SKIP

        Returns:
            Its instant; None when no file group has log files that the strategy takes.
        """
        from hudimeta.api import verbs

        return verbs.schedule_compaction(*self._changing())

    @property
    def compaction(self) -> CompactionVerbs:
        """The steps of a compaction, each by itself: `plan`, `schedule`, `execute`."""
        return CompactionVerbs(self._changing, self._engine)

    @property
    def log_compaction(self) -> LogCompactionVerbs:
        """The steps of a log compaction, each by itself: `plan`, `schedule`, `execute`, `cancel`."""
        return LogCompactionVerbs(self._changing, self._engine)

    def log_compact(self, *, dry_run: bool = False) -> Reports[CommitReport] | LogCompactionPlan:
        """Merge the log blocks of each slice that has many into one log file; base files and rows do not change.

        Log compactions that were planned before are run first. See the options `hoodie.log.compaction.*`.

        >>> print(table.services.log_compact())                                # doctest: +SKIP

        Args:
            dry_run: Only plan.

        Returns:
            A report for each log compaction, none when no log has enough blocks; the plan alone of a dry run.
        """
        from hudimeta.api import log_compacting

        to = (*self._changing(), self._engine)
        return log_compacting.plan(*to) if dry_run else log_compacting.log_compact(*to)

    @property
    def clustering(self) -> ClusteringVerbs:
        """The steps of a clustering, each by itself: `plan`, `schedule`, `execute`, `cancel`."""
        return ClusteringVerbs(self._changing, self._engine)

    def cluster(
        self,
        columns: str | Sequence[str] = (),
        strategy: str | None = None,
        partitions: str | Sequence[str] = (),
        *,
        dry_run: bool = False,
    ) -> Reports[ClusteringReport] | ClusteringPlan:
        """Put the rows of small files together into larger ones, sorted; rows do not change.

        Clusterings that were planned before are run first. What is taken say the options `hoodie.clustering.plan.*`.

        >>> print(table.services.cluster(["fare", "day"], strategy="hilbert"))  # doctest: +SKIP

        Args:
            columns: To sort by; none for those of `hoodie.clustering.plan.strategy.sort.columns`.
            strategy: `linear`, by one column after the other; `zorder` or `hilbert`, which keep all columns together. None for
                `hoodie.layout.optimize.strategy`.
            partitions: Paths of the partitions to look at; none for those that the options choose.
            dry_run: Only plan.

        Returns:
            A report for each clustering, none when there was nothing to do; the plan alone of a dry run.
        """
        from hudimeta.api import verbs

        storage, options = self._changing()
        asked = verbs.clustering_options(options, columns, strategy, partitions)
        return verbs.plan_clustering(storage, asked) if dry_run else verbs.cluster(storage, asked, self._engine)

    @property
    def indexing(self) -> IndexingVerbs:
        """The steps of building an index beside writers, each by itself: `plan`, `schedule`, `execute`, `cancel`."""
        return IndexingVerbs(self._changing, self._engine)

    @property
    def cleaning(self) -> CleaningVerbs:
        """The steps of a clean, each by itself: `plan`, `schedule`, `execute`."""
        return CleaningVerbs(self._changing, self._engine)

    @overload
    def clean(self) -> CleanReport: ...

    @overload
    def clean(self, *, dry_run: bool) -> CleanReport | CleanPlan: ...

    def clean(self, *, dry_run: bool = False) -> CleanReport | CleanPlan:
        """Delete the files that no retained moment needs: see the options `hoodie.clean.*`.

        >>> print(table.services.clean(dry_run=True))                          # doctest: +SKIP

        Args:
            dry_run: Only plan.

        Returns:
            What was deleted; the plan alone of a dry run.
        """
        from hudimeta.api import verbs

        return self.cleaning.plan() if dry_run else verbs.clean(*self._changing(), self._engine)

    @overload
    def archive(self) -> ArchivalReport: ...

    @overload
    def archive(self, *, dry_run: bool) -> ArchivalReport | ArchivalPlan: ...

    def archive(self, *, dry_run: bool = False) -> ArchivalReport | ArchivalPlan:
        """Move instants that nobody needs from the active timeline to its history: see the options `hoodie.keep.*`.

        >>> print(table.services.archive(dry_run=True))                        # doctest: +SKIP

        Args:
            dry_run: Only plan.

        Returns:
            Which instants were moved; the plan alone of a dry run.
        """
        from hudimeta.api import verbs

        return verbs.archive(*self._changing(), dry_run=dry_run)

    def expire_partitions(self, *, dry_run: bool = False) -> TtlReport:
        """Take partitions that have outlived their time out of the table: see the options `hoodie.partition.ttl.*`.

        >>> print(table.services.expire_partitions(dry_run=True))              # doctest: +SKIP

        Args:
            dry_run: Only say which have.
        """
        from hudimeta.api import verbs

        return verbs.expire_partitions(*self._changing(), dry_run=dry_run)

    def savepoint(self, instant: str | None = None, comment: str = "", user: str = "", *, dry_run: bool = False) -> Savepoint:
        """Pin a write: its files are not cleaned and it is not archived, until the savepoint is given up.

        >>> print(table.services.savepoint(comment="before the migration"))    # doctest: +SKIP

        Args:
            instant: Requested time of a completed write; None for the newest.
            comment: Why.
            user: Who asks for it.
            dry_run: Only say what it would keep.

        Raises:
            UndoError: There is no such write, or cleaning has removed files that it needs.
        """
        from hudimeta.api import undo

        return undo.savepoint(*self._changing(), instant, comment, user, dry_run=dry_run)

    def savepoints(self) -> Reports[Savepoint]:
        """The savepoints of the table, the oldest first.

        >>> print(table.services.savepoints())                                 # doctest: +SKIP
        """
        from hudimeta.api import undo

        return undo.savepoints(*self._changing())

    def delete_savepoint(self, instant: str, *, dry_run: bool = False) -> Savepoint:
        """Give a savepoint up: cleaning and archival may take what it kept. Its write stays.

        >>> table.services.delete_savepoint("20260102030405678")               # doctest: +SKIP

        Args:
            instant: Of the savepoint.
            dry_run: Only say what it keeps.

        Raises:
            UndoError: There is no such savepoint.
        """
        from hudimeta.api import undo

        return undo.delete_savepoint(*self._changing(), instant, dry_run=dry_run)

    def rollback(self, instant: str, *, dry_run: bool = False) -> RollbackReport:
        """Take the newest completed write, or a pending write or plan, out of the table for good.

        >>> print(table.services.rollback("20260102030405678"))                # doctest: +SKIP

        Args:
            instant: Its requested time.
            dry_run: Only say what would go.

        Raises:
            UndoError: Later writes rest on it, a savepoint pins it, or what was there before cannot come back.
        """
        from hudimeta.api import undo

        return undo.rollback(*self._changing(), instant, dry_run=dry_run)

    def restore(self, instant: str, *, dry_run: bool = False) -> RestoreReport:
        """Take the table back to a savepoint, or to a completed write: everything that came later is deleted for good.

        Stop whoever writes to the table first; a write that is under way is refused at its end. Readers see the table as
        restored from the moment at which the plan is stored; what a process that dies leaves, the next writer finishes.

        >>> print(table.services.restore("20260102030405678", dry_run=True))   # doctest: +SKIP

        Args:
            instant: Of the savepoint, or requested time of the write.
            dry_run: Only say what would go.

        Raises:
            UndoError: The table cannot be restored to there; nothing was changed.
        """
        from hudimeta.api import undo

        return undo.restore(*self._changing(), self._engine, instant, dry_run=dry_run)

    def wait(self) -> None:
        """Return when the services of this table that run in a thread of this process are done.

        Those are what `hoodie.clustering.async.enabled`, `hoodie.datasource.compaction.async.enable`,
        `hoodie.clean.async.enabled` and `hoodie.archive.async` ask for.

        >>> table.services.wait()                                              # doctest: +SKIP
        """
        from hudimeta.services import in_thread

        in_thread.wait(self._changing()[0].root)

    def recover(self) -> tuple[str, ...]:
        """Roll back what writers that died left behind, as the next write would; returns their instants.

        >>> table.services.recover()                                           # doctest: +SKIP
        ()
        """
        from hudimeta.api import verbs

        return verbs.recover(*self._changing())

    def upgrade(self, to: int = 9, *, dry_run: bool = False) -> VersionReport | VersionPlan:
        """Move the table to a later version; no row changes. Nothing else ever does that.

        Version 6 becomes 8 by a new timeline and a new metadata table, 8 becomes 9 by new properties; log files are compacted
        on the way. One request decides a step: a call that died is finished by the next one.

        >>> print(table.services.upgrade(dry_run=True))                        # doctest: +SKIP
        version 8 -> 9
          set the properties of version 9

        Args:
            to: The version, 8 or 9.
            dry_run: Only say what would be done.

        Returns:
            What was done; what would be, with `dry_run`.

        Raises:
            ConfigError: Not a later version; version 6 with a custom key generator whose fields have no types.
            UnsupportedFeature: The table has what that version cannot say; nothing was changed.
            TableError: Writers or services are at work.
        """
        from hudimeta.api import verbs

        return verbs.change_version(*self._changing(), to, "upgrade", dry_run, self._engine)

    def downgrade(self, to: int = 8, *, dry_run: bool = False) -> VersionReport | VersionPlan:
        """Move the table from version 9 back to 8; no row changes. See `upgrade`.

        The metadata table is built anew, with the same indexes in their older form; a record index by partition becomes one
        over the whole table.

        >>> table.services.downgrade()                                         # doctest: +SKIP

        Args:
            to: The version, 8.
            dry_run: Only say what would be done.
        """
        from hudimeta.api import verbs

        return verbs.change_version(*self._changing(), to, "downgrade", dry_run, self._engine)
