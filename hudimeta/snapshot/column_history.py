"""How the columns of a table were called before, as whoever reads files that are older than an ALTER must know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.storage import Storage, join

if TYPE_CHECKING:
    from hudimeta.schema import SchemaHistory
    from hudimeta.timeline import Timeline

__all__ = ["column_history"]


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
