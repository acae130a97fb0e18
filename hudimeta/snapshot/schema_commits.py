"""Schema commits: the history of a table's columns, beside each write to a table that was altered.

`.hoodie/.schema/<instant>.schemacommit.requested` and `.inflight` are empty, `<instant>_<completion>.schemacommit` holds all
versions. The file counts only when the write of its instant is completed, so it is written just before.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudimeta.errors import CorruptFileError
from hudimeta.formats.seal import sealed_json
from hudimeta.schema.internal_schema import SCHEMA_FOLDER, SCHEMA_SUFFIX, SchemaHistory, completed_schema_files
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import delete_files
from hudimeta.timeline import Timeline

__all__ = ["forget_schema_commits", "write_schema_commit"]


def write_schema_commit(storage: Storage, timeline: Timeline, instant: str, completion: str, history: str) -> None:
    """Write the history at an instant, and remove those of instants that the active timeline does not know any more.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
        instant: Of the write.
        completion: When the write completed.
        history: See `encode_history`.
    """
    storage.put(join(SCHEMA_FOLDER, f"{instant}{SCHEMA_SUFFIX}.requested"), b"")
    storage.put(join(SCHEMA_FOLDER, f"{instant}{SCHEMA_SUFFIX}.inflight"), b"")
    name = f"{instant}_{completion}{SCHEMA_SUFFIX}"
    storage.put(join(SCHEMA_FOLDER, name), sealed_json(history.encode(), name))
    known = {found.time for found in timeline.instants} | {instant}
    for file in storage.list(SCHEMA_FOLDER):
        if SCHEMA_SUFFIX in file.name and _instant_of(file.name) not in known:
            storage.delete(file.path)


def forget_schema_commits(storage: Storage, instants: Iterable[str]) -> None:
    """Remove what writes that are taken back left, but not the only file that holds the versions before one of them.

    Each write of Apache Hudi deletes the files of others, so that what is valid may stand in that of the last one alone.

    Args:
        storage: Rooted at the table.
        instants: Of the writes, in the order in which they are taken back.
    """
    files = [file for file in storage.list(SCHEMA_FOLDER) if SCHEMA_SUFFIX in file.name]
    for instant in instants if files else ():
        done = completed_schema_files(file.name for file in files if _instant_of(file.name) < instant)
        own = [file for file in files if _instant_of(file.name) == instant]
        gone = [file for file in own if done or not _holds_older_versions(storage, file.path, instant)]
        delete_files(storage, [file.path for file in gone])
        files = [file for file in files if file not in gone]


def _holds_older_versions(storage: Storage, path: str, instant: str) -> bool:
    if not completed_schema_files([path.rpartition("/")[2]]):
        return False
    try:
        versions = SchemaHistory.decode(storage.read(path), path).versions
    except CorruptFileError:
        return False
    return any(0 < one.version < int(instant) for one in versions)


def _instant_of(name: str) -> str:
    return name.partition(".")[0].partition("_")[0]
