"""The timeline of version 6 in the form of version 8: other folder, other names, Avro instead of JSON.

    .hoodie/<t>.commit               .hoodie/timeline/<t>_<completion>.commit          JSON -> Avro
    .hoodie/<t>.inflight             .hoodie/timeline/<t>.inflight                     JSON -> Avro
    .hoodie/<t>.replacecommit.…      .hoodie/timeline/<t>.clustering.…                 of a clustering, while not completed
    .hoodie/<t>.clean.requested      .hoodie/timeline/<t>.clean.requested              as it is

Files are copied, since version 6 does not look into the new folder and version 8 not at the old files: which of them count is
decided by one step elsewhere, the new properties. The old files go afterwards.

Version 6 knows no completion times, and its log files belong to the base file that their names say. Version 8 tells by
completion times to which base file a log file belongs. So an instant gets the time at which its file was written, as Apache
Hudi has it, but none that lies after the next instant's request: a table that was copied has files that are all equally new.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.avro.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudimeta.formats.avro.container import MAGIC, sealed_container
from hudimeta.storage import Storage, join
from hudimeta.timeline import Timeline, format_instant, parse_instant
from hudimeta.timeline.naming import InstantFile, completed_name, parse_instant_name, pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["copy_timeline", "remove_old_files"]


def copy_timeline(storage: Storage, old: Timeline, folder: str) -> int:
    """Write every instant into the folder of a newer table, in place of what an attempt that died left there.

    Args:
        storage: Rooted at the table.
        old: The timeline of version 6, without pending instants.
        folder: Of the new timeline.

    Returns:
        How many files were written.

    Raises:
        CorruptFileError: An old file is damaged.
    """
    for entry in storage.list(folder):
        if parse_instant_name(entry.name) is not None:
            storage.delete(join(folder, entry.name))
    written = 0
    completions = _completions(storage, old)
    for instant in old.instants:
        for name in old.files_of(instant):
            file = parse_instant_name(name)
            if file is None:
                continue
            new = _new_name(old, instant, file, completions[instant])
            path = join(old.folder, name)
            storage.put(join(folder, new), _converted(storage.read(path), file, new, path))
            written += 1
    return written


def remove_old_files(storage: Storage, old: Timeline) -> None:
    """Delete the files of a timeline that was copied.

    The oldest go first, of each instant the completed file last: a reader that listed them just before finds none of its
    commits unfinished, and takes what is older than its first instant for committed.
    """
    for instant in old.instants:
        for name in old.files_of(instant):
            storage.delete(join(old.folder, name))


def _completions(storage: Storage, old: Timeline) -> Mapping[Instant, str]:
    written = {entry.name: entry.modified_ms for entry in storage.list(old.folder)}
    times = sorted({instant.time for instant in old.instants})
    following = dict(pairwise(times))
    return {i: _completion(i, written.get(i.file_name, 0), following.get(i.time), old) for i in old.instants}


def _completion(instant: Instant, written_ms: int, following: str | None, old: Timeline) -> str:
    earliest = parse_instant(instant.time, old.zone) + 1
    latest = written_ms if following is None else min(written_ms, parse_instant(following, old.zone) - 1)
    return format_instant(max(earliest, latest), old.zone)


def _new_name(old: Timeline, instant: Instant, file: InstantFile, completion: str) -> str:
    """Version 8 has a word of its own for a clustering while it is not completed; its plan tells it from an overwrite."""
    if file.state is State.COMPLETED:
        return completed_name(file.time, file.action, completion)
    planned = file.action is Action.REPLACE_COMMIT and bool(_plan(old, instant).get("clusteringPlan"))
    return pending_name(file.time, Action.CLUSTERING if planned else file.action, file.state)


def _plan(old: Timeline, instant: Instant) -> Mapping[str, Any]:
    try:
        return old.plan(instant)
    except NotFound:  # writers need not leave it
        return {}


def _converted(data: bytes, file: InstantFile, new: str, path: str) -> bytes:
    if file.action.writes_data and file.state is not State.REQUESTED and not data.startswith(MAGIC):
        data = _commit(data, file, path)
    return sealed_container(data, new) if data.startswith(MAGIC) else data


def _commit(data: bytes, file: InstantFile, path: str) -> bytes:
    """JSON as Avro. An empty completed file is a commit without content in version 6, and damage in version 8."""
    if not data and file.state is not State.COMPLETED:
        return data
    said = decode_commit_metadata(data, path) if data else {}
    replace = file.action is Action.REPLACE_COMMIT
    if not replace and said.get("partitionToReplaceFileIds"):
        raise CorruptFileError(path, 0, "a commit that replaces no file groups", "partitionToReplaceFileIds")
    return encode_commit_metadata(said, replace=replace)
