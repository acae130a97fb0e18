"""A write that did not come about: conflicts, instants, locks, going back."""

from __future__ import annotations

from collections.abc import Iterable

from hudimeta.errors.tree import HudiError

__all__ = [
    "CommitConflict",
    "CommitError",
    "CommitOutcomeUnknown",
    "DuplicateKeys",
    "InstantExists",
    "LockError",
    "LockLost",
    "LockTimeout",
    "UndoError",
]


class CommitError(HudiError):
    """A write that did not become visible."""

    code = "COMMIT"


class CommitConflict(CommitError):
    """Another writer changed the same rows or file groups first, or something else that this write rests on.

    Attributes:
        action: What was being written.
        file_groups: (partition, file id) pairs both touched.
        winner: Instant that won, or in words who it was.
        keys: How many rows are known to be the same; 0 where that is not known.
        sample: The key of one of them; "" where that is not known.
        what: What both touched where these are no file groups; else "".

    Args:
        cure: What helps where running the write again does not.
        did: What the winner did to it.
    """

    code = "COMMIT_CONFLICT"

    def __init__(
        self,
        action: str,
        file_groups: Iterable[tuple[str, str]],
        winner: str,
        cure: str = "Nothing was published; run the write again.",
        keys: int = 0,
        sample: str = "",
        *,
        what: str = "",
        did: str = "changed meanwhile",
    ) -> None:
        self.action, self.file_groups, self.winner = action, tuple(file_groups), winner
        self.keys, self.sample, self.what, self._did = keys, sample, what, did
        super().__init__(self._told(), cure)

    def _told(self) -> str:
        who = f"instant {self.winner}" if self.winner.isdigit() else self.winner
        if self.what:
            return f"{self.action} rests on {self.what}, which {who} {self._did}"
        shown = ", ".join(f"{p}/{f}" if p else f for p, f in self.file_groups[:3])
        more = f" and {len(self.file_groups) - 3} more" if len(self.file_groups) > 3 else ""
        touched = f"{self.keys:,} of its rows, such as the one with the key {self.sample!r}," if self.keys else "file groups"
        return f"{self.action} touches {touched} that {who} {self._did}: {shown}{more}"

    def with_cure(self, cure: str) -> CommitConflict:
        """The same with another word on what to do."""
        touched = self.action, self.file_groups, self.winner
        return CommitConflict(*touched, cure, self.keys, self.sample, what=self.what, did=self._did)


class ClusteringPending(CommitConflict):
    """A planned clustering is going to move rows that this write changes.

    Attributes:
        instant: Of the clustering.
    """

    def __init__(self, action: str, file_groups: Iterable[tuple[str, str]], instant: str, cure: str) -> None:
        self.instant = instant
        super().__init__(action, file_groups, f"the pending clustering {instant}", cure, did="is going to replace")


class CommitOutcomeUnknown(CommitError):
    """Storage failed while the commit was published: it may or may not be visible."""

    code = "COMMIT_OUTCOME_UNKNOWN"

    def __init__(self, instant: str, why: str) -> None:
        self.instant = instant
        super().__init__(
            f"the outcome of instant {instant} is unknown: {why}",
            "Open the table again: if t.timeline shows the instant as completed, the write succeeded; if not, run it again.",
        )


class DuplicateKeys(CommitError):
    """An insert that must not repeat keys brought some that the table has.

    Attributes:
        keys: How many.
        sample: A few of them.
    """

    code = "DUPLICATE_KEYS"

    def __init__(self, keys: int, sample: Iterable[str]) -> None:
        self.keys, self.sample = keys, tuple(sample)
        super().__init__(
            f"{keys:,} of the rows to insert have a key that the table has already: {', '.join(self.sample)}",
            "No row was written; leave them out, upsert them, or set hoodie.datasource.insert.dup.policy to drop or none.",
        )


class InstantExists(CommitError):
    """The instant to be created is already on the timeline."""

    code = "INSTANT_EXISTS"

    def __init__(self, instant: str) -> None:
        self.instant = instant
        super().__init__(f"instant {instant} is already on the timeline", "Another writer took it; run the write again.")


class UndoError(CommitError):
    """A savepoint, rollback or restore that the state of the table forbids; nothing was changed.

    Attributes:
        instant: Requested time of the write that it is about.
        why: What stands in the way.
    """

    code = "UNDO"

    def __init__(self, what: str, instant: str, why: str, hint: str) -> None:
        self.instant, self.why = instant, why
        super().__init__(f"{what} {instant} is refused: {why}", hint)


class LockError(HudiError):
    """The table lock could not be used."""

    code = "LOCK"


class LockTimeout(LockError):
    """The lock was held by someone else for too long."""

    code = "LOCK_TIMEOUT"

    def __init__(self, path: str, owner: str, waited_s: float, since: str | None = None, hint: str | None = None) -> None:
        self.path, self.owner, self.waited_s, self.since = path, owner, waited_s, since
        super().__init__(
            f"the table lock {path} was not free within {waited_s:.0f} s, its owner is {owner}{f', {since}' if since else ''}",
            hint or "Run the write again when the other writer has finished; a dead owner's lock expires by itself.",
        )


class LockLost(LockError):
    """The lock expired or was taken over while it was held."""

    code = "LOCK_LOST"

    def __init__(self, path: str, owner: str) -> None:
        self.path, self.owner = path, owner
        super().__init__(f"the table lock {path} was lost to {owner}", "Nothing was published; run the write again.")
