"""How the columns of a table were called before, as whoever reads files that are older than an ALTER must know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.errors import CorruptFileError
from hudimeta.storage import Storage, join

if TYPE_CHECKING:
    from hudimeta.schema import SchemaHistory
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.timeline import Timeline

__all__ = ["column_history", "keeps"]


def column_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """All versions of the columns of a table that was altered: one LIST and one GET. None for all others, without a request.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.

    Raises:
        CorruptFileError: The history is damaged, or lacks the version that the newest commit states.
    """
    from hudimeta.schema import LATEST_SCHEMA_KEY, version_in
    from hudimeta.schema.internal_schema import DAMAGED, SCHEMA_FOLDER, completed_schema_files

    found = timeline.latest_schema()
    stated = timeline.metadata(found[0])["extraMetadata"].get(LATEST_SCHEMA_KEY) if found is not None else None
    if found is None or stated is None:
        return None
    done, first = {i.time for i in timeline.completed}, timeline.first_active_write or ""
    files = {f.name: f.name.partition("_")[0].partition(".")[0] for f in storage.list(SCHEMA_FOLDER)}
    names = completed_schema_files(name for name, time in files.items() if time in done or time < first)
    version = version_in(stated, timeline.path_of(found[0])).version
    for name in names:
        history = _read(storage, join(SCHEMA_FOLDER, name))
        if history.latest.version >= version:
            return history
    # What a write that is pending, or was rolled back, has added was never valid. But writes of Apache Hudi delete the files of
    # before, and leave their own behind when they are taken back: what was valid stands in these alone.
    for name in completed_schema_files(files):
        history = _read(storage, join(SCHEMA_FOLDER, name))
        if any(known.version == version for known in history.versions):
            return history.until(str(version))
    # By an older history, or none, columns that have another name by now would be sought under it, and be null.
    newest = join(SCHEMA_FOLDER, names[0]) if names else SCHEMA_FOLDER
    raise CorruptFileError(newest, 0, f"version {version} of the columns, which the newest commit has", "none", DAMAGED)


def _read(storage: Storage, path: str) -> SchemaHistory:
    from hudimeta.formats.seal import verify_json
    from hudimeta.schema import SchemaHistory

    text = storage.read(path)
    verify_json(text, path, taken_over=True)
    return SchemaHistory.decode(text, path)


def keeps(snapshot: Snapshot, column: str) -> bool:
    """Whether a column has its name, and its type or one that grew to it, in all files and in what is recorded of them.

    That may be younger than the moment that is shown, and speak of a later column of that name.
    """
    histories = (snapshot.history, snapshot.of_now.history)
    return all(history is None or history.keeps(column) for history in histories)
