"""P33: what checksums cost: writes and scans with the seals, checksums of pages and checks of footers, and without, by turns.

Without, log blocks, Parquet files and HFiles are neither sealed nor compared with their seals in this process, and Arrow
neither writes nor compares checksums of pages. What Hudi's formats ask for anyway stays, and the seals of small JSON, Avro and
properties files do too. The figure of each step is its least CPU time, to which other work on the machine only adds;
requests are those of the plan of a scan.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job

ROWS, UPSERTED, TURNS, REPEATED = 1_000_000, 10_000, 7, 4
MOST_PERCENT = 3.0
SEALED_BY = ("log.seal", "parquet.seal", "parquet.verified", "hfile.seal")
"""Modules of `hudimeta.formats` that compute checksums."""
STEPS = ("bulk insert", "upsert, copy-on-write", "upsert, merge-on-read", "scan", "scan with logs")


@contextlib.contextmanager
def unverified() -> Iterator[None]:
    """Nothing is sealed and nothing compared."""
    with contextlib.ExitStack() as stack:
        for module in SEALED_BY:
            nothing = SimpleNamespace(crc32=lambda data, begin=0: 0)
            stack.enter_context(mock.patch(f"hudimeta.formats.{module}.zlib", nothing))
        for check in ("check_contents", "check_name"):
            stack.enter_context(mock.patch(f"hudimeta.formats.parquet.verified.{check}"))
        for name, flag in (("ParquetFile", "page_checksum_verification"), ("ParquetWriter", "write_page_checksum")):
            stack.enter_context(mock.patch.object(pq, name, _without(getattr(pq, name), flag)))
        yield


def _without(made: Callable[..., Any], flag: str) -> Callable[..., Any]:
    return lambda *given, **more: made(*given, **{key: value for key, value in more.items() if key != flag})


def _rows(first: int, count: int, ts: int) -> pa.Table:
    numbers = range(first, first + count)
    columns: dict[str, Any] = {
        "id": [f"k{number:08d}" for number in numbers],
        "ts": pa.array([ts] * count, pa.int64()),
        "text": [f"the text of the row {number * 7919 % 1_000_003}" for number in numbers],
    }
    return pa.table(
        columns | {f"x{n}": pa.array([number * n % 9973 / 7 for number in numbers], pa.float64()) for n in range(9)}
    )


def _steps(folder: Path, rows: pa.Table, batch: pa.Table, clock: Callable[[str, Callable[[], object]], None]) -> int:
    """Make both types of table, write and scan them; the requests of a plan."""
    import hudimeta

    for type in ("cow", "mor"):
        table = hudimeta.Table.create(folder / type, rows.schema, key="id", ordering="ts", type=type)
        clock("bulk insert", partial(table.bulk_insert, rows))
        for _ in range(REPEATED if type == "mor" else 0):
            clock("scan", lambda: hudimeta.Table(folder / "cow").scan().to_table())
        for _ in range(REPEATED):
            clock("upsert, merge-on-read" if type == "mor" else "upsert, copy-on-write", partial(table.upsert, batch))
    for _ in range(REPEATED):
        clock("scan with logs", lambda: hudimeta.Table(folder / "mor").scan().to_table())
    planned = hudimeta.Table(folder / "mor").scan("x1 > 5").plan().report
    return sum(planned.requests.values())


def cost(job: Job) -> None:
    """Each step by turns, on tables that were written with all checksums and on others without any."""
    rows, batch = _rows(0, job.settings.scaled(ROWS, 2_000), 0), _rows(97, job.settings.scaled(UPSERTED, 100), 1)
    states: Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "with": contextlib.nullcontext,
        "without": unverified,
    }
    least: dict[tuple[str, str], float] = {}
    requests: dict[str, int] = {}

    def clock(state: str, step: str, do: Callable[[], object]) -> None:
        begin = time.process_time()
        do()
        spent = time.process_time() - begin
        least[step, state] = min(spent, least.get((step, state), spent))

    with job.folder() as folder, job.timed(tree=True):
        for turn in range(job.settings.scaled(TURNS, 3)):
            for state, inside in list(states.items())[:: 1 if turn % 2 else -1]:
                with inside():
                    requests[state] = _steps(folder / f"{state}-{turn}", rows, batch, partial(clock, state))
    for step in STEPS:
        on, off = least[step, "with"], least[step, "without"]
        job.note(f"{step} (CPU ms)", round(1000 * on, 1))
        job.note(f"{step}: what checksums add (%)", round(100 * (on - off) / off, 2))
    job.note("more requests of a plan", requests["with"] - requests["without"])


def _adds_little(sides: Mapping[str, Measured]) -> bool | None:
    mine = sides[OURS]
    return None if mine.error else all(mine.notes[f"{step}: what checksums add (%)"] <= MOST_PERCENT for step in STEPS)


def _asks_for_nothing(sides: Mapping[str, Measured]) -> bool | None:
    mine = sides[OURS]
    return None if mine.error else mine.notes["more requests of a plan"] == 0


GOALS = (
    Goal(f"checksums add at most {MOST_PERCENT:g} % of CPU time", _adds_little, only_at_full_scale=True),
    Goal("a plan asks for nothing more", _asks_for_nothing),
)
CASES = [Case("P33", "writes and scans with checksums and without", {OURS: cost}, GOALS, rounds=1)]
