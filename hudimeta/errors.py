"""The one tree of errors: each carries its facts as attributes, and a next step in its text.

The text of every error has the form ``HUDIMETA_<CODE>: <what happened>. <what to do next>``. The code stands in front because
Spark hands only the text of a Python exception to the user, never its class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from hudimeta.redaction import HIDDEN, hidden, is_secret

__all__ = [
    "AlreadyExists",
    "CommitConflict",
    "CommitError",
    "CommitOutcomeUnknown",
    "ConfigError",
    "CorruptFileError",
    "DuplicateKeys",
    "FileRemoved",
    "HudiError",
    "IndexNotReady",
    "InstantExists",
    "LockError",
    "LockLost",
    "LockTimeout",
    "MetadataError",
    "MetadataOutOfSync",
    "MissingLibrary",
    "NotFound",
    "OutsideTable",
    "PredicateError",
    "SchemaError",
    "SchemaMismatch",
    "StorageError",
    "TableError",
    "TableNotFound",
    "Throttled",
    "UnsupportedEvolution",
    "UnsupportedFeature",
    "UnsupportedTableVersion",
    "ValidationFailed",
]

_SHOWN = 300
"""Most characters of a predicate that an error repeats."""


class HudiError(Exception):
    """Anything that hudimeta raises on purpose.

    Args:
        message: What happened, without a full stop at the end.
        hint: What the user can do next; empty when nothing can be done.
    """

    code: ClassVar[str] = "ERROR"

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message = hidden(message)
        self.hint = hint = hidden(hint)
        super().__init__(f"HUDIMETA_{self.code}: {message}." + (f" {hint}" if hint else ""))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders (pools, Spark workers): rebuild without calling the subclass's own signature."""
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[HudiError], args: tuple[object, ...], facts: dict[str, object]) -> HudiError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class ConfigError(HudiError):
    """An option or argument that is unknown, malformed, or contradicts the table.

    Attributes:
        key: The option's name.
        value: What was given, `***` where the name is one of a secret.
        allowed: What would have been accepted, for the reader.
    """

    code = "CONFIG"

    def __init__(self, key: str, value: object, allowed: str, hint: str = "") -> None:
        value = HIDDEN if is_secret(key) else value
        self.key, self.value, self.allowed = key, value, allowed
        super().__init__(
            f"option {key!r} has the value {value!r}, allowed is {allowed}",
            hint or "Give an allowed value, or leave the option out.",
        )


class PredicateError(ConfigError):
    """A predicate, or a part of one, that cannot be read or evaluated: `where`, or the option `hudimeta.filter`.

    Attributes:
        what: The kind of part, such as a regular expression.
    """

    def __init__(self, value: object, allowed: str, hint: str = "", *, what: str = "predicate") -> None:
        self.key, self.value, self.allowed, self.what = "where", value, allowed, what
        written = repr(value)
        shown = written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"
        HudiError.__init__(
            self,
            f"{what} {shown}: allowed is {allowed}",
            hint or "Rewrite it, or read without it and filter the rows afterwards.",
        )


class MissingLibrary(HudiError):
    """A library that hudimeta can do without, and that what was asked for needs.

    Attributes:
        name: As it is installed.
    """

    code = "MISSING_LIBRARY"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} is not installed here", f"Run: pip install {name}.")


class TableError(HudiError):
    """The table cannot be opened, or cannot be used in the way that was asked."""

    code = "TABLE"


class TableNotFound(TableError):
    """There is no Hudi table at the path."""

    code = "TABLE_NOT_FOUND"

    def __init__(self, path: str, why: str = "the folder .hoodie/hoodie.properties does not exist") -> None:
        self.path = path
        super().__init__(
            f"no Hudi table at {path!r}: {why}",
            "Check the path, or create the table with hudimeta.Table.create(...) or df.write.format('hudimeta').",
        )


class UnsupportedTableVersion(TableError):
    """The table's version is one that hudimeta cannot read or cannot write."""

    code = "TABLE_VERSION"

    def __init__(self, found: int, can: Iterable[int], doing: str = "read") -> None:
        self.found, self.can = found, tuple(can)
        names = ", ".join(str(v) for v in self.can)
        super().__init__(
            f"table version {found} cannot be {doing}, versions that can: {names}",
            "Upgrade or downgrade the table with Apache Hudi; hudimeta never changes a table's version by itself.",
        )


class UnsupportedFeature(TableError):
    """The table uses something that hudimeta does not do."""

    code = "UNSUPPORTED"

    def __init__(self, feature: str, hint: str = "") -> None:
        self.feature = feature
        super().__init__(f"{feature} is not supported", hint)


class CorruptFileError(HudiError):
    """Bytes that cannot be what they claim to be.

    Attributes:
        path: File, relative to the table.
        offset: Byte offset of the fault.
        expected, actual: For the reader.
    """

    code = "CORRUPT_FILE"
    _METADATA: ClassVar[str] = ".hoodie/metadata/"
    """A table can be read without the files below."""

    def __init__(self, path: str, offset: int, expected: object, actual: object, hint: str = "") -> None:
        self.path, self.offset, self.expected, self.actual = path, offset, expected, actual
        super().__init__(
            f"{path or '<memory>'} is damaged at byte {offset}: expected {expected}, found {actual}",
            hint
            or "Restore the file from a copy, or "
            + (
                "read with the option hoodie.metadata.enable=false and rebuild the metadata table."
                if path.startswith(self._METADATA)
                else "roll the table back to an instant before it was written."
            ),
        )


class MetadataError(HudiError):
    """The metadata table contradicts the table, or cannot be read."""

    code = "METADATA"


