"""Keeping the metadata table small: what its compactions have superseded is deleted, and its old instants are archived.

Each runs under the table lock, after a compaction of the metadata table. Superseded files are known without any listing: the
plan of a compaction names the logs that it merged and the base files that it followed on, and what gave an index fewer file
groups names all files of the others. Files that a reader may still have planned with stay: those of the newest instants, more
of them than of the data table.

A clean only says which files are out of use: they are deleted when the lock was let go, which takes longer than all else. What
a process that died meanwhile has left is deleted after the next compaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from hudimeta.metadata.group_files import base_name, log_file
from hudimeta.metadata.metadata_commits import FEWER_KEY, gives_fewer_groups
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.metadata.own_instants import clean_instant
from hudimeta.metadata.rollback import METADATA_ROOT, remove_files, take_back_delta
from hudimeta.metadata.strays import half_laid_out
from hudimeta.redaction import without_user
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import delete_files
from hudimeta.table.compaction_plan import decode_compaction_plan
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter
from hudimeta.timeline.archiving import leaving, move_to_history
from hudimeta.timeline.clean_record import CleanPlan, encode_metadata, encode_plan
from hudimeta.types import Action, Instant, State

__all__ = ["SERVICES", "archive", "clean", "delete", "is_long", "left_behind", "take_back_dead"]

LEAST_RETAINED = 20
"""Delta commits whose slices stay, whatever the data table retains."""

_POLICY = "KEEP_LATEST_COMMITS"

SERVICES = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLEAN, Action.REPLACE_COMMIT)
"""What tends the metadata table, and who does holds the table lock."""

_TAKEN_BACK = (Action.CLEAN, Action.LOG_COMPACTION)

_SUPERSEDING = (Action.COMMIT, Action.REPLACE_COMMIT)


def clean(storage: Storage, table: MetadataTable, times: InstantGenerator, retained: int) -> list[str]:
    """Put files of the metadata table out of use that compactions have superseded. The caller holds the table lock.

    Args:
        storage: Rooted at the data table.
        table: The metadata table, opened under the lock.
        times: Makes instants.
        retained: Commits that the data table's cleaning retains.

    Returns:
        What is to be deleted when the lock was let go, see `delete`.
    """
    timeline = table.timeline
    keep = max(LEAST_RETAINED, retained + retained // 5)
    writes = timeline.writes
    if len(writes) <= keep:
        return []
    earliest = writes[-keep]
    begin = _last_clean(timeline).get("earliestCommitToRetain") or ""
    gone: dict[str, set[str]] = {}
    for instant in (i for i in writes if i.action in _SUPERSEDING and begin <= i.time < earliest.time):
        for partition, name in _superseded(timeline, instant):
            gone.setdefault(partition, set()).add(name)
    if not gone:
        return []
    files = {partition: tuple(sorted(names)) for partition, names in sorted(gone.items())}
    the_plan = CleanPlan(_POLICY, earliest, files, (), writes[-1].time)
    inner = storage.sub(METADATA_ROOT)
    own, writer = clean_instant(table, times), TimelineWriter(inner, timeline.folder)
    writer.create_requested(own, Action.CLEAN, encode_plan(without_user(inner.root), the_plan))
    writer.create_inflight(own, Action.CLEAN)
    completion = times.next(own, timeline.last_time)
    writer.complete(own, Action.CLEAN, completion, encode_metadata(own, the_plan, the_plan.n_files))
    return _paths(files)


def _last_clean(timeline: Timeline) -> Mapping[str, Any]:
    """The record of the last clean; {} without one. Of which the file is empty what it deleted is cleaned once more."""
    cleans = [i for i in timeline.completed if i.action is Action.CLEAN and i.size]
    return timeline.metadata(cleans[-1]) if cleans else {}


def _paths(files: Mapping[str, Sequence[str]]) -> list[str]:
    """In the order in which they are deleted."""
    return sorted(join(partition, name) for partition, names in files.items() for name in names)


def left_behind(storage: Storage, table: MetadataTable) -> list[str]:
    """What is to be deleted of the last clean, whose process may have died before it was done; costs one request.

    Args:
        storage: Rooted at the data table.
        table: The metadata table.
    """
    found = _last_clean(table.timeline).get("partitionMetadata") or {}
    paths = _paths({name: [path.rpartition("/")[2] for path in one["successDeleteFiles"]] for name, one in found.items()})
    return paths if paths and storage.sub(METADATA_ROOT).is_file(paths[-1]) else []


def delete(storage: Storage, paths: Sequence[str]) -> None:
    """Delete files that are out of use, the last one after the others: while it is there, some may be.

    Args:
        storage: Rooted at the data table.
        paths: Relative to the metadata table.
    """
    inner = storage.sub(METADATA_ROOT)
    delete_files(inner, paths[:-1])
    delete_files(inner, paths[-1:])


def take_back_dead(storage: Storage, table: MetadataTable) -> bool:
    """Take back what died before it was completed: cleans, whose plan is made again, an index's way to fewer file groups, and
    log compactions, which Apache Hudi plans. That runs those first of all, and fails at every write once a later compaction has
    merged what they name. And indexes that it was laying out: the oldest pending instants, beyond which nothing is archived.

    Args:
        storage: Rooted at the data table.
        table: The metadata table, opened under the lock.

    Returns:
        Whether there was anything.
    """
    timeline = table.timeline
    writer = TimelineWriter(storage.sub(METADATA_ROOT), timeline.folder)
    dead = [i for i in timeline.pending if i.action in _TAKEN_BACK or gives_fewer_groups(timeline, i)]
    for instant in dead:
        # Files that may be another action's stay: what a log compaction wrote says nothing that they do not.
        alone = [i for i in (*timeline, *table.data_timeline) if i.time == instant.time] == [instant]
        if instant.action is Action.REPLACE_COMMIT or (instant.action is Action.LOG_COMPACTION and alone):
            remove_files(storage, instant.time)
        writer.delete_pending(instant.time, instant.action, State.INFLIGHT)
        writer.delete_pending(instant.time, instant.action, State.REQUESTED)
    half = half_laid_out(timeline, table.data_timeline)
    for instant in half:
        take_back_delta(storage, instant.time)
    if half:
        _delete_bare_folders(storage.sub(METADATA_ROOT), table.ready)
    return bool(dead or half)


def _delete_bare_folders(inner: Storage, named: Collection[str]) -> None:
    """Delete folders of indexes that the table does not name and that hold no file of records any more."""
    folders = [entry.name for entry in inner.list("") if entry.is_folder and not entry.name.startswith(".")]
    for folder in (name for name in folders if name not in named):
        names = [entry.name for entry in inner.list(folder)]
        if not any(parse_base_file(name) or parse_log_file(name) for name in names):
            inner.delete_folder(folder)


def _superseded(timeline: Timeline, instant: Instant) -> Iterator[tuple[str, str]]:
    """Partition and name of the files that a compaction, or what gave an index fewer file groups, has put out of use."""
    if instant.action is Action.REPLACE_COMMIT:
        record = timeline.metadata(instant)
        names = json.loads((record.get("extraMetadata") or {}).get(FEWER_KEY, "[]"))
        yield from ((partition, name) for partition in record["partitionToReplaceFileIds"] for name in names)
        return
    for planned in decode_compaction_plan(timeline.plan(instant)):
        for name in (*planned.log_files, *([planned.base_file] if planned.base_file else [])):
            yield planned.partition_path, name


def is_long(table: MetadataTable, most: int) -> bool:
    """Whether the metadata table has so many writes that an archival is worth a look."""
    return len(table.timeline.writes) > most


def archive(storage: Storage, table: MetadataTable, least: int, most: int) -> int:
    """Move old instants of the metadata table to its history. The caller holds the table lock.

    Readers find the newest slice of a file group through the commit that wrote it, so none that names a file in use may leave;
    nor one that cleaning has still to look at, nor a write that the data table's timeline still shows (what else it shows does
    not count, as in Apache Hudi: an `indexing` instant stays there for good). What took file groups out stays while any of
    their files does, since they would count again.

    Args:
        storage: Rooted at the data table.
        table: The metadata table, opened under the lock.
        least: Commits that stay.
        most: Commits above which an archival begins.

    Returns:
        How many instants left.
    """
    timeline = table.timeline
    if not is_long(table, most):
        return 0
    limits = [timeline.writes[-least].time, *(i.time for i in timeline.pending[:1])]
    outer = table.data_timeline
    limits += [i.time for i in (*outer.writes[:1], *outer.pending[:1])]
    limits += [max((i.time for i in timeline.writes if i.action is Action.COMMIT), default="")]
    limits += [i.time for i in timeline.writes if i.time < min(limits) and _holds_back(storage, timeline, i)]
    limits += [group.base.instant for name in table.ready for group in table.named_groups(name) if group.base is not None]
    limits += [_last_clean(timeline).get("earliestCommitToRetain") or ""]
    instants = tuple(leaving(timeline, min(limits)))
    move_to_history(storage.sub(METADATA_ROOT), timeline, instants)
    return len(instants)


def _holds_back(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """True for what took file groups out of an index of which a file is still there; one LIST, about such instants only."""
    if not gives_fewer_groups(timeline, instant):
        return False
    inner = storage.sub(METADATA_ROOT)
    for partition, gone in timeline.metadata(instant)["partitionToReplaceFileIds"].items():
        found = (base_name(f.name) or log_file(partition, f.name, f.size) for f in inner.list(partition))
        if any(one is not None and one[0] in gone for one in found):
            return True
    return False
