"""Settling a write with those that completed while it was under way: a conflict is a conflict of rows.

What others did to file groups that this write touched, and to partitions into which it added rows, is compared row by row
(`AddedKeys`, `Rebase`). The table's lock is not held meanwhile: commits that are found under it are looked at after it was let
go, and it is taken again, until few enough come in between. A write that nobody was faster than pays nothing for all this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hudimeta.commit.conflicts import TableChange, writes_since
from hudimeta.commit.coordinator import OpenWrite, Publication, Unsettled
from hudimeta.commit.session import WriteSession
from hudimeta.errors import CommitConflict
from hudimeta.indexes.bucket.look_up import bucket_of_file_id
from hudimeta.snapshot.planned_groups import groups_under_clustering
from hudimeta.timeline import Timeline
from hudimeta.types import Action, FileGroupId
from hudimeta.write.added_keys import AddedKeys, UnknownKeys
from hudimeta.write.rebase import Rebase
from hudimeta.write.table_files import TableFiles
from hudimeta.write.write_result import WriteResult

__all__ = ["Settlement"]

_ROUNDS = 8
"""How often the lock is let go to look at commits; what comes after that is looked at under it."""
_FEW, _SMALL = 16, 16 << 20
"""So many commits, with files of so many bytes, have their keys read under the lock: less work than to queue for it again."""
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


class Settlement:
    """See `Settling`; one for each publication of rows.

    Args:
        session: The table.
        table: The table as the write saw it.
        write: The write.
        outcome: What it wrote.
        publication_of: Makes the publication of an outcome.
    """

    def __init__(
        self,
        session: WriteSession,
        table: TableFiles,
        write: OpenWrite,
        outcome: WriteResult,
        publication_of: Callable[[WriteResult], Publication],
    ) -> None:
        self.outcome = outcome
        self._session, self._table, self._write, self._publication_of = session, table, write, publication_of
        self._publication: Publication | None = None
        self._settled = write.seen
        self._rounds = _ROUNDS
        self._non_blocking = session.concurrency.non_blocking

    @property
    def expects_others(self) -> bool:
        """Whether other writers were at work when this one began, so that a look before the lock is taken pays."""
        return any(i.action in _WRITES and i.time != self._write.instant for i in self._table.snapshot.timeline.pending)

    @property
    def publication(self) -> Publication:
        """Of the outcome as it is settled so far."""
        if self._publication is None:
            plain = self._publication_of(self.outcome)
            self._publication = replace(plain, extra={**plain.extra, **self._added.stated()})
        return self._publication

    @property
    def _added(self) -> AddedKeys:
        anywhere = self.outcome.keyed_partitions is None
        return AddedKeys.of(self.outcome.pieces, self.outcome.files, anywhere=anywhere)

    def under_lock(self, timeline: Timeline) -> Publication:
        """See `Settling`."""
        changes = self._changes(timeline)
        crossed, rivals = self._crossed(timeline, changes), self._rivals(timeline, changes)
        size = sum(file.size for change in rivals for file in change.files)
        if self._rounds and (crossed or len(rivals) > _FEW or size > _SMALL):
            self._rounds -= 1
            raise Unsettled(self, timeline)
        if crossed:
            # After so many rounds the rows of these file groups are too busy to be written beside others.
            group = next(iter(crossed))
            raise self._conflict(group, self._changes_to(group, changes))
        return self._settled_with(timeline, changes)

    def settle(self, timeline: Timeline) -> Publication:
        """See `Settling`."""
        changes = self._changes(timeline)
        crossed = self._crossed(timeline, changes)
        if crossed:
            rebase = Rebase(self._session, self._session.snapshot_at(timeline), self._write, self.outcome)
            self.outcome = rebase.over({group: self._changes_to(group, changes) for group in crossed})
            self._publication = None
        return self._settled_with(timeline, changes)

    def _settled_with(self, timeline: Timeline, changes: Sequence[TableChange]) -> Publication:
        self._refuse_between_two_orders(changes)
        if self._table.lookup.fixes_places and any(_may_rescale(timeline, change) for change in changes):
            self._table.lookup.refuse_rescaled(timeline, self._write.operation.value)
        if rivals := self._rivals(timeline, changes):
            self._compare(timeline, changes, rivals)
        self._settled |= {change.time for change in changes}
        return self.publication

    def _changes(self, timeline: Timeline) -> list[TableChange]:
        """What commits did that are not settled yet."""
        return [TableChange.of(timeline, instant) for instant in writes_since(timeline, self._settled)]

    def _crossed(self, timeline: Timeline, changes: Sequence[TableChange]) -> list[FileGroupId]:
        """File groups of this write that others changed, or that a pending clustering is going to replace."""
        mine = {FileGroupId(file.partition_path, file.file_id) for file in self.outcome.files}
        crossed = {group for change in changes for group in mine & self._groups_of(change)}
        if crossed and self._non_blocking is not None:
            crossed = self._non_blocking.crossed(timeline, self._write, self.outcome.files, (c.time for c in changes))
        crossed |= {group for change in changes for group in self._rewritten & change.extended}
        return sorted(crossed | (self.publication.changed & groups_under_clustering(timeline)), key=_in_order)

    @property
    def _rewritten(self) -> frozenset[FileGroupId]:
        """File groups that get a new base file."""
        files = (file for file in self.outcome.files if file.log_instant is None and not file.is_new_group)
        return frozenset(FileGroupId(file.partition_path, file.file_id) for file in files)

    def _groups_of(self, change: TableChange) -> frozenset[FileGroupId]:
        """File groups of a change that matter here: log files lie on what a compaction wrote, as readers place them by
        completion, unless they say on which base file they lie, for CDC queries."""
        if not change.compacts or self._session.properties.cdc_enabled:
            return change.groups
        return change.groups - self._logged

    @property
    def _logged(self) -> frozenset[FileGroupId]:
        """File groups that were there and get log files, no base file."""
        placed = [(FileGroupId(file.partition_path, file.file_id), file) for file in self.outcome.files]
        rewritten = {group for group, file in placed if file.log_instant is None or file.is_new_group}
        return frozenset(group for group, _ in placed) - rewritten

    def _changes_to(self, group: FileGroupId, changes: Sequence[TableChange]) -> list[TableChange]:
        return [change for change in changes if group in self._groups_of(change) | change.extended]

    def _rivals(self, timeline: Timeline, changes: Sequence[TableChange]) -> list[TableChange]:
        """Those of some changes that may have added the keys that this write added, too, where keys are unique."""
        unique = self.outcome.keyed_partitions
        if self._non_blocking is not None and self._non_blocking.places_keys:
            return []  # whoever adds the same key adds it to the same file group
        grown = [
            change for change in changes if not change.copies and (change.grown if unique is None else unique & change.grown)
        ]
        if not grown or self._table.lookup.fixes_places:
            return grown  # two of different keys may have begun the same bucket
        added, records = self._added, {i.time: timeline.metadata(i) for i in timeline.writes if i.time not in self._settled}
        if added.none_stated([records[change.time] for change in grown]):
            return []
        return [change for change in grown if not added.none_stated([records[change.time]])]

    def _compare(self, timeline: Timeline, changes: Sequence[TableChange], rivals: Sequence[TableChange]) -> None:
        """Raise CommitConflict when others added a key that this write adds as well."""
        operation, unique, winner = self._write.operation.value, self.outcome.keyed_partitions, rivals[-1].time
        theirs = [file for change in rivals for file in change.files if file.adds_rows]
        theirs = [file for file in theirs if unique is None or file.group.partition_path in unique]
        if self._table.lookup.fixes_places:
            # A key has one place: whoever adds to it has met above, or has begun the same bucket.
            mine = {(f.partition_path, bucket_of_file_id(f.file_id)) for f in self.outcome.files if f.is_new_group}
            both = [f.group for f in theirs if (f.group.partition_path, bucket_of_file_id(f.group.file_id)) in mine]
            if both:
                raise CommitConflict(operation, [(group.partition_path, group.file_id) for group in both], winner)
            return
        added = self._added
        touched = frozenset(group for change in changes for group in change.groups)
        try:
            shared = added.shared_with(theirs, TableFiles.at(self._session, timeline), touched)
        except UnknownKeys as error:
            paths = sorted({file.group.partition_path for file in theirs})
            cure = f"Nothing was published; run the write again. Which rows the other write added cannot be known: {error}"
            what = f"the keys of {len(paths)} partitions, such as {paths[0]!r}"
            raise CommitConflict(operation, (), winner, cure, what=what, did="added to meanwhile") from error
        if shared is not None:
            place = (shared.group.partition_path, shared.group.file_id)
            raise CommitConflict(operation, [place], winner, keys=shared.count, sample=shared.sample)

    def _refuse_between_two_orders(self, changes: Sequence[TableChange]) -> None:
        """Raise CommitConflict when this write left rows out because of others, which an overwrite took away meanwhile.

        The rows that it added stay, as if it had come after the overwrite; then it should have added the others as well.
        """
        if not (self.outcome.dropped or self.outcome.unmatched):
            return
        grown = {file.partition_path for file in self.outcome.files if file.inserted}
        for change in changes:
            emptied = {group for group in change.replaced if group.partition_path in grown}
            if emptied and not change.copies:
                raise self._conflict(min(emptied, key=_in_order), [change])

    def _conflict(self, group: FileGroupId, changes: Sequence[TableChange]) -> CommitConflict:
        winner, did = (changes[-1].time, "changed meanwhile") if changes else ("a pending clustering", "is going to replace")
        return CommitConflict(self._write.operation.value, [(group.partition_path, group.file_id)], winner, did=did)


def _may_rescale(timeline: Timeline, change: TableChange) -> bool:
    """Whether a write may have brought other rules for buckets; where no row had to move, it says nothing of files."""
    found = timeline.get(change.time)
    return found is not None and found.action is Action.REPLACE_COMMIT and not change.copies


def _in_order(group: FileGroupId) -> tuple[str, str]:
    return group.partition_path, group.file_id
