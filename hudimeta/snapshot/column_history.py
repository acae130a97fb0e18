"""How the columns of a table were called before, as whoever reads files that are older than an ALTER must know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """
    from hudimeta.schema import LATEST_SCHEMA_KEY, SchemaHistory

    found = timeline.latest_schema()
    if found is None or LATEST_SCHEMA_KEY not in timeline.metadata(found[0])["extraMetadata"]:
        return None
    from hudimeta.formats.seal import verify_json
    from hudimeta.schema.internal_schema import SCHEMA_FOLDER, newest_schema_file

    # A write that is pending, or was rolled back, leaves a history that was never valid.
    done, first = {i.time for i in timeline.completed}, timeline.first_active_write or ""
    files = {f.name: f.name.partition("_")[0].partition(".")[0] for f in storage.list(SCHEMA_FOLDER)}
    newest = newest_schema_file(name for name, time in files.items() if time in done or time < first)
    if newest is None:
        return None
    path = join(SCHEMA_FOLDER, newest)
    text = storage.read(path)
    verify_json(text, path, taken_over=True)
    return SchemaHistory.decode(text, path)


def keeps(snapshot: Snapshot, column: str) -> bool:
    """Whether a column has its name, and its type or one that grew to it, in all files and in what is recorded of them.

    That may be younger than the moment that is shown, and speak of a later column of that name.
    """
    histories = (snapshot.history, snapshot.of_now.history)
    return all(history is None or history.keeps(column) for history in histories)
