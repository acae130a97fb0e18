"""What lies there is no table, or one that cannot be read: properties, files, the metadata table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from hudimeta.errors.of_storage import NotFound, StorageError
from hudimeta.errors.tree import HudiError

__all__ = [
    "CorruptFileError",
    "IndexNotReady",
    "MetadataError",
    "MetadataFileMissing",
    "MetadataOutOfSync",
    "StreamDataLoss",
    "TableError",
    "TableNotFound",
    "PropertiesUnreadable",
    "RangeLost",
    "UnsupportedFeature",
    "UnsupportedTableVersion",
]


class TableError(HudiError):
    """The table cannot be opened, or cannot be used in the way that was asked."""

    code = "TABLE"


class TableNotFound(TableError):
    """There is no Hudi table at the path."""

    code = "TABLE_NOT_FOUND"

    def __init__(self, path: str, why: str = "there is no .hoodie/hoodie.properties", hint: str = "") -> None:
        self.path = path
        hint = hint or "Check the path, or create the table with hudimeta.Table.create(...) or df.write.format('hudimeta')."
        if any(sign in path for sign in "*?[{"):
            hint = "Name the table's own folder, and choose partitions by where, or by the option hudimeta.partitions."
        super().__init__(f"no Hudi table at {path!r}: {why}", hint)


class PropertiesUnreadable(TableError):
    """`hoodie.properties` is empty, cut short, or not what its checksum was made of, and no backup of it helps.

    Attributes:
        root: The table.
    """

    code = "PROPERTIES_UNREADABLE"

    def __init__(self, root: str, what: str, hint: str) -> None:
        self.root = root
        super().__init__(f".hoodie/hoodie.properties of the table at {root!r} {what}", hint)


class UnsupportedTableVersion(TableError):
    """The table's version is one that hudimeta cannot read or cannot write."""

    code = "TABLE_VERSION"

    def __init__(self, found: int, can: Iterable[int], doing: str = "read") -> None:
        self.found, self.can = found, tuple(can)
        names = ", ".join(str(v) for v in self.can)
        super().__init__(
            f"table version {found} cannot be {doing}, versions that can: {names}",
            "Upgrade or downgrade it: hudimeta.Table(path).upgrade() moves a table of version 6 or 8 to 9, older ones need "
            "Apache Hudi; nothing else here ever changes a table's version.",
        )


class UnsupportedFeature(TableError):
    """The table uses something that hudimeta does not do."""

    code = "UNSUPPORTED"

    def __init__(self, feature: str, hint: str = "") -> None:
        self.feature = feature
        super().__init__(f"{feature} is not supported", hint)


class RangeLost(TableError):
    """Rows or changes of a range of commits cannot be known any more: these were archived, or cleaning took files of theirs."""


class StreamDataLoss(TableError):
    """Commits that a stream has not read yet were cleaned or archived.

    Attributes:
        position: Completion time up to which the stream has read.
        earliest: Completion time of the earliest commit that it can still go on with; None where that is not known.
    """

    code = "STREAM_DATA_LOSS"

    def __init__(self, position: str, earliest: str | None, which: str) -> None:
        self.position, self.earliest = position, earliest
        at = "" if earliest is None else f"; the earliest commit that it can go on with completed at {earliest}"
        on = "with what is left" if earliest is None else "from there"
        super().__init__(
            f"the stream has read up to {position}, and {which}{at}",
            f"Set failOnDataLoss=false to go on {on}, or begin anew with another checkpoint, and have the "
            "table's cleaner keep more (hoodie.clean.commits.retained, hoodie.clean.fileversions.retained) than the "
            "stream falls behind.",
        )


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


class IndexDropped(MetadataOutOfSync):
    """An index was dropped while it was used; whoever looks again finds the table without it."""

    code = "INDEX_DROPPED"

    def __init__(self, partition: str, missing: object) -> None:
        self.partition, self.missing = partition, missing
        MetadataError.__init__(self, f"index {partition!r} was dropped meanwhile: it lacks {missing}", "Run it again.")


class MetadataFileMissing(MetadataError, NotFound):
    """A file is gone that the metadata table has as of the moment that is looked at.

    Attributes:
        path: Relative to the table.
        partition: Of the metadata table.
    """

    code = "METADATA_FILE_MISSING"

    def __init__(self, path: str, partition: str) -> None:
        self.partition = partition
        StorageError.__init__(
            self,
            path,
            f"no such file, though metadata partition {partition!r} has it",
            "If others write to the table, read once more. If the file is lost, read with the option "
            "hoodie.metadata.enable=false and rebuild the metadata table: t.metadata.rebuild().",
        )


class IndexNotReady(MetadataError):
    """An index that was asked for is not there, or still being built."""

    code = "INDEX_NOT_READY"

    def __init__(self, index: str, state: str) -> None:
        self.index, self.state = index, state
        super().__init__(
            f"index {index!r} is {state.removesuffix('.')}",
            "See t.properties['hoodie.table.metadata.partitions'] for what is ready.",
        )
