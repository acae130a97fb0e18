"""Lines through measured sizes, how far they miss a size that was left out, and what they say of larger tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from benchmarks.scale.measured import Cost, Phase

__all__ = ["Line", "Model", "PLACES", "Place", "fitted", "limit"]

KEYS_A_FILE = 1_000_000
"""Rows of a file of some 120 MB."""
BATCH = 10_000_000
"""Keys that one write brings."""
AT_ONCE = 16
"""Requests that one process has under way, `hudimeta.storage.at_once`."""
BYTES_A_SECOND = 100e6
"""Of one process, from an object store."""
ROWS_A_TASK = 1_000_000


@dataclass(frozen=True)
class Line:
    """A cost as `fixed + each * number`."""

    fixed: float
    each: float

    @staticmethod
    def through(points: Sequence[tuple[float, float]]) -> Line:
        """Through the first and the last point, never falling: work that grows does not get cheaper."""
        (x, y), (x_last, y_last) = points[0], points[-1]
        each = max(0.0, (y_last - y) / (x_last - x))
        return Line(max(0.0, y - each * x), each)

    def at(self, number: float) -> float:
        """The cost of so many."""
        return self.fixed + self.each * number


@dataclass(frozen=True)
class Model:
    """The lines of one phase.

    Attributes:
        phase: Which.
        lines: By the name of the cost.
        measured, foretold: What the size that was left out costs, and what the lines say it does.
    """

    phase: Phase
    lines: Mapping[str, Line]
    measured: Cost
    foretold: Cost

    def cost(self, number: float) -> Cost:
        """What so many cost."""
        return Cost(**{name: line.at(number) for name, line in self.lines.items()})

    def error(self, name: str) -> float:
        """How far the lines miss a measured cost, as a share of it; nan where it is nothing."""
        true = getattr(self.measured, name)
        return (getattr(self.foretold, name) - true) / true if true else math.nan

    def wall(self, number: float, latency: float, cores: int) -> float:
        """Seconds of wall time.

        Args:
            number: Of what the phase grows with.
            latency: Seconds that a request takes to be answered.
            cores: On which tasks run; one process does what is not spread, but waits for many requests at once.
        """
        cost = self.cost(number)
        tasks = max(1, min(cores, math.ceil(number / ROWS_A_TASK))) if self.phase.spread else 1
        moved = (cost.read + cost.written) / BYTES_A_SECOND
        return (cost.cpu + moved + cost.requests * latency / AT_ONCE) / tasks


def fitted(phase: Phase, costs: Sequence[Cost]) -> Model:
    """The model of a phase.

    Args:
        phase: What was measured.
        costs: At its sizes, the last of which is left out of the lines.
    """
    sizes = phase.sizes
    names = [field.name for field in fields(Cost)]
    lines = {name: Line.through([(x, getattr(c, name)) for x, c in zip(sizes[:-1], costs, strict=False)]) for name in names}
    foretold = Cost(**{name: line.at(sizes[-1]) for name, line in lines.items()})
    return Model(phase, lines, costs[-1], foretold)


def limit(line: Line, most: float) -> float:
    """Up to which number a cost stays within bounds; inf where it does not grow."""
    return max(0.0, (most - line.fixed) / line.each) if line.each else math.inf


@dataclass(frozen=True)
class Place:
    """A table, where it lies and who works on it.

    Attributes:
        files: How many.
        cores: Of the cluster.
        latency: Seconds a request.
    """

    files: float
    cores: int
    latency: float

    def number(self, phase: Phase) -> float:
        """How large a phase is here: a write of 10M keys at random, and services that go over all rows."""
        keys = self.files * KEYS_A_FILE
        touched = self.files * (1 - math.exp(-BATCH / self.files))
        return {
            "files": self.files,
            "keys asked for": min(BATCH, keys),
            "rows upserted": min(BATCH, keys),
            "keys": keys,
            "rows in the files": keys if phase.name.startswith("compaction") else touched * KEYS_A_FILE,
        }[phase.of]


PLACES = tuple(
    Place(files, cores, latency)
    for files, cores in ((1e4, 20), (1e5, 200), (1e6, 1000), (1e7, 5000), (1e8, 10_000), (1e9, 10_000))
    for latency in (0.02,)
)
"""From ten thousand files to a thousand million, of a million rows each."""
