"""What a side is given: rounds to run, a stopwatch, and a place for its answers."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.case import MINE, Call, Measured, Settings
from benchmarks.counters import own, peak_rss, tree, without_mapping

FEWEST_CALLS = 4
"""With fewer calls none is spared to count the bytes of files that are otherwise mapped."""


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
    def timed(self, descendants: bool = False) -> Iterator[None]:
        """Measure one call.

        Our own sides map files into memory, which nobody counts. So their second call reads them instead, where there are
        enough others to tell the time.

        Args:
            descendants: Count all living descendants too (a JVM, its Python workers). Otherwise this process and the children
                it waited for.
        """
        mine, count = self.side in MINE, tree if descendants else own
        unmapped = mine and not descendants and self.rounds >= FEWEST_CALLS and len(self.measured.calls) == 1
        with without_mapping() if unmapped else contextlib.nullcontext():
            (cpu, (read, written)), wall = count(), time.perf_counter()
            yield
            wall = time.perf_counter() - wall
            cpu_now, (read_now, written_now) = count()
        known = read_now - read if unmapped or not mine else None
        self.measured.calls.append(Call(wall, cpu_now - cpu, known, written_now - written, unmapped))

    def add(self, timings: Iterable[Mapping[str, float]]) -> None:
        """Take over what another process measured: `wall` and `cpu` of each call, and `read` and `written` where it counted."""
        self.measured.calls += [Call(t["wall"], t["cpu"], t.get("read"), t.get("written")) for t in timings]

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
