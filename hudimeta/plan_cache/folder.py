"""Files of kept plans: Arrow IPC files without compression, so that they can be mapped, and an entry that vouches for them.

    <name>.<part>.arrow     one table; never changed once an entry names it
    <name>.json             the entry, sealed: what it is about, and name, size and XXH3 (64 bits) of each of its files; and the
                            number of this format, which changes with what files mean. Entries of other formats are passed over

An entry is put last and at once, so that a dead or a slow process leaves files that nothing names. Every file is read through
once before this process maps it; the same file (by size and time of change) is not looked at again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import xxhash

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.forking import FreeWhenForked
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.seal import sealed_json, verify_json
from hudimeta.plan_cache.mapped import PIECE_BYTES, mapped_table
from hudimeta.storage import FileInfo, Storage

__all__ = ["Entry", "FileStamp", "PlanFolder"]

_ENTRY, _TABLE = ".json", ".arrow"
_FORMAT = 1
_MOST_ENTRY_BYTES = 64 << 20
_MOST_OPEN = 32

_opened: OrderedDict[tuple[str, FileInfo], pa.Table] = OrderedDict()
_entries: OrderedDict[tuple[str, FileInfo], Entry] = OrderedDict()
_lock = FreeWhenForked()


@dataclass(frozen=True)
class FileStamp:
    """A file that an entry names: its name, its size, and the XXH3 of its bytes."""

    name: str
    size: int
    digest: str

    def to_json(self) -> list[Any]:
        """As JSON values."""
        return [self.name, self.size, self.digest]


@dataclass(frozen=True)
class Entry:
    """What was kept at once.

    Attributes:
        name: Without an ending; later ones sort after earlier ones.
        content: What it is about, as JSON values.
        files: By part.
    """

    name: str
    content: Mapping[str, Any]
    files: Mapping[str, FileStamp]


class _OtherFormat(Exception):
    """An entry that another version of hudimeta has written."""


class PlanFolder:
    """The kept plans of one table.

    Args:
        storage: Rooted at the folder, on a disk of this machine.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._listed: dict[str, FileInfo] | None = None
        self.damaged: list[str] = []
        self.foreign: list[str] = []

    @property
    def _files(self) -> dict[str, FileInfo]:
        found = self._listed  # another thread may let it go, having kept something
        if found is None:
            found = self._listed = {info.path: info for info in self._storage.list("") if not info.is_folder}
        return found

    def entries(self) -> list[Entry]:
        """All entries that are whole, newest first. Others are named in `damaged`, those of other formats in `foreign`."""
        found = []
        for name in sorted((name for name in self._files if name.endswith(_ENTRY)), reverse=True):
            try:
                found.append(self._entry(name))
            except NotFound:
                continue  # another process has removed it
            except _OtherFormat:
                self.foreign.append(name)
            except (CorruptFileError, ValueError, KeyError, TypeError, AttributeError, IndexError):
                self.damaged.append(name)
        return found

    def _entry(self, name: str) -> Entry:
        at = (self._storage.root, self._files[name])
        with _lock:
            if at in _entries:
                return _entries[at]
        size = self._files[name].size
        if size > _MOST_ENTRY_BYTES:
            raise CorruptFileError(name, 0, f"an entry of at most {_MOST_ENTRY_BYTES:,} bytes", f"{size:,}")
        data = self._storage.read(name)
        if not verify_json(data, name):
            raise CorruptFileError(name, 0, "an entry with a seal", "none")
        values = parse_json(data)
        if values["format"] != _FORMAT:
            raise _OtherFormat(name)
        files = {part: FileStamp(str(stamp[0]), int(stamp[1]), str(stamp[2])) for part, stamp in values["files"].items()}
        entry = Entry(name[: -len(_ENTRY)], dict(values["content"]), files)
        _remember(_entries, at, entry)
        return entry

    def table(self, stamp: FileStamp, schema: pa.Schema | None = None) -> pa.Table:
        """A table, mapped, its bytes checked.

        Args:
            stamp: Its file.
            schema: Its columns; None for any.

        Raises:
            CorruptFileError: Other bytes than those that were written.
            NotFound: It was removed.
        """
        info = self._files.get(stamp.name)
        if info is None:
            raise NotFound(stamp.name)
        at = (self._storage.root, info)
        with _lock:
            if at in _opened:
                _opened.move_to_end(at)
                return _opened[at]
        if info.size != stamp.size or self._digest(stamp) != stamp.digest:
            raise CorruptFileError(stamp.name, 0, f"{stamp.size} bytes with the digest {stamp.digest}", "others")
        table = mapped_table(self._storage, stamp.name, schema)
        _remember(_opened, at, table)
        return table

    def _digest(self, stamp: FileStamp) -> str:
        """Read, not mapped: what is only checked need not stay in memory."""
        digest = xxhash.xxh3_64()
        for offset in range(0, stamp.size, PIECE_BYTES):
            digest.update(self._storage.read_range(stamp.name, offset, PIECE_BYTES))
        return str(digest.hexdigest())

    def keep(self, name: str, content: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Entry:
        """Write tables, then the entry that names them.

        Args:
            name: Of the entry; no other process uses it.
            content: What it is about, as JSON values.
            tables: By part.

        Raises:
            StorageError: The disk does not take them.
        """
        files = {part: self._write(f"{name}.{part}{_TABLE}", table) for part, table in tables.items()}
        values = {"format": _FORMAT, "content": content, "files": {part: stamp.to_json() for part, stamp in files.items()}}
        entry_name = name + _ENTRY
        self._storage.put(entry_name, sealed_json(json.dumps(values, separators=(",", ":")).encode(), entry_name))
        self._listed = None
        return Entry(name, content, files)

    def _write(self, name: str, table: pa.Table) -> FileStamp:
        with self._storage.open_output(name) as out:
            summed = _Summed(out)
            with pa.ipc.new_file(pa.PythonFile(summed, "w"), table.schema) as writer:
                writer.write_table(table)
        return FileStamp(name, summed.size, summed.digest.hexdigest())

    def remove(self, name: str) -> None:
        """Remove an entry, then its files; whoever has mapped them keeps them."""
        for path in sorted(self._files, key=lambda path: path != name + _ENTRY):
            if path == name + _ENTRY or path.startswith(f"{name}."):
                self._storage.delete(path)
        self._listed = None

    def sizes(self) -> dict[str, FileInfo]:
        """Entries, and what is left of some: the bytes of all files of each, and when the newest of them was written."""
        found: dict[str, FileInfo] = {}
        for path, info in self._files.items():
            name = path.partition(".")[0]
            other = found.get(name, FileInfo(name, 0, 0, False))
            found[name] = FileInfo(name, other.size + info.size, max(other.modified_ms, info.modified_ms), False)
        return found


def _remember(kept: OrderedDict[Any, Any], at: Any, value: Any) -> None:
    with _lock:
        kept[at] = value
        while len(kept) > _MOST_OPEN:
            kept.popitem(last=False)


class _Summed:
    """A stream that counts and sums what goes through it; pyarrow sees it as a Python file object."""

    closed = False

    def __init__(self, out: Any) -> None:
        self._out, self.size, self.digest = out, 0, xxhash.xxh3_64()

    def write(self, data: Any) -> int:
        """Pass bytes on."""
        view = memoryview(data)
        self._out.write(view)
        self.size += view.nbytes
        self.digest.update(view)
        return view.nbytes

    def writable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Bytes so far."""
        return self.size

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """The stream below is closed by whoever opened it."""
        self.closed = True
