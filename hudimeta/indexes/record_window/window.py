"""The record window of one table, opened for a write: what its runs do not cover is read from the files, and added to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError, HudiError, NotFound
from hudimeta.formats.plain_arrays import fill_null
from hudimeta.indexes.record_window.chains import GroupKey, group_keys, living, slice_print
from hudimeta.indexes.record_window.content import AnyRun, KeysOfGroups, all_keys, merged
from hudimeta.indexes.record_window.days import day_of_moment, day_of_path, first_day
from hudimeta.indexes.record_window.folder import Manifest, WindowFolder
from hudimeta.indexes.record_window.runs import Run, RunContent, RunStamp, whole_prints
from hudimeta.indexes.record_window.settings import WindowSettings
from hudimeta.storage import Storage
from hudimeta.table.key_file import FilesOf, KeyFile, KeyReader, RunAll

__all__ = ["OpenWindow", "WindowTable", "kept_prints", "open_window"]

_MOST_RUNS = 8
_MOST_RUNS_AT_ALL = 64
_GROWTH = 2
"""Newer runs are merged while the one before them has at most so many times their entries: each key is merged few times."""
_TASK_BYTES = 512 << 20
"""Files of so many bytes have their keys read by one task."""
_MOST_MERGED = 50_000_000
"""So many entries at most are merged, by one process in its memory."""
_SMALL = 10_000
"""So many entries that nobody needs are left where they are."""


@dataclass(frozen=True)
class WindowTable:
    """The table as the window asks it.

    Attributes:
        storage: Rooted at the table.
        partitions: All partition paths.
        files_of: Its latest slices.
        newest_days: By name of file the day of its newest event, as column statistics state it; for windows by event time.
        read: Reads the keys that are in a slice.
        run_all: See `RunAll`.
        now_ms: The present.
        keeps: What is found is kept; False in a task, whose driver has done so.
    """

    storage: Storage
    partitions: Callable[[], Sequence[str]]
    files_of: FilesOf
    newest_days: Callable[[str], Mapping[str, int | None]]
    read: KeyReader
    run_all: RunAll
    now_ms: int
    keeps: bool = True


@dataclass(frozen=True)
class OpenWindow:
    """A window as of one state of the table.

    Attributes:
        settings: See there.
        first_day: Of the window; None when everything is in it.
        files: The table's latest slices by partition path: of the window, and of the partitions that were asked for.
        inside: Those in the window.
        keys: Their keys; groups are numbered as `inside`.
        manifest: Names the runs.
        read_anew: Slices whose keys were read from their files.
        notes: For the report.
    """

    settings: WindowSettings
    first_day: int | None
    files: Mapping[str, Sequence[KeyFile]]
    inside: Sequence[KeyFile]
    keys: KeysOfGroups
    manifest: Manifest
    read_anew: int = 0
    notes: list[str] = field(default_factory=list)

    @cached_property
    def groups(self) -> frozenset[tuple[str, str]]:
        """Partition path and file id of the slices in the window."""
        return frozenset((file.partition_path, file.file_id) for file in self.inside)

    def is_before(self, days: pa.Array) -> pa.BooleanArray:
        """Which days, counted from 1970-01-01, are before the window; no null is."""
        return fill_null(pc.less(days, pa.scalar(self.first_day, pa.int32())), False)

    def are_before(self, partitions: pa.StringArray) -> pa.BooleanArray:
        """Which partition paths name a day before the window."""
        coded = partitions.dictionary_encode()
        days = [day_of_path(path) for path in coded.dictionary.to_pylist()]
        return self.is_before(pa.array(days, pa.int32())).take(coded.indices)


def group_of(file: KeyFile) -> GroupKey:
    """The file group of a slice."""
    return f"{file.partition_path}\0{file.file_id}"


def open_window(table: WindowTable, settings: WindowSettings, asked: Sequence[str], *, anew: bool = False) -> OpenWindow:
    """Open the window of a table.

    Args:
        table: The table.
        settings: Of the window.
        asked: Partitions whose slices the caller wants as well.
        anew: Believe nothing of what was kept.

    Raises:
        StorageError: The table's files cannot be read. What goes wrong with the index itself is a note.
    """
    notes: list[str] = []
    begin, files, inside = _slices(table, settings, asked)
    now = {group_of(file): slice_print(file.name, file.logs, file.log_sizes) for file in inside}
    folder = WindowFolder(table.storage)
    manifest, runs = _kept(folder, notes, anew=anew)
    keys = KeysOfGroups(runs, now)
    missing = [file for file, known in zip(inside, keys.covered, strict=True) if not known]
    if missing:
        more = table.run_all(_ReadAnew(table.read, folder, table.keeps), _portions(missing))
        runs = [*runs, *(Run(folder.storage, one) if isinstance(one, RunStamp) else one for one in more)]
        keys = KeysOfGroups(runs, now)
        manifest = _with_runs(folder, manifest, more, notes) if table.keeps else manifest
    window = OpenWindow(settings, begin, files, inside, keys, manifest, len(missing), notes)
    return replace(window, manifest=_upkeep(folder, table, window, runs, now)) if table.keeps else window


def _slices(
    table: WindowTable, settings: WindowSettings, asked: Sequence[str]
) -> tuple[int | None, Mapping[str, Sequence[KeyFile]], list[KeyFile]]:
    """The first day of the window, slices by partition, and those in the window."""
    today = day_of_moment(table.now_ms)
    if settings.column is not None:
        days = table.newest_days(settings.column)
        files = table.files_of(None)
        newest = {group_of(file): _newest_day(file, days) for own in files.values() for file in own}
        begin = first_day(settings.days, newest.values(), today)
        return begin, files, [file for own in files.values() for file in own if _is_in(newest[group_of(file)], begin)]
    paths = sorted({*table.partitions(), *asked})
    of_path = {path: day_of_path(path) for path in paths}
    begin = first_day(settings.days, of_path.values(), today)
    within = {path for path in paths if _is_in(of_path[path], begin)}
    files = table.files_of(sorted(within.union(asked)))
    return begin, files, [file for path in sorted(within) for file in files.get(path, ())]


def _is_in(day: int | None, begin: int | None) -> bool:
    """What has no day that is known is in the window."""
    return day is None or begin is None or day >= begin


def _newest_day(file: KeyFile, days: Mapping[str, int | None]) -> int | None:
    found = [days.get(name) for name in (*((file.name,) if file.name else ()), *file.logs)]
    known = [day for day in found if day is not None]
    return max(known, default=None) if len(known) == len(found) else None


def _kept(folder: WindowFolder, notes: list[str], *, anew: bool) -> tuple[Manifest, list[AnyRun]]:
    """The manifest and its runs; none of them where they are damaged."""
    if anew:
        return folder.empty(), []
    for last in (False, True):
        try:
            manifest = folder.manifest()
            runs: list[AnyRun] = [Run(folder.storage, stamp) for stamp in manifest.runs]
            for run in runs:
                _ = run.segments
        except NotFound as error:
            # A merge may have removed it since the manifest was read.
            if last:
                notes.append(f"the record window is made anew: {error}")
        except CorruptFileError as error:
            notes.append(f"the record window is made anew: {error}")
            break
        else:
            return manifest, runs
    return folder.empty(), []


@dataclass(frozen=True)
class _ReadAnew:
    """A task, which may run in another process: the keys of some slices as a run.

    Attributes:
        read: Reads the keys that are in a slice.
        folder: Where the run is written.
        keeps: It is written; else it stays in memory.
    """

    read: KeyReader
    folder: WindowFolder
    keeps: bool

    def __call__(self, slices: Sequence[KeyFile]) -> RunStamp | RunContent:
        """The run; its content where the store does not take it, so that the caller tries again and tells of it."""
        found = [self.read(file, None) for file in slices]
        keys = [pa.array([], pa.string()) if own is None else own for own in found]
        prints = (slice_print(file.name, file.logs, file.log_sizes) for file in slices)
        content = all_keys([(f.partition_path, f.file_id, now) for f, now in zip(slices, prints, strict=True)], keys)
        if not self.keeps:
            return content
        try:
            return self.folder.write(content)
        except HudiError:
            return content


def _portions(slices: Sequence[KeyFile]) -> list[list[KeyFile]]:
    """Slices that one task reads."""
    portions: list[list[KeyFile]] = []
    size = _TASK_BYTES
    for file in slices:
        if size >= _TASK_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(file)
        size += file.size + sum(file.log_sizes)
    return portions


def _with_runs(folder: WindowFolder, manifest: Manifest, runs: Sequence[RunStamp | RunContent], notes: list[str]) -> Manifest:
    try:
        stamps = [one if isinstance(one, RunStamp) else folder.write(one) for one in runs]
        return folder.add(manifest, stamps)
    except HudiError as error:
        notes.append(f"the record window was not written, the next write reads the same keys again: {error}")
        return manifest


def _upkeep(
    folder: WindowFolder, table: WindowTable, window: OpenWindow, runs: Sequence[AnyRun], now: Mapping[GroupKey, int]
) -> Manifest:
    """Merge runs where there are many, or much in them is of no use any more; returns the manifest of after."""
    manifest, stamps = window.manifest, window.manifest.runs
    if manifest.version == 0 or len(runs) != len(stamps):
        return manifest
    try:
        return _merged(folder, table, window, runs, now)
    except HudiError as error:
        window.notes.append(f"the upkeep of the record window is left to a later write: {error}")
        return manifest


def _merged(
    folder: WindowFolder, table: WindowTable, window: OpenWindow, runs: Sequence[AnyRun], now: Mapping[GroupKey, int]
) -> Manifest:
    manifest = replace(window.manifest, first_day=window.first_day)
    first, wanted = _to_merge(runs, now)
    if sum(len(run) for run in runs[first:]) > _MOST_MERGED:
        first = len(runs)
    if first < len(runs):
        parts = [run.whole() if isinstance(run, Run) else run for run in runs[first:] if isinstance(run, Run | RunContent)]
        stamp = folder.write(merged(parts, wanted))
        manifest = replace(manifest, runs=(*manifest.runs[:first], stamp))
    if manifest == window.manifest:
        return manifest
    after = folder.put(manifest)
    if after is None:  # another writer added something: the next one merges
        return window.manifest
    if first < len(runs):
        folder.sweep(table.now_ms)
    return after


def _to_merge(runs: Sequence[AnyRun], now: Mapping[GroupKey, int]) -> tuple[int, Mapping[GroupKey, int] | None]:
    """From which run on they are merged, and whose keys are kept: see `content.merged`."""
    tables = [run.segments for run in runs]
    used = sum(int(t["entries"].to_numpy()[alive].sum()) for t, alive in zip(tables, living(tables, now), strict=True))
    total = sum(len(run) for run in runs)
    if total - used > max(_SMALL, used // 2) or len(runs) > _MOST_RUNS_AT_ALL:
        return 0, now
    if len(runs) <= _MOST_RUNS:
        return len(runs), None
    first, size = len(runs) - 1, len(runs[-1])
    while first > 0 and (len(runs[first - 1]) <= _GROWTH * size or len(runs) - first < _MOST_RUNS // 2):
        first -= 1
        size += len(runs[first])
    return first, now if first == 0 else None


def kept_prints(storage: Storage, now: Mapping[GroupKey, int]) -> dict[GroupKey, npt.NDArray[np.void]]:
    """All that is kept of the keys of slices, for whoever compares it with their rows.

    Args:
        storage: Rooted at the table.
        now: The print of each slice; those that are not known are left out.

    Returns:
        Of each file group its prints, see `whole_prints`.

    Raises:
        CorruptFileError: Damaged files.
    """
    folder = WindowFolder(storage)
    whole = merged([Run(folder.storage, stamp).whole() for stamp in folder.manifest().runs], now)
    names, group = group_keys(whole.segments), (whole.owner >> np.uint32(1)).astype(np.int64)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(names)))[:-1]
    parts = np.split(whole_prints(whole.first[order], whole.second[order]), ends)
    return dict(zip(names, parts, strict=True)) if names else {}
