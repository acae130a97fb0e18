"""Actors are threads here and processes elsewhere: what threads of one process share must not bind them together.

Until Python 3.12 `functools.cached_property` holds one lock for all objects of a class while it computes. An actor that waits
for another one's call there would wait for ever, since only who has the turn may go on.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator

__all__ = ["as_processes"]

_LOCK = "lock"
_free: set[str] = set()


@contextlib.contextmanager
def as_processes() -> Iterator[None]:
    """Take the locks off cached properties of the engine, those of modules that were loaded since the last time."""
    if sys.version_info < (3, 12):
        for name in [name for name in sys.modules if name.startswith("hudimeta") and name not in _free]:
            _free.add(name)
            for kind in list(vars(sys.modules[name]).values()):
                if isinstance(kind, type):
                    for member in list(vars(kind).values()):
                        if isinstance(member, functools.cached_property):
                            setattr(member, _LOCK, contextlib.nullcontext())
    yield
