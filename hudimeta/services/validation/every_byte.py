"""Reading every byte of a table: data files, the metadata table, the timeline and what lies beside it.

Each file goes to the reader of its format, which compares what it holds with its checksums and seals; sizes are compared with
what commits and the metadata table state. Files of writes that are not completed, markers, heartbeats and locks are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hudimeta.cached import cached_property
from hudimeta.commit.restoring import partitions_built_anew
from hudimeta.engine import Engine
from hudimeta.errors import CorruptFileError, HudiError, NotFound
from hudimeta.formats.hfile import HFileReader
from hudimeta.formats.log import verify_log_file
from hudimeta.formats.parquet import verify_parquet_file
from hudimeta.formats.properties import decode_properties
from hudimeta.formats.seal import verify_json, verify_properties
from hudimeta.indexes.bucket.consistent_hashing import SUFFIX as RING_SUFFIX
from hudimeta.indexes.bucket.consistent_hashing import decode_ring
from hudimeta.indexes.bucket.partition_rules import SUFFIX as RULES_SUFFIX
from hudimeta.indexes.bucket.partition_rules import decode_rules
from hudimeta.metadata.index_definitions import decode_definitions
from hudimeta.metadata.indexing import says_who_runs
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.schema import SchemaHistory
from hudimeta.services.validation.result import CheckResult, Findings
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import FileInfo, Storage, join
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.stated_sizes import files_of_write
from hudimeta.timeline import History, Timeline
from hudimeta.timeline.content import decode_instant
from hudimeta.timeline.history import MANIFEST_PREFIX, VERSION_FILE, decode_manifest
from hudimeta.timeline.naming import LAYOUT_V1, InstantFile, parse_instant_name
from hudimeta.types import Action, State

__all__ = ["EveryByte"]

_META = ".hoodie"
_PASSING = tuple(f"{root}/{name}" for root in (_META, f"{METADATA_ROOT}/{_META}") for name in (".temp", ".heartbeat", ".locks"))
"""Folders of files that live no longer than a write."""
_PLANNED = (Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.ROLLBACK, Action.RESTORE)
_METAFILE = ".hoodie_partition_metadata"


@dataclass(frozen=True)
class _Task:
    """One file to read: what sort it is of, and how it is verified, which gives notes."""

    sort: str
    file: FileInfo
    verify: Callable[[], Sequence[str]]


class EveryByte:
    """The checks of all files, one for each sort of file.

    Args:
        snapshot: The newest moment of the table.
        engine: Where files are read.
    """

    def __init__(self, snapshot: Snapshot, engine: Engine) -> None:
        self._snapshot, self._engine = snapshot, engine
        self._storage: Storage = snapshot.storage

    def checks(self) -> Iterator[CheckResult]:
        """Read everything; a result for each sort of file."""
        by_sort: dict[str, list[_Task]] = {}
        for task in self._tasks():
            by_sort.setdefault(task.sort, []).append(task)
        for sort, tasks in by_sort.items():
            findings = Findings(compared=len(tasks))
            found = self._engine.map(_verified, tasks)
            findings.wrong("damaged", [text for text, _ in found if text])
            findings.notes += [note for _, notes in found for note in notes]
            yield findings.result(f"every byte of {sort}")

    def _tasks(self) -> Iterator[_Task]:
        for file in _files_below(self._storage, ""):
            inner = file.path.startswith(f"{METADATA_ROOT}/")
            path = file.path[len(METADATA_ROOT) + 1 :] if inner else file.path
            try:
                task = self._task(file, path, inner)
            except HudiError as error:
                task = _Task("the metadata table" if inner else "the timeline", file, partial(_raise, error))
            if task is not None:
                yield task

    def _task(self, file: FileInfo, path: str, inner: bool) -> _Task | None:
        if path.startswith(f"{_META}/"):
            verify = self._beside(file, inner)
            return None if verify is None else _Task("the metadata table" if inner else "the timeline", file, verify)
        name = file.name
        if name.startswith(_METAFILE):
            return _Task("partition metadata", file, partial(_verify_metafile, self._storage, file.path))
        parsed = parse_base_file(name) or parse_log_file(name)
        timeline = self._inner_timeline if inner else self._snapshot.timeline
        if parsed is None or (timeline is not None and not timeline.is_committed(parsed.instant)):
            return None
        size = (self._inner_sizes if inner else self._sizes).get(path, 0)
        sort = "the metadata table" if inner else "log files" if name.startswith(".") else "base files"
        return _Task(sort, file, partial(self._verify_rows, file, size))

    # What is known

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        """Sizes of data files that the metadata table or a commit states, by path."""
        stated = _stated_by(self._snapshot.timeline)
        if self._snapshot.metadata is not None:
            listed = self._snapshot.metadata.files(None)
            columns = (listed[c].to_pylist() for c in ("partition_path", "name", "size"))
            stated |= {join(partition, name): size for partition, name, size in zip(*columns, strict=True)}
        return stated

    @cached_property
    def _inner_timeline(self) -> Timeline | None:
        metadata = self._snapshot.metadata
        return None if metadata is None else metadata.timeline

    @cached_property
    def _inner_sizes(self) -> Mapping[str, int]:
        return {} if self._inner_timeline is None else _stated_by(self._inner_timeline)

    # Each sort of file

    def _verify_rows(self, file: FileInfo, size: int) -> Sequence[str]:
        if file.name.startswith("."):
            spans = verify_log_file(self._storage.read(file.path), file.path, size or None)
            wrong = [s for s in spans if not s.is_past_end and self._snapshot.timeline.layout != LAYOUT_V1]
            if wrong:
                raise CorruptFileError(file.path, 0, "log blocks", str(wrong[0]))
            return [str(span) for span in spans]
        if file.name.endswith(".parquet"):
            with self._storage.open_input(file.path) as source:
                verify_parquet_file(source, file.path, size)
            return ()
        if size and size != file.size:
            raise CorruptFileError(file.path, min(size, file.size), f"a file of {size} bytes", f"{file.size} bytes")
        if not file.name.endswith(".hfile"):
            return (f"{file.path}: only its size was looked at",)
        HFileReader(self._storage.read(file.path), file.path).verify()
        return ()

    def _beside(self, file: FileInfo, inner: bool) -> Callable[[], Sequence[str]] | None:
        """How a file below `.hoodie` is verified; None for those that say nothing of the table."""
        path, name = file.path, file.name
        folder = path[: -len(name) - 1]
        timeline = self._inner_timeline if inner else self._snapshot.timeline
        if name.startswith("hoodie.properties"):
            return partial(_verify_properties, self._storage, path)
        if name == "index.json":
            return partial(_verify_by, self._storage, path, decode_definitions)
        if name.endswith(".schemacommit"):
            return partial(_verify_by, self._storage, path, _decode_history)
        if folder.endswith("/history") and name == VERSION_FILE and timeline is not None:
            return partial(_verify_version, self._storage, timeline.history, path)
        if folder.endswith("/history") and name.startswith(MANIFEST_PREFIX):
            number = name.removeprefix(MANIFEST_PREFIX)
            if timeline is not None and number.isdecimal() and timeline.history.is_unwritten(int(number)):
                return None
            return partial(_verify_by, self._storage, path, decode_manifest)
        if folder.endswith("/history") and name.endswith(".parquet"):
            sizes = {} if timeline is None else {entry.name: entry.size for entry in timeline.history.manifest()}
            return partial(_verify_archived, self._storage, path, sizes.get(name, 0))
        if name.endswith(RING_SUFFIX):
            return partial(_verify_by, self._storage, path, decode_ring)
        if name.endswith(RULES_SUFFIX):
            return partial(_verify_by, self._storage, path, decode_rules)
        # Marks of hash rings are called as instants of version 6 are.
        root = METADATA_ROOT if inner else ""
        if timeline is not None and folder == join(root, timeline.folder) and parse_instant_name(name) is not None:
            return partial(_verify_instant, self._storage, path, self._snapshot.timeline.layout)
        return None


def _verified(task: _Task) -> tuple[str, Sequence[str]]:
    """What is wrong with a file, "" for nothing, and what else is to be said of it."""
    try:
        return "", task.verify()
    except NotFound:
        return "", ()  # cleaned or archived meanwhile
    except HudiError as error:
        return error.message, ()


def _raise(error: HudiError) -> Sequence[str]:
    raise error


def _files_below(storage: Storage, folder: str) -> Iterator[FileInfo]:
    for entry in storage.list(folder):
        if not entry.is_folder:
            yield entry
        elif entry.path not in _PASSING:
            yield from _files_below(storage, entry.path)


def _stated_by(timeline: Timeline) -> dict[str, int]:
    """Sizes that the commits of the active timeline state; a damaged commit states none, and is found by itself."""
    sizes: dict[str, int] = {}
    for instant in timeline.writes:
        try:
            stated = list(files_of_write(timeline.metadata(instant)))
        except (CorruptFileError, NotFound):
            continue
        for partition, name, size in stated:
            path = join(partition, name)
            sizes[path] = max(size, sizes.get(path, 0))
    return sizes


def _verify_metafile(storage: Storage, path: str) -> Sequence[str]:
    if path.endswith(_METAFILE):
        text = storage.read(path)
        verify_properties(text, path)
        depth = decode_properties(text, path).get("partitionDepth", "").strip()
        if not depth.isdigit():
            raise CorruptFileError(path, 0, "partitionDepth, a number", repr(depth))
    return ()


def _verify_properties(storage: Storage, path: str) -> Sequence[str]:
    text = storage.read(path)
    verify_properties(text, path)
    decode_properties(text, path)
    return ()


def _verify_by(storage: Storage, path: str, decode: Callable[[bytes, str], object]) -> Sequence[str]:
    decode(storage.read(path), path)
    return ()


def _decode_history(data: bytes, path: str) -> object:
    verify_json(data, path, taken_over=True)
    return SchemaHistory.decode(data, path)


def _verify_instant(storage: Storage, path: str, layout: int) -> Sequence[str]:
    named, data = parse_instant_name(path.rpartition("/")[2]), storage.read(path)
    if named is not None and named.state is State.INFLIGHT and named.action is Action.RESTORE:
        partitions_built_anew(data, path)
    elif named is not None and named.state is State.INFLIGHT and named.action is Action.INDEXING and says_who_runs(data):
        return ()
    elif data and named is not None:
        decode_instant(data, path, named.state is State.COMPLETED and named.action.writes_data)
    elif named is not None and layout != LAYOUT_V1 and _says_something(named):
        raise CorruptFileError(
            path, 0, "a plan" if named.state is State.REQUESTED else "the record of an action", "an empty file"
        )
    return ()


def _says_something(named: InstantFile) -> bool:
    return named.state is State.COMPLETED or (named.state is State.REQUESTED and named.action in _PLANNED)


def _verify_version(storage: Storage, history: History, path: str) -> Sequence[str]:
    text, newest = storage.read(path).strip(), history.manifest_number()
    if newest is not None and text != str(newest).encode():
        raise CorruptFileError(path, 0, f"{newest}, the number of the newest manifest", repr(text[:40]))
    return ()


def _verify_archived(storage: Storage, path: str, size: int) -> Sequence[str]:
    with storage.open_input(path) as source:
        rows = verify_parquet_file(source, path, size)
    for metadata in rows["metadata"].to_pylist():
        if metadata:
            decode_instant(metadata, path, False)
    return ()
