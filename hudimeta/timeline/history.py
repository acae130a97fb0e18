"""The archived part of a timeline: the LSM tree of Parquet files under `timeline/history` (layout 2).

* `_version_`: ASCII decimal, number of the current manifest, for readers in Java; here the largest `manifest_<N>` counts.
* `manifest_<N>`: JSON ``{"files": [{"fileName": ..., "fileLen": ...}]}``. Files it does not name are leftovers of a merge whose
  rows stand elsewhere: reading the folder instead of the manifest would give them twice.
* `<min>_<max>_<level>.parquet`: columns instantTime, completionTime, action (text, the completed word), metadata, plan (bytes
  of the completed file and of its plan), version (int, 1); sorted by instantTime.

Version 6 archives into log files `.hoodie/archived/.commits_.archive.<N>_<token>`. No read opens them, since whatever is older
than the active timeline is committed; whether there are any is all that a range of commits asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.plain_arrays import no_rows
from hudimeta.formats.seal import sealed_json, verify_json
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import files_at_once
from hudimeta.types import Action, Instant, State

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "MANIFEST_PREFIX",
    "VERSION_FILE",
    "History",
    "ManifestEntry",
    "decode_manifest",
    "encode_manifest",
    "is_history_file",
    "is_manifest",
]

COLUMNS = ("instant_time", "completion_time", "action", "metadata", "plan")
"""Columns of `History.load`, in its order."""

VERSION_FILE = "_version_"
MANIFEST_PREFIX = "manifest_"
OLD_LOGS = ".commits_.archive."
MAX_MANIFEST_BYTES = 64 * 1024 * 1024
READ_ATTEMPTS = 3
"""An archiver may merge files and drop them between our reading the manifest and the files it names."""

_NAME_PARTS = 3
_STORED_NAMES = {
    "instant_time": "instantTime",
    "completion_time": "completionTime",
    "action": "action",
    "metadata": "metadata",
    "plan": "plan",
}
_MANIFEST = re.compile(r"manifest_(\d{1,18})", re.ASCII)
_NUMBER = re.compile(rb"\d{1,18}")
_LOST = (
    "Restore the manifest from a copy. If there was none, and manifest_{0} is the newest: write {0} into _version_ beside it."
)
_FILE = re.compile(r"\d+_\d+_\d\.parquet", re.ASCII)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file of the LSM tree: its name within the folder, and its length in bytes."""

    name: str
    size: int


