"""P27: logs that tell of their keys (RFC-06), beside logs that do not.

* Look-up: keys, of which half are in the table, are looked for with the BLOOM index in a merge-on-read table with 20 logs a
  slice, each of which changed a twentieth of the rows. The first call is that of a process that knows nothing yet. The look-up
  over the same base files without any log is noted as well: less than that no index of logs can take.
* Writes: upserts into logs with prints of keys and without, by turns.
* Ingest: small batches of new keys, to log files (`hudimeta.log.inserts`) and to base files, and the compaction in the end.
* Age: the share of foreign keys that the ends of logs let pass, while compactions come and go.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.case import OURS, Case, Goal, Measured, Settings
from benchmarks.job import Job

WITHOUT = "without"
ROWS, LOGS, ASKED, SHARE = 10_000_000, 20, 10_000, 20
BATCHES, BATCH_ROWS = 200, 1_000
COMMITS, COMMIT_ROWS, FOREIGN = 500, 200, 100_000
TURNS = 15
RATE = 1e-9
TOLD = "hudimeta.log.keys"
PLAIN = {
    "hoodie.index.type": "BLOOM",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.max.file.size": str(64 << 20),
    "hoodie.index.bloom.fpp": str(RATE),
}


def _options(side: str, **more: str) -> dict[str, str]:
    return {**PLAIN, TOLD: str(side == OURS).lower(), **more}


def _keys(numbers: Any) -> pa.StringArray:
    """Keys in no order: those of neighbours lie everywhere."""
    return pa.array([f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}" for n in np.asarray(numbers).tolist()], pa.string())


def _rows(numbers: Any, ts: int) -> pa.Table:
    chance, count = np.random.default_rng(ts), len(numbers)
    columns = {
        "id": _keys(numbers),
        "ts": np.full(count, ts),
        "a": chance.random(count),
        "b": chance.random(count),
        "n": chance.integers(0, 1 << 40, count),
        "note": pa.array([f"{x:024x}" for x in chance.integers(0, 1 << 62, count).tolist()], pa.string()),
    }
    return pa.table(columns)


def _table(path: Path, options: Mapping[str, str]) -> Any:
    import hudimeta

    return hudimeta.Table.create(path, _rows([], 0).schema, key="id", ordering="ts", type="MERGE_ON_READ", options=options)


def _place(settings: Settings, side: str) -> Path:
    return settings.data / f"p27-{settings.scaled(ROWS, 20_000)}-{'told' if side == OURS else side}"


def _prepare(settings: Settings) -> None:
    rows, logs = settings.scaled(ROWS, 20_000), settings.scaled(LOGS, LOGS)
    for side in (OURS, WITHOUT, "bare"):
        path = _place(settings, side)
        if path.exists():
            continue
        made, chance = _table(path, _options(side)), np.random.default_rng(27)
        made.bulk_insert(_rows(np.arange(rows), 0))
        for turn in range(logs if side != "bare" else 0):
            made.upsert(_rows(chance.choice(rows, rows // SHARE, replace=False), turn + 1))


def _looked_up(path: Path, options: Mapping[str, str], keys: pa.StringArray) -> tuple[int, int, float]:
    """Keys found, bytes of logs read, CPU seconds."""
    from hudimeta.commit.session import WriteSession
    from hudimeta.config import OPTIONS
    from hudimeta.storage import open_storage
    from hudimeta.storage.counting import CountingStorage
    from hudimeta.write.table_files import TableFiles

    storage = CountingStorage(open_storage(path))
    table = TableFiles.now(WriteSession(storage, OPTIONS.read(options)))
    begin = time.process_time()
    tagging, _ = table.lookup.tag(keys, pa.array([""] * len(keys), pa.string()))
    spent = time.process_time() - begin
    return tagging.hits, sum(r.n_bytes for r in storage.log.since(0) if ".log." in r.path), spent


def _look_up(job: Job) -> None:
    rows, asked = job.settings.scaled(ROWS, 20_000), job.settings.scaled(ASKED, 200)
    chance = np.random.default_rng(99)
    there = chance.choice(rows, asked // 2, replace=False)
    keys = _keys(np.concatenate([there, np.arange(rows, rows + asked // 2)]))
    bare = [_looked_up(_place(job.settings, "bare"), _options(job.side), keys)[2] for _ in range(3)][-1]
    job.note("look-up without any log (CPU ms)", round(1000 * bare, 1))
    for number in range(job.rounds):
        with job.timed():
            found, read, spent = _looked_up(_place(job.settings, job.side), _options(job.side), keys)
        when = "cold" if number == 0 else "warm"
        job.note(f"bytes of logs read, {when}", read)
        job.note(f"look-up, {when} (CPU ms)", round(1000 * spent, 1))
        job.note(f"of which for logs, {when} (CPU ms)", round(1000 * (spent - bare), 1))
        job.fact("keys found", found)
    logs = list(_place(job.settings, job.side).glob(".*.log.*"))
    job.note("bytes of logs", sum(log.stat().st_size for log in logs))


def _write(job: Job) -> None:
    rows, asked = job.settings.scaled(ROWS // 20, 20_000), job.settings.scaled(ASKED * 5, 500)
    spent: dict[str, list[float]] = {OURS: [], WITHOUT: []}
    with job.folder() as folder, job.timed():
        made = {side: _table(folder / side, _options(side)) for side in spent}
        for one in made.values():
            one.bulk_insert(_rows(np.arange(rows), 0))
        for turn in range(TURNS):
            batch = _rows(np.random.default_rng(turn).choice(rows, asked, replace=False), turn + 1)
            for side in list(made) if turn % 2 else list(made)[::-1]:
                begin = time.process_time()
                made[side].upsert(batch)
                spent[side].append(time.process_time() - begin)
        for side in made:
            job.note(f"an upsert, {side} (CPU ms)", round(1000 * statistics.median(spent[side]), 1))
            written = sum(log.stat().st_size for log in (folder / side).glob(".*.log.*"))
            job.note(f"bytes of logs, {side}", written)


def _ingest(job: Job) -> None:
    batches = job.settings.scaled(BATCHES, 4)
    options = _options(OURS, **{"hudimeta.log.inserts": str(job.side == OURS).lower()})
    for _ in range(job.rounds):
        with job.folder() as folder:
            made = _table(folder / "t", options)
            rows = [_rows(np.arange(n * BATCH_ROWS, (n + 1) * BATCH_ROWS), n) for n in range(batches)]
            with job.timed():
                for batch in rows:
                    made.upsert(batch)
            job.note("base files written by the batches", len(list((folder / "t").glob("*.parquet"))))
            job.note("file groups", made.file_slices().num_rows)
            begin = time.process_time()
            made.services.compact()
            job.note("the compaction in the end (CPU s)", round(time.process_time() - begin, 2))
            job.fact("rows", made.scan().count())


def _age(job: Job) -> None:
    """Foreign keys that pass, at ten moments of a life in which every tenth commit is followed by a compaction."""
    from hudimeta.formats.log import KeyProbe
    from hudimeta.slices.log_keys import LogKeys
    from hudimeta.storage import open_storage

    commits, foreign = job.settings.scaled(COMMITS, 20), job.settings.scaled(FOREIGN, 2_000)
    probe = KeyProbe(_keys(np.arange(10**9, 10**9 + foreign)))
    with job.folder() as folder, job.timed():
        made, curve, most = _table(folder / "t", _options(OURS)), [], 0
        made.bulk_insert(_rows(np.arange(commits * COMMIT_ROWS // 4), 0))
        for commit in range(commits):
            made.upsert(_rows(np.random.default_rng(commit).integers(0, commits * COMMIT_ROWS // 4, COMMIT_ROWS), commit + 1))
            step = max(1, commits // 10)
            if commit % step == step - 1:  # before the compaction, when there are most logs
                passed = told = 0
                for one in made.file_slices().to_pylist():
                    sizes = {name: (folder / "t" / name).stat().st_size for name in one["log_files"]}
                    known = LogKeys(open_storage(folder / "t")).known("", sizes)
                    told += len(known)
                    passed += sum(len(file.touched(probe)) for file in known)
                curve.append(passed / foreign)
                most = max(most, told)
            if commit % 10 == 9:
                made.services.compact()
        job.note("share of foreign keys that pass, along its life", curve)
        job.note("greatest share", max(curve))
        job.note("most logs that were told of at once", most)


def _ratio(name: str, least: float) -> Callable[[Mapping[str, Measured]], bool | None]:
    def met(sides: Mapping[str, Measured]) -> bool | None:
        mine, plain = sides[OURS], sides.get(WITHOUT)
        return None if plain is None or mine.error or plain.error else bool(mine.notes[name] * least <= plain.notes[name])

    return met


def _no_base_file(sides: Mapping[str, Measured]) -> bool | None:
    mine = sides[OURS]
    return None if mine.error else mine.notes["base files written by the batches"] == 0


def _a_third(sides: Mapping[str, Measured]) -> bool | None:
    mine, plain = sides[OURS], sides.get(WITHOUT)
    return None if plain is None or mine.error or plain.error else mine.value("warm.wall") * 3 <= plain.value("warm.wall")


def _within_rate(sides: Mapping[str, Measured]) -> bool | None:
    mine = sides[OURS]
    return None if mine.error else bool(mine.notes["greatest share"] <= 2 * RATE)


CASES = [
    Case(
        "P27-lookup",
        "keys looked for over 20 logs a slice",
        {OURS: _look_up, WITHOUT: _look_up},
        (
            Goal("a tenth of the bytes of logs", _ratio("bytes of logs read, cold", 10), only_at_full_scale=True),
            Goal("a tenth of the CPU for logs", _ratio("of which for logs, cold (CPU ms)", 10), only_at_full_scale=True),
        ),
        rounds=4,
        prepare=_prepare,
    ),
    Case("P27-write", "upserts into logs that tell of their keys", {OURS: _write}, rounds=1),
    Case(
        "P27-ingest",
        "small batches of new keys",
        {OURS: _ingest, WITHOUT: _ingest},
        (
            Goal("no base file before the compaction", _no_base_file, binding=True),
            Goal("a third of the time", _a_third, only_at_full_scale=True),
        ),
        rounds=2,
    ),
    Case(
        "P27-age",
        "foreign keys that pass, over hundreds of commits and their compactions",
        {OURS: _age},
        (Goal("at most twice the rate that is asked for", _within_rate, binding=True),),
        rounds=1,
    ),
]
