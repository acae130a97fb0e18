"""What a Python worker has loaded, put out of the garbage collector's way.

Spark's daemon collects garbage after every task, whatever the task did: with the modules that a write needs that is a search of
a hundred thousand objects, 20 to 65 ms of CPU, more than a small task takes. Modules are never garbage, so a worker that has
just loaded some collects once and takes what is left out of all later searches.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["settle"]

_FEW = 8
"""Modules that are not worth another search: single ones come late in the life of a worker."""
_DAEMON = "pyspark.daemon"
_ROUTED = "hudimeta.write.routed.context"
_settled_at = 0


def settle() -> None:
    """Call at the end of a task: nothing happens unless a fork of Spark's daemon has loaded modules since the last time."""
    global _settled_at
    loaded = len(sys.modules)
    if loaded <= _settled_at + _FEW or getattr(sys.modules["__main__"].__spec__, "name", "") != _DAEMON:
        return
    routed = sys.modules.get(_ROUTED)
    if routed is not None:
        routed.forget_opened()  # what is out of the collector's sight would stay for ever
    gc.collect()
    gc.freeze()
    _settled_at = loaded
