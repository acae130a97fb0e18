"""Ends a writer with SIGKILL before each request that changes storage, and looks at what it left.

One process imports everything and makes the tables once; for each point it copies the table and forks a child that dies there.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hudimeta.api.table import Table
from hudimeta.config import HudiWarning
from hudimeta.errors import CommitOutcomeUnknown, HudiError
from hudimeta.storage import Storage, open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.inspection import Inspection
from hudimeta.testing.invariants import ALWAYS, AT_REST, check_all, the_history_names_its_files
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

Act = Callable[[Path, Storage], None]

NEXT = simple_rows([0, 5, 901], 900)
"""What the next writer writes, where nothing keeps it from changing any row."""

MOST_CALLS = 200
"""No write of the small tables here needs so many requests: a bound for loops that would not end."""


@dataclass(frozen=True)
class Scene:
    """A table, something that is done to it, and what it holds before and after.

    Attributes:
        table: The table before; None where there is none yet.
        act: What is done, through the storage that it is given.
        before, after: Models.
        afterwards: What time does to the table before somebody looks.
        again: Done once more after the next write, undisturbed; for services and verbs, which whoever wants them repeats.
        comes: What the next writer writes.
        archives: It is an archival: a file that it leaves in the history waits for the next one, or for a recovery.
    """

    table: Path | None
    act: Act
    before: ModelTable
    after: ModelTable
    afterwards: Callable[[Path], None] = lambda path: None
    again: Act | None = None
    comes: pa.Table = field(default_factory=lambda: NEXT)
    archives: bool = False

    @property
    def changes(self) -> bool:
        """Readers can tell before from after."""
        return self.before.rows != self.after.rows

    def fresh(self, where: Path) -> Path:
        """A copy of the table to spoil."""
        if self.table is not None:
            shutil.copytree(self.table, where, symlinks=True)
        else:
            where.mkdir()
        return where


def calls_of(scene: Scene, where: Path) -> list[str]:
    """The requests of the undisturbed act that change storage."""
    plan = FaultPlan(None, Fault.KILL)
    copy = scene.fresh(where)
    scene.act(copy, FaultyStorage(open_storage(copy), plan))
    shutil.rmtree(copy)
    assert 0 < len(plan.calls) < MOST_CALLS
    return plan.calls


def killed_at(scene: Scene, at: int, copy: Path) -> bool:
    """Run the act in a child that is killed at a point; False when it ended before it got there."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            scene.act(copy, FaultyStorage(open_storage(copy), FaultPlan(at, Fault.KILL)))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the writer failed instead of being killed"
    return False


def is_after(scene: Scene, table: ModelledTable) -> bool:
    """The table reads as before or as after; which of the two."""
    found = Table(table.path).scan().to_table()
    try:
        scene.before.check(found)
    except HudiError:
        scene.after.check(found)
        return True
    return False


@dataclass(frozen=True)
class Point:
    """A request of an act, counted from 0, and what happens at it."""

    at: int
    fault: Fault


STEPS = ((10, 1), (28, 2), (80, 4), (MOST_CALLS, 8))
FAULTS = (Fault.KILL, Fault.ERROR_BEFORE, Fault.KILL, Fault.ERROR_AFTER)


