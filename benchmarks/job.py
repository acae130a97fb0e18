"""What a side is given: rounds to run, a stopwatch, and a place for its answers."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.case import Measured, Seconds, Settings


class Absent(Exception):
    """A rival is not installed here."""


class Job:
    """One side of one case, inside the process that runs it.

    Args:
        settings: Of the run.
        rounds: How often to call.
        side: Its name.
    """

    def __init__(self, settings: Settings, rounds: int, side: str) -> None:
        self.settings, self.rounds, self.side = settings, rounds, side
        self.measured = Measured()

    @contextlib.contextmanager
    def timed(self, tree: bool = False) -> Iterator[None]:
        """Measure one call.

        Args:
            tree: Count the CPU of all living descendants too (a JVM, its Python workers), in steps of 10 ms. Otherwise
                this process and the children it waited for, in microseconds.
        """
        clock = _tree_cpu if tree else _own_cpu
        cpu, wall = clock(), time.perf_counter()
        yield
        wall = time.perf_counter() - wall
        self.measured.calls.append(Seconds(wall, clock() - cpu))

    def add(self, timings: Iterable[Mapping[str, float]]) -> None:
        """Take over what another process measured (`wall` and `cpu` of each call)."""
        self.measured.calls += [Seconds(t["wall"], t["cpu"]) for t in timings]

    def fact(self, name: str, value: Any) -> None:
        """An answer that every side must give alike."""
        self.measured.facts[name] = value

    def note(self, name: str, value: Any) -> None:
        """A number for the reader."""
        self.measured.notes[name] = value

    def peak(self, pid: int) -> None:
        """Count the peak memory of another process while it still lives."""
        self.measured.rss = max(self.measured.rss, peak_rss(pid))

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder beside the data, removed at the end."""
        self.settings.data.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix="run-", dir=self.settings.data))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def peak_rss(pid: int) -> int:
    """Peak resident bytes of a process. (`getrusage` would start at the parent's peak.)"""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _own_cpu() -> float:
    spent = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        spent += usage.ru_utime + usage.ru_stime
    return spent


def _tree_cpu() -> float:
    """CPU seconds of this process and all that descend from it, living or waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry)] = int(fields[1])
                ticks[int(entry)] = sum(int(part) for part in fields[11:15])
    mine = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        grown = bool(more)
        mine |= more
    return sum(ticks.get(pid, 0) for pid in mine) / os.sysconf("SC_CLK_TCK")