class MetadataOutOfSync(MetadataError):
    """The metadata table lacks something that the timeline proves."""

    code = "METADATA_OUT_OF_SYNC"

    def __init__(self, partition: str, missing: object) -> None:
        self.partition, self.missing = partition, missing
        super().__init__(
            f"metadata partition {partition!r} lacks {missing}",
            "Read with the option hoodie.metadata.enable=false, and rebuild the metadata table.",
        )


class IndexNotReady(MetadataError):
    """An index that was asked for is not there, or still being built."""

    code = "INDEX_NOT_READY"

    def __init__(self, index: str, state: str) -> None:
        self.index, self.state = index, state
        super().__init__(
            f"index {index!r} is {state}", "See t.properties['hoodie.table.metadata.partitions'] for what is ready."
        )


class CommitError(HudiError):
    """A write that did not become visible."""

    code = "COMMIT"


class CommitConflict(CommitError):
    """Another writer changed the same rows or file groups first.

    Attributes:
        action: What was being written.
        file_groups: (partition, file id) pairs both touched.
        winner: Instant that won.
        keys: How many rows are known to be the same; 0 where that is not known.
        sample: The key of one of them; "" where that is not known.

    Args:
        cure: What helps where running the write again does not.
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
    ) -> None:
        self.action, self.file_groups, self.winner = action, tuple(file_groups), winner
        self.keys, self.sample = keys, sample
        shown = ", ".join(f"{p}/{f}" if p else f for p, f in self.file_groups[:3])
        more = f" and {len(self.file_groups) - 3} more" if len(self.file_groups) > 3 else ""
        what = f"{keys:,} of its rows, such as the one with the key {sample!r}," if keys else "file groups"
        super().__init__(f"{action} touches {what} that instant {winner} changed meanwhile: {shown}{more}", cure)

    def with_cure(self, cure: str) -> CommitConflict:
        """The same with another word on what to do."""
        return CommitConflict(self.action, self.file_groups, self.winner, cure, self.keys, self.sample)


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
            "Nothing was written; leave them out, upsert them, or set hoodie.datasource.insert.dup.policy to drop or none.",
        )


class InstantExists(CommitError):
    """The instant to be created is already on the timeline."""

    code = "INSTANT_EXISTS"

    def __init__(self, instant: str) -> None:
        self.instant = instant
        super().__init__(f"instant {instant} is already on the timeline", "Another writer took it; run the write again.")


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


class SchemaError(HudiError):
    """Columns or types that do not fit."""

    code = "SCHEMA"


class SchemaMismatch(SchemaError):
    """Rows that do not fit the table's schema."""

    code = "SCHEMA_MISMATCH"

    def __init__(self, column: str, found: object, expected: object, hint: str = "") -> None:
        self.column, self.found, self.expected = column, found, expected
        super().__init__(
            f"column {column!r} is {found}, the table needs {expected}",
            hint or "Cast or rename the column before writing.",
        )


class UnsupportedEvolution(SchemaError):
    """A change of schema that Hudi does not allow."""

    code = "SCHEMA_EVOLUTION"

    def __init__(self, column: str, change: str, hint: str = "") -> None:
        self.column, self.change = column, change
        super().__init__(f"column {column!r} cannot be changed: {change}", hint or "Write to a new column instead.")


class ValidationFailed(HudiError):
    """A validator found differences; the report names each."""

    code = "VALIDATION"

    def __init__(self, report: object) -> None:
        self.report = report
        hint = "Read with hoodie.metadata.enable=false meanwhile: that goes by what is on storage."
        super().__init__(f"validation found differences: {report}", hint)


class StorageError(HudiError):
    """A request to storage failed."""

    code = "STORAGE"

    def __init__(self, path: str, why: str, hint: str = "") -> None:
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}", hint or "Check the store and the path, then try again.")


class NotFound(StorageError):
    """The file is not there."""

    code = "NOT_FOUND"

    def __init__(self, path: str) -> None:
        super().__init__(path, "no such file", "If a cleaner removed it, open the table again and read a newer instant.")


class FileRemoved(NotFound):
    """A file of the table is gone that a read had planned with: mostly a clean was quicker than the read.

    Attributes:
        instant: The newest write of the moment that is read.
    """

    code = "FILE_REMOVED"

    def __init__(self, path: str, instant: str) -> None:
        self.instant = instant
        StorageError.__init__(
            self,
            path,
            f"no such file any more, though the table had it as of instant {instant}, which is read",
            "If a cleaner removed it, open the table again and read once more, or set hudimeta.read.retry.on.clean=true; so "
            "that long reads keep their files raise hoodie.clean.commits.retained (hoodie.clean.hours.retained, "
            "hoodie.clean.fileversions.retained) for those who clean. If nobody cleans, the file is lost: "
            "t.metadata.validate() tells.",
        )


class AlreadyExists(StorageError):
    """A create-if-absent found the file there."""

    code = "ALREADY_EXISTS"

    def __init__(self, path: str) -> None:
        super().__init__(path, "the file exists already", "Another writer was first; open the table again.")


class OutsideTable(StorageError):
    """A path that leads out of the table, or through a link; nothing was read, written or deleted."""

    code = "OUTSIDE_TABLE"

    def __init__(self, path: str, why: str, hint: str) -> None:
        super().__init__(repr(path), why, hint)
        self.path = path


class Throttled(StorageError):
    """The store asked for fewer requests, and went on asking after every retry.

    Args:
        path: Of the file.
        attempts: How often it was asked.
        seconds: For how long.
    """

    code = "THROTTLED"

    def __init__(self, path: str, attempts: int, seconds: float = 0.0) -> None:
        self.attempts, self.seconds = attempts, seconds
        what = f"the store asked for fewer requests at each of {attempts} attempts in {seconds:.1f} seconds"
        super().__init__(path, what, "Try again later, or with fewer parallel requests.")
