"""What is planned from a seed: the table, the store, the lock, who does what, and how everybody fares.

Seeds from `WIDE_FROM` on are of tables in buckets, mostly with writers that do not block one another, and of tables with
indexes of all kinds, which are made, dropped and planned beside writers and other plans.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hudimeta.testing.simulation.acts import (
    CONDITIONS,
    INDEXES,
    MANY_INDEXES,
    OF_CHANGES,
    OF_INDEXES,
    OF_LOGS,
    OF_PLANS,
    WRITES,
    Act,
    ActKind,
)
from hudimeta.testing.simulation.faults import CALM, Troubles
from hudimeta.testing.simulation.store import StoreKind
from hudimeta.testing.simulation.tables import Lock, Manner, TableKind
from hudimeta.types import Operation

__all__ = ["WIDE_FROM", "Part", "PlannedHistory", "plan"]

WIDE_FROM = 10_000_000
_USUAL = (
    TableKind.COPY,
    TableKind.COPY_INDEXED,
    TableKind.MERGE,
    TableKind.MERGE_INDEXED,
    TableKind.COPY_CDC,
    TableKind.MERGE_CDC,
)
_WIDE = tuple(kind for kind in TableKind if kind.has_buckets or kind.has_many)
_ACTORS = (2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 6, 8)
_WIDE_ACTORS, _WIDE_ACTS = (2, 3, 3, 4), (2, 3, 4)
_WIDE_DEATHS = 0.4
"""To so many actors of a wide history death comes more often."""
_BEHIND_EACH, _BEHIND_MS = 5, 2_000_000_000
_SET_EACH, _SETTINGS = 3, 0.03
"""In every third history clocks are set again and again, forwards and back."""
_CHANGES, _MERGES, _EXPIRIES = 0.15, 0.25, 0.27
"""Up to which share writes say what becomes of rows and not which, then merge rows, then let partitions expire."""
_OFTEN = {
    ActKind.READ: 6,
    ActKind.POLL: 6,
    ActKind.POLL_CHANGES: 6,
    ActKind.RESTORE: 1,
    ActKind.ROLL_BACK: 1,
    ActKind.FORGET: 1,
}
"""How often others do something; everything else twice."""
_WIDE_SHARES = {
    ActKind.WRITE: 9,
    ActKind.PLAN_INDEX: 3,
    ActKind.PLAN_COMPACTION: 2,
    ActKind.PLAN_LOGS: 2,
    ActKind.PLAN_CLUSTERING: 2,
    ActKind.DROP_INDEX: 3,
    ActKind.BUILD_INDEX: 2,
    ActKind.BUILD_BESIDE: 1,
    ActKind.RUN_PLANS: 4,
    ActKind.CANCEL: 1,
    ActKind.COMPACT: 2,
    ActKind.MERGE_LOGS: 1,
    ActKind.CLEAN: 1,
    ActKind.ARCHIVE: 1,
    ActKind.RECOVER: 1,
    ActKind.READ: 2,
}
"""How often anybody does something in a wide history."""


@dataclass(frozen=True)
class Part:
    """What one actor does, and how it fares."""

    name: str
    acts: tuple[Act, ...]
    troubles: Troubles = CALM

    def __str__(self) -> str:
        acts = "; ".join(str(act) for act in self.acts)
        changed = {k: v for k, v in vars(self.troubles).items() if v != getattr(CALM, k)}
        return f"{self.name}: {acts} {changed or ''}"


@dataclass(frozen=True)
class PlannedHistory:
    """What is going to happen.

    Attributes:
        seed: Of all chance.
        kind: The table.
        place: The store.
        lock: Which lock all use.
        manner: How they get along.
        parts: The actors.
    """

    seed: int
    kind: TableKind
    place: StoreKind
    lock: Lock
    manner: Manner
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        parts = "\n  ".join(str(part) for part in self.parts)
        return f"seed {self.seed}: {self.kind.value}, {self.place.value}, {self.lock.value}, {self.manner.value}\n  {parts}"


def plan(seed: int) -> PlannedHistory:
    """The history of a seed."""
    return _usual(seed) if seed < WIDE_FROM else _wide(seed)


def _usual(seed: int) -> PlannedHistory:
    rng = random.Random(seed)
    kind, place, lock = rng.choice(_USUAL), rng.choice(list(StoreKind)), rng.choice(list(Lock))
    manner = rng.choices(list(Manner), (4, 1, 2, 2 if kind is TableKind.MERGE_INDEXED else 0))[0]
    troubled = rng.random() < 0.75
    count = rng.choice(_ACTORS)
    writers = rng.randint(1, count) if rng.random() < 0.8 else count
    fresh = iter(range(100, 1000))
    parts = []
    for number in range(count):
        if number < max(writers, 1):
            name = f"writer{number}"
            acts = tuple(_write(rng, f"{name}.{n}", fresh) for n in range(1 if count > 3 else rng.choice((1, 1, 2))))
        else:
            name = f"other{number}"
            acts = tuple(_others(rng, kind, manner, 1 if count > 3 else rng.choice((1, 1, 2))))
        parts.append(Part(name, acts, _troubles(rng, lock) if troubled else replace(CALM, latency_s=_latency(rng))))
    if seed % _BEHIND_EACH == 0:
        parts = [_behind(part) for part in parts]
    elif seed % _SET_EACH == 0:
        parts = [_set(part, lock) for part in parts]
    return PlannedHistory(seed, kind, place, lock, manner, tuple(parts))


def _wide(seed: int) -> PlannedHistory:
    rng = random.Random(seed)
    kind, place, lock = rng.choice(_WIDE), rng.choice(list(StoreKind)), rng.choice((Lock.STORAGE, Lock.FILE))
    manner = rng.choices(list(Manner), (3, 1, 1, 9 if kind.has_buckets else 0))[0]
    left_out = (() if kind.is_mor else (*OF_LOGS, ActKind.PLAN_COMPACTION, ActKind.PLAN_LOGS)) + (
        (ActKind.PLAN_CLUSTERING,) if kind.has_buckets else ()
    )
    kinds = [one for one in _WIDE_SHARES if one not in left_out]
    indexes = [one for one in MANY_INDEXES if manner is not Manner.NON_BLOCKING or not one.startswith("secondary")]
    indexes = rng.sample(indexes, rng.choice((1, 2, 3)))  # so few that actors meet
    fresh = iter(range(100, 1000))
    parts = []
    for number in range(rng.choice(_WIDE_ACTORS)):
        name, acts = f"actor{number}", []
        for at, chosen in enumerate(rng.choices(kinds, [_WIDE_SHARES[one] for one in kinds], k=rng.choice(_WIDE_ACTS))):
            index = rng.choice(indexes) if chosen in OF_INDEXES else ""
            acts.append(_write(rng, f"{name}.{at}", fresh) if chosen is ActKind.WRITE else Act(chosen, index=index))
        troubles = _troubles(rng, lock)
        if rng.random() < _WIDE_DEATHS:
            troubles = replace(troubles, deaths=rng.choice((0.01, 0.02, 0.05)))
        parts.append(Part(name, tuple(acts), troubles))
    return PlannedHistory(seed, kind, place, lock, manner, tuple(parts))


def _behind(part: Part) -> Part:
    """With a clock before all that the table has seen: instants then only follow from one another, and two choose one."""
    return replace(part, troubles=replace(part.troubles, offset_ms=part.troubles.offset_ms - _BEHIND_MS))


def _set(part: Part, lock: Lock) -> Part:
    """With a clock that is set now and then."""
    return replace(part, troubles=replace(part.troubles, settings=_SETTINGS, set_within_ms=lock.clocks_differ_ms))


def _others(rng: random.Random, kind: TableKind, manner: Manner, count: int) -> Iterator[Act]:
    left_out = WRITES + OF_PLANS + (() if kind.is_mor else OF_LOGS) + (() if kind.captures_changes else OF_CHANGES)
    kinds = [one for one in ActKind if one not in left_out]
    for chosen in rng.choices(kinds, [_OFTEN.get(one, 2) for one in kinds], k=count):
        where = rng.choice(("", *CONDITIONS)) if chosen is ActKind.READ else ""
        yield Act(chosen, where=where, index=_index(rng, manner) if chosen in OF_INDEXES else "")


def _index(rng: random.Random, manner: Manner) -> str:
    """Which one is built or dropped; writers who do not block one another need the record index."""
    return INDEXES[0] if manner is Manner.NON_BLOCKING else rng.choice(INDEXES)


def _write(rng: random.Random, name: str, fresh: Iterator[int]) -> Act:
    operation = rng.choices(
        (Operation.UPSERT, Operation.INSERT, Operation.DELETE, Operation.INSERT_OVERWRITE, Operation.DELETE_PARTITION),
        (12, 4, 3, 2, 1),
    )[0]
    drawn = rng.random()
    if drawn < _CHANGES:
        what = rng.choice((Operation.DELETE, Operation.UPSERT, Operation.UPSERT))
        return Act(ActKind.CHANGE, name, what, where=rng.choice(list(CONDITIONS)))
    if drawn < _MERGES:
        return Act(ActKind.MERGE, name, Operation.UPSERT, (*rng.sample(range(10), 2), next(fresh)))
    if drawn < _EXPIRIES:
        return Act(ActKind.EXPIRE, name, Operation.DELETE_PARTITION)
    hot = rng.sample(range(8), rng.choice((1, 1, 2, 3)))
    ids = [next(fresh) for _ in hot] if operation is Operation.INSERT else hot
    return Act(ActKind.WRITE, name, operation, tuple(ids))


def _latency(rng: random.Random) -> float:
    return rng.choice((0.002, 0.005, 0.005, 0.05))


def _troubles(rng: random.Random, lock: Lock) -> Troubles:
    """How an actor fares: most actors have one kind of trouble, or none."""
    which = rng.choice(("none", "errors", "deaths", "stops", "slow", "all"))
    often = rng.choice((0.003, 0.01, 0.03))

    def chance(name: str) -> float:
        return often if which in (name, "all") else 0.0

    deaths = 0.0 if lock is Lock.PROCESS else chance("deaths")
    offset = rng.choice((0, 0, 1, -1)) * rng.randint(0, lock.clocks_differ_ms)
    return Troubles(chance("errors"), deaths, chance("stops"), chance("slow"), _latency(rng), offset)
