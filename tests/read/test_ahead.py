"""Scans of a far-away store read slices before it is their turn: in order, bounded, and with nothing left behind."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import FileRemoved
from hudimeta.read import ahead
from hudimeta.storage.at_once import PARALLEL_FILES
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from tests.read.far_away import FarAway

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
PARTS = 12


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve partitions with a file of a hundred rows each."""
    path = tmp_path_factory.mktemp("ahead") / "t"
    table = hudimeta.Table.create(path, SCHEMA, key="id", partition_by="part")
    parts = [f"p{number % PARTS:02}" for number in range(100 * PARTS)]
    table.insert(pa.table([[str(n) for n in range(100 * PARTS)], parts, range(100 * PARTS)], schema=SCHEMA))
    return path


def begun_ahead() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("hudimeta-ahead")]


@pytest.mark.parametrize("where", [None, "n % 100 < 3"])
def test_slices_are_read_at_once_and_come_in_order(path: Path, where: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    near = hudimeta.Table(path).scan(where=where)
    rows = near.to_table()
    far = FarAway(meeting=PARALLEL_FILES)
    far.begin(monkeypatch)
    scan = hudimeta.Table(path).scan(where=where)
    assert scan.to_table().equals(rows)
    assert far.most == PARALLEL_FILES
    mine, others = scan.report, near.report
    assert (mine.rows, mine.rows_read, mine.row_groups) == (others.rows, others.rows_read, others.row_groups)
    assert mine.requests == others.requests
    assert begun_ahead() == []


def test_large_files_are_read_one_after_the_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = hudimeta.Table(path).scan().to_table()
    monkeypatch.setattr(ahead, "AHEAD_BYTES", 1)
    far = FarAway()
    far.begin(monkeypatch)
    assert hudimeta.Table(path).scan().to_table().equals(rows)
    assert far.most == 1


def test_who_is_ahead_waits_for_its_rows_to_be_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = hudimeta.Table(path).scan().to_table()
    monkeypatch.setattr(ahead, "WAITING_BYTES", 0)
    FarAway().begin(monkeypatch)
    pairs = zip(hudimeta.Table(path).scan().to_batches(), hudimeta.Table(path).scan().to_batches(), strict=True)
    ones, others = zip(*pairs, strict=True)  # two scans in turns do not keep each other waiting
    assert pa.Table.from_batches(ones).equals(rows)
    assert pa.Table.from_batches(others).equals(rows)


def test_a_scan_that_is_given_up_leaves_no_thread_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FarAway().begin(monkeypatch)
    batches = hudimeta.Table(path).scan().to_batches()
    assert len(list(itertools.islice(batches, 2))) == 2
    del batches  # and with it what reads them
    assert begun_ahead() == []


LEFT = """
import sys, hudimeta, hudimeta.storage.at_once
from hudimeta.read import ahead
hudimeta.storage.at_once.is_nearby = lambda storage: False
ahead.WAITING_BYTES = 0
batches = hudimeta.Table(sys.argv[1]).scan().to_batches()
print(next(batches).num_rows, flush=True)
"""


def test_a_process_ends_although_it_has_not_taken_all_rows(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LEFT, str(path)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "100"


def test_nothing_is_read_ahead_of_a_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = FarAway()
    far.begin(monkeypatch)
    assert hudimeta.Table(path).scan(limit=150).to_table().num_rows == 150
    assert (far.most, len(far.opened)) == (1, 2)


def test_an_error_comes_after_the_rows_before_it(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hudimeta.Table(path)
    names = table.file_slices()["base_file"].to_pylist()
    seen: list[pa.RecordBatch] = []
    FarAway().begin(monkeypatch)
    scan = hudimeta.Table(path).scan()
    scan.plan()
    victim = next(path.rglob(names[5]))
    kept = victim.rename(tmp_path / victim.name)
    try:
        with pytest.raises(FileRemoved, match=names[5]):
            seen.extend(scan.to_batches())
    finally:
        kept.rename(victim)
    assert sum(batch.num_rows for batch in seen) == 500
    assert begun_ahead() == []


def test_log_files_are_merged_as_nearby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.table.type": "MERGE_ON_READ"})
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    table.write(Operation.UPSERT, simple_rows(range(0, 40, 3), 2))
    near = hudimeta.Table(table.path).scan()
    rows = near.to_table()
    FarAway().begin(monkeypatch)
    scan = hudimeta.Table(table.path).scan()
    assert scan.to_table().equals(rows)
    assert (scan.report.log_blocks, scan.report.rows_read) == (near.report.log_blocks, near.report.rows_read)


@pytest.mark.parametrize(
    "among",
    [
        r"/metadata/\.hoodie/timeline$|/t/\.hoodie/timeline/\d+_\d+\.deltacommit$",
        r"/files/files-0000-0_\S+\.hfile$|/t/\.hoodie/timeline/\d+_\d+\.deltacommit$",
        r"/metadata/\.hoodie/timeline/0+[12]_\d+\.deltacommit$",
        r"^\.hoodie/hoodie\.properties$|/t/\.hoodie/timeline$",
        r"/files/files-0000-0_\S+\.hfile$|/metadata/\.hoodie/timeline/0+1_\d+\.deltacommit$",
        r"/t/\.[^/]+\.log\.1_[^/]+$|^[^./][^/]+\.parquet$",
    ],
    ids=[
        "the table's newest commit and the list of the metadata table's",
        "the listing and what came after it",
        "the indexes",
        "the properties and the timeline",
        "the listing and where an index lies",
        "a base file and the log files over it",
    ],
)
def test_requests_of_a_plan_that_do_not_need_each_other_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, among: str
) -> None:
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    how = {"key": "id", "type": "MERGE_ON_READ", "indexes": ["column_stats", "record_index"]}
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, **how)
    table.upsert(rows)
    table.upsert(rows)
    far = FarAway(meeting=2, among=among)
    far.begin(monkeypatch)
    assert hudimeta.Table(tmp_path / "t").scan("n = 2").to_table()["id"].to_pylist() == ["b"]
    assert far.most == 2
