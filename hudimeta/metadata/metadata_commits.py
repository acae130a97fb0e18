"""Commits of the metadata table: which of them count, and which may have made base files.

A commit counts when its instant is completed in the metadata table and not pending in the data table, because a writer
completes both under one lock, the metadata table first. Nor does it count while the instant is being taken back.

An index goes to fewer file groups by a replacecommit, which makes the base files of those that stay and takes the others out.
Apache Hudi passes over file groups that a replacecommit names as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudimeta.cached import cached_property
from hudimeta.metadata.beginnings import INIT_BELOW, is_archived_beginning
from hudimeta.metadata.strays import strays
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant, State

__all__ = ["FEWER_KEY", "MetadataCommits", "gives_fewer_groups"]

FEWER_KEY = "hudimeta.fewer.groups"
"""Entry of the extraMetadata of a replacecommit that gives an index fewer file groups, requested and completed. Completed, it
tells the names of all files that are out of use by then, as a JSON list. Apache Hudi's replacecommits drop whole partitions."""


def gives_fewer_groups(timeline: Timeline, instant: Instant) -> bool:
    """Whether an instant on the metadata table's timeline is a replacecommit of ours, pending or completed."""
    if instant.action is not Action.REPLACE_COMMIT:
        return False
    record = timeline.metadata(instant) if instant.is_completed else timeline.plan(instant)
    return FEWER_KEY in (record.get("extraMetadata") or {})


class MetadataCommits:
    """Commits of one metadata table as of the moment its timeline was listed.

    Args:
        timeline: Of the metadata table.
        data: Timeline of the data table.
        named: How many partitions the metadata table has.
    """

    def __init__(self, timeline: Timeline, data: Timeline, named: int) -> None:
        self.timeline, self.data, self._named_partitions = timeline, data, named

    def is_visible(self, instant: str) -> bool:
        """True when what an instant wrote into the metadata table counts."""
        if instant in self._uncounted or instant in self._strays:
            return False
        return self.timeline.is_committed(instant) or is_archived_beginning(self.timeline, instant)

    @cached_property
    def _strays(self) -> frozenset[str]:
        return frozenset(i.time for i in strays(self.timeline, self.data) if i.is_completed)

    @cached_property
    def _uncounted(self) -> frozenset[str]:
        completed = {i.time for i in self.data.completed}
        return frozenset(i.time for i in (*self.data.pending, *self.data.undone) if i.time not in completed)

    def completion(self, instant: str) -> str:
        """Completion time of a visible instant; the instant itself where no one knows it any more."""
        return self.timeline.completion_of(instant) or instant

    @cached_property
    def lost(self) -> bool:
        """True when a commit that counts has an empty file, so that names alone tell which files there are.

        Apache Hudi makes a commit's file before it writes it, and all that it tells of before that.
        """
        empty = self.timeline.empty_writes
        return any(i.action is not Action.DELTA_COMMIT or self.is_visible(i.time) for i in empty)

    @cached_property
    def compacting(self) -> frozenset[str]:
        """Pending instants of what makes base files of file groups that may be new."""
        return frozenset(i.time for i in self.timeline.pending if i.action in (Action.COMPACTION, Action.REPLACE_COMMIT))

    @cached_property
    def fewer(self) -> tuple[Instant, ...]:
        """Completed replacecommits that gave an index fewer file groups."""
        return tuple(i for i in self.timeline.writes if gives_fewer_groups(self.timeline, i))

    def taken_out(self, partition: str) -> frozenset[str]:
        """Ids of the file groups that such replacecommits took out of a partition."""
        records = (self.timeline.metadata(i)["partitionToReplaceFileIds"] for i in self.fewer)
        return frozenset(file_id for record in records for file_id in record.get(partition, ()))

    @cached_property
    def delta_commits(self) -> tuple[Instant, ...]:
        """Visible completed delta commits of the metadata table, oldest first."""
        return tuple(i for i in self.timeline.writes if i.action is Action.DELTA_COMMIT and self.is_visible(i.time))

    @cached_property
    def compactions(self) -> tuple[Instant, ...]:
        """Completed compactions, and what gave an index fewer file groups, newest first."""
        return tuple(i for i in reversed(self.timeline.writes) if i.action is Action.COMMIT or i in self.fewer)

    @cached_property
    def initialisers(self) -> tuple[Instant, ...]:
        """Delta commits that may have created base files: those before all time, and those of an index that was built later.

        A data table that was bootstrapped from plain files has instants before all time as well: those are no initialisers.
        """
        return tuple(i for i in self.delta_commits if self._creates(i.time))

    def _creates(self, time: str) -> bool:
        return (time < INIT_BELOW and self.data.get(time) is None) or self.data.get(time, Action.INDEXING) is not None

    @cached_property
    def deltas(self) -> tuple[Instant, ...]:
        """Delta commits that went with something in the data table: all but those that create a partition."""
        created = {i.time for i in self.initialisers}
        return tuple(i for i in self.delta_commits if i.time not in created)

    @cached_property
    def makers(self) -> tuple[Instant, ...]:
        """Commits that may have made base files, newest first.

        Those of the first layout have no order, as each made another partition, unless one was laid out twice.
        """
        again = [i for i in self.initialisers if i.time >= INIT_BELOW or self.begins_again(i)]
        first = [i for i in self.initialisers if i not in again]
        if self.may_be_laid_out_twice:
            first.sort(key=lambda i: i.completion_order, reverse=True)
        return (*sorted((*self.compactions, *again), key=lambda i: i.completion_order, reverse=True), *first)

    @property
    def may_be_laid_out_twice(self) -> bool:
        """True when there were more layouts than there are partitions: an index was dropped, or who built the metadata table
        died on the way, and Apache Hudi laid it out once more, the listing of files as well, over what was there.
        """
        return sum(i.time < INIT_BELOW for i in self.initialisers) > self._named_partitions

    def begins_again(self, instant: Instant) -> bool:
        """True for a delta commit before all time that was completed after one that went with a write."""
        return instant.time < INIT_BELOW and instant.completed_at > self._first_delta

    @cached_property
    def _first_delta(self) -> str:
        return min((i.completed_at for i in self.deltas), default="9")

    def prefetch_data(self, commits: Sequence[Instant]) -> None:
        """Read the data table's metadata of some delta commits at once."""
        self.data.prefetch([i for commit in commits if (i := self.data_instant(commit.time))])

    def begins(self, instant: str) -> bool:
        """True for an instant before all time, whose log files are the empty ones that begin file groups."""
        return instant < INIT_BELOW

    def data_instant(self, time: str) -> Instant | None:
        """The completed instant of the data table that a delta commit stands for, a write or a clean.

        None without one, and where its file has lost what it said: the metadata table has kept it.
        """
        instant = self.data.get(time)
        if instant is None or instant.state is not State.COMPLETED or not instant.size:
            return None
        return instant if instant.action.writes_data or instant.action is Action.CLEAN else None
