"""P33: what checksums cost: the CPU time of the checks themselves, in writes and scans, beside that of the whole.

Two runs of one and the same work differ by a tenth here, and what is looked for is a hundredth. So the checks are timed where
they are done: each checksum that hudimeta computes (log blocks, Parquet footers and page indexes, HFiles, small files), and
the comparisons of a Parquet footer with what the file says elsewhere. Checksums of Parquet pages are Arrow's, inside of its
writer and reader; they are counted as the bytes that the step read and wrote, of all files, times what Arrow takes for a
byte, measured in the same run. Checksums that Hudi's formats ask for anyway (of HFiles' blocks) are not counted. The figure
of each step is the median of its turns; requests are those of the plan of a scan, with the checks and without.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.case import OURS, Case, Goal, Measured
from benchmarks.job import Job

ROWS, UPSERTED, TURNS, REPEATED = 1_000_000, 10_000, 5, 4
MOST_PERCENT = 3.0
SEALED_BY = ("log.seal", "parquet.seal", "parquet.verified", "hfile.seal")
"""Modules of `hudimeta.formats` that compute checksums."""
COMPARED_BY = ("check_contents", "check_name")
"""What `hudimeta.formats.parquet.verified` compares besides."""
COPIED = "hudimeta.formats.parquet.stitched.bad_pages"
"""Compares pages that are copied."""
STEPS = ("bulk insert", "upsert, copy-on-write", "upsert, merge-on-read", "scan", "scan with logs")
_BLOBS, _BLOB_BYTES, _ROUNDS = 128, 1 << 20, 7
_IO = Path("/proc/self/io")


class Checks:
    """Adds up the CPU time of the checks while it is entered."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Time all checks of this process."""
        import hashlib

        from hudimeta.formats import seal
        from hudimeta.formats.crc32 import crc32
        from hudimeta.formats.parquet import verified

        with contextlib.ExitStack() as stack:
            for module in SEALED_BY:
                stack.enter_context(mock.patch(f"hudimeta.formats.{module}.crc32", self._clocked(crc32)))
            small_files = SimpleNamespace(blake2b=self._clocked(hashlib.blake2b))
            stack.enter_context(mock.patch.object(seal, "hashlib", small_files))
            for name in COMPARED_BY:
                stack.enter_context(mock.patch.object(verified, name, self._clocked(getattr(verified, name))))
            yield

    def _clocked(self, check: Callable[..., Any]) -> Callable[..., Any]:
        def clocked(*given: Any, **more: Any) -> Any:
            begin = time.thread_time()
            try:
                return check(*given, **more)
            finally:
                self.seconds += time.thread_time() - begin

        return clocked


@contextlib.contextmanager
def unverified() -> Iterator[None]:
    """Nothing is sealed and nothing compared."""
    with contextlib.ExitStack() as stack:
        for module in SEALED_BY:
            stack.enter_context(mock.patch(f"hudimeta.formats.{module}.crc32", return_value=0))
        for check in COMPARED_BY:
            stack.enter_context(mock.patch(f"hudimeta.formats.parquet.verified.{check}"))
        stack.enter_context(mock.patch(COPIED, return_value=iter(())))
        yield


def seconds_per_byte() -> float:
    """What Arrow takes for the checksum of a byte of a page: of writing and reading, the slower one."""
    blobs = pa.array([np.random.default_rng(n).bytes(_BLOB_BYTES) for n in range(_BLOBS)], pa.binary())
    table = pa.table({"blob": blobs})

    def write(checked: bool) -> pa.Buffer:
        sink = pa.BufferOutputStream()
        pq.write_table(
            table, sink, compression="none", use_dictionary=False, write_statistics=False, write_page_checksum=checked
        )
        return sink.getvalue()

    pages = write(True)

    def read(checked: bool) -> pa.Table:
        return pq.ParquetFile(pa.BufferReader(pages), page_checksum_verification=checked).read(use_threads=False)

    return max(_median(partial(do, True)) - _median(partial(do, False)) for do in (write, read)) / (_BLOBS * _BLOB_BYTES)


def _median(do: Callable[[], object]) -> float:
    spent = []
    for _ in range(_ROUNDS):
        begin = time.process_time()
        do()
        spent.append(time.process_time() - begin)
    return statistics.median(spent)


def _moved_bytes() -> int:
    """Bytes that this process has read and written so far."""
    return sum(int(line.split()[1]) for line in _IO.read_text().splitlines() if line.startswith(("rchar", "wchar")))


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


def _steps(folder: Path, rows: pa.Table, batch: pa.Table, clock: Callable[[str, Callable[[], object]], object]) -> int:
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
    """Each step some times with its checks timed, and the plan's requests once more without any."""
    rows, batch = _rows(0, job.settings.scaled(ROWS, 2_000), 0), _rows(97, job.settings.scaled(UPSERTED, 100), 1)
    per_byte, checks = seconds_per_byte(), Checks()
    spent, of_checks = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)

    def clock(step: str, do: Callable[[], object]) -> None:
        before, moved, begin = checks.seconds, _moved_bytes(), time.process_time()
        do()
        spent[step].append(time.process_time() - begin)
        of_checks[step].append(checks.seconds - before + (_moved_bytes() - moved) * per_byte)

    with job.folder() as folder, job.timed(descendants=True):
        for turn in range(job.settings.scaled(TURNS, 1)):
            with checks.timed():
                requests = _steps(folder / f"with-{turn}", rows, batch, clock)
        with unverified():
            fewest = _steps(folder / "without", rows, batch, lambda step, do: do())
    job.note("Arrow's checksums (GB a second)", round(1e-9 / per_byte, 2))
    for step in STEPS:
        whole, part = statistics.median(spent[step]), statistics.median(of_checks[step])
        job.note(f"{step} (CPU ms)", round(1000 * whole, 1))
        job.note(f"{step}: its checks (CPU ms)", round(1000 * part, 2))
        job.note(f"{step}: what checksums add (%)", round(100 * part / (whole - part), 2))
    job.note("more requests of a plan", requests - fewest)


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
CASES = [Case("P33", "writes and scans, and the checksums in them", {OURS: cost}, GOALS, rounds=1)]
