"""What storage answered, or did not."""

from __future__ import annotations

from hudimeta.errors.tree import HudiError

__all__ = ["AlreadyExists", "FileRemoved", "NotFound", "OutsideTable", "StaleList", "StorageError", "Throttled"]


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


class StaleList(StorageError):
    """A list of a folder lacks a file that is there: the store answers as it was before.

    Attributes:
        missing: The file.
    """

    code = "STALE_LIST"

    def __init__(self, path: str, missing: str) -> None:
        self.missing = missing
        super().__init__(
            path,
            f"its list lacks {missing}, which is there",
            "Nothing was published; write again when the store's lists have come up to date. Writers need a store whose lists "
            "show what was put before.",
        )


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
