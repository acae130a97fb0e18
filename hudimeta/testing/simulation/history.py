"""One history: its run, and what must be true afterwards."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from hudimeta.errors import ValidationFailed
from hudimeta.testing.invariants import ALWAYS, AT_REST, LEFTOVERS, check_all
from hudimeta.testing.simulation.actors import Actor, StorageCall
from hudimeta.testing.simulation.acts import (
    UNDOING,
    Act,
    ActKind,
    Log,
    perform,
    recover,
)
from hudimeta.testing.simulation.consistency import Seen, check_serial
from hudimeta.testing.simulation.events import ReadSeen, SavedSeen, WriterOutcome
from hudimeta.testing.simulation.ledger import Ledger
from hudimeta.testing.simulation.planning import Part, PlannedHistory
from hudimeta.testing.simulation.readers import opened, state_at, state_now
from hudimeta.testing.simulation.scheduler import Scheduler
from hudimeta.testing.simulation.store import Files, SimulatedStorage
from hudimeta.testing.simulation.tables import Image, Manner, image
from hudimeta.timeline.naming import parse_instant_name
from hudimeta.types import Action, Operation

__all__ = ["Broken", "Run", "run"]

MOST_TURNS = 40_000
"""Of all actors of a history together; a usual history takes some hundreds."""
_OUTLASTS_A_LEASE_S = 10.0
_LAST_WRITE_EACH = 4
_MERGES_EACH = 2
_MERGED_AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
"""Of every second history: writers then merge the metadata table after each commit that no other is beside."""
_ROLLED_BACK = "another writer rolled it back"
_AFTERWARDS_S = 3600.0
"""Then every lease and heartbeat of the dead is over."""


class Broken(AssertionError):
    """A history does not hold."""


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
