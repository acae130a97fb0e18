"""The vocabulary: closed sets and small values that every layer shares."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

__all__ = [
    "COPYING_OPERATIONS",
    "LEGACY_VERSION",
    "META_COLUMNS",
    "MOST_GROUPS",
    "Action",
    "FileGroupId",
    "Instant",
    "MergeMode",
    "Operation",
    "QueryType",
    "State",
    "TableType",
    "is_text",
]

META_COLUMNS: tuple[str, ...] = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""The five columns that lead every base file, in their order."""

LEGACY_VERSION = 6
"""The last table version whose log files bear the instant of their base file."""

MOST_GROUPS = 10_000
"""File groups of an index, numbered with four digits: names with five do not stand in their order, and keys go by that."""


class TableType(enum.Enum):
    """How updates are stored."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeMode(enum.Enum):
    """Which of two versions of a row wins (`hoodie.record.merge.mode`)."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class QueryType(enum.Enum):
    """What a read returns (`hoodie.datasource.query.type`)."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"
    CDC = "cdc"


class Operation(enum.Enum):
    """What a write does; the value is the text in commit metadata (`operationType`)."""

    INSERT = "INSERT"
    UPSERT = "UPSERT"
    BULK_INSERT = "BULK_INSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    CLUSTER = "CLUSTER"
    ALTER_SCHEMA = "ALTER_SCHEMA"

    @property
    def overwrites(self) -> bool:
        """True where the rows take the place of what their partitions, or the table, held."""
        return self in (Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE)

    @property
    def replaces_groups(self) -> bool:
        """True where file groups leave the table without being rewritten: the write is a replacecommit."""
        return self.overwrites or self is Operation.DELETE_PARTITION

    @property
    def begins_groups(self) -> bool:
        """True where rows always begin file groups of their own."""
        return self.overwrites or self is Operation.BULK_INSERT


COPYING_OPERATIONS = frozenset((Operation.COMPACT.value, Operation.LOG_COMPACT.value, Operation.CLUSTER.value, "INDEX"))
"""Texts in commit metadata of what brings no rows of its own, so that its schema may be older than the newest."""


class Action(enum.Enum):
    """A timeline action; the value is the word in the instant's file name."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"

    completed_as: Action
    """The word that the completed file bears: a compaction completes as a commit, and so on."""
    writes_data: bool
    """True for the actions whose files readers see: commit, deltacommit, replacecommit and what completes as one."""

    # Each is there once, and every listing of a timeline asks hundreds of times: Enum hashes names, in Python.
    __hash__ = object.__hash__


_COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
for _action in Action:
    _action.completed_as = _COMPLETED_AS.get(_action, _action)
    _action.writes_data = _action.completed_as in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


class State(enum.IntEnum):
    """How far an instant is; a higher state wins."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True)
class Instant:
    """One action on a timeline.

    Attributes:
        time: Requested time, 17 digits `yyyyMMddHHmmssSSS` (14 in old tables); compared as text.
        action: As the file name of the highest state has it (a finished compaction is a COMMIT).
        state: The highest state found.
        completion: Completion time, None while pending. Tables of version 6 have none on disk: there it equals `time`.
        pending_action: The action of the pending files where it is known and differs (COMPACTION of a COMMIT), else None.
        file_name: Name of the file of the highest state, relative to the timeline's folder; empty when archived.
        size: Bytes of that file, -1 when unknown.
        modified_ms: When that file was last changed, 0 when unknown; instants are equal whatever it says.
    """

    time: str
    action: Action
    state: State
    completion: str | None = None
    pending_action: Action | None = None
    file_name: str = ""
    size: int = -1
    modified_ms: int = field(default=0, compare=False)

    @property
    def is_completed(self) -> bool:
        """True when the completed file exists."""
        return self.state is State.COMPLETED

    @property
    def completed_at(self) -> str:
        """Completion time, or the requested time where none is known."""
        return self.completion or self.time

    @property
    def completion_order(self) -> tuple[str, str]:
        """Sorts instants by their completion; those that completed together by their request."""
        return self.completed_at, self.time


@dataclass(frozen=True, slots=True)
class FileGroupId:
    """A file group: partition path relative to the table ("" when not partitioned) and file id."""

    partition_path: str
    file_id: str


def is_text(value: str) -> bool:
    """Whether a Python text can be written at all: one with half a surrogate pair, as wrong decoding leaves it, cannot."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False
