"""What readers of a simulated table do: they look at all rows, or ask again and again what changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hudimeta.config import OPTIONS
from hudimeta.read.cdc_scan import ChangeScan
from hudimeta.read.incremental import Moment, range_of
from hudimeta.read.request import ScanRequest
from hudimeta.read.scan import Scan
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, Storage
from hudimeta.testing.simulation.actors import Actor
from hudimeta.testing.simulation.events import Changes, PollSeen, State, state_of
from hudimeta.types import QueryType

__all__ = ["opened", "polls", "state_at", "state_now"]

_POLLS, _BETWEEN_POLLS_S = 3, 0.05
_SHOWN = ("part", "id", "x")


def opened(storage: Storage) -> Snapshot:
    """The table of now."""
    return Snapshot.open(CountingStorage(storage), OPTIONS.read({}))


def state_now(storage: Storage, where: str = "") -> State:
    """All rows of the table, or those that meet a condition, read as a user reads them."""
    return _rows(Moment(opened(storage), None, 0), QueryType.SNAPSHOT, where)


def state_at(storage: Storage, instant: str) -> State:
    """All rows of the table as of an instant."""
    return _rows(Moment(opened(storage).at(instant), None, 0), QueryType.SNAPSHOT)


def _rows(moment: Moment, kind: QueryType, where: str = "") -> State:
    return state_of(Scan(lambda: moment, ScanRequest(columns=_SHOWN, query_type=kind, where=where or None)).to_table())


def _changes(moment: Moment) -> Changes:
    found = ChangeScan(lambda: moment, ScanRequest(query_type=QueryType.CDC)).to_table().to_pylist()
    return tuple(sorted(_change(row["op"], *(json.loads(row[name] or "{}") for name in ("before", "after"))) for row in found))


def _change(operation: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str, str, str]:
    values = (str(float(image["x"])) if image else "" for image in (before, after))
    return operation, (before or after)["id"], *values


def polls(actor: Actor, name: str, *, changes: bool) -> Iterable[PollSeen]:
    """Read what changed since the last time, again and again, as a consumer of a table does.

    Args:
        actor: Who.
        name: Of the poll.
        changes: By a CDC query, and not by an incremental one.
    """
    begin = _newest(opened(actor.storage))
    for _ in range(_POLLS):
        actor.pause(_BETWEEN_POLLS_S)
        snapshot = opened(actor.storage)
        end = _newest(snapshot)
        if end > begin:  # else nothing is new, or what was seen is undone
            moment = Moment(snapshot, range_of(snapshot, begin, end), 0)
            if changes:
                yield PollSeen(name, begin, end, changes=_changes(moment))
            else:
                yield PollSeen(name, begin, end, _rows(moment, QueryType.INCREMENTAL))
        begin = end


def _newest(snapshot: Snapshot) -> str:
    return max(i.completed_at for i in snapshot.timeline.writes)
