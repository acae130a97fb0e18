"""Where tasks run: a pool of this process, or Spark's executors; and the machine that gives time, threads and ids."""

from hudimeta.engine.local import LocalEngine, nearby_if_small
from hudimeta.engine.machine import Machine
from hudimeta.engine.protocol import Engine

__all__ = [
    "Engine",
    "LocalEngine",
    "Machine",
    "machine",  # time, threads and ids of the machine
    "nearby_if_small",
]
