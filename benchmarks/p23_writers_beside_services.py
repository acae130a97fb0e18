"""P23: four writers at five commits a second in all, alone and beside everything that keeps a table: do they notice?

Each commit has fifty rows of the newest partition, of which half were in the writer's commit before. Beside them `watch` runs
compaction, clustering, cleaning and archival whenever they are due, and another process builds the record index and drops it,
again and again. Wall times are the machine's as well: CPU seconds of a commit, and for how long the table's lock was held, say
whose they are. At the end every row that a writer was told of is there with its last value, and the indexes are proven.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import ours
from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job
from benchmarks.written import MOR

WRITERS, COMMITS_A_SECOND, SECONDS = 4, 5.0, 300
ROWS, LOADED, PARTITION_S = 50, 200_000, 15.0
INDEX = "record_index"
WRITES = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.write.num.retries.on.conflict.failures": "10",
}
KEPT = {
    "hoodie.compact.inline.max.delta.commits": "20",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "20",
    "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions": "2",
    "hoodie.clean.commits.retained": "20",
    "hoodie.keep.min.commits": "30",
    "hoodie.keep.max.commits": "60",
}
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("value", pa.float64())])


def rows(ids: Sequence[str], part: str, ts: int) -> pa.Table:
    """Rows of one partition, with the number of their commit as value."""
    return pa.table([ids, [part] * len(ids), [ts] * len(ids), [float(ts)] * len(ids)], schema=SCHEMA)


class Notes:
    """Lines of JSON that outlive the process that writes them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, **what: Any) -> None:
        """Append a line."""
        with self._path.open("a") as file:
            file.write(json.dumps(what) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """All whole lines."""
        text = self._path.read_text() if self._path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@contextlib.contextmanager
def locks_timed() -> Iterator[list[float]]:
    """Note for how long this process holds locks."""
    from hudimeta.commit.locks.fence import FencedLock

    plain: Any = FencedLock.held
    held = list[float]()

    @contextlib.contextmanager
    def timed(lock: FencedLock) -> Iterator[None]:
        with plain(lock):
            began = time.perf_counter()
            try:
                yield
            finally:
                held.append(time.perf_counter() - began)

    FencedLock.held = timed  # type: ignore[method-assign, assignment]
    try:
        yield held
    finally:
        FencedLock.held = plain  # type: ignore[method-assign]


def write(path: Path, number: int, seconds: float, notes: Notes) -> None:
    """One writer: a commit at each of its moments; one that comes late begins at once."""
    import hudimeta

    began, before, part_before = time.monotonic(), list[str](), ""
    step = WRITERS / COMMITS_A_SECOND
    with locks_timed() as held:
        for commit in range(max(2, round(seconds / step))):
            due = began + step * (commit + number / WRITERS)
            time.sleep(max(0.0, due - time.monotonic()))
            part = f"{int((time.monotonic() - began) / PARTITION_S) + 1:04d}"
            fresh = [f"{number}-{commit:06d}-{row:02d}" for row in range(ROWS)]
            ids = before[: ROWS // 2] + fresh[: ROWS // 2] if part == part_before else fresh
            held.clear()
            wall, cpu = time.perf_counter(), time.process_time()
            report = hudimeta.Table(str(path), WRITES).upsert(rows(ids, part, commit + 2))
            took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "held": sum(held)}
            notes.say(ids=ids, part=part, ts=commit + 2, attempts=report.attempts - 1, **took)
            before, part_before = ids, part


def maintain(path: Path, notes: Notes) -> None:
    """Everything that is due, every two seconds."""
    import hudimeta

    with locks_timed() as held:

        def tell(report: Any) -> None:
            notes.say(done=[one.name for one, _ in report.done], text=str(report), held=held[:])
            held.clear()

        hudimeta.Table(str(path), {**WRITES, **KEPT}).services.watch(2.0, tell)


def index(path: Path, notes: Notes) -> None:
    """Build an index beside the writers, use it for a while, and drop it."""
    import hudimeta

    with locks_timed() as held:
        while True:
            table = hudimeta.Table(str(path), WRITES)
            held.clear()
            table.metadata.create_index(type=INDEX, mode="async")
            notes.say(done=["index built"], held=held[:])
            time.sleep(15.0)
            table.metadata.drop_index(INDEX)
            time.sleep(5.0)


def _start(act: Callable[[], None], notes: Notes) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException as error:
            notes.say(wrong=f"{type(error).__name__}: {error}")
        finally:
            os._exit(code)
    return child


def storm(folder: Path, seconds: float, *, served: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Let writers write, alone or beside services; what both noted.

    Raises:
        RuntimeError: A writer failed.
    """
    path = folder / "t"
    services = {"maintain": maintain, "index": index} if served else {}
    notes = {name: Notes(folder / name) for name in [*services, *(f"w{n}" for n in range(WRITERS))]}
    beside = [_start(lambda act=act, name=name: act(path, notes[name]), notes[name]) for name, act in services.items()]  # type: ignore[misc]
    writing = [
        _start(lambda n=n: write(path, n, seconds, notes[f"w{n}"]), notes[f"w{n}"])  # type: ignore[misc]
        for n in range(WRITERS)
    ]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in writing]
    for child in beside:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    said = {name: one.lines() for name, one in notes.items()}
    wrong = [f"{name}: {line['wrong']}" for name, lines in said.items() for line in lines if "wrong" in line]
    if any(codes) or wrong:
        raise RuntimeError(f"writers ended with {codes}; {'; '.join(wrong)}")
    return [line for n in range(WRITERS) for line in said[f"w{n}"]], [line for name in services for line in said[name]]


def check(path: Path, commits: Sequence[Mapping[str, Any]]) -> None:
    """Hold what the writers were told against the table, and its indexes against its rows.

    Raises:
        RuntimeError: A row is lost, doubled or old, or an index is not proven.
    """
    import hudimeta

    table = hudimeta.Table(str(path), WRITES)
    table.recover()
    if INDEX not in table.metadata.ready:
        table.metadata.create_index(type=INDEX, mode="async")
    expected = {f"{line['part']}/{key}": line["ts"] for line in commits for key in line["ids"]}
    found = table.scan("part > '0000'", columns=["id", "part", "ts"]).to_table().to_pydict()
    there = Counter(f"{part}/{key}" for part, key in zip(found["part"], found["id"], strict=True))
    if max(there.values()) > 1 or there.keys() != expected.keys():
        raise RuntimeError(f"{len(expected.keys() - there.keys()):,} of {len(expected):,} rows are lost, or some are doubled")
    newest = {f"{p}/{key}": ts for p, key, ts in zip(found["part"], found["id"], found["ts"], strict=True)}
    if newest != expected:
        raise RuntimeError(f"{sum(newest[key] != ts for key, ts in expected.items()):,} updates are lost")
    report = table.metadata.validate()
    if not report.holds or INDEX not in report.proven:
        raise RuntimeError(str(report))


def run(job: Job) -> None:
    """Both storms, each over a table of its own."""
    seconds = float(job.settings.scaled(SECONDS, least=12))
    for served in (False, True):
        how = "beside services" if served else "alone"
        with job.folder() as folder:
            loaded = job.settings.scaled(LOADED, least=2_000)
            table = ours.create(folder / "t", SCHEMA, "id", "part", "ts", MOR, ["column_stats"])
            table.bulk_insert(rows([f"old-{i:09d}" for i in random.Random(7).sample(range(loaded), loaded)], "0000", 1))
            with job.timed():
                commits, services = storm(folder, seconds, served=served)
            check(folder / "t", commits)
        _tell(job, how, commits, services)


def _tell(job: Job, how: str, commits: Sequence[Mapping[str, Any]], services: Sequence[Mapping[str, Any]]) -> None:
    job.note(f"{how}: commits", len(commits))
    for what, name in (("wall", "ms"), ("cpu", "CPU ms"), ("held", "lock held ms")):
        values = [1000 * line[what] for line in commits]
        job.note(f"{how}: {name} p50", statistics.median(values))
        job.note(f"{how}: {name} p95", statistics.quantiles(values, n=20)[-1])
    job.note(f"{how}: attempts beyond the first", sum(line["attempts"] for line in commits))
    done = Counter(name for line in services for name in line["done"])
    for name, count in sorted(done.items()):
        job.note(f"{how}: {name}", count)
    if services:
        job.note(f"{how}: services' longest hold of the lock ms", 1000 * max(max(line["held"], default=0) for line in services))


def _hardly_slower(what: str, limit: float) -> Callable[[Mapping[str, Measured]], bool | None]:
    def met(sides: Mapping[str, Measured]) -> bool | None:
        found = sides[OURS]
        if found.error:
            return None
        return bool(found.notes[f"beside services: {what} p95"] <= limit * found.notes[f"alone: {what} p95"])

    return met


GOALS = (
    Goal("the writers' p95 beside services is at most 1.5x the one alone", _hardly_slower("ms", 1.5), only_at_full_scale=True),
    Goal("... and so are the CPU seconds of a commit", _hardly_slower("CPU ms", 1.5), only_at_full_scale=True),
)
CASES = [Case("P23", "four writers, alone and beside services and an index build", {OURS: run}, GOALS, rounds=1)]
