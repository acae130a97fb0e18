"""P19: writers of different keys, 1 to 16 processes, in one partition or each in its own: do they commit as fast as one alone?

Each process upserts ten new rows at a time. In one partition all meet in the same small files and compare keys; apart there is
nothing to wait for but the table's lock and the machine. How long the lock is held is noted, what its holder computes
meanwhile, and how long it waits for a core, which others compute on; the CPU seconds of a commit, conflicts that a user would
see, and how many attempts were needed beyond the first ones. Each number of writers begins with a commit that is not counted:
it opens modules and file groups.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import ours
from benchmarks.case import OURS, Case, Goal, Measured, Settings, Side
from benchmarks.job import Job
from benchmarks.written import COW, MOR
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.metering import Metric
from hudimeta.timeline import SystemClock

WRITERS = (1, 2, 4, 8, 16)
COMMITS, ROWS = 200, 10


def commits(settings: Settings) -> int:
    """How many each number of writers makes together."""
    return settings.scaled(COMMITS, least=16)


def rows(first: int, partition: str = "p") -> pa.Table:
    """New rows of one partition."""
    ids = range(first, first + ROWS)
    return pa.table(
        {"id": [f"{i:010d}" for i in ids], "part": [partition] * ROWS, "ts": [1] * ROWS, "value": [i / 7 for i in ids]}
    )


def waited_for_a_core() -> float:
    """Seconds that this thread was ready to run and another one had the core; 0 where the system does not tell."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


class _Timed(FencedLock):
    """A table lock that notes what its holder computed while it was held, and how long it waited for a core."""

    def __init__(self, inner: FencedLock) -> None:
        super().__init__(inner, SystemClock())
        self.noted = list[tuple[float, float]]()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with super().held():
            waited, computed = waited_for_a_core(), time.process_time()
            try:
                yield
            finally:
                self.noted.append((time.process_time() - computed, waited_for_a_core() - waited))


class _Holds:
    """A meter that notes how long the table lock was held: from the moment it was ours until it was let go."""

    def __init__(self) -> None:
        self.seconds = list[float]()

    def add(self, metric: Metric, amount: float = 1) -> None:
        if metric is Metric.LOCK_HELD:
            self.seconds.append(amount / 1000)

    def reported(self, report: object, action: str) -> None:
        """What a write reports of itself is not asked for here."""


def write(path: Path, firsts: range, partition: str) -> dict[str, Any]:
    """What one process does; what it noted."""
    from hudimeta.commit.session import WriteSession
    from hudimeta.config import OPTIONS
    from hudimeta.errors import CommitConflict
    from hudimeta.storage import CountingStorage, open_storage
    from hudimeta.types import Operation
    from hudimeta.write.table_writer import write_rows

    options, holds = OPTIONS.read({}), _Holds()
    noted: dict[str, Any] = {"conflicts": 0, "attempts": 0, "calls": [], "under_lock": []}
    began_cpu = time.process_time()
    for first in firsts:
        storage = CountingStorage(open_storage(str(path)))
        storage.log.meter = holds
        session = WriteSession(storage, options)
        lock = _Timed(session.lock)
        session.lock = lock
        began = time.perf_counter()
        try:
            noted["attempts"] += write_rows(session, Operation.UPSERT, rows(first, partition)).attempts - 1
        except CommitConflict:
            noted["conflicts"] += 1
        noted["calls"].append(time.perf_counter() - began)
        noted["under_lock"] += lock.noted
    return noted | {"held": holds.seconds, "cpu": time.process_time() - began_cpu}


def together(path: Path, writers: int, each: int, apart: bool) -> tuple[float, list[dict[str, Any]]]:
    """Let processes write beside each other, `apart` each into its own partition; seconds, and what they noted."""
    began, children = time.perf_counter(), []
    for number in range(writers):
        firsts = range(ROWS * each * number, ROWS * each * (number + 1), ROWS)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                (path.parent / f"{number}.json").write_text(json.dumps(write(path, firsts, f"p{number}" if apart else "p")))
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        raise RuntimeError(f"writers ended with {codes}")
    spent = time.perf_counter() - began
    return spent, [json.loads((path.parent / f"{number}.json").read_text()) for number in range(writers)]


