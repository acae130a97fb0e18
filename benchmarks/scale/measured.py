"""One phase at one size, in a process of its own: CPU seconds, memory, requests and bytes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.counters import peak_rss

ROUNDS = 3
"""The first loads modules; the cheapest of the others counts, because other work on the machine only ever adds."""

PEAK_FORGOTTEN = "5"
"""What tells the kernel that the peak of a process's memory begins anew."""
LATENCY = 0.02
"""Seconds that each request takes in the round that finds out which wait for each other."""

Interval = tuple[float, float]
Make = Callable[[Path, int], Path]
Given = Callable[[Path, int], Any]
Act = Callable[[Path, Any], object]


@dataclass(frozen=True)
class Cost:
    """What one run of a phase took.

    Attributes:
        cpu: Seconds of this process.
        memory: Bytes at the peak, beyond what the process had before.
        requests: To storage.
        read: Bytes.
        written: Bytes of whole files; what is streamed into data files is not among them.
        waits: Times that the latency of a request passes: requests that are under way together count once.
    """

    cpu: float
    memory: float
    requests: float
    read: float
    written: float
    waits: float


@dataclass(frozen=True)
class Phase:
    """A part of the work, which grows with one number.

    Attributes:
        name: For the tables.
        of: What the number counts.
        sizes: At which it is measured; the last one is left out of the line, and tells its error.
        make: Makes the table, or returns the one that is there.
        act: The work.
        given: Makes what the work is handed beside the table, before anything is measured; by default its size is.
        changes: It changes the table, so each run gets a copy.
        spread: Tasks do it, so that it takes the less wall time the more cores there are; else one process does it.
        grows_to: From which number on it asks no more: there are so many places at which it looks. 0 where it goes on.
        least: The smallest size that makes sense.
        needs: Variable of the environment without which it cannot run, or "".
    """

    name: str
    of: str
    sizes: tuple[int, ...]
    make: Make
    act: Act
    given: Given | None = None
    changes: bool = False
    spread: bool = False
    grows_to: int = 0
    least: int = 1000
    needs: str = ""


def measure(phase: Phase, size: int, data: Path) -> Cost:
    """The cost of a phase at a size; its table is made first, in another process.

    Args:
        phase: What to do.
        size: Of what it grows with.
        data: Folder for tables, kept between runs.

    Raises:
        RuntimeError: The process ended without an answer.
    """
    context = multiprocessing.get_context("spawn")
    for target in (_make, _run):
        answers = context.SimpleQueue()
        process = context.Process(target=target, args=(phase.name, size, data, answers))
        process.start()
        process.join()
        if process.exitcode:
            raise RuntimeError(f"{phase.name} at {size:,} ended with code {process.exitcode}")
    return Cost(*answers.get())


def _named(name: str) -> Phase:
    from benchmarks.scale.phases import PHASES

    return next(phase for phase in PHASES if phase.name == name)


def _make(name: str, size: int, data: Path, answers: Any) -> None:
    _named(name).make(data, size)


def _run(name: str, size: int, data: Path, answers: Any) -> None:
    phase = _named(name)
    found = [_once(phase, phase.make(data, size), size, data) for _ in range(ROUNDS)]
    best = min(found[1:], key=lambda cost: cost.cpu)
    slept: list[Interval] = []
    _once(phase, phase.make(data, size), size, data, slept)
    # A later round finds memory that an earlier one has taken.
    answers.put((best.cpu, found[0].memory, best.requests, best.read, best.written, waits(slept)))


def waits(slept: list[Interval]) -> float:
    """The seconds in which at least one request waited, in waits of average length: those at the same time count once."""
    covered, end = 0.0, 0.0
    for begin, stop in sorted(slept):
        covered, end = covered + max(0.0, stop - max(begin, end)), max(end, stop)
    return covered * len(slept) / sum(stop - begin for begin, stop in slept) if slept else 0.0


def _once(phase: Phase, table: Path, size: int, data: Path, slept: list[Interval] | None = None) -> Cost:
    """One round.

    Args:
        phase: What to do.
        table: The table, which is copied if the phase changes it.
        size: Of what the phase grows with.
        data: Folder for the copy.
        slept: If it is there, each request waits as one to a far-away store does, and when it did is added.
    """
    from benchmarks import ours
    from hudimeta.storage import CountingStorage
    from hudimeta.storage.faults import SlowStorage

    folder = Path(tempfile.mkdtemp(prefix="scale-", dir=data)) if phase.changes else None
    opened: list[CountingStorage] = []

    def wait() -> None:
        begin = time.perf_counter()
        time.sleep(LATENCY)
        if slept is not None:
            slept.append((begin, time.perf_counter()))

    def counting(storage: Any) -> Any:
        opened.append(CountingStorage(storage))
        return opened[-1] if slept is None else SlowStorage(opened[-1], wait)

    try:
        path = table if folder is None else Path(shutil.copytree(table, folder / "t"))
        ours.open_table(path)  # its modules are there before memory is looked at
        given = size if phase.given is None else phase.given(path, size)
        Path("/proc/self/clear_refs").write_text(PEAK_FORGOTTEN, encoding="ascii")
        before, begin = _resident(), time.process_time()
        # Of a disk a few small files are read one by one, because that is quicker than other threads; a store is far.
        far = slept is not None
        nearby = mock.patch("hudimeta.storage.at_once.is_nearby", return_value=False) if far else contextlib.nullcontext()
        with ours.storage_wrapped(counting), nearby:
            phase.act(path, given)
        cpu = time.process_time() - begin
        asked = [request for storage in opened for request in storage.log.since(0)]
        put = [r.n_bytes for r in asked if r.kind.value == "PUT"]
        got = [r.n_bytes for r in asked if r.kind.value == "GET"]
        return Cost(cpu, max(0, peak_rss(os.getpid()) - before), len(asked), sum(got), sum(put), 0)
    finally:
        if folder is not None:
            shutil.rmtree(folder)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
