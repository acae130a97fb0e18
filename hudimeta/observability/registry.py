"""The figures of this process: counters, which only grow, and gauges, which hold the last value."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from hudimeta.forking import FreeWhenForked

__all__ = ["REGISTRY", "FigureKind", "Registry", "Sample"]


class FigureKind(enum.Enum):
    """What a figure is."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Sample:
    """One figure.

    Attributes:
        name: As Hudi and RFC-15 call it.
        table: Name of the table, or what `hoodie.metrics.reporter.metricsname.prefix` says.
        kind: What it is.
        value: Durations are milliseconds.
    """

    name: str
    table: str
    kind: FigureKind
    value: float


class Registry:
    """Figures by table and name; safe for many threads.

    >>> registry = Registry()
    >>> registry.add("trips", "HoodieMetadata.sync.count", 1)
    >>> registry.value("trips", "HoodieMetadata.sync.count")
    1.0
    """

    def __init__(self) -> None:
        self._lock = FreeWhenForked()
        self._figures: dict[tuple[str, str], tuple[FigureKind, float]] = {}

    def add(self, table: str, name: str, amount: float) -> None:
        """Let a counter grow.

        Args:
            table: Whose.
            name: Of the metric.
            amount: By how much.
        """
        with self._lock:
            _, before = self._figures.get((table, name), (FigureKind.COUNTER, 0.0))
            self._figures[table, name] = (FigureKind.COUNTER, before + amount)

    def set(self, table: str, name: str, value: float) -> None:
        """Say what a gauge is now.

        Args:
            table: Whose.
            name: Of the metric.
            value: Now.
        """
        with self._lock:
            self._figures[table, name] = (FigureKind.GAUGE, float(value))

    def value(self, table: str, name: str) -> float | None:
        """One figure; None where it was never counted."""
        with self._lock:
            found = self._figures.get((table, name))
        return found[1] if found else None

    def samples(self, table: str | None = None) -> list[Sample]:
        """All figures, or those of one table, by table and name."""
        with self._lock:
            figures = sorted(self._figures.items())
        return [Sample(name, of, kind, value) for (of, name), (kind, value) in figures if table in (None, of)]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._figures.clear()


REGISTRY = Registry()
"""That of this process."""
