"""Markers: a note of every data file, made before the file, so that a dead write can be undone without searching.

Direct form: an empty file `.hoodie/.temp/<instant>/<partition>/<file name>.marker.<CREATE|MERGE|APPEND>`. Apache Hudi's
timeline server writes another form: `MARKERS.type` with the text `TIMELINE_SERVER_BASED` and files `MARKERS<n>` with one such
path a line. Both are read, the direct one is written. The server writes a list anew for each batch of markers, so that one
whose server was killed just then may be empty, or end within a line: nobody knows what else it named.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hudimeta.errors import CorruptFileError
from hudimeta.storage import OutputStream, Storage, join
from hudimeta.storage.at_once import at_once, delete_files
from hudimeta.table.file_names import parse_base_file, parse_log_file

__all__ = [
    "MARKERS",
    "STAGING",
    "Marker",
    "MarkerKind",
    "files_of_write",
    "has_direct_markers",
    "has_markers",
    "marked_file_ids",
    "marked",
    "marked_output",
    "marker_folder",
    "read_markers",
    "refuse_files_of_others",
    "remove_markers",
    "staging_folder",
    "take_markers",
    "write_marker",
]

MARKERS = ".hoodie/.temp"
STAGING = ".hoodie/.staged"
_INFIX = ".marker."
_TYPE_FILE = "MARKERS.type"
_LIST_PREFIX = "MARKERS"
_CHECKSUM = ".crc"
"""End of the hidden files that Hadoop's local file system puts beside its own."""


class MarkerKind(enum.Enum):
    """What is done to the file group: a new group or log file, a rewritten base file, or (version 6) a log append."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class Marker:
    """One data file of a write.

    Attributes:
        path: The data file, relative to the table.
        kind: See `MarkerKind`.
    """

    path: str
    kind: MarkerKind


def marker_folder(instant: str) -> str:
    """Folder of an instant's markers."""
    return f"{MARKERS}/{instant}"


def staging_folder(instant: str) -> str:
    """Folder of rows that wait for the commit of an instant.

    It does not lie among the markers: Apache Hudi refuses to roll a write back when it finds anything else there.
    """
    return f"{STAGING}/{instant}"


def write_marker(storage: Storage, instant: str, marker: Marker) -> None:
    """Note a data file that is about to be written. Writing it again changes nothing."""
    storage.put(_file_of(instant, marker), b"")


def _file_of(instant: str, marker: Marker) -> str:
    return join(marker_folder(instant), f"{marker.path}{_INFIX}{marker.kind.value}")


@contextlib.contextmanager
def marked(storage: Storage, instant: str, marker: Marker) -> Iterator[None]:
    """Around what a task does to put a file at once; see `marked_output`, `in_task`."""
    write_marker(storage, instant, marker)
    yield
    _mark_again(storage, instant, marker)


@contextlib.contextmanager
def marked_output(
    storage: Storage, instant: str, marker: Marker, *, in_task: bool = False, is_noted: bool = False
) -> Iterator[OutputStream]:
    """A stream for a data file, whose marker is written first.

    Args:
        storage: Rooted at the table.
        instant: Of the write.
        marker: Names the file.
        in_task: The write may be over before the file comes to be, and its markers removed. Then the file gets its marker
            again, so that the next write with tasks deletes it even when this process is killed or fails before it can do so.
        is_noted: The caller has written its marker.
    """
    if not is_noted:
        write_marker(storage, instant, marker)
    with storage.open_output(marker.path) as stream:
        in_place = stream.in_place
        if in_task and in_place:
            _mark_again(storage, instant, marker)
        yield stream
    if in_task and not in_place:
        _mark_again(storage, instant, marker)


def _mark_again(storage: Storage, instant: str, marker: Marker) -> None:
    if not storage.is_file(_file_of(instant, marker)):
        write_marker(storage, instant, marker)


def read_markers(storage: Storage, instant: str) -> list[Marker] | None:
    """All markers of an instant, of both forms, as far as its lists are whole; None when it has no marker folder.

    Raises:
        CorruptFileError: A marker that does not say what it stands for.
    """
    found = _read(storage, instant)
    return None if found is None else found[0]


