"""Processes that a test forks: they end with what they do, and never go on as a second process of tests."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

__all__ = ["forked"]


def forked(act: Callable[[], int | None]) -> int:
    """Fork a process that does something and ends.

    Args:
        act: Its exit code, None for 0; after an error it is 1.

    Returns:
        The number of the process, for `os.waitpid`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code: int | None = 1
        try:
            code = act()
        except BaseException:  # whatever it is, it is this process's
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code or 0)
    return child
