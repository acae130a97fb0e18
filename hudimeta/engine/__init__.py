"""Where tasks run: a pool of this process, or Spark's executors."""

from hudimeta.engine.local import LocalEngine
from hudimeta.engine.protocol import Engine

__all__ = ["Engine", "LocalEngine"]
