"""A real process is stopped by SIGSTOP at a request of its publication, for longer than its lease, and goes on by SIGCONT.

The same as `test_fencing.py` asks, with real clocks: a few requests here, all of them by `make fencing-full`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.commit import liveness
from hudimeta.commit.session import WriteSession
from hudimeta.errors import CommitError, HudiError, LockError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import WithoutGuards
from tests.concurrency.stopped import MINE, THEIRS, Stopping, StopState, count_publication, quiet

LEASE_S = 2
PUBLISHED, REFUSED = 0, 3
OPTIONS_OF_WRITERS = {
    **SIMPLE_OPTIONS,
    "hoodie.write.lock.storage.validity.timeout.secs": str(LEASE_S),
    "hoodie.write.lock.storage.renew.interval.secs": "1",
}


def stop_itself() -> None:
    """As the scheduler does with a virtual machine that moves."""
    os.kill(os.getpid(), signal.SIGSTOP)


def published(table: ModelledTable, state: StopState) -> None:
    """Write, with the requests of the publication counted."""
    session = WriteSession(Stopping(WithoutGuards(table.path), state), table.options)
    count_publication(session, state)
    with quiet():
        write_rows(session, Operation.UPSERT, MINE)


def forked_writer(table: ModelledTable, at: int) -> int:
    """A process that writes, and stops before a request of its publication; its pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        published(table, StopState(at, stop_itself, dies=False))
        code = PUBLISHED
    except (LockError, CommitError):
        code = REFUSED
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def begun(where: Path) -> ModelledTable:
    table = ModelledTable(str(where), OPTIONS_OF_WRITERS)
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    return table


def points(home: Path) -> list[tuple[int, str]]:
    """The requests before which a writer is stopped: usually the two that complete something."""
    state = StopState(None, stop_itself, dies=False)
    published(begun(home / "counted"), state)
    calls = list(enumerate(state.calls))
    if os.environ.get("HUDIMETA_FENCING_FULL"):
        return calls
    return [(at, call) for at, call in calls if call.startswith("put_if_absent")][-2:]


def test_it_publishes_nothing_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "INTERVAL_S", 0.5)
    found = points(tmp_path)
    tables = [begun(tmp_path / str(at)) for at, _ in found]
    children = [forked_writer(table, at) for table, (at, _) in zip(tables, found, strict=True)]
    stopped = [os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]) for child in children]
    assert all(stopped), "a publication with fewer requests than before"
    outlast(tables)
    refused = [gone_on(table, child, call) for table, child, (_, call) in zip(tables, children, found, strict=True)]
    print(f"{len(found)} requests, {sum(refused)} writes refused")
    assert any(refused)


def gone_on(table: ModelledTable, child: int, call: str) -> bool:
    """Another writer comes, then the stopped one goes on; True when that is refused."""
    write_rows(WriteSession(WithoutGuards(table.path), table.options), Operation.UPSERT, THEIRS)
    table.model.write(Operation.UPSERT, THEIRS)
    os.kill(child, signal.SIGCONT)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (PUBLISHED, REFUSED), call
    if code == PUBLISHED:
        table.model.write(Operation.UPSERT, MINE)
    try:
        check_all(table.storage, ALWAYS)
        table.model.check(Table(table.path).scan().to_table())
        write_rows(WriteSession(WithoutGuards(table.path), table.options), Operation.UPSERT, simple_rows([5], 60))
        table.model.write(Operation.UPSERT, simple_rows([5], 60))
        Table(table.path, OPTIONS_OF_WRITERS).recover()
        table.model.check(Table(table.path).scan().to_table())
        check_all(table.storage)
    except (HudiError, AssertionError) as error:
        raise AssertionError(f"stopped before {call}, exit code {code}: {error}") from error
    return code == REFUSED


def outlast(tables: list[ModelledTable]) -> None:
    """Wait until leases and heartbeats of the stopped processes are over, by the clocks that they go by."""
    beats = [beat for table in tables for beat in Path(table.path, ".hoodie/.heartbeat").glob("*")]
    until = max([time.time() + LEASE_S + 0.6, *(beat.stat().st_mtime + 1.1 for beat in beats)])
    while time.time() < until:
        signal.sigtimedwait([], 0.05)
