"""Taking an instant back from the metadata table: its log files go, then its timeline files, and a rollback says so.

The log files of an instant bear its time in their names, so they are found by listing the few folders of the metadata table;
this happens only where a write died, never on the path of a read or of a healthy write.

A compaction of the metadata table takes the completion of a write for its instant, and a writer that looked before may begin
another write at that very time. So base files of an instant that is a compaction's stay when the write is taken back.
"""

from __future__ import annotations

import time as system_time
from collections.abc import Collection, Mapping, Sequence

from hudimeta.redaction import without_user
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import delete_files
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter
from hudimeta.types import Action, State

__all__ = ["METADATA_ROOT", "remove_files", "roll_back_metadata", "take_back_delta"]

METADATA_ROOT = ".hoodie/metadata"


def roll_back_metadata(storage: Storage, instant: str, rollback_time: str, times: InstantGenerator) -> int:
    """Remove everything that `instant` wrote into the metadata table. Repeating it changes nothing.

    Args:
        storage: Rooted at the data table.
        instant: Requested time of the write.
        rollback_time: Requested time of the data table's rollback; the metadata table's rollback bears the same.
        times: Makes the completion time.

    Returns:
        How many files were deleted.
    """
    from hudimeta.timeline.rollback_record import encode_rollback_metadata, encode_rollback_plan

    inner = storage.sub(METADATA_ROOT)
    timeline = Timeline.load(inner, place=METADATA_ROOT)
    writer = TimelineWriter(inner, timeline.folder)
    found = timeline.get(instant, Action.DELTA_COMMIT)
    begun = timeline.get(rollback_time, Action.ROLLBACK)
    if found is None and begun is None:
        return 0
    if begun is not None and begun.is_completed:
        return 0
    started = system_time.monotonic()
    files = _files_of(inner, [instant], _compactions(timeline))
    if begun is None:
        writer.create_requested(
            rollback_time, Action.ROLLBACK, encode_rollback_plan(without_user(inner.root), instant, Action.DELTA_COMMIT, files)
        )
    if begun is None or begun.state is State.REQUESTED:
        writer.create_inflight(rollback_time, Action.ROLLBACK)
    _remove(inner, files)
    if found is not None and found.is_completed:
        writer.delete_completed(found)
    writer.delete_pending(instant, Action.DELTA_COMMIT, State.INFLIGHT)
    writer.delete_pending(instant, Action.DELTA_COMMIT, State.REQUESTED)
    took_ms = int((system_time.monotonic() - started) * 1000)
    completion = times.next(rollback_time, timeline.last_time)
    outcome = encode_rollback_metadata(without_user(inner.root), rollback_time, instant, Action.DELTA_COMMIT, files, took_ms)
    writer.complete(rollback_time, Action.ROLLBACK, completion, outcome)
    return sum(len(names) for names in files.values())


def take_back_delta(storage: Storage, *instants: str) -> None:
    """Remove what planned services wrote into the metadata table before they died, or writes after they were rolled back.

    No rollback tells of it: no reader counts the delta commit of a service that is pending, and the next run writes it again;
    nor that of a write that is gone. Repeating it changes nothing.

    Args:
        storage: Rooted at the data table.
        instants: Of the services or writes.
    """
    inner = storage.sub(METADATA_ROOT)
    timeline = Timeline.load(inner, place=METADATA_ROOT)
    found = [one for instant in instants if (one := timeline.get(instant, Action.DELTA_COMMIT)) is not None]
    writer = TimelineWriter(inner, timeline.folder)
    for one in found:
        if one.is_completed:
            writer.delete_completed(one)
    _remove(inner, _files_of(inner, instants, _compactions(timeline)))
    for one in found:
        writer.delete_pending(one.time, Action.DELTA_COMMIT, State.INFLIGHT)
        writer.delete_pending(one.time, Action.DELTA_COMMIT, State.REQUESTED)


def remove_files(storage: Storage, *instants: str) -> None:
    """Delete the base and log files of the metadata table that bear an instant. The storage is rooted at the data table."""
    inner = storage.sub(METADATA_ROOT)
    _remove(inner, _files_of(inner, instants))


def _remove(inner: Storage, files: Mapping[str, Sequence[str]]) -> None:
    delete_files(inner, [join(partition, name) for partition, names in files.items() for name in names])


def _compactions(timeline: Timeline) -> frozenset[str]:
    """Instants of a metadata table's compactions and replacecommits, whose base files are no delta commit's."""
    return frozenset(i.time for i in timeline if i.action.completed_as in (Action.COMMIT, Action.REPLACE_COMMIT))


def _files_of(inner: Storage, instants: Sequence[str], compactions: Collection[str] = ()) -> dict[str, list[str]]:
    """Names by folder of the files that bear an instant; of those that are a compaction's only the log files."""
    files: dict[str, list[str]] = {}
    for folder in inner.list(""):
        if not folder.is_folder or folder.name.startswith("."):
            continue
        for entry in inner.list(folder.path):
            base = parse_base_file(entry.name)
            parsed = base or parse_log_file(entry.name)
            if parsed is not None and parsed.instant in instants and not (base and base.instant in compactions):
                files.setdefault(folder.path, []).append(entry.name)
    return files
