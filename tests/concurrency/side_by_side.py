"""Ways to make two writers meet: one that is interrupted at its work, processes that start together, a store without guards."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.engine import LocalEngine
from hudimeta.storage import LocalStorage
from hudimeta.testing.builders import ModelledTable
from hudimeta.testing.invariants import check_all
from hudimeta.write.routed.arrival import Route
from hudimeta.write.routed.executors import Executors
from hudimeta.write.routed.writing import PieceWriter

_PATIENCE = 120
"""Seconds after which a write that stands still is a deadlock."""


class Interrupted:
    """An engine that lets something else happen before it writes files, the first `times` times that it is asked to write.

    Look-ups go through the engine as well: `skip` calls pass undisturbed.
    """

    def __init__(self, meanwhile: Callable[[], object], times: int = 1, skip: int = 0) -> None:
        self._meanwhile, self._left, self._skip = meanwhile, times, skip
        self._inner = LocalEngine(1)

    def map(self, task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """See `Engine.map`."""
        work = list(items)
        if any(type(item).__name__ == "_Work" for item in work):
            self.interrupt()
        return self._inner.map(task, work)

    def interrupt(self) -> None:
        """Files are about to be written."""
        if self._left:
            self._left -= 1
            self._meanwhile()


class Paused:
    """A write in a thread of its own, which stands still when it has planned its files, until it is told to go on.

    Args:
        write: The write, given the engine that its session must use.
    """

    def __init__(self, write: Callable[[Interrupted], CommitReport]) -> None:
        self._write, self._planned, self._go = write, threading.Event(), threading.Event()
        self._report: CommitReport | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._planned.wait(_PATIENCE)

    def _run(self) -> None:
        try:
            self._report = self._write(Interrupted(self._stand_still))
        except BaseException as error:
            self._error = error
        finally:
            self._planned.set()

    def _stand_still(self) -> None:
        self._planned.set()
        assert self._go.wait(_PATIENCE)

    def finish(self) -> CommitReport:
        """Let it go on to its end; raises what it raises."""
        self._go.set()
        self._thread.join(_PATIENCE)
        if self._error is not None:
            raise self._error
        assert self._report is not None
        return self._report


class InterruptedExecutors:
    """Executors of a routed write, interrupted before their tasks write files; see `Executors`.

    Args:
        inner: Run the tasks.
        engine: Of the write's session, which says what happens meanwhile.
    """

    def __init__(self, inner: Executors, engine: Interrupted) -> None:
        self._inner, self._engine = inner, engine
        self.parallelism = inner.parallelism

    @property
    def collected(self) -> int:
        """See `Executors`."""
        return self._inner.collected

    @property
    def tasks(self) -> int:
        """See `Executors`."""
        return self._inner.tasks

    @property
    def nearby(self) -> int:
        """See `Executors`."""
        return self._inner.nearby

    @property
    def way(self) -> str:
        """See `Executors`."""
        return self._inner.way

    def over_rows(self, task: Any) -> list[Any]:
        """See `Executors`."""
        if getattr(task.task, "route", None) is Route.AT_ONCE:
            self._engine.interrupt()
        return self._inner.over_rows(task)

    def map(self, task: Any, items: Any, size: int | None = None) -> list[Any]:
        """See `Executors`."""
        if isinstance(task.task, PieceWriter):
            self._engine.interrupt()
        return self._inner.map(task, items, size)


def interruptible(session: WriteSession, executors: Executors) -> Executors:
    """The executors of a session's write, interrupted when its engine is to be."""
    return InterruptedExecutors(executors, session.engine) if isinstance(session.engine, Interrupted) else executors


def together(acts: Sequence[Callable[[], object]]) -> list[int]:
    """Run each act in a process of its own, all started at the same moment; their exit codes, 0 for success."""
    ready, go = os.pipe()
    children = []
    sys.stdout.flush()
    sys.stderr.flush()
    for act in acts:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(go)
                os.read(ready, 1)  # returns when the parent closes its end
                act()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    os.close(ready)
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


class WithoutGuards(LocalStorage):
    """A folder that, like an object store, knows no locks of the operating system."""

    def guard(self, path: str) -> AbstractContextManager[bool] | None:  # type: ignore[override]
        """None: nothing of the kind."""
        return None

    def sub(self, path: str) -> WithoutGuards:
        """See `Storage.sub`."""
        return WithoutGuards(f"{self.root}/{path}")


class Clock:
    """A clock that moves when it is told to, in milliseconds since 1970."""

    def __init__(self, now: int = 1_800_000_000_000) -> None:
        self.now = now

    def now_ms(self) -> int:
        """The present."""
        return self.now

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return self.now / 1000

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * 1000)


def finish(table: ModelledTable) -> None:
    """The table is what the model says, now and at each instant, and sound."""
    table.model.past.clear()
    table.check()
    check_all(table.storage)
