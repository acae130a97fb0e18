"""Writes that were published after they had been rolled back: a writer that stood still for longer than its lock lasts.

It looked, was stopped, was taken for dead and rolled back, went on, and created its completed file. It takes that file back as
soon as it can (see `commit.late_publication`); until then, or for good if it died just there, the file is on the timeline
although the rows that it tells of are gone. Such a write never counts. A rollback removes the inflight file first, so that
names alone tell where to look, and what rollbacks say is read only there: healthy timelines cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from hudimeta.errors import NotFound
from hudimeta.timeline.naming import LAYOUT_V1
from hudimeta.timeline.rollback_record import rollback_target
from hudimeta.types import Action, Instant

__all__ = ["disowned_writes"]


class _Listed(Protocol):
    """What is asked of a timeline here."""

    instants: tuple[Instant, ...]
    layout: int

    def metadata(self, instant: Instant) -> Mapping[str, Any]: ...

    def plan(self, instant: Instant) -> Mapping[str, Any]: ...


def disowned_writes(timeline: _Listed, bare: Sequence[Instant]) -> tuple[Instant, ...]:
    """Completed writes that a later rollback names, which may still be at work.

    Args:
        timeline: Any.
        bare: Its completed writes without an inflight file.
    """
    if timeline.layout == LAYOUT_V1 or not bare:
        return ()
    rollbacks = [i for i in timeline.instants if i.action is Action.ROLLBACK and i.time > bare[0].time]
    undone = [(rollback.time, time) for rollback in rollbacks for time in _named_by(timeline, rollback)]
    # Only what was about to be published before it was rolled back; a service that was run again is completed later.
    return tuple(i for i in bare if any(time == i.time and begun > i.completed_at for begun, time in undone))


def _named_by(timeline: _Listed, rollback: Instant) -> Iterable[str]:
    if rollback.is_completed:
        return timeline.metadata(rollback).get("commitsRollback") or ()
    try:
        plan = timeline.plan(rollback)
    except NotFound:
        return ()  # without its requested file nobody knows what it takes back
    target = rollback_target(plan)
    return () if target is None else (target[0],)
