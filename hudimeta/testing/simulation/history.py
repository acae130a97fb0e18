"""One history: what is planned from a seed, its run, and what must be true afterwards."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from hudimeta.errors import ValidationFailed
from hudimeta.testing.invariants import ALWAYS, AT_REST, LEFTOVERS, check_all
from hudimeta.testing.simulation.actors import Actor, StorageCall
from hudimeta.testing.simulation.acts import (
    CONDITIONS,
    INDEXES,
    OF_CHANGES,
    OF_INDEXES,
    OF_LOGS,
    UNDOING,
    WRITES,
    Act,
    ActKind,
    Log,
    perform,
    recover,
)
from hudimeta.testing.simulation.consistency import Seen, check_serial
from hudimeta.testing.simulation.events import ReadSeen, SavedSeen, WriterOutcome
from hudimeta.testing.simulation.faults import CALM, Troubles
from hudimeta.testing.simulation.ledger import Ledger
from hudimeta.testing.simulation.readers import opened, state_at, state_now
from hudimeta.testing.simulation.scheduler import Scheduler
from hudimeta.testing.simulation.store import Files, SimulatedStorage, StoreKind
from hudimeta.testing.simulation.tables import Image, Lock, Manner, TableKind, image
from hudimeta.timeline.naming import parse_instant_name
from hudimeta.types import Action, Operation

__all__ = ["Broken", "PlannedHistory", "Part", "Run", "plan", "run"]

_ACTORS = (2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 6, 8)
MOST_TURNS = 40_000
"""Of all actors of a history together; a usual history takes some hundreds."""
_OUTLASTS_A_LEASE_S = 10.0
_BEHIND_EACH, _BEHIND_MS = 5, 2_000_000_000
_LAST_WRITE_EACH = 4
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
_MERGES_EACH = 2
_MERGED_AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
"""Of every second history: writers then merge the metadata table after each commit that no other is beside."""
_ROLLED_BACK = "another writer rolled it back"
_AFTERWARDS_S = 3600.0
"""Then every lease and heartbeat of the dead is over."""


class Broken(AssertionError):
    """A history does not hold."""


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


@dataclass
class Run:
    """What happened.

    Attributes:
        trace: Every call of storage.
        log: What the actors saw.
        turns: How often somebody went on.
        witness: The order of the writes.
    """

    trace: list[StorageCall] = field(default_factory=list)
    log: Log = field(default_factory=Log)
    turns: int = 0
    witness: tuple[str, ...] = ()
    may_leave_files: bool = False
    """Somebody was taken for dead and went on: nothing keeps it from writing a file that nobody reads."""

    def normalised(self) -> list[tuple[str, str, str, str]]:
        """The trace, with a number in the place of each random id."""
        numbers: dict[str, int] = {}

        def number(found: re.Match[str]) -> str:
            return f"<{numbers.setdefault(found.group(), len(numbers))}>"

        return [(c.actor, c.verb, _ID.sub(number, c.path), c.strike) for c in self.trace]


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


# Planning


def plan(seed: int) -> PlannedHistory:
    """The history of a seed."""
    rng = random.Random(seed)
    kind, place, lock = rng.choice(list(TableKind)), rng.choice(list(StoreKind)), rng.choice(list(Lock))
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


def _behind(part: Part) -> Part:
    """With a clock before all that the table has seen: instants then only follow from one another, and two choose one."""
    return replace(part, troubles=replace(part.troubles, offset_ms=part.troubles.offset_ms - _BEHIND_MS))


def _set(part: Part, lock: Lock) -> Part:
    """With a clock that is set now and then."""
    return replace(part, troubles=replace(part.troubles, settings=_SETTINGS, set_within_ms=lock.clocks_differ_ms))


def _others(rng: random.Random, kind: TableKind, manner: Manner, count: int) -> Iterator[Act]:
    left_out = WRITES + (() if kind.is_mor else OF_LOGS) + (() if kind.captures_changes else OF_CHANGES)
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


# Running


def run(history: PlannedHistory, checks: bool = True) -> Run:
    """Run a history and check what it left.

    Args:
        history: The plan.
        checks: Check invariants and consistency afterwards.

    Raises:
        Broken: Something does not hold; with the plan, the writes, and what differs.
    """
    done = Run()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _run(history, done, checks)
    except Exception as error:
        writes = "\n  ".join(str(one) for one in (*done.log.writes, *done.log.undos))
        raise Broken(f"{history}\nwrites:\n  {writes}\n{type(error).__name__}: {error}") from error
    return done


def _run(history: PlannedHistory, done: Run, checks: bool) -> None:
    begun = image(history.kind)
    scheduler = Scheduler(MOST_TURNS)
    files = begun.files.copy(scheduler.now_ms)
    merged = _MERGED_AT_ONCE if history.seed % _MERGES_EACH else {}
    options = {**begun.options, **history.lock.options, **history.manner.options, **merged}

    def actor(part: Part, body: Callable[[Actor], None]) -> Actor:
        return Actor(part.name, str(history.seed), scheduler, files, history.place, part.troubles, done.trace, body)

    def does(part: Part) -> Callable[[Actor], None]:
        def body(me: Actor) -> None:
            for act in part.acts:
                perform(me, act, options, done.log)

        return body

    actors = [actor(part, does(part)) for part in history.parts]
    try:
        scheduler.run(actors)
    finally:
        done.turns = scheduler.turns
    done.may_leave_files = any(a.stopped_s > _OUTLASTS_A_LEASE_S for a in actors)
    scheduler.now += _AFTERWARDS_S
    if history.manner is Manner.EARLY or history.seed % _LAST_WRITE_EACH == 0:
        last = Act(ActKind.WRITE, "last", Operation.UPSERT, tuple(range(8)))
        scheduler.run([actor(Part("last", (last,)), does(Part("last", (last,))))])
        if done.log.writes[-1].outcome is not WriterOutcome.ACKNOWLEDGED:
            raise ValidationFailed(f"nobody is at work, and yet {done.log.writes[-1]}")
    scheduler.run([actor(Part("recovery", ()), lambda me: recover(me, options))])
    if checks:
        _check(begun, files, SimulatedStorage(files, history.place), scheduler.now, done)


def _check_protocol(trace: list[StorageCall]) -> None:
    """Instants are only ever created: a store that replaces one would let two writers publish."""
    for call in trace:
        folder, _, name = call.path.rpartition("/")
        if call.verb == "put" and folder.endswith("timeline") and parse_instant_name(name) is not None:
            raise ValidationFailed(f"{call.actor} put {call.path}, whether it was there or not")


def _check_the_living(done: Run) -> None:
    """Nobody takes a writer for dead that was not stopped, whatever clocks say."""
    for one in done.log.writes:
        if one.outcome is WriterOutcome.REFUSED and not done.may_leave_files and _ROLLED_BACK in one.error:
            raise ValidationFailed(f"taken for dead though it was not: {one}")


def _asked_undoing(done: Run) -> set[str]:
    """Requested times of the restores and rollbacks that were asked for, and not made by a recovery."""
    who = {one.actor for one in done.log.undos}
    names = [call.path.rpartition("/")[2] for call in done.trace if call.actor in who and call.verb == "put_if_absent"]
    return {found.time for name in names if (found := parse_instant_name(name)) is not None and found.action in UNDOING}


def _was_overtaken(files: Files, instant: str) -> bool:
    """Whether anything, also a service, began while a write was at work: by requested time the table was never so then."""
    found = [parsed for path in files.journal if (parsed := parse_instant_name(path.rpartition("/")[2])) is not None]
    own = (one.completion for one in found if one.time == instant and one.action is not Action.SAVEPOINT and one.completion)
    completion = max(own, default=instant)
    return any(instant < one.time < completion for one in found)


def _check(begun: Image, files: Files, storage: SimulatedStorage, now: float, done: Run) -> None:
    _check_protocol(done.trace)
    _check_the_living(done)
    log, last = done.log, ReadSeen("the last read", now, now, state_now(storage))
    alone = (time for time in sorted(opened(storage).timeline.savepoints) if not _was_overtaken(files, time))
    saved = [SavedSeen(time, state_at(storage, time)) for time in alone]
    seen = Seen(log.writes, log.undos, [*log.reads, last], log.polls, saved)
    done.witness = check_serial(begun.moments, Ledger.of(files, _asked_undoing(done)), seen)
    check_all(storage, [one for one in (*ALWAYS, *AT_REST) if not (done.may_leave_files and one in LEFTOVERS)])
