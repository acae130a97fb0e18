"""Services in a thread of the writer: what Apache Hudi calls asynchronous. One thread a table, whatever the number of writers.

The thread ends when nothing is due; a write that is published meanwhile makes it look once more. A process that ends waits for
it. If the process is killed, the next writer takes back what the thread has begun, and its plan is run again.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - see `_at_exit`
import threading
import warnings
from collections.abc import Callable

from hudimeta.config import HudiWarning
from hudimeta.errors import HudiError
from hudimeta.forking import FreeWhenForked
from hudimeta.redaction import hidden

__all__ = ["FAILED", "run_beside", "wait", "warn_of"]

FAILED = "services in the writer's thread failed"


class _Runner:
    """The thread of one table."""

    def __init__(self, root: str, work: Callable[[], None]) -> None:
        self.root, self.work, self.again = root, work, True
        self.thread = threading.Thread(target=self._run, name="hudimeta-services")

    def _run(self) -> None:
        while True:
            with _guard:
                if not self.again:
                    del _runners[self.root]
                    return
                self.again, work = False, self.work
            try:
                work()
            except Exception as error:  # nobody waits for the thread: whatever it is, only a warning tells of it
                warn_of(error, FAILED)


_guard = FreeWhenForked()
_runners: dict[str, _Runner] = {}


def run_beside(root: str, work: Callable[[], None]) -> None:
    """Run the services of a table in its thread; where one runs already, once more after it.

    Args:
        root: Of the table.
        work: Runs all that is due.
    """
    with _guard:
        found = _runners.get(root)
        if found is not None and found.thread.is_alive():  # no thread lives on in a process that was forked
            found.work, found.again = work, True
            return
        _runners[root] = found = _Runner(root, work)
        found.thread.start()


def warn_of(error: Exception, failed: str) -> None:
    """Tell of a service that failed after the write was there.

    Args:
        error: Why it failed.
        failed: What failed, in words.
    """
    why = error if isinstance(error, HudiError) else f"{type(error).__name__}: {error}"
    warnings.warn(f"{failed}: {hidden(str(why))}", HudiWarning, stacklevel=2)


def wait(root: str) -> None:
    """Return when no service of a table runs in a thread of this process.

    Args:
        root: Of the table.
    """
    with _guard:
        found = _runners.get(root)
    if found is not None:
        found.thread.join()


def _at_exit() -> None:
    """Wait for all of them, before the pools in which they merge files take no more work."""
    with _guard:
        roots = list(_runners)
    for root in roots:
        wait(root)


# Pools end before threads are joined, and what is called first was registered last: so after theirs. `atexit` comes too late.
getattr(threading, "_register_atexit", lambda act: None)(_at_exit)
