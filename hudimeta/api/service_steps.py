"""The steps of planned services, each by itself: what `table.services.clustering` and its likes give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hudimeta.api.grouped import GroupedVerbs

if TYPE_CHECKING:
    from hudimeta.commit.report import CommitReport
    from hudimeta.commit.session import WriteSession
    from hudimeta.services.clean import CleanReport
    from hudimeta.services.clustering import ClusteringPlan, ClusteringReport
    from hudimeta.services.compaction import CompactionPlan
    from hudimeta.services.indexing import IndexPlan, IndexReport
    from hudimeta.services.log_compaction import LogCompactionPlan
    from hudimeta.timeline.clean_record import CleanPlan

__all__ = ["CleaningVerbs", "ClusteringVerbs", "CompactionVerbs", "IndexingVerbs", "LogCompactionVerbs"]


class CompactionVerbs(GroupedVerbs):
    """The steps of a compaction, each by itself: what `TableServices.compaction` gives.

    >>> table.services.compaction.plan()                                       # doctest: +SKIP
    """

    def plan(self) -> CompactionPlan:
        """Which file slices would be compacted now, by the options `hoodie.compaction.*`; nothing is written."""
        from hudimeta.services import compaction

        session = _session(self)
        return compaction.plan(session, session.snapshot_now())

    def schedule(self) -> str | None:
        """Plan a compaction and leave it on the timeline, for `execute` or another process to run.

        Returns:
            Its instant; None when there is nothing to compact.
        """
        from hudimeta.services import compaction

        return compaction.schedule(_session(self))

    def execute(self, instant: str) -> CommitReport:
        """Run a compaction that is on the timeline, whoever planned it.

        Args:
            instant: Of the plan.
        """
        from hudimeta.services import compaction

        return compaction.execute(_session(self), instant)


class CleaningVerbs(GroupedVerbs):
    """The steps of a clean, each by itself: what `TableServices.cleaning` gives.

    >>> table.services.cleaning.plan()                                         # doctest: +SKIP
    """

    def plan(self) -> CleanPlan:
        """Which files would go now, by the options `hoodie.clean.*`; nothing is deleted."""
        from hudimeta.services import clean

        session = _session(self)
        return clean.plan(session, session.snapshot_now())

    def schedule(self) -> str | None:
        """Plan a clean and leave it on the timeline: `execute` runs it, or whoever writes next, or Apache Hudi.

        Returns:
            Its instant, or that of a clean that waits there; None when there is nothing to delete.
        """
        from hudimeta.services import clean

        return clean.schedule(_session(self))

    def execute(self, instant: str) -> CleanReport:
        """Run a clean that is on the timeline, whoever planned it.

        Args:
            instant: Of the plan.
        """
        from hudimeta.services import clean

        return clean.execute(_session(self), instant)


class ClusteringVerbs(GroupedVerbs):
    """The steps of a clustering, each by itself: what `TableServices.clustering` gives.

    >>> table.services.clustering.plan()                                       # doctest: +SKIP
    """

    def plan(self) -> ClusteringPlan:
        """What a clustering would take now, by the options `hoodie.clustering.*`; nothing is written."""
        from hudimeta.api import verbs

        return verbs.plan_clustering(*self._changing())

    def schedule(self) -> str | None:
        """Plan a clustering and leave it on the timeline, for `execute` or another process to run.

        Until it has run or is cancelled, nobody changes the rows that it names.

        Returns:
            Its instant; None when there is nothing to cluster.
        """
        from hudimeta.api import verbs

        return verbs.schedule_clustering(*self._changing())

    def execute(self, instant: str) -> ClusteringReport:
        """Run a clustering that is on the timeline, whoever planned it.

        Args:
            instant: Of the plan.
        """
        from hudimeta.api import verbs

        return verbs.execute_clustering(*self._changing(), instant, self._engine)

    def cancel(self, instant: str) -> None:
        """Take a clustering off the timeline that nobody is running.

        Args:
            instant: Of the plan.
        """
        from hudimeta.api import verbs

        verbs.cancel_clustering(*self._changing(), instant)


class LogCompactionVerbs(GroupedVerbs):
    """The steps of a log compaction, each by itself: what `TableServices.log_compaction` gives.

    >>> table.services.log_compaction.plan()                                   # doctest: +SKIP
    """

    def plan(self) -> LogCompactionPlan:
        """Which logs would be merged now, by the options `hoodie.log.compaction.*`; nothing is written."""
        from hudimeta.api import log_compacting

        return log_compacting.plan(*self._changing(), self._engine)

    def schedule(self) -> str | None:
        """Plan a log compaction and leave it on the timeline, for `execute` or another process to run.

        Returns:
            Its instant; None when no log has enough blocks.
        """
        from hudimeta.api import log_compacting

        return log_compacting.schedule(*self._changing(), self._engine)

    def execute(self, instant: str) -> CommitReport:
        """Run a log compaction that is on the timeline, whoever planned it.

        Args:
            instant: Of the plan.
        """
        from hudimeta.api import log_compacting

        return log_compacting.execute(*self._changing(), self._engine, instant)

    def cancel(self, instant: str) -> None:
        """Take a log compaction off the timeline that nobody is running.

        Args:
            instant: Of the plan.
        """
        from hudimeta.api import log_compacting

        log_compacting.cancel(*self._changing(), instant)


class IndexingVerbs(GroupedVerbs):
    """The steps of building an index beside writers, each by itself: what `TableServices.indexing` gives.

    >>> table.services.indexing.plan("record_index")                           # doctest: +SKIP
    """

    def plan(
        self, type: str, name: str | None = None, columns: str | Sequence[str] = (), *, expression: str | None = None
    ) -> IndexPlan:
        """What would be built; nothing is written. See `TableMetadata.create_index` for the arguments."""
        from hudimeta.services.indexing import beside_writers

        return beside_writers.plan(_session(self), **_asked(type, name, columns, expression))

    def schedule(
        self, type: str, name: str | None = None, columns: str | Sequence[str] = (), *, expression: str | None = None
    ) -> str:
        """Plan an index and leave it on the timeline, for `execute` or another process to build; returns the instant.

        See `TableMetadata.create_index` for the arguments.
        """
        from hudimeta.services.indexing import beside_writers

        return beside_writers.schedule(_session(self), **_asked(type, name, columns, expression))

    def execute(self, instant: str) -> IndexReport:
        """Build an index that is planned on the timeline, whoever planned it.

        Args:
            instant: Of the plan.
        """
        from hudimeta.services.indexing import beside_writers

        return beside_writers.execute(_session(self), instant)

    def cancel(self, instant: str) -> None:
        """Take the plan of an index off the timeline that nobody is building.

        Args:
            instant: Of the plan.
        """
        from hudimeta.services.indexing import beside_writers

        beside_writers.cancel(_session(self), instant)


def _session(verbs: GroupedVerbs) -> WriteSession:
    from hudimeta.commit.session import WriteSession

    return WriteSession(*verbs._changing(), engine=verbs._engine)


def _asked(type: str, name: str | None, columns: str | Sequence[str], expression: str | None) -> dict[str, Any]:
    named = [columns] if isinstance(columns, str) else list(columns)
    return {"kind": type, "name": name, "columns": named, "expression": expression}
