"""Damages by the thousand: `python -m tests.damage.run --trials 1000 --seed 7 [--apache] [--kinds "log file,commit"]`.

Prints every fault, and by kind of file how many damages were detected, harmless, or wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from hudimeta.errors import HudiError
from tests.damage.subjects import OWN, Subject, own_subject, recorded_names, recorded_subject
from tests.damage.trial import Outcome, Trials

__all__ = ["lane_of_damages", "quick_home", "run_damages", "shares"]


_MOST_SEEDS = 4
"""For each damage: of some tables no file of the kind that is asked for can be damaged."""


def quick_home() -> Path:
    """A folder in memory where there is one: writes are synced to the disk."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="hudimeta-damage-", dir=memory if memory.is_dir() else None))


def run_damages(
    names: Iterable[str],
    seed: int,
    each: int,
    *,
    recorded: bool = False,
    kinds: frozenset[str] | None = None,
    act: str | None = None,
) -> Iterator[Outcome]:
    """Damage tables, one after the other.

    Args:
        names: Of tables.
        seed: Of the first trial on each table; those of the others follow.
        each: Damages of each table. Seeds that choose what cannot be done, or changes nothing, do not count.
        recorded: Tables of Apache Hudi, not ours.
        kinds: Of files that are damaged; all when None.
        act: What is done over each damage; chosen when None.
    """
    make = recorded_subject if recorded else own_subject
    home = quick_home()
    trials = Trials(home)
    try:
        for name in names:
            try:
                subject: Subject = make(name, home)
            except HudiError:
                continue  # a table that is not read at all
            tried = (trials.run(subject, number, kinds, act) for number in range(seed, seed + _MOST_SEEDS * each))
            yield from islice((outcome for outcome in tried if outcome is not None), each)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def shares(outcomes: Iterable[Outcome]) -> str:
    """A line for each kind of file: damages, the share that was detected, faults by class."""
    every: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        every.setdefault(outcome.kind, []).append(outcome)
    lines = [f"{'kind of file':<28} {'damages':>8} {'detected':>9}  faults"]
    for kind in sorted(every):
        of_kind = every[kind]
        faults = Counter(fault for one in of_kind for fault in sorted({name for name, _ in one.faults}))
        told = ", ".join(f"{count} {name}" for name, count in sorted(faults.items()))
        lines.append(f"{kind:<28} {len(of_kind):>8} {sum(o.detected for o in of_kind) / len(of_kind):>8.0%}  {told or '-'}")
    return "\n".join(lines)


def lane_of_damages(arguments: tuple[list[str], int, int, bool, frozenset[str] | None, str | None]) -> list[Outcome]:
    """The outcomes of one process: names, first seed, damages of each, recorded, kinds, act."""
    names, seed, each, recorded, kinds, act = arguments
    return list(run_damages(names, seed, each, recorded=recorded, kinds=kinds, act=act))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=1, help="processes")
    parser.add_argument("--apache", action="store_true", help="tables that Apache Hudi wrote")
    parser.add_argument("--kinds", default="", help="kinds of files, by comma")
    parser.add_argument("--tables", default="", help="names, by comma")
    parser.add_argument("--act", default=None)
    given = parser.parse_args()
    names = [name for name in given.tables.split(",") if name] or (recorded_names() if given.apache else list(OWN))
    kinds = frozenset(given.kinds.split(",")) if given.kinds else None
    each = -(-given.trials // len(names))
    lanes = [(names[lane :: given.lanes], given.seed, each, given.apache, kinds, given.act) for lane in range(given.lanes)]
    if given.lanes > 1:
        with multiprocessing.get_context("spawn").Pool(given.lanes) as pool:
            found = [outcome for part in pool.imap_unordered(lane_of_damages, lanes) for outcome in part]
    else:
        found = lane_of_damages(lanes[0])
    for outcome in found:
        if outcome.faults:
            print(outcome)
    print(shares(found))


if __name__ == "__main__":
    main()
