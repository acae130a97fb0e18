"""Lines through measured sizes, how far they miss a size that was left out, and what they say of a cost of other sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from benchmarks.scale.measured import Cost, Phase

__all__ = ["BYTES_A_SECOND", "ITEMS_A_TASK", "Line", "Model", "fitted", "limit"]

BYTES_A_SECOND = 100e6
"""Of one process, from an object store: the one constant that nothing here measures."""
_ASKED = ("requests", "waits")
ITEMS_A_TASK = 1_000_000
"""Rows or keys of one task: those of a file of some 120 MB."""


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
        return _at(self.lines, self.phase, number)

    def error(self, name: str) -> float:
        """How far the lines miss a measured cost, as a share of it; nan where it is nothing."""
        true = getattr(self.measured, name)
        return (getattr(self.foretold, name) - true) / true if true else math.nan

    def tasks(self, number: float) -> int:
        """How many tasks share the work; one process does what is not spread."""
        return max(1, math.ceil(number / ITEMS_A_TASK)) if self.phase.spread else 1

    def memory(self, number: float) -> float:
        """Bytes of the process, or of one of the tasks."""
        return self.cost(number / self.tasks(number)).memory

    def wall(self, number: float, latency: float, cores: int) -> float:
        """Seconds of wall time: CPU, bytes on their way, and requests that wait for each other.

        Args:
            number: Of what the phase grows with.
            latency: Seconds that a request takes to be answered.
            cores: On which tasks run, one after the other where there are more of them.
        """
        tasks = self.tasks(number)
        cost = self.cost(number / tasks)
        moved = (cost.read + cost.written) / BYTES_A_SECOND
        return (cost.cpu + moved + cost.waits * latency) * math.ceil(tasks / cores)


def fitted(phase: Phase, costs: Sequence[Cost]) -> Model:
    """The model of a phase.

    Args:
        phase: What was measured.
        costs: At its sizes, the last of which is left out of the lines.
    """
    sizes = phase.sizes
    names = [field.name for field in fields(Cost)]
    lines = {name: Line.through([(x, getattr(c, name)) for x, c in zip(sizes[:-1], costs, strict=False)]) for name in names}
    return Model(phase, lines, costs[-1], _at(lines, phase, sizes[-1]))


def _at(lines: Mapping[str, Line], phase: Phase, number: float) -> Cost:
    asked = min(number, phase.grows_to or number)
    return Cost(**{name: line.at(asked if name in _ASKED else number) for name, line in lines.items()})


def limit(line: Line, most: float) -> float:
    """Up to which number a cost stays within bounds; inf where it does not grow."""
    return max(0.0, (most - line.fixed) / line.each) if line.each else math.inf
