"""P35: an index of the last 3 of 30 days beside a record index of all of them: its bytes, and what upserts to those days cost.

Both sides are one job's, on two tables with the same rows: they come day by day, then twenty upserts of rows of the last three
days, half of them new, which begin file groups of their own, so that little but the indexes costs. The metadata table is
compacted on the way, as usual. Bytes are those of the newest base files, logs and runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import synthetic_keys
from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job

DAYS, WINDOW, ROWS_A_DAY = 30, 3, 300_000
UPSERTS, BATCH = 20, 10_000
SHARE = 8
_INDEXES: Mapping[str, Mapping[str, str]] = {
    "window": {"hudimeta.record.window.days": str(WINDOW)},
    "record index": {"hoodie.metadata.record.index.enable": "true"},
}
_SMALL = {"hoodie.parquet.small.file.limit": "0"}


def _rows(numbers: np.ndarray, day: np.ndarray, ts: int) -> pa.Table:
    count = len(numbers)
    first = int(numbers.min())
    keys = synthetic_keys.keys(first, int(numbers.max()) - first + 1).take(pa.array(numbers - first))
    days = pa.array([f"2026-01-{one + 1:02d}" for one in range(DAYS)]).take(pa.array(day))
    x = np.random.default_rng(first + ts).random(count)
    return pa.table({"id": keys, "day": days, "ts": np.full(count, ts), "x": x, "y": x + 1})


def _day(number: int, rows: int) -> pa.Table:
    return _rows(np.arange(number * rows, (number + 1) * rows), np.full(rows, number), 0)


def _batches(rows: int, batch: int) -> Iterator[pa.Table]:
    """Half of each batch are rows of the last days, the others new ones of these days."""
    chance, first_new = np.random.default_rng(35), DAYS * rows
    for number in range(UPSERTS):
        old = np.sort(chance.choice(np.arange((DAYS - WINDOW) * rows, DAYS * rows), batch // 2, replace=False))
        new = np.arange(first_new, first_new + batch // 2)
        first_new += batch // 2
        day = np.concatenate([old // rows, DAYS - WINDOW + np.arange(batch // 2) % WINDOW])
        yield _rows(np.concatenate([old, new]), day, number + 1)


def _bytes(path: Path, name: str) -> int:
    import hudimeta
    from hudimeta.indexes.record_window.folder import WindowFolder
    from hudimeta.storage import open_storage

    if name == "window":
        return WindowFolder(open_storage(path)).bytes()
    groups = hudimeta.Table(path).metadata.file_groups("record_index")
    files = {file for group in groups for file in (group.base, *group.logs) if file is not None}
    return sum((path / ".hoodie/metadata" / file.path).stat().st_size for file in files)


def cost(job: Job) -> None:
    """Make both tables, then upsert to both."""
    import hudimeta

    rows, batch = job.settings.scaled(ROWS_A_DAY, 300), job.settings.scaled(BATCH, 100)
    for _ in range(job.rounds):
        with job.folder() as folder:
            for name, options in _INDEXES.items():
                path = folder / name.replace(" ", "-")
                table = hudimeta.Table.create(
                    path,
                    _day(0, 1).schema,
                    key="id",
                    partition_by="day",
                    ordering="ts",
                    type="MOR",
                    options={**options, **_SMALL},
                )
                for day in range(DAYS):
                    table.bulk_insert(_day(day, rows))
                table.delete(_day(DAYS - 1, 1).select(["id", "day", "ts"]).slice(0, 1))
                job.note(f"{name}: bytes", _bytes(path, name))
                spent = looked = found = 0.0
                with job.timed(descendants=True):
                    for given in _batches(rows, batch):
                        cpu = time.process_time()
                        report = table.upsert(given)
                        spent += time.process_time() - cpu
                        looked += report.seconds["look-up"]
                        found += report.found
                job.note(f"{name}: {UPSERTS} upserts (CPU s)", round(spent, 2))
                job.note(f"{name}: their look-ups (wall s)", round(looked, 3))
                job.note(f"{name}: found", int(found))
                job.note(f"{name}: bytes after them", _bytes(path, name))


def _times(what: str, share: int) -> Goal:
    def holds(sides: Mapping[str, Measured]) -> bool | None:
        mine = sides[OURS]
        return None if mine.error else bool(share * mine.notes[f"window: {what}"] <= mine.notes[f"record index: {what}"])

    return Goal(f"{what}: at most 1/{share} of the record index's", holds, only_at_full_scale=True)


GOALS = (_times("bytes", SHARE), _times(f"{UPSERTS} upserts (CPU s)", SHARE), _times("their look-ups (wall s)", SHARE))
CASES = [Case("P35", f"a window of {WINDOW} of {DAYS} days beside a record index of all", {OURS: cost}, GOALS, rounds=1)]
