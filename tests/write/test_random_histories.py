"""Random histories of a table against its model, with every index on and every invariant after every step."""

from __future__ import annotations

import multiprocessing
import os
import secrets

import pytest

from tests.elsewhere import only_when
from tests.write.histories import History, run_histories
from tests.write.served_histories import ServedHistory

FULL = bool(os.environ.get("CRASH_FULL"))
FIRST_SEED = int(os.environ.get("HISTORIES_SEED") or secrets.randbelow(1_000_000))
"""Of a run: another one each time, and printed, so that what it found can be found again."""

KINDS: tuple[type[History], ...] = (History, ServedHistory)
"""Which of them runs follows from the seed."""

PIECES, LANES, EACH, STEPS = 100, 2, 5, 50
"""A full run is a thousand histories of fifty steps, in pieces of two processes, each history from a seed of its own piece."""


def test_histories_that_are_always_the_same(door: str) -> None:
    run_histories(1, histories=2, steps=15, writes_fail=door != "spark")


def test_histories_of_a_new_seed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nrandom histories of this run: HISTORIES_SEED={FIRST_SEED}")
    run_histories(FIRST_SEED, histories=2, steps=15, kind=KINDS[FIRST_SEED % len(KINDS)])


@only_when(FULL, "make crash-full, hours")
@pytest.mark.parametrize("piece", range(PIECES) if FULL else [0])
def test_a_thousand_histories(piece: int) -> None:
    forked = multiprocessing.get_context("fork")
    seeds = [FIRST_SEED + piece * LANES + lane for lane in range(LANES)]
    kinds = [{"kind": KINDS[seed % len(KINDS)]} for seed in seeds]
    children = [forked.Process(target=run_histories, args=(seeds[n], EACH, STEPS), kwargs=kinds[n]) for n in range(LANES)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    codes = [child.exitcode for child in children]
    assert codes == [0] * LANES, f"seeds {seeds}: see above; its first line runs one again"
