"""Files that were cleaned after a timeline was listed: the metadata table does not name them any more, that moment has them.

Who listed the data timeline some time ago reads the metadata table as it is now, and leaves out what later instants added,
which it does not know. What a later clean removed is not there to be left in: a file group would seem empty, its rows would be
missing without a word, and keys would not be found. So the removed files are named again. Whoever needs one of them finds that
it is gone, and looks at the table anew.
"""

from __future__ import annotations

from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.types import Action

__all__ = ["cleaned_since"]


def cleaned_since(storage: Storage, properties: TableProperties, data: Timeline, inner: Timeline) -> list[tuple[str, str]]:
    """Partition path and name of the files that cleans removed which the data timeline does not show.

    A clean is planned under the table lock, so it bears a later time than all that was on the timeline before. One request, and
    only where the metadata table shows something later.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        data: Its timeline, as listed some time ago.
        inner: The timeline of the metadata table, listed just now.
    """
    last = data.last_time
    if not last or not any(i.action is Action.DELTA_COMMIT and i.time > last for i in inner.completed):
        return []
    now = properties.load_timeline(storage)
    records = [now.metadata(i) for i in now.completed if i.action is Action.CLEAN and i.time > last]
    if (now.first_active_write or "") > last:
        archived = ArchivedRecords(now.history, (Action.CLEAN,), last)
        records += [archived.metadata(i) for i in archived.instants if i.time > last]
    removed = {
        (partition, path.rpartition("/")[2])
        for record in records
        for partition, part in (record.get("partitionMetadata") or {}).items()
        for path in part["successDeleteFiles"] or ()
    }
    return sorted(removed)
