"""The runs of a table's record window, and the manifest that names them.

    .hoodie/.aux/hudimeta/record_window/
        <version, 16 digits>.json     sealed: the format, the first day of the window, and the runs, oldest first
        <random>.run                  see `runs`; never changed

The manifest with the highest version counts. The next one is created if it is absent: of two writers one finds it there, looks
at it, and puts its run after the other's. A run that no manifest names is removed once it is old enough to be nobody's work.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hudimeta.errors import AlreadyExists, CorruptFileError, NotFound, StorageError
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.seal import sealed_json, verify_json
from hudimeta.indexes.record_window.runs import RunContent, RunStamp, write_run
from hudimeta.storage import FileInfo, Storage

__all__ = ["FOLDER", "Manifest", "WindowFolder"]

FOLDER = ".hoodie/.aux/hudimeta/record_window"
_MANIFEST, _RUN = ".json", ".run"
_FORMAT = 1
_MOST_MANIFEST_BYTES = 16 << 20
_KEPT_MANIFESTS = 16
"""So late may a writer be with its next version without taking the number of one that is gone."""
_UNNAMED_MS = 3_600_000
"""A run that nobody has named for so long was left by a process that died."""
_READ_MS = 10_000
"""So old is a run before it goes that is named no more; who still reads it looks at the newest manifest."""
_TRIES = 20


@dataclass(frozen=True)
class Manifest:
    """What a table's window consists of.

    Attributes:
        version: 0 for none.
        runs: Oldest first.
        first_day: Of the window when it was last looked at; None for a window without days.
    """

    version: int = 0
    runs: tuple[RunStamp, ...] = ()
    first_day: int | None = None

    @property
    def entries(self) -> int:
        """Of all runs."""
        return sum(run.entries for run in self.runs)

    def encode(self, name: str) -> bytes:
        """As a file of some name."""
        runs = [[run.name, run.entries, run.segment_bytes, run.index_bytes, run.digest] for run in self.runs]
        values = {"format": _FORMAT, "first_day": self.first_day, "runs": runs}
        return sealed_json(json.dumps(values, separators=(",", ":")).encode(), name)

    @classmethod
    def decode(cls, data: bytes, name: str) -> Manifest:
        """The inverse of `encode`. Raises CorruptFileError."""
        if not verify_json(data, name):
            raise CorruptFileError(name, 0, "a manifest with a seal", "none")
        try:
            values = parse_json(data)
            if values["format"] != _FORMAT:
                raise CorruptFileError(name, 0, f"a manifest of format {_FORMAT}", str(values["format"]))
            runs = (RunStamp(str(r[0]), int(r[1]), int(r[2]), int(r[3]), str(r[4])) for r in values["runs"])
            day = values["first_day"]
            return cls(_version(name), tuple(runs), None if day is None else int(day))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise CorruptFileError(name, 0, "a manifest", str(error)) from error


class WindowFolder:
    """The folder of one table.

    Args:
        storage: Rooted at the table.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage.sub(FOLDER)

    def manifest(self) -> Manifest:
        """The newest one. Raises CorruptFileError with its version taken, so that the next one can be made: see `empty`."""
        newest = self._newest(self.storage.list(""))
        if newest is None:
            return Manifest()
        if newest.size > _MOST_MANIFEST_BYTES:
            raise CorruptFileError(newest.path, 0, f"at most {_MOST_MANIFEST_BYTES:,} bytes", f"{newest.size:,}")
        return Manifest.decode(self.storage.read(newest.path), newest.path)

    def empty(self) -> Manifest:
        """One without runs, which takes the place of whatever is there."""
        newest = self._newest(self.storage.list(""))
        return Manifest(0 if newest is None else _version(newest.path))

    def write(self, content: RunContent) -> RunStamp:
        """Write a run that no manifest names yet."""
        return write_run(self.storage, f"{uuid.uuid4()}{_RUN}", content)

    def add(self, manifest: Manifest, runs: Sequence[RunStamp]) -> Manifest:
        """Name more runs, after those that others add meanwhile; returns the manifest that does.

        Args:
            manifest: As it was seen.
            runs: The new ones.

        Raises:
            StorageError: Others were first again and again; or the store failed.
        """
        for _ in range(_TRIES):
            after = replace(manifest, runs=(*manifest.runs, *runs))
            if (found := self.put(after)) is not None:
                return found
            manifest = self.manifest()
        raise StorageError(FOLDER, "other writers were first again and again", "The next write tries again.")

    def put(self, manifest: Manifest) -> Manifest | None:
        """Put a manifest in the place of the version that it states; None when that is not the newest any more."""
        version = manifest.version + 1
        name = f"{version:016d}{_MANIFEST}"
        try:
            self.storage.put_if_absent(name, manifest.encode(name))
        except AlreadyExists:
            return None
        return replace(manifest, version=version)

    def sweep(self, now_ms: int) -> None:
        """Remove old manifests, runs that only others than the newest name, and runs that nobody has named for long."""
        files = self.storage.list("")
        manifests = sorted((info.path for info in files if info.path.endswith(_MANIFEST)), reverse=True)
        newest, others = self._named_by(manifests[:1]), self._named_by(manifests[1:])
        for info in files:
            patience = _READ_MS if info.path in others else _UNNAMED_MS
            if info.path.endswith(_RUN) and info.path not in newest and info.modified_ms < now_ms - patience:
                self.storage.delete(info.path)
        for path in manifests[_KEPT_MANIFESTS:]:
            self.storage.delete(path)

    def _named_by(self, manifests: Sequence[str]) -> set[str]:
        named: set[str] = set()
        for path in manifests:
            with contextlib.suppress(CorruptFileError, NotFound):
                named.update(run.name for run in Manifest.decode(self.storage.read(path), path).runs)
        return named

    def bytes(self) -> int:
        """Of the runs that the newest manifest names. Raises CorruptFileError."""
        return sum(run.size for run in self.manifest().runs)

    @staticmethod
    def _newest(files: Sequence[FileInfo]) -> FileInfo | None:
        manifests = [info for info in files if info.path.endswith(_MANIFEST) and info.path[: -len(_MANIFEST)].isdigit()]
        return max(manifests, key=lambda info: info.path, default=None)


def _version(name: str) -> int:
    return int(name[: -len(_MANIFEST)])
