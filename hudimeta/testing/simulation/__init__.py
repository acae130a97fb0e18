"""Many writers, readers and services over one store in memory, in an order and with faults that follow from a seed."""

from hudimeta.testing.simulation.history import Broken, History, Run, plan, run
from hudimeta.testing.simulation.shrinking import shrunk

__all__ = ["Broken", "History", "Run", "plan", "run", "shrunk"]
