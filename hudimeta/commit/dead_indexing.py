"""Builds of indexes whose process died: what they left is taken back, and the plan waits for whoever runs it.

Ours name themselves and hold the table lock (`metadata.indexing.discard_dead`). Apache Hudi's do neither. They begin the
`indexing` instant, name the index as one that is under way, write it at the same instant of the metadata table, under a
heartbeat there, name it as one of the table's, and complete the instant. One that is killed leaves an index that lacks rows, or
will with the next write that does not keep it: no reader asks it (`metadata.strays`), and the next writer takes it
back.

While its heartbeat is fresh a build lives, and who would write is told to wait. One that was taken for dead while it stood
still fails in its last step, since its instant is not begun any more. It may have named the index before that, and then the
name is taken back in its turn.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from hudimeta.commit.liveness import Heartbeat, builds_an_index, is_alive
from hudimeta.commit.strays import remove_metadata_markers
from hudimeta.config import HudiWarning
from hudimeta.errors import NotFound, UnsupportedFeature
from hudimeta.metadata.indexing import (
    discard_dead,
    forget_in_metadata,
    partitions_of,
    remove_index_files,
    says_who_runs,
    take_back_build,
    waits,
    withdraw,
)
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.strays import bears, unfinished
from hudimeta.storage import Storage, join
from hudimeta.table.properties import TableProperties, load, update
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["begun_by_others", "take_back_dead"]

_NAMED, _UNDER_WAY = "hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"


def begun_by_others(timeline: Timeline) -> list[Instant]:
    """Builds that another engine began and did not complete, whether it is alive or dead."""
    begun = [i for i in timeline.pending if i.action is Action.INDEXING and i.state is State.INFLIGHT]
    begun = [i for i in begun if _is_of_others(timeline, i)]
    return [i for i, record in timeline.plans(begun) if waits(record)]


def _is_of_others(timeline: Timeline, begun: Instant) -> bool:
    try:
        return not says_who_runs(timeline.pending_bytes(begun, State.INFLIGHT))
    except NotFound:  # taken back since the timeline was listed, perhaps by the caller
        return False


def take_back_dead(
    storage: Storage, timeline: Timeline, known: TableProperties, patience_s: float = 0.0, running: str | None = None
) -> tuple[str, ...]:
    """Take dead builds of indexes back, ours and others'; returns their instants. The caller holds the table lock.

    Args:
        storage: Rooted at the table.
        timeline: Listed under the lock.
        known: Properties of the table, not necessarily the newest.
        patience_s: See `is_alive`.
        running: The plan that this process is about to run: nobody else does.

    Raises:
        UnsupportedFeature: One is alive.
    """
    done = list(discard_dead(storage, timeline))
    waiting = [(i, r) for i, r in timeline.plans(i for i in timeline.pending if i.action is Action.INDEXING) if waits(r)]
    if not waiting and not known.metadata_partitions_inflight:
        return tuple(done)
    properties = load(storage)
    if not properties.has_metadata_table:
        return tuple(done)
    inner = storage.sub(METADATA_ROOT)
    begun = {i.time for i in begun_by_others(timeline)}
    own = Timeline.load(inner, place=METADATA_ROOT)
    half = unfinished(inner, properties.metadata_partitions, timeline, own)
    for instant, record in waiting:
        names = partitions_of(record)
        left = [n for n in names if half.get(n) == instant.time or n in properties.metadata_partitions_inflight]
        built = not left and set(names) <= set(properties.metadata_partitions)
        if instant.time not in begun and not left and not built:
            if bears(own, instant.time) and (instant.time == running or not _lives(storage, timeline, instant, patience_s)):
                forget_in_metadata(storage, timeline, instant.time)  # late, from who stood still until all else was taken back
            continue
        if instant.time != running and _lives(storage, timeline, instant, patience_s):
            _refuse_beside(left)
            continue
        _take_back(storage, timeline, instant, names, left)
        done.append(instant.time)
    _forget_names(storage, properties)
    return tuple(done)


def _lives(storage: Storage, timeline: Timeline, instant: Instant, patience_s: float) -> bool:
    requested = join(timeline.folder, pending_name(instant.time, instant.action, State.REQUESTED))
    lives = is_alive(storage, instant.time, requested, patience_s=patience_s)
    return lives or builds_an_index(storage, instant.time, patience_s)


def _refuse_beside(names: Sequence[str]) -> None:
    if names:
        hint = "Write when it is done. If it died, the write that comes two minutes after its last sign of life takes it back."
        raise UnsupportedFeature(f"writing while Apache Hudi builds the index {', '.join(names)}", hint)


def _take_back(storage: Storage, timeline: Timeline, instant: Instant, names: Sequence[str], left: Sequence[str]) -> None:
    """The inflight file goes last: without it nobody looks for the rest."""
    properties = _without(storage, left)
    take_back_build(storage, timeline, instant.time, names)
    remove_metadata_markers(storage, instant.time)
    Heartbeat(storage.sub(METADATA_ROOT), instant.time).stop()
    if set(names) <= set(properties.metadata_partitions):
        withdraw(storage, timeline, instant.time)  # another way led to the index: nothing is left to build
        return
    TimelineWriter(storage, timeline.folder).delete_pending(instant.time, Action.INDEXING, State.INFLIGHT)


def _forget_names(storage: Storage, known: TableProperties) -> None:
    """Take back indexes that the properties call under way though no action on the timeline builds them."""
    if not known.metadata_partitions_inflight:
        return
    timeline = known.load_timeline(storage)  # after the properties: who builds one begins its action first
    plans = timeline.plans(i for i in timeline.pending if i.action is Action.INDEXING)
    planned = {name for _, record in plans for name in partitions_of(record)}
    properties = load(storage)
    left = sorted({*properties.metadata_partitions_inflight} & {*known.metadata_partitions_inflight} - planned)
    if not left:
        return
    _without(storage, [name for name in left if name not in properties.metadata_partitions], under_way=left)
    for name in left:
        if name not in properties.metadata_partitions:
            remove_index_files(storage, name)
    warnings.warn(f"the build of {', '.join(left)} died, and was taken back", HudiWarning, stacklevel=2)


def _without(storage: Storage, names: Iterable[str], under_way: Iterable[str] = ()) -> TableProperties:
    """The table's properties, after these indexes were taken out."""
    gone, properties = {*names}, load(storage)
    lists = ((_NAMED, properties.metadata_partitions), (_UNDER_WAY, properties.metadata_partitions_inflight))
    changes: dict[str, str | None] = {}
    for key, have in lists:
        left = [name for name in have if name not in gone and not (key == _UNDER_WAY and name in {*under_way})]
        if len(left) < len(have):
            changes[key] = ",".join(sorted(filter(None, left)))
    return update(storage, changes) if changes else properties