def usual_points(total: int, turn: int) -> list[Point]:
    """The points of a usual run: each request of the shortest acts, of others each second, fourth or eighth; faults by turns.

    All requests with all faults with CRASH_FULL=1.

    Args:
        total: Requests of the act.
        turn: Another number for each act, so that together they meet every fault at every place.
    """
    if os.environ.get("CRASH_FULL"):
        return [Point(at, fault) for at in range(total) for fault in (Fault.KILL, Fault.ERROR_BEFORE, Fault.ERROR_AFTER)]
    step = next(step for most, step in STEPS if total < most)
    return [Point(at, FAULTS[(at // step + turn) % len(FAULTS)]) for at in range(turn % step, total, step)]


def survive(scene: Scene, point: Point, calls: list[str], copy: Path) -> None:
    """Strike at one point of an act; then the table is as before or after, the next write succeeds, and nothing is left over.

    Args:
        scene: The act.
        point: Where.
        calls: Its requests.
        copy: Where to put a copy of the table to spoil.
    """
    where = f"{point.fault.value} at call {point.at} of {len(calls)}, {calls[point.at]}"
    for recovering in (True, False) if os.environ.get("CRASH_FULL") else (point.at % 3 == 0,):
        scene.fresh(copy)
        if point.fault is Fault.KILL:
            assert killed_at(scene, point.at, copy), f"{where}: the act made fewer calls than before"
            check_goes_on(scene, copy, where, recovering=recovering)
        else:
            fail_at(scene, point, copy, where, recovering=recovering)
        shutil.rmtree(copy)


def survive_all(scene: Scene, points: Sequence[Point], calls: list[str], home: Path) -> None:
    """Strike at each point, see `survive`; as many processes as there are cores share them out.

    Args:
        scene: The act.
        points: Where.
        calls: Its requests.
        home: An empty folder for the copies of the table.
    """
    forked = multiprocessing.get_context("fork")
    faults = forked.SimpleQueue()
    lanes = min(os.cpu_count() or 1, len(points))
    children = [
        forked.Process(target=_survive_each, args=(scene, points[lane::lanes], calls, home / str(lane), faults))
        for lane in range(lanes)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    if any(child.exitcode for child in children):
        pytest.fail("nothing told" if faults.empty() else faults.get())


def _survive_each(scene: Scene, points: Sequence[Point], calls: list[str], copy: Path, faults: SimpleQueue[str]) -> None:
    for point in points:
        try:
            survive(scene, point, calls, copy)
        except BaseException as error:
            faults.put(f"{type(error).__name__}: {error}")
            raise


def fail_at(scene: Scene, point: Point, copy: Path, where: str, *, recovering: bool) -> None:
    """One request fails: the act succeeds, or raises a HudiError and changed nothing that readers see."""
    raised: HudiError | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HudiWarning)  # of what is left to the next writer
            scene.act(copy, FaultyStorage(open_storage(copy), FaultPlan(point.at, point.fault)))
    except CommitOutcomeUnknown as error:
        pytest.fail(f"{where}: {error}, though storage answers")
    except HudiError as error:
        raised = error
    if scene.changes:
        after = is_after(scene, ModelledTable(str(copy), exists=True))
        assert after == (raised is None), f"{where}: raised {raised!r}"
    check_goes_on(scene, copy, where, recovering=recovering)


def nobody_owns(storage: Storage) -> list[str]:
    """Folders of the metadata table that the properties do not name, and what is pending on its timeline."""
    table = Inspection(storage)
    folders = {entry.name for entry in storage.list(".hoodie/metadata") if entry.is_folder and entry.name != ".hoodie"}
    pending = [f"pending {i.time}" for i in (table.metadata.timeline.pending if table.metadata is not None else ())]
    return sorted(folders - set(table.properties.metadata_partitions)) + pending


def check_goes_on(scene: Scene, copy: Path, where: str, *, recovering: bool) -> None:
    """What must be true after a crash: before or after, sound for readers, and all is in order after what comes next.

    Args:
        scene: The act.
        copy: The table.
        where: For the error.
        recovering: `recover` comes next, and the next write behind it; else the next write at once.
    """
    scene.afterwards(copy)
    table = ModelledTable(str(copy), exists=True)
    try:
        check_all(table.storage, ALWAYS)
        after = is_after(scene, table)
        if recovering:
            Table(str(copy)).recover()
            check_in_order(table)
            assert is_after(scene, table) == after, "recovery changed what readers see"
        table.model = (scene.after if after else scene.before).copy()
        table.write(Operation.UPSERT, scene.comes)
        table.check()
        check_in_order(table, history=recovering or not scene.archives)
        if scene.again is not None:
            scene.again(copy, table.storage)
            table.model = scene.after.copy()
            table.model.write(Operation.UPSERT, scene.comes)
            table.model.check(table.read())
            check_all(table.storage)
    except (HudiError, AssertionError) as error:
        raise AssertionError(f"after {where}: {error}") from error


def check_in_order(table: ModelledTable, *, history: bool = True) -> None:
    """Nothing is left of what died: every file of the table has an owner, and every index says what the table says.

    Args:
        table: The table.
        history: Whether files of its history must have owners, too.
    """
    every = (*ALWAYS, *AT_REST)
    check_all(table.storage, [one for one in every if history or one is not the_history_names_its_files])
    if Inspection(table.storage).metadata is not None:
        Table(table.path).metadata.validate().raise_if_differs()
    assert not (left := nobody_owns(table.storage)), f"left over: {left}"
