"""Where tasks run: a pool of this process, or Spark's executors."""

from hudimeta.engine.local import LocalEngine, nearby_if_small
from hudimeta.engine.protocol import Engine

__all__ = ["Engine", "LocalEngine", "nearby_if_small"]
