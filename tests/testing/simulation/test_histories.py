"""Simulated histories: many writers, services and readers at once, in an order and with faults that follow from a seed.

A few run always; HUDIMETA_HISTORIES says how many, HUDIMETA_HISTORIES_SEED from which seed on. Wide ones, of buckets and of
indexes beside plans, are as many as a quarter of them, or all where the seed is one of theirs. A history that does not hold is
shown with its shortest form: `simulation.run(simulation.plan(<seed>))` runs it again.
"""

from __future__ import annotations

import os

import pytest

from hudimeta.testing.simulation import WIDE_FROM, Broken, PlannedHistory, plan, run, shrunk

ASKED = int(os.environ.get("HUDIMETA_HISTORIES") or 40)
FIRST = int(os.environ.get("HUDIMETA_HISTORIES_SEED") or 0)
SHARE = 20 if ASKED <= 2_000 else 500
"""Histories of one test: few enough for the processes of a run to share them out evenly."""


def shares(first: int, count: int) -> list[range]:
    """Seeds of the histories of each test."""
    return [range(begin, min(begin + SHARE, first + count)) for begin in range(first, first + count, SHARE)]


USUAL = shares(FIRST, ASKED)
WIDE = shares(WIDE_FROM + FIRST, ASKED // 4) if FIRST < WIDE_FROM else []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", [*USUAL, *WIDE], ids=lambda seeds: str(seeds.start))
def test_histories_hold(seeds: range) -> None:
    broken = []
    for seed in seeds:
        try:
            run(plan(seed))
        except Broken as error:
            broken.append(f"{error}\n\nshorter, {shrunk(plan(seed))}" if not broken else str(error))
    assert not broken, f"{len(broken)} of {len(seeds)} histories do not hold:\n\n" + "\n\n".join(broken)


@pytest.mark.parametrize("seed", range(3, 9))
def test_one_seed_is_one_history(seed: int) -> None:
    first, second = run(plan(seed)), run(plan(seed))
    assert first.normalised() == second.normalised()
    assert (first.turns, first.witness) == (second.turns, second.witness)


def test_seeds_differ() -> None:
    assert run(plan(1)).normalised() != run(plan(2)).normalised()


def test_a_broken_history_loses_what_does_not_break_it() -> None:
    history = plan(next(seed for seed in range(1000) if len(plan(seed).parts) == 8))
    last = history.parts[-1].name

    def holds(shorter: PlannedHistory) -> bool:
        return last not in [part.name for part in shorter.parts]

    assert [part.name for part in shrunk(history, holds=holds).parts] == [last]
