"""Recording that indexes lack no row: an `indexing` action that builds nothing, and says so of indexes that were validated.

Readers believe the newest word on the timeline, and every commit of ours carries it on as long as it keeps the index complete.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudimeta.commit.dead_indexing import take_back_dead
from hudimeta.commit.index_build import record_proof
from hudimeta.commit.session import WriteSession
from hudimeta.timeline import Timeline

__all__ = ["record_proof_of"]


def record_proof_of(session: WriteSession, names: Sequence[str], seen: Timeline) -> tuple[str, ...]:
    """Say that indexes lack no row which were validated without the lock: nothing is recorded when the table moved since.

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
        if take_back_dead(session.fenced, timeline, session.properties, session.concurrency.patience_s):
            session.reload()
            timeline = session.properties.load_timeline(session.storage)
        if timeline.instants != seen.instants:
            return ()
        record_proof(session, dict.fromkeys(names, True))
    return tuple(names)
