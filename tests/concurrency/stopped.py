"""Writers that are stopped between two requests, as by SIGSTOP, while others go on; and what must be true afterwards."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.commit.locks.file_lock import DEFAULT_FOLDER, FILE_NAME, FileLock
from hudimeta.commit.locks.protocol import LockTiming, TableLock
from hudimeta.commit.locks.storage_lock import StorageLock
from hudimeta.commit.session import WriteSession
from hudimeta.config import HudiWarning
from hudimeta.errors import CommitError, HudiError, LockError
from hudimeta.storage import FileInfo, HeldFiles, NewFile, OutputStream, Staged, Storage
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Clock, WithoutGuards

LEASE_S = 300.0
HOUR_S = 3600
NOTHING: Mapping[str, str] = {}
COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "1"}


class Stopping:
    """Passes everything on; before the call with a number, counted while `counts` is set, something else happens.

    Calls of other threads wait meanwhile, as those of a stopped process do.
    """

    def __init__(self, inner: Storage, state: StopState) -> None:
        self._inner, self._state = inner, state

    @property
    def root(self) -> str:
        """See `Storage.root`."""
        return self._inner.root

    def prove_replaceable(self, path: str) -> None:
        """See `Storage.prove_replaceable`; no call."""
        self._inner.prove_replaceable(path)

    def prove_conditions(self, path: str, other: bytes) -> None:
        """See `Storage.prove_conditions`; no call."""
        self._inner.prove_conditions(path, other)

    def guard(self, path: str) -> AbstractContextManager[bool] | None:
        """None: a store without OS locks."""
        return None

    def sub(self, path: str) -> Stopping:
        """See `Storage.sub`."""
        return Stopping(self._inner.sub(path), self._state)

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        self._state.call("read", path)
        return self._inner.read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`."""
        self._state.call("read_range", path)
        return self._inner.read_range(path, offset, length)

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        self._state.call("put", path)
        self._inner.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`."""
        self._state.call("put_if_absent", path)
        self._inner.put_if_absent(path, data)

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; each file is a call of its own."""
        return HeldFiles(self, files)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`."""
        self._state.call("put_if_unchanged", path)
        return self._inner.put_if_unchanged(path, data, expected)

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        self._state.call("delete", path)
        return self._inner.delete(path)

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`."""
        return self._inner.deletes_at_once

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`."""
        self._state.call("delete_some", paths[0])
        return self._inner.delete_some(paths)

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        self._state.call("delete_folder", path)
        self._inner.delete_folder(path)

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        self._state.call("list", path)
        return self._inner.list(path)

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`."""
        self._state.call("stat", path)
        return self._inner.stat(path)

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`."""
        self._state.call("is_file", path)
        return self._inner.is_file(path)

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`."""
        self._state.call("open_input", path)
        return self._inner.open_input(path, size)

    def open_output(self, path: str) -> OutputStream:
        """See `Storage.open_output`."""
        self._state.call("open_output", path)
        return self._inner.open_output(path)


class Died(BaseException):
    """The process is gone: nothing that it does reaches storage."""


class StopState:
    """Counts the calls of a publication, and lets something happen before one of them.

    Args:
        at: Number of the call, from 0; None only counts.
        meanwhile: What happens.
        dies: The call goes out, and is the last one.
    """

    def __init__(self, at: int | None, meanwhile: Callable[[], None], dies: bool) -> None:
        self._at, self._meanwhile, self._dies = at, meanwhile, dies
        self._dead = False
        self.calls: list[str] = []
        self.counts = False
        self.raised: BaseException | None = None
        self._turn = threading.Lock()

    def call(self, verb: str, path: str) -> None:
        """One call is about to go out."""
        if self._dead:
            raise Died
        if not self.counts:
            return
        with self._turn:
            number = len(self.calls)
            self.calls.append(f"{verb} {path}")
            if number == self._at:
                self._meanwhile()
                self._dead = self._dies


@dataclass
class Stage:
    """A table without OS locks, and the clocks and the lock of all who write it.

    Attributes:
        table: The table and its model.
        kind: "storage" or "file": which lock.
        clock: Of all machines.
    """

    table: ModelledTable
    kind: str
    clock: Clock

    def lock(self, storage: Storage) -> TableLock:
        """The lock of one writer."""
        clock = self.clock
        timing = LockTiming(lease_s=LEASE_S, poll_s=1.0, now_ms=clock.now_ms, monotonic=clock.monotonic, pause=clock.pause)
        if self.kind == "storage":
            return StorageLock(storage, timing)
        return FileLock(storage, storage.sub(DEFAULT_FOLDER), f"{DEFAULT_FOLDER}/{FILE_NAME}", LEASE_S, timing)

    def session(self, storage: Storage | None = None, given: Mapping[str, str] = NOTHING) -> WriteSession:
        """A session of one writer."""
        store = storage or WithoutGuards(self.table.path)
        session = WriteSession(store, self.table.options.having(given), self.clock)
        session.lock = FencedLock(self.lock(store), self.clock)
        return session

    def hours_pass(self, *, heartbeats: bool) -> None:
        """The clocks of all machines go on; what lies on storage ages, heartbeats too unless the writer still beats."""
        self.clock.now += HOUR_S * 1000
        beats = Path(self.table.path, ".hoodie/.heartbeat").glob("*") if heartbeats else ()
        for path in (*beats, *Path(self.table.path, DEFAULT_FOLDER).glob(FILE_NAME)):
            os.utime(path, (1, 1))


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of what is left to others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HudiWarning)
        yield


TYPED = (LockError, CommitError)
MINE, THEIRS, THIRD = simple_rows([1, 4, 60], 50), simple_rows([2, 71], 51), simple_rows([3, 82], 52)


@dataclass(frozen=True)
class Act:
    """What happens while a writer is stopped.

    Attributes:
        others: What others do.
        silent: The stopped writer's heartbeat is old by then, so that it is taken for dead.
        given: More options of the stopped writer.
    """

    others: Callable[[Stage], None]
    silent: bool = True
    given: Mapping[str, str] = field(default_factory=dict)


def count_publication(session: WriteSession, state: StopState) -> None:
    """Count the calls of the session's publications, and no others."""
    publish = session.coordinator.publish

    def counted(*arguments: Any) -> str:
        state.counts = True
        try:
            return publish(*arguments)
        finally:
            state.counts = False

    session.coordinator.publish = counted  # type: ignore[method-assign]


def stop_at(stage: Stage, at: int | None, act: Act, *, dies: bool = False) -> StopState:
    """One writer is stopped at a call of its publication, others do something, it goes on; then everything is looked at.

    Args:
        stage: Table, clocks and locks.
        at: Number of the call; None for an undisturbed write.
        act: What happens meanwhile.
        dies: The writer goes on for this one call.
    """
    table = stage.table

    def meanwhile() -> None:
        stage.hours_pass(heartbeats=act.silent)
        state.counts = False
        act.others(stage)
        state.counts = True

    state = StopState(at, meanwhile, dies)
    session = stage.session(Stopping(WithoutGuards(table.path), state), act.given)
    count_publication(session, state)
    raised: BaseException | None = None
    with quiet():
        try:
            write_rows(session, Operation.UPSERT, MINE)
        except (*TYPED, Died) as error:
            raised = error
    where = "undisturbed" if at is None else f"call {at}, {state.calls[at] if at < len(state.calls) else 'never made'}"
    try:
        _look(stage, raised)
    except (HudiError, AssertionError) as error:
        raise AssertionError(f"stopped before {where}, raised {raised!r}: {type(error).__name__} {error}") from error
    state.raised = raised
    return state


def _look(stage: Stage, raised: BaseException | None) -> None:
    table = stage.table
    if raised is None or (isinstance(raised, Died) and _was_published(stage)):
        table.model.write(Operation.UPSERT, MINE)
    check_all(table.storage, ALWAYS)
    table.model.check(Table(table.path).scan().to_table())
    table.model.check(Table(table.path, {"hoodie.metadata.enable": "false"}).scan().to_table())
    with quiet():
        stage.clock.now += HOUR_S * 1000
        stage.session().coordinator.recover()
        table.model.check(Table(table.path).scan().to_table())
        check_all(table.storage)
        write_rows(stage.session(), Operation.UPSERT, simple_rows([5, 90], 60))
        table.model.write(Operation.UPSERT, simple_rows([5, 90], 60))
    table.model.check(Table(table.path).scan().to_table())
    check_all(table.storage)
    Table(table.path).metadata.validate().raise_if_differs()


def _was_published(stage: Stage) -> bool:
    """The dead writer got as far as that: then its rows are there, and the rest of the table's state must agree."""
    rows = Table(stage.table.path).scan().to_table()
    return "k0060" in rows["id"].to_pylist()


def writes(stage: Stage, rows: Any = THEIRS, given: Mapping[str, str] = NOTHING) -> None:
    """Another writer writes and publishes."""
    write_rows(stage.session(given=given), Operation.UPSERT, rows)
    stage.table.model.write(Operation.UPSERT, rows)


def writes_elsewhere(stage: Stage) -> None:
    """Another writer writes to a partition that nobody else touches."""
    rows = simple_rows([100, 101], 51)
    writes(stage, rows.set_column(1, "part", pa.array(["q"] * 2)))


def rolls_back(stage: Stage) -> None:
    """Another process recovers the table."""
    stage.session().coordinator.recover()


def two_write(stage: Stage) -> None:
    """Two others write, one after the other."""
    writes(stage)
    writes(stage, THIRD)


def compacts_metadata(stage: Stage) -> None:
    """Another writer writes, and compacts the metadata table."""
    writes(stage, given=COMPACTS)


ACTS: Mapping[str, Act] = {
    "another write": Act(writes),
    "two writes": Act(two_write),
    "a rollback": Act(rolls_back),
    "a write that compacts the metadata table": Act(compacts_metadata),
    "another write, while the metadata table is compacted": Act(writes, given=COMPACTS),
    "two compactions of the metadata table": Act(compacts_metadata, given=COMPACTS),
    "nothing": Act(lambda stage: None, silent=False),
    "another write, and the stopped one counts as alive": Act(writes, silent=False),
    "a write elsewhere, and the stopped one counts as alive": Act(writes_elsewhere, silent=False),
}
"""By name."""