def _hudimeta(kind: str, apart: bool, indexes: list[str] | None) -> Side:
    def run(job: Job) -> None:
        for writers in WRITERS:
            each = commits(job.settings) // writers
            with job.folder() as folder:
                path = folder / "t"
                ours.create(path, rows(0).schema, "id", "part", "ts", kind, indexes)
                write(path, range(-ROWS, 0, ROWS), "before")
                with job.timed():
                    spent, noted = together(path, writers, each, apart)
                held = [seconds for one in noted for seconds in one["held"]]
                computed, waited = zip(*(times for one in noted for times in one["under_lock"]), strict=True)
                medians = [statistics.median(one["calls"]) for one in noted]
                conflicts = sum(one["conflicts"] for one in noted)
                if ours.count(path) != ROWS * (1 + each * writers - conflicts):
                    raise RuntimeError(f"{ours.count(path):,} rows of {1 + each * writers:,} commits")
                job.note(f"{writers} writers commits/s", (each * writers - conflicts) / spent)
                job.note(f"{writers} writers lock held p95 ms", 1000 * statistics.quantiles(held, n=20)[-1])
                job.note(f"{writers} writers lock held p50 ms", 1000 * statistics.median(held))
                job.note(f"{writers} writers lock held computing p50 ms", 1000 * statistics.median(computed))
                job.note(f"{writers} writers lock held computing p95 ms", 1000 * statistics.quantiles(computed, n=20)[-1])
                job.note(f"{writers} writers lock held waiting for a core p50 ms", 1000 * statistics.median(waited))
                job.note(f"{writers} writers cpu ms a commit", 1000 * sum(one["cpu"] for one in noted) / (each * writers))
                job.note(f"{writers} writers slowest median ms", 1000 * max(medians))
                job.note(f"{writers} writers slowest median x the median", max(medians) / statistics.median(medians))
                job.note(f"{writers} writers attempts beyond the first", sum(one["attempts"] for one in noted))
                job.note(f"{writers} writers conflicts", conflicts)

    return run


def _none_conflicts(sides: dict[str, Measured] | Any) -> bool | None:
    found = sides[OURS]
    return None if found.error else all(found.notes[f"{n} writers conflicts"] == 0 for n in WRITERS)


def _keeps_pace(sides: dict[str, Measured] | Any) -> bool | None:
    found = sides[OURS]
    if found.error:
        return None
    alone = found.notes["1 writers commits/s"]
    return all(found.notes[f"{n} writers commits/s"] >= 0.8 * alone for n in WRITERS[1:])


def _holds_shortly(writers: int) -> Callable[[dict[str, Measured] | Any], bool | None]:
    def judge(sides: dict[str, Measured] | Any) -> bool | None:
        found = sides[OURS]
        return None if found.error else bool(found.notes[f"{writers} writers lock held p95 ms"] <= 60)

    return judge


def _is_fair(sides: dict[str, Measured] | Any) -> bool | None:
    found = sides[OURS]
    return None if found.error else all(found.notes[f"{n} writers slowest median x the median"] <= 3 for n in WRITERS)


def _case(name: str, kind: str, *, apart: bool, indexes: list[str] | None = None) -> Case:
    goals = (
        Goal("no writer of different keys sees a conflict", _none_conflicts, binding=True),
        Goal("many commit at >= 0.8x the rate of one", _keeps_pace, only_at_full_scale=True),
        Goal("one writer holds the lock for at most 60 ms, p95", _holds_shortly(1), only_at_full_scale=True),
        Goal("each of sixteen holds it for at most 60 ms, p95", _holds_shortly(16), only_at_full_scale=True),
        Goal("the slowest writer's median is at most 3x the median", _is_fair, only_at_full_scale=True),
    )
    where = "partitions of their own" if apart else "one partition"
    title = f"writers of different keys in {where}, {'copy-on-write' if kind == COW else 'merge-on-read'}"
    title += ", record index" if indexes else ""
    return Case(f"P19-{name}", title, {OURS: _hudimeta(kind, apart, indexes)}, goals, rounds=1)


_INDEXES = ["column_stats", "record_index"]
CASES = [
    _case("cow", COW, apart=False),
    _case("mor", MOR, apart=False),
    _case("cow-apart", COW, apart=True),
    _case("mor-apart", MOR, apart=True),
    _case("cow-apart-record-index", COW, apart=True, indexes=_INDEXES),
    _case("mor-apart-record-index", MOR, apart=True, indexes=_INDEXES),
]
