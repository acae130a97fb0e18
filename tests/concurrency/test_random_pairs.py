"""Random pairs of writes that meet: the table holds what one after the other would leave, or one is refused without a trace.

What one after the other leaves is asked of the engine itself, on copies of the table. HUDIMETA_PAIRS says how many pairs, and
HUDIMETA_PAIRS_SEED which.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import Engine
from hudimeta.errors import CommitConflict
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.validation import validate
from hudimeta.storage import open_storage
from hudimeta.testing.indexes import indexes_know_every_row
from hudimeta.testing.invariants import ALWAYS, AT_REST, check_all
from hudimeta.types import Operation
from hudimeta.write.creation import create_table
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.sources import GivenRows
from hudimeta.write.row_changes import RowChange, read_rows
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import Prepared, write_prepared, write_rows
from tests.concurrency.side_by_side import Paused, interruptible
from tests.concurrency.test_attempts import RETRIES
from tests.concurrency.test_conflicts_of_rows import INDEXES, KINDS, NO_SMALL
from tests.write.doors import parts_of

PAIRS = int(os.environ.get("HUDIMETA_PAIRS", "8"))
SEED = int(os.environ.get("HUDIMETA_PAIRS_SEED", "1"))
SHARES = 4
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("x", pa.float64())])
BASE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
MORE_INDEXES: dict[str, dict[str, str]] = {
    **INDEXES,
    "moving records": {**INDEXES["records"], "hoodie.record.index.update.partition.path": "true"},
    "moving simple": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
    "records and values": {
        **INDEXES["records"],
        "hoodie.metadata.index.secondary.column": "ts",
        "hoodie.metadata.index.column.stats.enable": "true",
    },
    "virtual keys": {"hoodie.index.type": "SIMPLE", "hoodie.populate.meta.fields": "false"},
    "changes": {"hoodie.index.type": "SIMPLE", "hoodie.table.cdc.enabled": "true"},
}
OPERATIONS = ["upsert"] * 6 + [
    "insert",
    "insert",
    "insert unless there",
    "bulk_insert",
    "delete",
    "delete",
    "update",
    "overwrite",
]

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Act:
    """One of the two writes."""

    operation: str
    rows: pa.Table
    options: dict[str, str]
    by_tasks: bool

    def __call__(self, path: Path, engine: Engine | None = None, *, once: bool = False) -> CommitReport:
        """Write; `once` without another attempt after a conflict."""
        names = {"insert unless there": "insert", "update": "upsert", "overwrite": "insert_overwrite"}
        operation = Operation(names.get(self.operation, self.operation).upper())
        options = OPTIONS.read({**self.options, **({RETRIES: "0"} if once else {})})
        session = WriteSession(open_storage(str(path)), options, engine=engine)
        if self.operation == "update":
            return write_prepared(session, operation, self._updated(session))
        if not self.by_tasks:
            return write_rows(session, operation, self.rows)
        parts = parts_of(self.rows)
        return write_routed(session, GivenRows(operation, parts[0].schema), interruptible(session, LocalExecutors(parts)))

    def _updated(self, session: WriteSession) -> Callable[[TableFiles], Prepared]:
        change, where = RowChange({"x": "x + 1000"}), f"id <= '{self.rows['id'][0].as_py()}'"
        return lambda files: change.prepared(session, files, read_rows(session, files, where, None))


@dataclass(frozen=True)
class Pair:
    """Two writes of one table."""

    kind: str
    options: dict[str, str]
    acts: tuple[Act, Act]
    first_ends_first: bool
    once: bool

    @classmethod
    def drawn(cls, draw: random.Random) -> Pair:
        """A random one."""
        kind, index = draw.choice(KINDS), draw.choice(list(MORE_INDEXES))
        options = {**BASE, **MORE_INDEXES[index], "hoodie.datasource.write.table.type": kind}
        same = draw.random() < 0.4
        moves = "moving" in index

        def act(number: int) -> Act:
            pool = range(16) if same else range(number, 16, 2)
            ids = draw.sample(pool, draw.randint(1, 4))
            parts = [f"p{draw.randint(0, 1) if moves else n // 2 % 2}" for n in ids]
            ts = [draw.randint(3, 6) for _ in ids]
            columns = [[f"k{n:02d}" for n in ids], parts, ts, [100.0 * number + n for n in ids]]
            operation = draw.choice(OPERATIONS)
            own = dict(NO_SMALL) if draw.random() < 0.3 else {}
            if operation == "insert unless there":
                own["hoodie.datasource.insert.dup.policy"] = "drop"
            return Act(operation, pa.table(columns, schema=SCHEMA), {**options, **own}, draw.random() < 0.2)

        return cls(kind, options, (act(0), act(1)), draw.random() < 0.5, draw.random() < 0.4)

    def __str__(self) -> str:
        tasks = {True: " by tasks", False: ""}
        acts = ", ".join(f"{a.operation}{tasks[a.by_tasks]} {a.rows.to_pylist()} {a.options}" for a in self.acts)
        return f"{self.kind}, the first ends {'first' if self.first_ends_first else 'last'}, once {self.once}: {acts}"


def base_table(path: Path, pair: Pair) -> None:
    """Some rows in base files, some in logs."""
    create_table(open_storage(str(path)), SCHEMA, OPTIONS.read(pair.options))
    for ids, ts in ((range(8), 1), ((1, 2, 6), 4)):
        columns = [[f"k{n:02d}" for n in ids], [f"p{n // 2 % 2}" for n in ids], [ts for _ in ids], [float(n) for n in ids]]
        if ts == 1 or len(pair.acts[0].rows) % 2:
            session = WriteSession(open_storage(str(path)), OPTIONS.read(pair.options))
            write_rows(session, Operation.UPSERT, pa.table(columns, schema=SCHEMA))


def rows_of(path: Path) -> Rows:
    found = Table(str(path)).scan().to_table()
    return sorted(zip(*(found[name].to_pylist() for name in ("id", "_hoodie_partition_path", "ts", "x")), strict=True), key=str)


def after(base: Path, name: str, *acts: Act) -> Rows:
    """What acts leave one after the other."""
    path = base.parent / name
    shutil.copytree(base, path)
    for act in acts:
        act(path)
    rows = rows_of(path)
    shutil.rmtree(path)
    return rows


def refused(write: Paused) -> bool:
    """Finish a write; whether it was refused."""
    try:
        write.finish()
    except CommitConflict:
        return True
    return False


def meet(path: Path, pair: Pair) -> None:
    """Let a pair meet, and look at what it left."""
    base_table(path, pair)
    one, two = pair.acts
    shutil.copytree(path, base := path.parent / "base")
    # Whoever begins first has the earlier instant.
    writes = [Paused(lambda engine, act=act: act(path, engine, once=pair.once)) for act in (one, two)]  # type: ignore[misc]
    lost = {}
    for at in (0, 1) if pair.first_ends_first else (1, 0):
        lost[at] = refused(writes[at])
    found = rows_of(path)
    left = [act for at, act in enumerate(pair.acts) if not lost[at]]
    orders = [left, left[::-1]] if len(left) == 2 else [left]
    expected = [after(base, f"serial{n}", *order) for n, order in enumerate(orders)]
    assert any(found == rows for rows in expected), f"{pair}\nfound {found}\nserial {expected}"
    table = Table(str(path))
    assert not table.timeline.pending
    metadata = table.snapshot().metadata
    # Of keys that plain inserts doubled a record index cannot know all places, and is not proven any more.
    known = proven_indexes(metadata, ["record_index"]) if metadata is not None else frozenset()
    doubled = not known and "record_index" in table.metadata.ready
    holds = [one for one in (*ALWAYS, *AT_REST) if one is not indexes_know_every_row or not doubled]
    check_all(open_storage(str(path)), holds)
    report = validate(table.snapshot(), ["files", *known])
    assert report.holds, f"{pair}\n{report}"
    shutil.rmtree(base)
    assert len(left) == 2 or (left and pair.once), pair


@pytest.mark.parametrize("share", range(SHARES))
def test_pairs_leave_what_one_after_the_other_would(tmp_path: Path, share: int) -> None:
    for number in range(share, PAIRS, SHARES):
        pair = Pair.drawn(random.Random(f"{SEED}/{number}"))
        path = tmp_path / str(number) / "t"
        path.parent.mkdir()
        try:
            meet(path, pair)
        except Exception as error:
            raise AssertionError(f"pair {number} of seed {SEED}: {pair}") from error
        shutil.rmtree(path.parent)
