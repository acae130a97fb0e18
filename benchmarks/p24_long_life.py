"""P24: a table that lives long: thousands of small commits, kept by `maintain` alone. Does the last cost what the first did?

Each commit has a hundred rows, half of them new, and `maintain` runs after it, as an inline service would. After every tenth
the cost of a point query and of the plan of everything is noted. Times are CPU seconds of this process. The first tenth is held
against the last one, without the first hundred commits, when nothing is there yet to compact, clean or archive. What lies in
`.hoodie` is counted all along.

A life takes an hour, in which the machine does not stay the same: the same work takes up to a quarter more CPU seconds while
others use the caches and the second half of each core. So a fixed piece of work is timed beside the questions, and the goals
speak of what a tenth took in units of that. All figures are printed as they are.

`HUDIMETA_LIFE=10000` says how many commits the full size has.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import ours
from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job
from benchmarks.written import COW, MOR

COMMITS, ROWS, ASKED_EACH, LIMIT = int(os.environ.get("HUDIMETA_LIFE", "10000")), 100, 10, 1.3
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("value", pa.float64())])
PARTITIONS = 4
WRITES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
KEPT = {**WRITES, "hoodie.clean.commits.retained": "10", "hoodie.keep.min.commits": "20", "hoodie.keep.max.commits": "30"}
FIXED = "fixed work"
PATIENCE_S = 6 * 3600
KEYS = 5_000
"""So many keys there are in the end: new ones take the place of the oldest, so that the table does not grow for ever."""


def rows(commit: int) -> pa.Table:
    """Of one commit: half as many steps further round the circle of keys as it has rows."""
    numbers = [(commit * ROWS // 2 + n) % KEYS for n in range(ROWS)]
    ids, parts = [f"{n:08d}" for n in numbers], [f"p{n % PARTITIONS}" for n in numbers]
    return pa.table([ids, parts, [commit] * ROWS, [float(commit)] * ROWS], schema=SCHEMA)


def inside(path: Path) -> dict[str, tuple[int, int]]:
    """Files and bytes in `.hoodie`, of the timeline, its history, the metadata table and everything together."""
    root = path / ".hoodie"
    found = {"all": (0, 0), "timeline": (0, 0), "history": (0, 0), "metadata": (0, 0), "metadata's history": (0, 0)}
    for folder, _, names in os.walk(root):
        where = Path(folder).relative_to(root).as_posix()
        sizes = [(Path(folder) / name).stat().st_size for name in names]
        kinds = ["all"]
        if where.startswith("metadata"):
            kinds.append("metadata's history" if where.endswith("history") else "metadata")
        elif where.startswith("timeline"):
            kinds.append("history" if where.endswith("history") else "timeline")
        for kind in kinds:
            count, size = found[kind]
            found[kind] = (count + len(sizes), size + sum(sizes))
    return found


def fixed_work() -> int:
    """A few milliseconds that only the machine changes: nothing is made that the collector of garbage would visit."""
    found = 0
    for number in range(40_000):
        found = (found * 31 + len(str(number))) & 0xFFFFFF
    return found


def live(job: Job, path: Path, kind: str, commits: int) -> dict[str, list[float]]:
    """Let a table live; milliseconds of CPU of every commit, every maintenance, and of the questions in between."""
    import hudimeta

    ours.create(path, SCHEMA, "id", "part", "ts", kind, ["column_stats", "record_index"])
    spent: dict[str, list[float]] = {name: [] for name in ("commit", "maintain", "point query", "full plan", FIXED)}

    def timed(name: str, act: Callable[[], object]) -> None:
        began = time.process_time()
        act()
        spent[name].append(1000 * (time.process_time() - began))

    tenth, most, most_bytes, told = max(2, commits // 10), 0, 0, dict.fromkeys(spent, 0)
    for commit in range(commits):
        new = rows(commit)
        timed("commit", lambda new=new: hudimeta.Table(str(path), WRITES).upsert(new))  # type: ignore[misc]
        timed("maintain", lambda: hudimeta.Table(str(path), KEPT).maintain())
        if commit % ASKED_EACH == 0 or commit < 2 or commit >= commits - 2:
            key = new["id"][0].as_py()
            timed("point query", lambda key=key: _found(path, key))  # type: ignore[misc]
            timed("full plan", lambda: hudimeta.Table(str(path)).scan().plan())
            timed(FIXED, fixed_work)
        if (commit + 1) % tenth == 0:
            count, size = inside(path)["all"]
            print(f"  {commit + 1:6,} commits: {count:,} files, {size:,} bytes in .hoodie", flush=True)
            slowest = ", ".join(f"{name} {p95(lately):.1f}" for name in spent if (lately := spent[name][told[name] :]))
            print(f"    CPU ms p95 of these: {slowest}", flush=True)
            told = {name: len(values) for name, values in spent.items()}
            most, most_bytes = max(most, count), max(most_bytes, size)
    job.note("most files in .hoodie", most)
    job.note("most bytes in .hoodie", most_bytes)
    return spent


def _found(path: Path, key: str) -> None:
    import hudimeta

    if hudimeta.Table(str(path)).scan(f"id = '{key}'").count() != 1:
        raise RuntimeError(f"the row {key} is not there once")


def p95(values: Sequence[float]) -> float:
    """Of few values the greatest but one in twenty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def _life(kind: str) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        commits = job.settings.scaled(COMMITS, least=20)
        with job.folder() as folder:
            with job.timed():
                spent = live(job, folder / "t", kind, commits)
            for name, values in spent.items():
                young, tenth = len(values) * min(100, commits // 10) // commits, max(1, len(values) // 10)
                first, last = values[young : young + tenth], values[-tenth:]
                job.note(f"{name} CPU ms p95, first tenth", p95(first))
                job.note(f"{name} CPU ms p95, last tenth", p95(last))
                job.note(f"{name} CPU ms p50, first tenth", statistics.median(first))
                job.note(f"{name} CPU ms p50, last tenth", statistics.median(last))
            for what, (count, size) in inside(folder / "t").items():
                job.note(f"files at the end, {what}", count)
                job.note(f"bytes at the end, {what}", size)
            import hudimeta

            table = hudimeta.Table(str(folder / "t"))
            report = table.metadata.validate()
            if not report.holds or table.scan().count() != min(KEYS, (commits + 1) * ROWS // 2):
                raise RuntimeError(f"{table.scan().count():,} rows; {report}")

    return run


def _stays(name: str) -> Goal:
    def met(sides: Mapping[str, Measured] | Any) -> bool | None:
        notes = sides[OURS].notes
        if sides[OURS].error:
            return None
        slower = notes[f"{FIXED} CPU ms p50, last tenth"] / notes[f"{FIXED} CPU ms p50, first tenth"]
        first, last = (notes[f"{name} CPU ms p95, {tenth} tenth"] for tenth in ("first", "last"))
        return bool(last <= LIMIT * slower * first)

    text = f"p95 of a {name} in the last tenth is at most {LIMIT:g}x that in the first, beside the fixed work in both"
    return Goal(text, met, only_at_full_scale=True)


GOALS = tuple(_stays(name) for name in ("commit", "point query", "full plan"))
CASES = [
    Case("P24-cow", "a long life, copy-on-write", {OURS: _life(COW)}, GOALS, rounds=1, patience_s=PATIENCE_S),
    Case("P24-mor", "a long life, merge-on-read", {OURS: _life(MOR)}, GOALS, rounds=1, patience_s=PATIENCE_S),
]
