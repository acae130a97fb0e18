"""Noting reads: in the memory of this process, and from there, at most once a minute, in the table's own folder.

The file is `.hoodie/.aux/hudimeta/queries.json`, which no reader or service of Hudi looks at. Losing notes is no harm, so
nothing here fails a read: a store that refuses the file is not asked again by this process, and notes that could not be merged
because others merged theirs meanwhile wait for the next minute. What a process has noted last is merged when it ends.
"""

from __future__ import annotations

import atexit
import os
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudimeta.config.options import LEARN
from hudimeta.engine.machine import machine, monotonic, now_ms
from hudimeta.errors import AlreadyExists, HudiError, NotFound
from hudimeta.forking import FreeWhenForked
from hudimeta.read.query_notes import NotedShape, QueryNotes, filters_of, sample_of

if TYPE_CHECKING:
    from hudimeta.predicate import Bound
    from hudimeta.read.planner import PlannedSlices
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.storage import Storage

__all__ = ["NOTES_PATH", "merge_now", "note_read", "stored_notes"]

NOTES_PATH = ".hoodie/.aux/hudimeta/queries.json"
_TABLE = ".hoodie/hoodie.properties"
EVERY_S = 60.0
_MOST_TABLES = 64
_ATTEMPTS = 3


@dataclass
class _Waiting:
    """Notes of one table that are not merged yet.

    Attributes:
        storage: Of the table, without the log of requests of whoever read it.
        notes: What was noted since the last merge.
        merged_at: When that was; at first, when noting began.
        refused: The store did not take the file.
    """

    storage: Storage
    notes: QueryNotes
    merged_at: float
    refused: bool = False


_lock = FreeWhenForked()
_tables: OrderedDict[str, _Waiting] = OrderedDict()


def note_read(snapshot: Snapshot, bound: Bound, planned: PlannedSlices) -> None:
    """Note a read that was planned.

    Args:
        snapshot: What is read; of the past nothing is noted.
        bound: Its predicate.
        planned: Which slices it reads.
    """
    if not snapshot.options.get(LEARN) or not snapshot.is_latest or not machine().threads:
        return
    now, kept, gone = now_ms(), _bytes(planned.slices), planned.decisions.slices
    # What one index leaves is what the next one begins with.
    whole = _bytes(gone[0].whole) if gone else kept
    shape = NotedShape(filters_of(bound), 1, whole, kept, now, now, sample_of(bound))
    used = {skip.by for skip in planned.skipped}
    root = snapshot.storage.root
    with _lock:
        waiting = _tables.get(root)
        if waiting is None:
            waiting = _tables[root] = _Waiting(snapshot.storage.inner, QueryNotes(), monotonic())
            if len(_tables) > _MOST_TABLES:
                _tables.popitem(last=False)
        _tables.move_to_end(root)
        if waiting.refused:
            return
        waiting.notes = waiting.notes.merged(QueryNotes.of(shape, used))
        due = monotonic() - waiting.merged_at >= EVERY_S
    if due:
        _merge(waiting)


def _bytes(slices: object) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    assert isinstance(slices, pa.Table)
    logs = pc.sum(pc.list_flatten(slices.column("log_sizes"))).as_py() or 0
    return int((pc.sum(slices.column("base_size")).as_py() or 0) + logs)


def stored_notes(storage: Storage) -> QueryNotes | None:
    """What is noted in a table's folder: nothing where there is no such file, None where it cannot be understood."""
    try:
        return QueryNotes.decode(storage.read(NOTES_PATH))
    except NotFound:
        return QueryNotes()


def merge_now(root: str) -> bool:
    """Merge what this process has noted of a table, without waiting for the minute; False where the store refuses it."""
    with _lock:
        waiting = _tables.get(root)
    if waiting is None:
        return True
    _merge(waiting)
    return not waiting.refused


def _merge(waiting: _Waiting) -> None:
    with _lock:
        notes, waiting.notes, waiting.merged_at = waiting.notes, QueryNotes(), monotonic()
    if not notes.shapes or waiting.refused:
        return
    try:
        merged = _put(waiting.storage, notes)
    except (HudiError, OSError, RuntimeError):  # the last of threads that end with the process
        waiting.refused = True
        return
    if not merged:
        with _lock:
            waiting.notes = notes.merged(waiting.notes)


def _put(storage: Storage, notes: QueryNotes) -> bool:
    """Put notes beside those that are there; False when others went on changing them meanwhile."""
    if not storage.is_file(_TABLE):
        return True  # the table is gone, and its folder is not made anew
    for _ in range(_ATTEMPTS):
        try:
            before = storage.read(NOTES_PATH)
        except NotFound:
            try:
                storage.put_if_absent(NOTES_PATH, notes.encode())
            except AlreadyExists:
                continue
            return True
        known = QueryNotes.decode(before) or QueryNotes()
        if storage.put_if_unchanged(NOTES_PATH, known.merged(notes).encode(), before):
            return True
    return False


@atexit.register
def _merge_all() -> None:
    for waiting in list(_tables.values()):
        _merge(waiting)


def _forget() -> None:
    """A forked process notes its own reads only."""
    _tables.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