def decode_manifest(data: bytes, path: str = "") -> tuple[ManifestEntry, ...]:
    """Read a manifest; members that we do not know are skipped.

    Raises:
        CorruptFileError: not JSON of that shape, or a file name that cannot be one.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise CorruptFileError(path, 0, f"a manifest of at most {MAX_MANIFEST_BYTES} bytes", f"{len(data)} bytes")
    verify_json(data, path)
    try:
        entries = tuple(ManifestEntry(str(f["fileName"]), int(f["fileLen"])) for f in parse_json(data)["files"])
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(path, getattr(error, "pos", 0), "a manifest with a list of files", repr(error)) from None
    for entry in entries:
        if not _FILE.fullmatch(entry.name):
            raise CorruptFileError(path, 0, "names such as <min>_<max>_<level>.parquet", entry.name)
    return entries


def is_manifest(name: str) -> bool:
    """True for the name of a manifest."""
    return _MANIFEST.fullmatch(name) is not None


def is_history_file(name: str) -> bool:
    """True for the name of a file of archived instants."""
    return _FILE.fullmatch(name) is not None


def encode_manifest(entries: Sequence[ManifestEntry], name: str) -> bytes:
    """Write a manifest, sealed; the inverse of `decode_manifest`.

    Args:
        entries: The files that make up the history.
        name: Of the manifest.
    """
    files = [{"fileName": entry.name, "fileLen": entry.size} for entry in entries]
    return sealed_json(json.dumps({"files": files}, indent=2).encode(), name)


class History:
    """The archived instants, read when they are asked for.

    Args:
        storage: Rooted at the table.
        folder: The history's folder, relative to the table; for layout 1 that of the old archive.
        layout: Of the timeline it belongs to.
        in_order: Names of files say between which instants they lie. They do not where Apache Hudi moved what version 6 had
            archived: it takes the newest file first, in each of them cleans before commits, and names ten instants after the
            first and the last that it came to.
    """

    def __init__(self, storage: Storage, folder: str, layout: int, *, in_order: bool = True) -> None:
        self._storage, self._folder, self._layout, self._in_order = storage, folder, layout, in_order
        self._times: pa.Table | None = None
        self._times_since = ""

    @property
    def folder(self) -> str:
        """Relative to the table."""
        return self._folder

    def load(self, columns: Sequence[str] = COLUMNS, since: str = "", until: str | None = None) -> pa.Table:
        """Every archived instant.

        Args:
            columns: Those of `COLUMNS` to read; `metadata` and `plan` are nearly all of the bytes.
            since: Leave out files whose instants all lie before this one; their names tell.
            until: Leave out files whose instants all lie after this one.

        Returns:
            Arrow table sorted by instant_time: instant_time, completion_time, action: string; metadata, plan: binary, null
            where the file was empty or there is no plan. Empty where nothing was archived, and always in layout 1.

        Raises:
            CorruptFileError: a manifest or a file that is damaged.
        """
        for remaining in reversed(range(READ_ATTEMPTS)):
            try:
                return self._read(columns, since, until)
            except NotFound:
                if not remaining:
                    raise
        raise AssertionError("unreachable")

    def times(self, since: str = "") -> pa.Table:
        """The small columns instant_time, completion_time and action, kept once read; `since`: see `load`."""
        if self._times is None or since < self._times_since:
            self._times, self._times_since = self.load(COLUMNS[:3], since), since
        return self._times

    def instants(self) -> tuple[Instant, ...]:
        """The archived instants as values; for printing, since there may be many."""
        times = self.times().to_pydict()
        rows = zip(times["instant_time"], times["completion_time"], times["action"], strict=True)
        return tuple(Instant(time, Action(action), State.COMPLETED, completion) for time, completion, action in rows)

    @property
    def has_old_logs(self) -> bool:
        """Whether instants were archived into log files, as in version 6, which nobody reads here. One LIST in layout 1."""
        return self._layout == 1 and any(info.name.startswith(OLD_LOGS) for info in self._storage.list(self._folder))

    def manifest(self) -> tuple[ManifestEntry, ...]:
        """The files that make up the history; empty where nothing was archived. See `current`."""
        return self.current()[1]

    def current(self) -> tuple[int, tuple[ManifestEntry, ...]]:
        """The greatest number of a manifest, and the files that make up the history; 0 and none where nothing was archived.

        A manifest that was lost would take the instants along that it alone names, so a file that the newest one does not
        name raises the question which `_version_` names. It may be a leftover, and the question costs a request.

        Raises:
            CorruptFileError: A manifest is damaged, or the one that `_version_` names is gone.
        """
        asked = 0
        while True:
            numbers, names = self._listed()
            newest, entries = next(iter(numbers), 0), self._published(numbers, names)
            unnamed = {name for name in names if is_history_file(name)} - {entry.name for entry in entries}
            later = self._version(names) if unnamed else 0
            if later <= newest:
                return newest, entries
            if later == asked:
                path = join(self._folder, f"{MANIFEST_PREFIX}{later}")
                raise CorruptFileError(path, 0, f"the manifest that {VERSION_FILE} names", "none", _LOST.format(newest))
            asked = later  # an archiver may have published it since the folder was listed

    def _published(self, numbers: Iterable[int], names: Mapping[str, int]) -> tuple[ManifestEntry, ...]:
        """The files of the newest manifest that counts.

        An archiver that stood still for longer than its lock lasts may put one, as its last request: of files that others took
        for leftovers and removed. It never came to `_version_`.
        """
        for number in numbers:
            if self._is_unwritten(number, names):
                continue
            entries = self._decoded(number)
            # From the second manifest on there was a `_version_`: without it, a file that is gone was lost as well.
            is_lost = number > 1 and VERSION_FILE not in names
            if is_lost or all(entry.name in names for entry in entries) or self._version(names) >= number:
                return entries
        return ()

    def manifest_number(self) -> int | None:
        """The greatest number of a manifest in the folder; None where nothing was archived. One LIST.

        `_version_` is not asked: a number that lost a bit can name an older manifest, whose history lacks instants.

        Raises:
            CorruptFileError: There is a `_version_`, but no manifest.
        """
        numbers, names = self._listed()
        return next((number for number in numbers if not self._is_unwritten(number, names)), None)

    def is_unwritten(self, number: int) -> bool:
        """Whether a manifest is an empty file that an archiver of Apache Hudi made and did not come to write. One LIST.

        It writes it before it points `_version_` at it, and removes instants from the active timeline after that.
        """
        return self._is_unwritten(number, self._listed()[1])

    def _is_unwritten(self, number: int, names: Mapping[str, int]) -> bool:
        if names.get(f"{MANIFEST_PREFIX}{number}") != 0:
            return False
        return 0 < self._version(names) < number or (number == 1 and VERSION_FILE not in names)

    def _listed(self) -> tuple[list[int], dict[str, int]]:
        """Numbers of the manifests, the greatest first, and all names with their sizes."""
        names = {info.name: info.size for info in self._storage.list(self._folder)}
        numbers = sorted((int(found[1]) for name in names if (found := _MANIFEST.fullmatch(name))), reverse=True)
        if not numbers and VERSION_FILE in names:
            raise CorruptFileError(join(self._folder, VERSION_FILE), 0, "the manifest that it names", "no manifest")
        return numbers, names

    def _decoded(self, number: int) -> tuple[ManifestEntry, ...]:
        path = join(self._folder, f"{MANIFEST_PREFIX}{number}")
        return decode_manifest(self._storage.read(path), path)

    def _version(self, names: Collection[str]) -> int:
        """Which manifest `_version_` names; 0 where it says none, or is not there."""
        if VERSION_FILE not in names:
            return 0
        found = _NUMBER.fullmatch(self._storage.read(join(self._folder, VERSION_FILE)).strip())
        return int(found[0]) if found else 0

    def _read(self, columns: Sequence[str], since: str, until: str | None) -> pa.Table:
        import pyarrow as pa

        entries = [] if self._layout == 1 else self.files_between(since, until)
        wanted = list(dict.fromkeys(("instant_time", "action", *columns)))
        parts = files_at_once(lambda entry: self.read_file(entry.name, wanted, entry.size), entries, self._storage)
        if not parts:
            return no_rows(_schema(wanted)).select(list(columns))
        return _each_once(pa.concat_tables(parts).sort_by("instant_time")).select(list(columns))

    def files_between(self, since: str, until: str | None = None) -> list[ManifestEntry]:
        """The files of the history that may hold instants between two, both included; None for no end."""
        return [e for e in self.manifest() if not self._in_order or _may_hold(e.name, since, until)]

    def read_file(self, name: str, columns: Sequence[str] = COLUMNS, size: int | None = None) -> pa.Table:
        """Some columns of `load`, of one file of the history.

        Args:
            name: Of the file.
            columns: What is wanted.
            size: In bytes, as the manifest says; None when it does not matter.

        Raises:
            NotFound, CorruptFileError: It is gone, damaged, or of another size.
        """
        import pyarrow as pa

        from hudimeta.formats.parquet import open_verified

        path = join(self._folder, name)
        stored = [_STORED_NAMES[column] for column in columns]
        try:
            with self._storage.open_input(path) as file:
                if size is not None and file.size() != size:
                    raise CorruptFileError(path, min(size, file.size()), f"{size} bytes, as the manifest says", file.size())
                with open_verified(file, path) as found:
                    rows = found.read(stored, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptFileError(path, 0, "a Parquet file of archived instants", str(error)) from error
        named: pa.Table = rows.select(stored).rename_columns(columns).cast(_schema(columns))
        return named


def _may_hold(name: str, since: str, until: str | None) -> bool:
    """False for a file whose name, `<first>_<last>_<level>.parquet`, says that it has nothing between two instants."""
    parts = name.split("_")
    return len(parts) != _NAME_PARTS or parts[1] < parts[0] or (parts[1] >= since and (until is None or parts[0] <= until))


def _each_once(rows: pa.Table) -> pa.Table:
    """Sorted rows without those of instants that come again: version 6 may have archived one twice."""
    import numpy as np
    import pyarrow.compute as pc

    times = rows["instant_time"]
    if len(pc.unique(times)) == len(rows):
        return rows
    named = pc.binary_join_element_wise(times, rows["action"], "_").combine_chunks().dictionary_encode()
    _, first = np.unique(named.indices.to_numpy(), return_index=True)
    once: pa.Table = rows.take(np.sort(first))
    return once


def _schema(columns: Sequence[str]) -> Any:
    import pyarrow as pa

    binary = ("metadata", "plan")
    return pa.schema([(name, pa.binary() if name in binary else pa.string()) for name in columns])
