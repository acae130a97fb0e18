"""Many processes at one table, killed at random: writers, a reader, and one each that cleans, archives, compacts, indexes.

Every write puts three rows of its own, the row in which its writer counts, and where keys are shared three of those. Before and
after it the writer says so in its journal. What the journals say is held against the table: what was acknowledged is there
once, what was refused is not, and of what nobody knows everything is there or nothing.

    python -m tests.concurrency.storm            all combinations of writers, keys, tables and indexes, with figures
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.concurrency.storm_processes import (
    KEYS,
    OWN_ROWS,
    PARTITIONS,
    SCHEMA,
    SERVICES,
    SHARED,
    SPREADS,
    WRITES,
    Journal,
    State,
    Weather,
    read,
    rows_of,
    serve,
    write,
)


@dataclass
class Told:
    """What journals tell.

    Attributes:
        tried: Tag of each write, and when it began.
        acknowledged: Tag, and when the writer knew.
        refused: Tag, and the error.
        wrong: Errors that nobody may see.
        held: Seconds for which the lock was held, each time.
        calls: Seconds of the acknowledged writes of each writer.
        kills: How often processes were killed.
        seconds: How long all of it took.
    """

    tried: dict[str, float] = field(default_factory=dict)
    acknowledged: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    calls: dict[str, list[float]] = field(default_factory=dict)
    kills: int = 0
    seconds: float = 0.0


# The storm


def storm(folder: Path, weather: Weather, seed: int = 0) -> Told:
    """Let it rage over a new table until all writes are done; what was told."""
    path = str(folder / "t")
    indexes = ["column_stats", *(["record_index"] if weather.record_index else [])]
    hudimeta.Table.create(path, SCHEMA, key="id", partition_by=["part"], ordering=["ts"], type=weather.kind, indexes=indexes)
    acts: dict[str, Callable[[Journal], None]] = {}
    for writer in range(weather.writers):
        acts[f"writer{writer}"] = lambda journal, writer=writer: write(path, weather, writer, journal)  # type: ignore[misc]
    if weather.services:
        verbs = [verb for verb in SERVICES if weather.kind == "MERGE_ON_READ" or not verb.endswith("compact")]
        acts |= {verb: lambda journal, verb=verb: serve(path, verb, journal) for verb in verbs}  # type: ignore[misc]
        acts["reader"] = lambda journal: read(path, journal)
    began = time.monotonic()
    kills = _until_finished(folder, acts, weather, random.Random(seed))
    told = _told(folder, acts, weather)
    told.kills, told.seconds = kills, time.monotonic() - began
    return told


def _until_finished(folder: Path, acts: dict[str, Callable[[Journal], None]], weather: Weather, chance: random.Random) -> int:
    """Start every process, again when it was killed, until the writers are through; how many were killed."""
    running = {name: _start(act, Journal(folder / name)) for name, act in acts.items()}
    kills, next_kill = 0, time.monotonic() + weather.kill_each_s
    try:
        while any(name.startswith("writer") for name in running):
            time.sleep(0.02)
            if weather.kill_each_s and time.monotonic() >= next_kill:
                os.kill(running[chance.choice(sorted(running))], signal.SIGKILL)
                kills, next_kill = kills + 1, time.monotonic() + weather.kill_each_s
            for name, child in list(running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if not ended:
                    continue
                if os.waitstatus_to_exitcode(status) == 0:
                    del running[name]
                else:
                    running[name] = _start(acts[name], Journal(folder / name))
    finally:
        for child in running.values():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return kills


def _start(act: Callable[[Journal], None], journal: Journal) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act(journal)
            code = 0
        except BaseException:
            journal.say(wrong=traceback.format_exc())
        finally:
            os._exit(code)
    return child


def _told(folder: Path, names: Sequence[str] | dict[str, Any], weather: Weather) -> Told:
    told = Told()
    for name in names:
        begun = 0.0
        for line in Journal(folder / name).lines():
            if "wrong" in line:
                told.wrong.append(f"{name}: {line['wrong']}")
            tag = f"{name.removeprefix('writer')}.{line.get('number', line.get('acknowledged', line.get('refused')))}"
            if "number" in line:
                begun = told.tried[tag] = line["at"]
            elif "acknowledged" in line:
                told.acknowledged[tag] = line["at"]
                told.held += line["held"]
                told.calls.setdefault(name, []).append(line["at"] - begun)
            elif "refused" in line:
                told.refused[tag] = line.get("why", "")
    return told


# What must hold afterwards


def check(path: str, weather: Weather, told: Told) -> None:
    """Hold what the writers were told against the table."""
    table = hudimeta.Table(path, WRITES)
    table.recover()
    state = State.of(table.scan(columns=["id", "tag"]).to_table())
    assert not told.wrong, told.wrong[0]
    assert all(count == OWN_ROWS for count in state.own.values()), "a write is there in part"
    lost = told.acknowledged.keys() - state.own.keys()
    assert not lost, f"acknowledged writes are lost: {sorted(lost)}"
    ghosts = told.refused.keys() & state.own.keys()
    assert not ghosts, f"refused writes are there: {sorted(ghosts)}"
    assert state.own.keys() <= told.tried.keys()
    assert weather.spread == KEYS or not told.refused, f"writers of different keys met: {told.refused}"
    for writer, tag in state.counters.items():
        numbers = [int(t.partition(".")[2]) for t in state.own if t.partition(".")[0] == writer]
        assert int(tag.partition(".")[2]) == max(numbers), f"an update of {writer} is lost"
    for key, tag in state.shared.items():
        last = told.acknowledged.get(tag)
        later = [t for t, at in told.tried.items() if last is not None and at > last and t in told.acknowledged]
        missed = [t for t in later if f"{SHARED}.{key}" in rows_of(*map(int, t.split(".")), KEYS)["id"].to_pylist()]
        assert not missed, f"{SHARED}.{key} is of {tag}, and {missed} came later"
    report = table.metadata.validate()
    assert report.holds, str(report)
    check_all(open_storage(path))


def figures(told: Told, alone: float | None) -> str:
    """Commits a second, how long the lock was held, and the slowest writer's p95, against one writer's where that is known."""
    slowest = max(_quantile(calls, 0.95) for calls in told.calls.values())
    middle = statistics.median(statistics.median(calls) for calls in told.calls.values())
    worst = max(statistics.median(calls) for calls in told.calls.values())
    against = "" if alone is None else f" ({slowest / alone:.1f} x one writer's)"
    return (
        f"{len(told.acknowledged):4d} commits {len(told.acknowledged) / told.seconds:5.1f}/s, refused {len(told.refused):3d}, "
        f"unknown {len(told.tried) - len(told.acknowledged) - len(told.refused):3d}, kills {told.kills:3d}, "
        f"lock held p50 {1000 * _quantile(told.held, 0.5):4.0f} p95 {1000 * _quantile(told.held, 0.95):4.0f} ms, "
        f"slowest median {worst / middle:.1f} x the median, slowest p95 {1000 * slowest:6.0f} ms{against}"
    )


def _quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def main() -> None:
    """All combinations, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--writers", default="2,4,8,16")
    parser.add_argument("--commits", type=int, default=32, help="of each combination")
    parser.add_argument("--kinds", default="COPY_ON_WRITE,MERGE_ON_READ")
    parser.add_argument("--spreads", default=",".join(SPREADS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    total = 0
    for kind, index in itertools.product(given.kinds.split(","), (False, True)):
        alone: float | None = None
        for writers, spread in [
            (1, PARTITIONS),
            *itertools.product(map(int, given.writers.split(",")), given.spreads.split(",")),
        ]:
            weather = Weather(writers, spread, kind, index, max(given.commits, writers), 2.0 if writers > 1 else 0, writers > 1)
            with tempfile.TemporaryDirectory(prefix="storm-") as folder:
                told = storm(Path(folder), weather, given.seed)
                if alone is None:
                    (calls,) = told.calls.values()
                    alone = _quantile(calls, 0.95)
                print(weather, figures(told, alone), flush=True)
                check(str(Path(folder) / "t"), weather, told)
            total += len(told.acknowledged)
    print(f"{total:,} commits: nothing lost, nothing doubled")


if __name__ == "__main__":
    main()
