"""Many writers, readers and services over one store in memory, in an order and with faults that follow from a seed."""

from hudimeta.testing.simulation.history import Broken, Run, run
from hudimeta.testing.simulation.planning import WIDE_FROM, PlannedHistory, plan
from hudimeta.testing.simulation.shrinking import shrunk

__all__ = ["WIDE_FROM", "Broken", "PlannedHistory", "Run", "plan", "run", "shrunk"]
