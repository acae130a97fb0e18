"""Moving an instant along: requested, inflight, completed; each step creates one file that must not exist (layout 2).

Publishing is the creation of the completed file: before it nothing is visible, after it everything is. Whoever calls holds the
table lock where the protocol wants it.

Every file is sealed with its name, so that a damaged byte is seen, and another instant's file in its place as well.
"""

from __future__ import annotations

from collections.abc import Collection

from hudimeta.errors import AlreadyExists, CommitError, InstantExists
from hudimeta.formats.avro.container import MAGIC, sealed_container
from hudimeta.storage import NewFile, Staged, Storage, join, put_own
from hudimeta.storage.at_once import at_once
from hudimeta.timeline.active import DEFAULT_FOLDER
from hudimeta.timeline.naming import completed_name, pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["TimelineWriter"]

_REQUESTED = tuple(action for action in Action if action is not Action.SAVEPOINT)
_OF_OTHER_TABLES = {
    Action.COMMIT: (Action.DELTA_COMMIT, Action.COMPACTION, Action.LOG_COMPACTION),
    Action.DELTA_COMMIT: (Action.COMMIT,),
    Action.COMPACTION: (Action.COMMIT,),
    Action.LOG_COMPACTION: (Action.COMMIT,),
}
"""What is never requested where these are: tables are either copy-on-write or merge-on-read."""


class TimelineWriter:
    """Creates and removes the files of a timeline of layout 2.

    Args:
        storage: Rooted at the table (for the metadata table at `.hoodie/metadata`).
        folder: The timeline's folder, relative to that root.
    """

    def __init__(self, storage: Storage, folder: str = DEFAULT_FOLDER) -> None:
        self._storage, self._folder = storage, folder

    def create_requested(self, time: str, action: Action, content: bytes = b"") -> Instant:
        """Announce an action.

        Args:
            time: A fresh instant time.
            action: Its pending word: COMPACTION, CLUSTERING, … A savepoint has no requested file.
            content: The plan; empty for commit and deltacommit.

        Raises:
            InstantExists: the same instant was requested before.
        """
        return self._create(time, action, State.REQUESTED, content)

    def create_alone(self, time: str, action: Action, content: bytes = b"") -> Instant:
        """Announce an action at an instant that no other action has: their files would be mixed up, and taken back together.

        Of two who choose one instant at once, both may be refused.

        Args:
            time: A fresh instant time.
            action: Its pending word.
            content: The plan; empty for commit and deltacommit.

        Raises:
            InstantExists: The same instant was requested before; then ours is not on the timeline.
        """
        requested = self.create_requested(time, action, content)
        others = [a for a in _REQUESTED if a is not action and a not in _OF_OTHER_TABLES.get(action, ())]
        paths = [join(self._folder, pending_name(time, other, State.REQUESTED)) for other in others]
        if any(at_once(self._storage.is_file, paths, self._storage)):
            self.delete_pending(time, action, State.REQUESTED)
            raise InstantExists(time)
        return requested

    def create_inflight(self, time: str, action: Action, content: bytes = b"") -> Instant:
        """Say that the work has begun. Raises InstantExists."""
        return self._create(time, action, State.INFLIGHT, content)

    def begin_planned(self, time: str, action: Action) -> Instant:
        """Say that a plan is being run. Whoever takes it back meanwhile deletes both its files, the inflight one once more.

        Args:
            time: Instant of the plan.
            action: Its pending word.

        Raises:
            CommitError: It was taken back.
            InstantExists: It is being run.
        """
        inflight = self.create_inflight(time, action)
        if not self._storage.is_file(join(self._folder, pending_name(time, action, State.REQUESTED))):
            self.delete_pending(time, action, State.INFLIGHT)
            why = f"the plan of {action.value} {time} was taken back before it was run"
            raise CommitError(why, "Nothing was changed; plan anew.")
        return inflight

    def begun_files(self, time: str, action: Action, content: bytes = b"") -> list[NewFile]:
        """The two files that say that an action has begun, to be staged with what it writes; `content` is its plan."""
        contents = {State.REQUESTED: content, State.INFLIGHT: b""}
        named = [(pending_name(time, action, state), data) for state, data in contents.items()]
        return [NewFile(join(self._folder, name), _sealed(data, name), False) for name, data in named]

    def publish_begun(self, time: str, staged: Staged, paths: Collection[str] | None = None) -> None:
        """Announce an action, say that the work has begun, and publish what it has made.

        Args:
            time: Its instant.
            staged: Its `begun_files`, before what it has made.
            paths: Only these; None for all.

        Raises:
            InstantExists: Another one has the instant.
        """
        try:
            staged.publish(paths)
        except AlreadyExists:
            raise InstantExists(time) from None

    def complete(self, time: str, action: Action, completion: str, content: bytes) -> Instant:
        """Publish.

        Args:
            time: Requested time.
            action: Its pending word; the file bears the completed one.
            completion: Completion time, later than every time on the timeline.
            content: Metadata of the completed action, never empty for a write.

        Raises:
            CommitError: the inflight file is gone: somebody rolled the instant back, so its data files may be gone too.
            InstantExists: the completed file exists with other content.
        """
        if completion <= time:
            raise ValueError(f"completion time {completion} is not later than requested time {time}")
        if not content and action.writes_data:
            raise ValueError("a completed write has metadata: readers take an empty file for an unfinished one")
        inflight = join(self._folder, pending_name(time, action, State.INFLIGHT))
        if not self._storage.is_file(inflight):
            raise CommitError(
                f"instant {time} has no inflight file any more: another writer rolled it back",
                "Nothing was published; run the write again.",
            )
        name = completed_name(time, action, completion)
        path, content = join(self._folder, name), _sealed(content, name)
        try:
            put_own(self._storage, path, content)
        except AlreadyExists:
            raise InstantExists(time) from None
        done = action.completed_as
        return Instant(time, done, State.COMPLETED, completion, action if action is not done else None, name, len(content))

    def delete_pending(self, time: str, action: Action, state: State) -> bool:
        """Remove a requested or inflight file; False when it was not there."""
        return self._storage.delete(join(self._folder, pending_name(time, action, state)))

    def delete_completed(self, instant: Instant) -> bool:
        """Make a completed instant pending again, the first step of rolling it back; False when it was not there."""
        return self._storage.delete(join(self._folder, completed_name(instant.time, instant.action, instant.completion)))

    def _create(self, time: str, action: Action, state: State, content: bytes) -> Instant:
        name = pending_name(time, action, state)
        content = _sealed(content, name)
        try:
            self._storage.put_if_absent(join(self._folder, name), content)
        except AlreadyExists:
            raise InstantExists(time) from None
        return Instant(time, action, state, None, None, name, len(content))


def _sealed(content: bytes, name: str) -> bytes:
    return sealed_container(content, name) if content.startswith(MAGIC) else content
