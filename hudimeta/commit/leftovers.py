"""What a killed process left in folders that hold no rows: temporary names, files of no manifest, half a metadata table."""

from __future__ import annotations

import re

from hudimeta.commit.locks.protocol import LOCK_FOLDER
from hudimeta.engine.machine import now_ms
from hudimeta.errors import NotFound
from hudimeta.metadata.rollback import METADATA_ROOT, take_back_delta
from hudimeta.metadata.writer import PROPERTIES_COMMENT
from hudimeta.storage import TEMPORARY_SUFFIX, FileInfo, Storage, join
from hudimeta.storage.at_once import at_once, delete_files
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline
from hudimeta.timeline.history_writer import HistoryWriter
from hudimeta.timeline.rollback_record import is_own_rollback
from hudimeta.types import Action

__all__ = ["remove_late_metadata", "remove_temporary_files", "remove_unfinished_metadata", "remove_unnamed_history"]

_OWN = ".hoodie"
_OF_HUDI = re.compile(r"\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.crc)?$")
"""End of the names below which Apache Hudi gathers what it then renames."""
_AN_HOUR_MS = 3_600_000


def remove_temporary_files(storage: Storage, timeline: Timeline) -> None:
    """Delete files with a temporary name, below which a local disk gathers the bytes of a file before it appears.

    A writer of ours that is still at work under such a name begins anew. Rows are never written that way. Apache Hudi renames
    within moments, and fails when the file is gone: what bears a temporary name of its goes an hour later.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
    """
    inner = join(METADATA_ROOT, _OWN)
    own = [entry.path for entry in storage.list(_OWN) if entry.is_folder and entry.path != METADATA_ROOT]
    timelines = (timeline.folder, f"{inner}/timeline")
    folders = {_OWN, inner, LOCK_FOLDER, *own, *timelines, *(join(folder, "history") for folder in timelines)}
    entries = (entry for found in at_once(storage.list, sorted(folders), storage) for entry in found)
    delete_files(storage, [one.path for one in entries if not one.is_folder and _is_temporary(one)])


def _is_temporary(entry: FileInfo) -> bool:
    if entry.name.endswith(TEMPORARY_SUFFIX):
        return True
    return _OF_HUDI.search(entry.name) is not None and 0 < entry.modified_ms < now_ms() - _AN_HOUR_MS


def remove_late_metadata(storage: Storage, timeline: Timeline) -> None:
    """Delete files of the metadata table that writers put there after we had rolled their writes back, and then died.

    Only a table on whose timeline there is such a rollback pays for the listings.

    Args:
        storage: Rooted at the table.
        timeline: Of the table, listed under the lock.
    """
    rollbacks = [i for i in timeline.completed if i.action is Action.ROLLBACK]
    own = [i for i in rollbacks if is_own_rollback(timeline.read(i), timeline.path_of(i))]
    gone = {time for i in own for time in timeline.metadata(i)["commitsRollback"]} - {i.time for i in timeline}
    if gone:
        take_back_delta(storage, *gone)


def remove_unnamed_history(storage: Storage, timeline: Timeline) -> None:
    """Delete what archivals wrote into the history before they died, of the table and of its metadata table.

    The caller holds the table lock.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
    """
    inner = storage.sub(METADATA_ROOT)
    HistoryWriter(storage, timeline.history).remove_unnamed()
    HistoryWriter(inner, Timeline.load(inner, place=METADATA_ROOT).history).remove_unnamed()


def remove_unfinished_metadata(storage: Storage, properties: TableProperties) -> None:
    """Delete a metadata table of ours that the table's properties do not name: who built it died.

    The caller holds the table lock.

    Args:
        storage: Rooted at the table.
        properties: Of the table, as they are under the lock.
    """
    if properties.metadata_partitions or properties.metadata_partitions_inflight:
        return
    try:
        ours = PROPERTIES_COMMENT.encode() in storage.read(f"{METADATA_ROOT}/{_OWN}/hoodie.properties")
    except NotFound:
        return
    if ours:
        storage.delete_folder(METADATA_ROOT)
