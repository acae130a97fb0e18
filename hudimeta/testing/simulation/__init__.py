"""Many writers, readers and services over one store in memory, in an order and with faults that follow from a seed."""

from hudimeta.testing.simulation.history import Broken, PlannedHistory, Run, plan, run
from hudimeta.testing.simulation.shrinking import shrunk

__all__ = ["Broken", "PlannedHistory", "Run", "plan", "run", "shrunk"]
