"""What an object computes once, and what one thread computes keeps no other one waiting.

Until Python 3.12 the `cached_property` of `functools` holds a lock of all objects of a class while it computes. A thread that
plans a scan of one table waited for another one's that reads a slow store; and in a process that was forked meanwhile, as by
`multiprocessing`, the lock was held for ever by a thread that is not there. Later ones let two threads that ask one object at
once have two values. Here both may compute, and both get what was there first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["cached_property"]

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - as in functools
        """See the module."""

        def __init__(self, func):
            self.func, self.name, self.__doc__ = func, func.__name__, func.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            kept = instance.__dict__
            if self.name in kept:
                return kept[self.name]
            return kept.setdefault(self.name, self.func(instance))
