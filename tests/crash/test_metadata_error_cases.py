"""RFC-15, design V2: its four error cases and its three kinds of writers, each by what the document says must hold.

A writer is ended with SIGKILL before the request that each case names. Sentences in quotes are the document's own.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.metadata import compaction as metadata_compaction
from hudimeta.services import clean, compaction
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import write_rows

MERGE_ON_READ = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
METADATA_LOG = r"close_output \.hoodie/metadata/.*\.log\.|put.* \.hoodie/metadata/(?!\.hoodie).*\.log\."
METADATA_BASE = r"(?:close_output|put\w*) \.hoodie/metadata/files/[^.].*\.hfile"
METADATA_COMPLETED = r"put_if_absent \.hoodie/metadata/\.hoodie/timeline/\d+_\d+\.deltacommit"
COMPLETED = r"put_if_absent \.hoodie/timeline/\d+_\d+\."


class _KilledBefore(FaultPlan):
    """Ends the process before the first request that a pattern names."""

    def __init__(self, pattern: str) -> None:
        super().__init__(None, Fault.KILL)
        self._pattern = re.compile(pattern)

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        if self._pattern.match(name):
            os.kill(os.getpid(), signal.SIGKILL)
        return act()


def killed_before(pattern: str, table: ModelledTable, act: Callable[[WriteSession], object]) -> None:
    """Run an act in a child that dies before a request; fails where the child lives."""
    child = os.fork()
    if child == 0:
        try:
            act(table.session(FaultyStorage(open_storage(table.path), _KilledBefore(pattern))))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"no request is like {pattern}"


def upsert(rows: pa.Table) -> Callable[[WriteSession], object]:
    return lambda session: write_rows(session, Operation.UPSERT, rows)


def listed(table: ModelledTable) -> set[str]:
    """File names that the metadata table gives to readers."""
    return set(hudimeta.Table(table.path).metadata.files()["name"].to_pylist())


def on_both(table: ModelledTable) -> tuple[set[str], set[str]]:
    """Instants that are completed on the timeline of the table, and on that of its metadata table."""
    opened = hudimeta.Table(table.path)
    return {i.time for i in opened.timeline.completed}, {i.time for i in opened.metadata.timeline.completed}


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), MERGE_ON_READ)
    made.write(Operation.INSERT, simple_rows(range(8), 1))
    made.write(Operation.UPSERT, simple_rows([1, 2], 2))
    return made


def test_error_case_1_metadata_table_updated_but_dataset_instant_not_completed(table: ModelledTable) -> None:
    """The document: "Crash after Metadata Table update but before dataset Instant could be transitioned"."""
    before, (done, _) = listed(table), on_both(table)
    killed_before(COMPLETED, table, upsert(simple_rows([3, 20], 3)))
    (dead,) = [i.time for i in hudimeta.Table(table.path).timeline.pending]
    assert dead in on_both(table)[1], "the metadata table was updated"
    assert on_both(table)[0] == done, "the instant of the table is not completed"
    # "we filter only for completed commits from data table while reading metadata table"
    assert listed(table) == before
    table.check()
    # "For next write in data table, partial commit will be rolledback. This will result in a new delta commit in metadata
    # table which will take care of ignoring files already synced."
    table.write(Operation.UPSERT, simple_rows([4], 4))
    (rolled_back,) = [i.time for i in hudimeta.Table(table.path).timeline.completed if i.action is Action.ROLLBACK]
    assert rolled_back in on_both(table)[1]
    assert not [name for name in listed(table) if dead in name]
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("request_of", [METADATA_LOG, METADATA_COMPLETED], ids=["its files", "its instant"])
def test_error_case_2_metadata_table_update_fails(table: ModelledTable, request_of: str) -> None:
    """The document: "Crash during Metadata Table update"; or of its "instant transition from inflight to completed"."""
    before = listed(table)
    killed_before(request_of, table, upsert(simple_rows([3, 20], 3)))
    # "the dataset itself will not have transitioned to complete on the action. Hence, the action on the dataset also failed."
    (dead,) = [i.time for i in hudimeta.Table(table.path).timeline.pending]
    assert all(dead not in completed for completed in on_both(table))
    assert listed(table) == before
    table.check()
    # "Next action on the dataset should rollback the failed change (orphan inflight instant)"
    table.write(Operation.UPSERT, simple_rows([4], 4))
    (rolled_back,) = [i.time for i in hudimeta.Table(table.path).timeline.completed if i.action is Action.ROLLBACK]
    # "The rollback will trigger a delta commit on the metadata table"
    assert rolled_back in on_both(table)[1]
    table.check()
    check_all(table.storage)


def test_error_case_3_metadata_table_compaction_fails_mid_way(tmp_path: Path) -> None:
    """The document: "If a compaction in metadata table fails, we need to ensure readers are still able to read the data"."""
    options = {**MERGE_ON_READ, "hoodie.metadata.compact.max.delta.commits": "4"}
    table = ModelledTable(str(tmp_path / "t"), options)
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    numbers = itertools.count(2)

    def next_write() -> None:
        number = next(numbers)
        table.write(Operation.UPSERT, simple_rows([number % 8], number))

    while not _dies_in_compaction(table, next(numbers)):
        pass
    # Readers merge "the latest file slice with previous file slice".
    opened = hudimeta.Table(table.path)
    pending = metadata_compaction.pending_compaction(opened.metadata._opened)
    assert pending is not None
    assert opened.metadata.validate(["files"]).holds
    # "we will first try to reattempt any pending compactions from last round"
    next_write()
    opened = hudimeta.Table(table.path)
    assert metadata_compaction.pending_compaction(opened.metadata._opened) is None
    assert pending.time in {i.time for i in opened.metadata.timeline.completed}
    assert opened.metadata.stats().last_compaction == pending.time
    # "Once it succeeds, we will proceed on as usual."
    next_write()
    table.check()
    check_all(table.storage)


def _dies_in_compaction(table: ModelledTable, number: int) -> bool:
    """Write in a child that dies where it compacts the metadata table; whether it did."""
    rows = simple_rows([number % 8], number)
    before = hudimeta.Table(table.path).timeline.instants
    child = os.fork()
    if child == 0:
        try:
            upsert(rows)(table.session(FaultyStorage(open_storage(table.path), _KilledBefore(METADATA_BASE))))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if hudimeta.Table(table.path).timeline.completed[-1].time > before[-1].time:
        table.model.write(Operation.UPSERT, rows)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("service", ["clean", "compaction"])
def test_error_case_4_async_clean_and_compaction_in_the_data_table(tmp_path: Path, service: str) -> None:
    """The document: "the commit will get applied to metadata table and data should be intact"."""
    keep_one = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    by_hand = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    table = ModelledTable(str(tmp_path / "t"), {**MERGE_ON_READ, **keep_one, **by_hand})
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    table.write(Operation.UPSERT, simple_rows([1, 2], 2))
    if service == "clean":
        compaction.compact(table.session())
    act = clean.clean if service == "clean" else compaction.compact
    killed_before(COMPLETED, table, act)
    (dead,) = [i.time for i in hudimeta.Table(table.path).timeline.pending]
    assert dead in on_both(table)[1], "applied to the metadata table"
    # "Readers will ensure to skip this if it failed before getting applied to data table."
    table.model.check(table.read())
    assert dead not in on_both(table)[0]
    act(table.session())
    done, known = on_both(table)
    assert done <= known
    table.model.check(table.read())
    check_all(table.storage)


# The three kinds of writers


class _Witness(FaultPlan):
    """Remembers who changed which instant of the metadata table, request by request.

    Args:
        writer: Whose requests.
        told: Those of all writers.
    """

    def __init__(self, writer: int, told: list[tuple[int, str]]) -> None:
        super().__init__(None, Fault.KILL)
        self._writer, self._told = writer, told

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        found = re.search(r" \.hoodie/metadata/\.hoodie/timeline/(\d+)", name)
        if found is not None:
            self._told.append((self._writer, found[1]))
        return act()


def run_beside(path: str, options: dict[str, str], acts: list[Callable[[WriteSession], object]]) -> list[int]:
    """Run each act in a thread of its own, all begun at the same moment; who changed the metadata table, one by one.

    Fails where requests of one change lie between those of another.
    """
    errors: list[BaseException] = []
    told: list[tuple[int, str]] = []
    gate = threading.Barrier(len(acts))

    def run(number: int) -> None:
        gate.wait()
        try:
            acts[number](WriteSession(FaultyStorage(open_storage(path), _Witness(number, told)), OPTIONS.read(options)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors, errors
    changes = [change for change, _ in itertools.groupby(told)]
    assert len(changes) == len(set(changes)), "no writer changes the metadata table while another one does"
    return [writer for writer, _ in changes]


def rows_of(path: str) -> dict[str, int]:
    found = hudimeta.Table(path).scan(columns=["id", "ts"]).to_table()
    return dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def follows(table: ModelledTable) -> None:
    """The metadata table has every instant of the table, and they were completed in the same order."""
    opened = hudimeta.Table(table.path)
    done = [i.time for i in opened.timeline.by_completion]
    known = [i.time for i in opened.metadata.timeline.by_completion if i.time in set(done)]
    assert known == done
    check_all(table.storage)


def test_single_writer_with_all_services_inline(tmp_path: Path) -> None:
    """The document: "there won't be any concurrent operations which tries to update metadata simultaneously"."""
    inline = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    cleaned = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    table = ModelledTable(str(tmp_path / "t"), {**MERGE_ON_READ, **inline, **cleaned})
    writer = hudimeta.Table(table.path, {**MERGE_ON_READ, **inline, **cleaned})
    writer.insert(simple_rows(range(8), 1))
    for ts in range(2, 7):
        writer.upsert(simple_rows([ts], ts))
    actions = {i.action for i in writer.timeline.completed}
    assert {Action.DELTA_COMMIT, Action.COMMIT, Action.CLEAN} <= actions
    assert rows_of(table.path) == {f"k{n:04d}": n if 2 <= n < 7 else 1 for n in range(8)}
    follows(table)


def test_strictly_multi_writer(tmp_path: Path) -> None:
    """The document: "any write to metadata table is guarded by the data table lock"."""
    options = {**MERGE_ON_READ, "hoodie.write.num.retries.on.conflict.failures": "8"}
    table = ModelledTable(str(tmp_path / "t"), options)
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    writers = 4
    acts = [upsert(simple_rows([number, 100 + number], 2)) for number in range(writers)]
    # "We ensure only one write will get applied to metadata at any point in time."
    assert set(run_beside(table.path, options, acts)) == set(range(writers))
    expected = {f"k{n:04d}": 1 for n in range(8)} | {f"k{n:04d}": 2 for m in range(writers) for n in (m, 100 + m)}
    assert rows_of(table.path) == expected
    follows(table)


def test_single_writer_with_async_table_services(tmp_path: Path) -> None:
    """The document: "If not for locking, there could be data loss"; here there is a lock though the user configured none."""
    keep_one = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    options = {**MERGE_ON_READ, **keep_one, "hoodie.clean.automatic": "false"}
    assert not any("lock" in key for key in options)
    table = ModelledTable(str(tmp_path / "t"), options)
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    table.write(Operation.UPSERT, simple_rows([1, 2], 2))

    def services(session: WriteSession) -> None:
        compaction.compact(session)
        clean.clean(session)

    def writes(session: WriteSession) -> None:
        for ts in range(3, 6):
            write_rows(WriteSession(session.storage, session.options), Operation.UPSERT, simple_rows([ts, 50 + ts], ts))

    assert set(run_beside(table.path, options, [writes, services])) == {0, 1}
    expected = {f"k{n:04d}": 1 for n in range(8)} | {"k0001": 2, "k0002": 2}
    assert rows_of(table.path) == expected | {f"k{n:04d}": ts for ts in range(3, 6) for n in (ts, 50 + ts)}
    assert Action.COMMIT in {i.action for i in hudimeta.Table(table.path).timeline.completed}
    follows(table)
