"""What a write that was published adds to the record window: the keys that came to file groups and that left them.

It is added after the write is visible, without the table's lock: a process that dies before leaves slices that no run speaks
of, and the next look-up reads their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.indexes.record_window.chains import GroupKey, after_files, slice_print
from hudimeta.indexes.record_window.content import KeysOfGroups
from hudimeta.indexes.record_window.days import day_of_moment, day_of_path, first_day
from hudimeta.indexes.record_window.folder import Manifest, WindowFolder
from hudimeta.indexes.record_window.runs import REMOVED, SEGMENTS, Prints, RunContent, RunStamp, sorted_entries
from hudimeta.indexes.record_window.settings import WindowSettings
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.storage import Storage
from hudimeta.table.key_file import KeyFile

__all__ = ["Slices", "add_changes", "changes_of", "write_changes"]

_Entries = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint32]]


Slices = Callable[[Sequence[str]], Mapping[str, Sequence[KeyFile]]]
"""Latest slices of partitions as the write saw them."""


def add_changes(
    storage: Storage,
    settings: WindowSettings,
    written: Sequence[WrittenFile],
    slices: Slices,
    known: KeysOfGroups | None,
    now_ms: int,
    runs: Sequence[RunStamp] = (),
) -> None:
    """Add what a write did.

    Args:
        storage: Rooted at the table.
        settings: Of the window.
        written: The write's files, but for those that were written again over what others did meanwhile.
        slices: See there.
        known: The window as the write saw it, where it looked.
        now_ms: The present.
        runs: What tasks have written of the write by `write_changes`.

    Raises:
        HudiError: It could not be done; nothing is lost by that but time.
    """
    folder = WindowFolder(storage)
    manifest = folder.manifest()
    begin, inside = _in_window(settings, manifest, written, now_ms)
    own = _run_of(folder, inside, slices, known)
    if runs or own:
        folder.add(replace(manifest, first_day=begin), [*runs, *own])


def write_changes(
    storage: Storage, settings: WindowSettings, written: Sequence[WrittenFile], slices: Slices, now_ms: int
) -> list[RunStamp]:
    """Write what a task did as a run, which counts when `add_changes` names it. Arguments are those of `add_changes`."""
    folder = WindowFolder(storage)
    _, inside = _in_window(settings, folder.manifest(), written, now_ms)
    return _run_of(folder, inside, slices, None)


def _in_window(
    settings: WindowSettings, manifest: Manifest, written: Sequence[WrittenFile], now_ms: int
) -> tuple[int | None, list[WrittenFile]]:
    """The first day of the window with some files, and those that are in it."""
    if settings.column is not None:
        return None, list(written)
    newest = None if manifest.first_day is None else manifest.first_day + settings.days - 1
    days = {path: day_of_path(path) for path in {file.partition_path for file in written}}
    begin = first_day(settings.days, [newest, *days.values()], day_of_moment(now_ms))
    if begin is None:
        return None, list(written)
    return begin, [file for file in written if (day := days[file.partition_path]) is None or day >= begin]


def _run_of(folder: WindowFolder, files: Sequence[WrittenFile], slices: Slices, known: KeysOfGroups | None) -> list[RunStamp]:
    changed = sorted({file.partition_path for file in files if not file.is_new_group})
    before = {(file.partition_path, file.file_id): file for own in slices(changed).values() for file in own} if changed else {}
    content = changes_of(files, before, known)
    return [folder.write(content)] if len(content.segments) else []


@dataclass
class _Change:
    """What a write did to one file group. Attributes: those of `runs.SEGMENTS`, and the keys."""

    file: WrittenFile
    full: bool
    before: int
    after: int
    added: pa.StringArray
    removed: pa.StringArray


def changes_of(
    written: Iterable[WrittenFile], before: Mapping[tuple[str, str], KeyFile], known: KeysOfGroups | None
) -> RunContent:
    """The run of a write.

    Args:
        written: Its files; those whose keys are not told are left out.
        before: The slices that it changed, by partition path and file id.
        known: Keys that were known before, which need not be told again.
    """
    of_group: dict[tuple[str, str], list[WrittenFile]] = {}
    for file in written:
        of_group.setdefault((file.partition_path, file.file_id), []).append(file)
    changes = [
        change
        for group, files in of_group.items()
        if len(files) == 1 and (change := _change(files[0], before.get(group), known)) is not None
    ]
    entries = [part for number, change in enumerate(changes) for part in _entries(number, change)]
    rows = [(c.file.partition_path, c.file.file_id, c.full, c.before, c.after, len(c.added) + len(c.removed)) for c in changes]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SEGMENTS)
    return RunContent(pa.table(columns, schema=SEGMENTS), *sorted_entries(entries))


def _change(file: WrittenFile, before: KeyFile | None, known: KeysOfGroups | None) -> _Change | None:
    facts, is_log = file.facts.keys, file.log_instant is not None
    if facts is None or (before is None and not file.is_new_group):
        return None
    if before is not None and file.previous_name is not None and file.previous_name != before.name:
        return None  # written over what others had made of the slice meanwhile
    after = after_files(before, file.name, file.size, is_log=is_log)
    if file.is_new_group:
        added = pa.concat_arrays([facts.added, facts.maybe_added])
        return None if len(added) != file.rows else _Change(file, True, 0, after, added, facts.removed)
    assert before is not None
    from_slice = slice_print(before.name, before.logs, before.log_sizes)
    maybe = _unknown(facts.maybe_added, f"{file.partition_path}\0{file.file_id}", known)
    return _Change(file, False, from_slice, after, pa.concat_arrays([facts.added, maybe]), facts.removed)


def _unknown(keys: pa.StringArray, group: GroupKey, known: KeysOfGroups | None) -> pa.StringArray:
    """Those of some keys that a file group is not known to hold."""
    number = None if known is None else known.numbers.get(group)
    if known is None or number is None or not len(keys):
        return keys
    at, holder = known.find(Prints.of(keys))
    there = np.zeros(len(keys), np.bool_)
    there[at[holder == number]] = True
    return keys.filter(pa.array(~there))


def _entries(number: int, change: _Change) -> list[_Entries]:
    """Of a key that is removed and added at once the later entry counts: it is there."""
    found = []
    for keys, bit in ((change.removed, REMOVED), (change.added, np.uint32(0))):
        prints = Prints.of(keys)
        found.append((prints.first, prints.second, np.full(len(prints), 2 * number, np.uint32) | bit))
    return found
