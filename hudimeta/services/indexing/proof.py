"""Recording that indexes lack no row: an `indexing` action that builds nothing, and says so of indexes that were validated.

Readers believe the newest word on the timeline, and every commit of ours carries it on as long as it keeps the index complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudimeta.commit.index_build import newest_write
from hudimeta.commit.session import WriteSession
from hudimeta.metadata.indexing import announce, complete, discard_dead
from hudimeta.timeline import Timeline

__all__ = ["record_proof", "record_proof_of"]


def record_proof(session: WriteSession, keyed: Mapping[str, bool]) -> None:
    """Say of record and secondary indexes whether they lack no row; the caller holds the table lock.

    Args:
        session: The table.
        keyed: Metadata partitions, and whether each was found complete.
    """
    if not keyed:
        return
    timeline = session.properties.load_timeline(session.storage)
    instant, upto = session.times.next(timeline.last_time), newest_write(timeline)
    announce(session.fenced, timeline, instant, keyed, upto)
    complete(session.fenced, timeline, session.times, instant, keyed, upto, session.properties.version)


def record_proof_of(session: WriteSession, names: Sequence[str], seen: Timeline) -> tuple[str, ...]:
    """The same for indexes that were validated without the lock: nothing is recorded when the table moved since.

    Args:
        session: The table.
        names: Indexes that were found complete.
        seen: The timeline as it was validated.

    Returns:
        The names that were recorded.
    """
    if not names:
        return ()
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        if discard_dead(session.fenced, timeline):
            timeline = session.properties.load_timeline(session.storage)
        if timeline.instants != seen.instants:
            return ()
        record_proof(session, dict.fromkeys(names, True))
    return tuple(names)