def _read(storage: Storage, instant: str) -> tuple[list[Marker], bool] | None:
    """Markers, and whether they are all."""
    folder = marker_folder(instant)
    if not has_markers(storage, instant):
        return None
    paths, lists, pending = set[str](), list[str](), [folder]
    while pending:
        entries = [entry for found in at_once(storage.list, pending, storage) for entry in found]
        pending = [entry.path for entry in entries if entry.is_folder]
        for entry in entries:
            if entry.name.startswith(_LIST_PREFIX) and entry.path.count("/") == folder.count("/") + 1:
                lists += [entry.path] if entry.name != _TYPE_FILE and not entry.is_folder else []
            elif _INFIX in entry.name and not entry.name.endswith(_CHECKSUM) and not entry.is_folder:
                paths.add(entry.path[len(folder) + 1 :])
    texts = at_once(storage.read, lists, storage)
    paths.update(line for path, text in zip(lists, texts, strict=True) for line in _whole_lines(path, text) if line)
    return [_parse(p) for p in sorted(paths)], all(text.endswith(b"\n") for text in texts)


def _whole_lines(path: str, text: bytes) -> list[str]:
    """The lines of a list but for one that is cut; a name may hold what else Python takes for the end of a line."""
    try:
        return text.rpartition(b"\n")[0].decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, error.start, "a list of markers in UTF-8", text[error.start : error.start + 8]) from error


def marked_file_ids(storage: Storage, instant: str, partition_path: str) -> set[str]:
    """File groups of a partition that a write has marked, by markers of both forms; two or three requests."""
    folder = marker_folder(instant)
    lists = [entry for entry in storage.list(folder) if not entry.is_folder and entry.name.startswith(_LIST_PREFIX)]
    paths = [line for entry in lists if entry.name != _TYPE_FILE for line in _whole_lines(entry.path, storage.read(entry.path))]
    if not lists:
        paths = [entry.path[len(folder) + 1 :] for entry in storage.list(join(folder, partition_path)) if _INFIX in entry.name]
    found: set[str] = set()
    for path in paths:
        where, _, name = path.rpartition(_INFIX)[0].rpartition("/")
        parsed = parse_base_file(name) or parse_log_file(name)
        if parsed is not None and where == partition_path:
            found.add(parsed.file_id)
    return found


def has_markers(storage: Storage, instant: str) -> bool:
    """Whether a write may have made data files; one request."""
    return storage.stat(marker_folder(instant)) is not None


def files_of_write(storage: Storage, instant: str) -> list[str] | None:
    """Paths of the data files that are marked for a write, for whoever deletes them.

    Returns:
        None when it has no marker folder, or one with a list that is not whole: then storage tells, see `files_of_instants`.

    Raises:
        CorruptFileError: A marker that names anything but a data file of that write.
    """
    found = _read(storage, instant)
    if found is None or not found[1]:
        return None
    return refuse_files_of_others([marker.path for marker in found[0]], instant)


def take_markers(storage: Storage, instant: str, markers: Iterable[Marker]) -> None:
    """Remove some of an instant's markers, of the direct form. Whoever does so deletes their files once more afterwards.

    Then no file of a task that is still at work is lost: one that is there when its marker goes is deleted after it, and one
    that comes later is marked again (see `marked_output`).
    """
    delete_files(storage, [_file_of(instant, marker) for marker in markers])


def has_direct_markers(storage: Storage, instant: str) -> bool:
    """False where Apache Hudi's timeline server wrote lists, which no task of ours adds to."""
    return not storage.is_file(join(marker_folder(instant), _TYPE_FILE))


def refuse_files_of_others(paths: Iterable[str], instant: str) -> list[str]:
    """Some paths, all of data files that a write made: only these may go with it, whatever a plan or a marker names.

    Args:
        paths: Relative to the table.
        instant: Of the write, which the names of its files bear.

    Raises:
        CorruptFileError: Something else is named.
    """
    found = list(paths)
    for path in found:
        folder, _, name = path.rpartition("/")
        parsed = parse_base_file(name) or parse_log_file(name)
        if parsed is None or parsed.instant != instant or folder.partition("/")[0] == ".hoodie":
            hint = f"Nothing was deleted. Remove the marker below {marker_folder(instant)}, or the plan, that names it."
            raise CorruptFileError(path, 0, f"a data file of {instant} in what is to be deleted", name, hint)
    return found


def _parse(text: str) -> Marker:
    path, infix, kind = text.rpartition(_INFIX)
    if not infix or kind not in MarkerKind.__members__:
        raise CorruptFileError(text, 0, "a marker name", text)
    return Marker(path, MarkerKind[kind])


def remove_markers(storage: Storage, instant: str, *, staged: bool = True) -> None:
    """Remove an instant's markers, and before them the rows that it may have staged: without markers nothing is left."""
    if staged:
        storage.delete_folder(staging_folder(instant))
    storage.delete_folder(marker_folder(instant))
