"""Who goes on in a simulation, who never does, and what becomes of an actor that dies."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from hudimeta.engine.machine import machine
from hudimeta.errors import NotFound, StorageError
from hudimeta.testing.simulation.actors import Actor, StorageCall
from hudimeta.testing.simulation.faults import CALM, Troubles
from hudimeta.testing.simulation.scheduler import Died, Scheduler, Stuck
from hudimeta.testing.simulation.store import Files, StoreKind


class Stage:
    """Actors over one store."""

    def __init__(self, most_turns: int = 1000, place: StoreKind = StoreKind.DISK) -> None:
        self.scheduler = Scheduler(most_turns)
        self.files = Files(self.scheduler.now_ms)
        self.trace: list[StorageCall] = []
        self.place = place

    def actor(self, name: str, body: Callable[[Actor], None], troubles: Troubles = CALM) -> Actor:
        return Actor(name, "a seed", self.scheduler, self.files, self.place, troubles, self.trace, body)


def test_actors_take_turns_at_every_call() -> None:
    stage = Stage()

    def write(me: Actor) -> None:
        for number in range(20):
            me.storage.put(f"{me.name}/{number}", b"x")

    stage.scheduler.run([stage.actor("a", write), stage.actor("b", write)])
    names = [call.actor for call in stage.trace]
    assert sorted(names) == ["a"] * 20 + ["b"] * 20
    assert names != sorted(names)


def test_who_never_comes_to_an_end_is_told() -> None:
    stage = Stage(most_turns=50)

    def wait(me: Actor) -> None:
        while me.storage.stat("never") is None:
            machine().pause(0.1)

    with pytest.raises(Stuck, match="within 50 turns"):
        stage.scheduler.run([stage.actor("a", wait), stage.actor("b", wait)])


def test_the_dead_do_nothing_more_and_their_guards_are_free() -> None:
    stage = Stage()
    stage.files.put("there", b"1")
    seen: list[str] = []

    def die(me: Actor) -> None:
        guard = me.storage.guard("g")
        assert guard is not None
        try:
            with guard:
                while True:
                    me.storage.put("there", b"1")
        finally:
            with pytest.raises(Died):
                me.storage.delete("there")

    def look(me: Actor) -> None:
        machine().pause(1000.0)
        seen.append(me.storage.read("there").decode())
        guard = me.storage.guard("g")
        assert guard is not None
        with guard as free:
            seen.append(str(free))

    stage.scheduler.run([stage.actor("a", die, Troubles(deaths=0.1)), stage.actor("b", look)])
    assert seen == ["1", "True"]


def test_failed_requests_have_no_effect_or_all_of_it() -> None:
    stage = Stage()
    outcomes: set[tuple[str, bool]] = set()

    def write(me: Actor) -> None:
        for number in range(40):
            try:
                me.storage.put(f"f/{number}", b"x")
            except StorageError:
                outcomes.add((stage.trace[-1].strike, stage.files.find(f"f/{number}") is not None))

    stage.scheduler.run([stage.actor("a", write, Troubles(errors=0.5))])
    assert outcomes == {("error before", False), ("error after", True)}


def test_what_is_repeated_stops_with_its_actor_and_goes_on_while_that_is_only_slow() -> None:
    beats: dict[str, int] = {}
    for name, troubles in (("stopped", Troubles(stops=1.0)), ("slow", Troubles(slow=1.0))):
        stage = Stage(most_turns=100_000)
        gaps: list[float] = []

        def work(me: Actor, gaps: list[float] = gaps) -> None:
            with me.every(5.0, lambda: gaps.append(me.now), "beat"):
                for _ in range(30):
                    me.storage.stat("f")

        stage.scheduler.run([stage.actor("a", work, troubles)])
        beats[name] = int(max(after - before for before, after in itertools.pairwise(gaps)))
    assert beats["slow"] <= 6
    assert beats["stopped"] > 100


def test_a_clock_may_be_off_and_files_have_the_time_of_the_store() -> None:
    stage = Stage()
    off: list[int] = []

    def write(me: Actor) -> None:
        me.storage.put("f", b"x")
        found = me.storage.stat("f")
        assert found is not None
        off.append(round((machine().now_ms() - found.modified_ms) / 1000))

    stage.scheduler.run([stage.actor("a", write, Troubles(offset_ms=90_000))])
    assert off == [90]


def test_errors_of_an_actor_end_the_history() -> None:
    stage = Stage()

    def fail(me: Actor) -> None:
        me.storage.read("nothing")

    with pytest.raises(NotFound):
        stage.scheduler.run([stage.actor("a", fail), stage.actor("b", lambda me: None)])
