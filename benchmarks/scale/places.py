"""Tables that no machine here holds, their stores and clusters: how large each phase is there, and what breaks first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.scale.model import Model

__all__ = ["CORES", "LATENCIES", "MEMORY", "PLACES", "SECONDS", "SECONDS_SPREAD", "Place", "Strain", "first_to_break"]

BATCH = 10_000_000
"""Keys that one write brings, at random; a hundredth of them where there are fewer than a thousand million."""
SHARE = 100
LATENCIES: Mapping[str, float] = {"a disk": 0.0, "5 ms": 0.005, "20 ms": 0.02, "100 ms": 0.1}
"""Seconds a request, by name; what a disk takes is in the CPU seconds already."""
CORES = (2, 20, 200, 1000, 5000, 10_000)
SECONDS, SECONDS_SPREAD, MEMORY = 60.0, 3600.0, 8e9
"""What a phase may take before it breaks: wall time of one process, of tasks, and bytes of any process."""


@dataclass(frozen=True)
class Place:
    """A table and its cluster.

    Attributes:
        files, partitions, keys: Of the table.
        cores: Of the cluster.
    """

    files: float
    partitions: float
    keys: float
    cores: int

    @property
    def batch(self) -> float:
        """Keys of one write."""
        return min(BATCH, self.keys / SHARE)

    @property
    def touched(self) -> float:
        """Files that a write of keys at random meets."""
        return self.files * -math.expm1(-self.batch / self.files)

    def number(self, model: Model) -> float:
        """How large a phase is here: a write, or a service that goes over everything."""
        numbers = {
            "files": self.files,
            "partitions": self.partitions,
            "keys asked for": self.batch,
            "rows upserted": self.batch,
            "keys": self.keys,
            "files removed": self.touched,
            "tasks": max(1.0, math.ceil(self.batch / 1e5)),
            "rows in the files": self.touched * self.keys / self.files,
            "rows of the table": self.keys,
        }
        return numbers[model.phase.of]


PLACES = tuple(
    Place(10.0**files, 10.0**partitions, 10.0**keys, cores)
    for (files, partitions, keys), cores in zip(
        ((4, 2, 6), (5, 3, 8), (6, 4, 9), (7, 5, 10), (8, 6, 11), (9, 6, 12)), CORES, strict=True
    )
)
"""From ten thousand files of a hundred rows each to a thousand million of a thousand, ever more cores beside them."""


@dataclass(frozen=True)
class Strain:
    """How near a phase is to what ends it.

    Attributes:
        phase: Its name.
        of: `wall time`, or whose memory.
        share: Of the bound; above one it breaks.
    """

    phase: str
    of: str
    share: float


def first_to_break(models: Iterable[Model], place: Place, latency: float) -> list[Strain]:
    """All strains at a place, the greatest first."""
    found = []
    for model in models:
        number, spread = place.number(model), model.phase.spread
        wall = model.wall(number, latency, place.cores) / (SECONDS_SPREAD if spread else SECONDS)
        found.append(Strain(model.phase.name, "wall time", wall))
        found.append(Strain(model.phase.name, "memory of a task" if spread else "memory", model.memory(number) / MEMORY))
    return sorted(found, key=lambda strain: -strain.share)
