"""The services of a table under their own names on the table itself."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from hudimeta.api.changes import ChangeVerbs

if TYPE_CHECKING:
    from hudimeta.api.services import TableServices
    from hudimeta.commit.report import CommitReport
    from hudimeta.reports import Reports
    from hudimeta.services.advice import Advice
    from hudimeta.services.archival import ArchivalPlan, ArchivalReport
    from hudimeta.services.clean import CleanReport
    from hudimeta.services.clustering import ClusteringPlan, ClusteringReport
    from hudimeta.services.compaction import CompactionPlan
    from hudimeta.services.log_compaction import LogCompactionPlan
    from hudimeta.services.maintenance import MaintenancePlan, MaintenanceReport
    from hudimeta.services.restore import RestoreReport
    from hudimeta.services.rollback import RollbackReport
    from hudimeta.services.savepoints import Savepoint
    from hudimeta.services.ttl import TtlReport
    from hudimeta.services.versions import VersionPlan, VersionReport
    from hudimeta.timeline.clean_record import CleanPlan

__all__ = ["ServiceVerbs"]


class ServiceVerbs(ChangeVerbs):
    """The services under their own names on the table itself, as they always were."""

    @property
    @abc.abstractmethod
    def services(self) -> TableServices:
        """`compact`, `cluster`, `clustering`, `clean`, `archive`, `savepoint` and its likes, `recover`, `upgrade`, …"""

    @overload
    def compact(self) -> Reports[CommitReport]: ...

    @overload
    def compact(self, *, dry_run: bool) -> Reports[CommitReport] | CompactionPlan: ...

    def compact(self, *, dry_run: bool = False) -> Reports[CommitReport] | CompactionPlan:
        """See `services.compact`."""
        return self.services.compact(dry_run=dry_run)

    def schedule_compaction(self) -> str | None:
        """See `services.schedule_compaction`."""
        return self.services.schedule_compaction()

    def log_compact(self, *, dry_run: bool = False) -> Reports[CommitReport] | LogCompactionPlan:
        """See `services.log_compact`."""
        return self.services.log_compact(dry_run=dry_run)

    def cluster(
        self,
        columns: str | Sequence[str] = (),
        strategy: str | None = None,
        partitions: str | Sequence[str] = (),
        *,
        dry_run: bool = False,
    ) -> Reports[ClusteringReport] | ClusteringPlan:
        """See `services.cluster`."""
        return self.services.cluster(columns, strategy, partitions, dry_run=dry_run)

    @overload
    def clean(self) -> CleanReport: ...

    @overload
    def clean(self, *, dry_run: bool) -> CleanReport | CleanPlan: ...

    def clean(self, *, dry_run: bool = False) -> CleanReport | CleanPlan:
        """See `services.clean`."""
        return self.services.clean(dry_run=dry_run)

    @overload
    def archive(self) -> ArchivalReport: ...

    @overload
    def archive(self, *, dry_run: bool) -> ArchivalReport | ArchivalPlan: ...

    def archive(self, *, dry_run: bool = False) -> ArchivalReport | ArchivalPlan:
        """See `services.archive`."""
        return self.services.archive(dry_run=dry_run)

    def expire_partitions(self, *, dry_run: bool = False) -> TtlReport:
        """See `services.expire_partitions`."""
        return self.services.expire_partitions(dry_run=dry_run)

    def savepoint(self, instant: str | None = None, comment: str = "", user: str = "", *, dry_run: bool = False) -> Savepoint:
        """See `services.savepoint`."""
        return self.services.savepoint(instant, comment, user, dry_run=dry_run)

    def savepoints(self) -> Reports[Savepoint]:
        """See `services.savepoints`."""
        return self.services.savepoints()

    def delete_savepoint(self, instant: str, *, dry_run: bool = False) -> Savepoint:
        """See `services.delete_savepoint`."""
        return self.services.delete_savepoint(instant, dry_run=dry_run)

    def rollback(self, instant: str, *, dry_run: bool = False) -> RollbackReport:
        """See `services.rollback`."""
        return self.services.rollback(instant, dry_run=dry_run)

    def restore(self, instant: str, *, dry_run: bool = False) -> RestoreReport:
        """See `services.restore`."""
        return self.services.restore(instant, dry_run=dry_run)

    def recover(self) -> tuple[str, ...]:
        """See `services.recover`."""
        return self.services.recover()

    def upgrade(self, to: int = 9, *, dry_run: bool = False) -> VersionReport | VersionPlan:
        """See `services.upgrade`."""
        return self.services.upgrade(to, dry_run=dry_run)

    def downgrade(self, to: int = 8, *, dry_run: bool = False) -> VersionReport | VersionPlan:
        """See `services.downgrade`."""
        return self.services.downgrade(to, dry_run=dry_run)

    def maintain(
        self, *, max_bytes: int | None = None, max_seconds: float | None = None, dry_run: bool = False
    ) -> MaintenanceReport | MaintenancePlan:
        """See `services.maintain`."""
        return self.services.maintain(max_bytes=max_bytes, max_seconds=max_seconds, dry_run=dry_run)

    def advise(self, *, apply: bool = False, unused_days: int = 30) -> Advice:
        """See `services.advise`."""
        return self.services.advise(apply=apply, unused_days=unused_days)
