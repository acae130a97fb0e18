"""What log files tell of their keys: who reads them, what that spares, and that it changes no answer."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.report import CommitReport
from hudimeta.config import OPTIONS
from hudimeta.errors import CorruptFileError
from hudimeta.formats.log import read_key_tail
from hudimeta.slices import log_keys
from hudimeta.storage.counting import CountingStorage, RequestKind
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.write.hudi_rs import read_with_hudi_rs

MOR = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BLOOM",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
}
FORM, TOLD = "hoodie.logfile.data.block.format", "hudimeta.log.keys"


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another process would begin."""
    monkeypatch.setattr(log_keys, "_REMEMBERED", log_keys.Remembered())


def with_options(table: ModelledTable, **more: str) -> None:
    table.options = OPTIONS.read({**MOR, **more})


def logs_of(table: ModelledTable, part: str = "p0") -> dict[str, int]:
    return {f.path: f.size for f in table.storage.list(part) if ".log." in f.name}


def log_bytes_read(table: ModelledTable, rows: pa.Table) -> tuple[CommitReport, int, set[str]]:
    """An upsert, the bytes that its look-up read of logs, and the logs of which it read more than the end."""
    logs = {**logs_of(table), **logs_of(table, "p1")}
    storage = CountingStorage(table.storage)
    report = table.write(Operation.UPSERT, rows, storage)
    read = [r for r in storage.log.since(0) if r.kind is RequestKind.GET and r.path in logs]
    by_path: dict[str, int] = {}
    for request in read:
        by_path[request.path] = by_path.get(request.path, 0) + request.n_bytes
    return report, sum(by_path.values()), {path for path, size in by_path.items() if size >= logs[path]}


def spread(numbers: range, ts: int, *, other: bool = False) -> pa.Table:
    """Rows whose keys lie everywhere between those of the `other` ones, in both partitions."""
    return simple_rows([n // 2 * 4 + n % 2 + 2 * other for n in numbers], ts)


def wide(numbers: range, ts: int, *, other: bool = False) -> pa.Table:
    """The same, with a column beside which prints of keys are small."""
    chance = random.Random(ts)
    rows = spread(numbers, ts, other=other)
    return rows.append_column("note", pa.array([chance.randbytes(200).hex() for _ in numbers]))


def test_logs_without_a_wanted_key_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), MOR, wide(range(1), 0).schema)
    table.write(Operation.INSERT, wide(range(2000), 1))
    for turn in range(4):
        table.write(Operation.UPSERT, wide(range(turn * 400, turn * 400 + 400), 2 + turn))
    fresh = wide(range(500, 600), 9, other=True)
    assert len(logs_of(table)) == 4

    plain = table.copy(str(tmp_path / "plain"))
    with_options(plain, **{TOLD: "false"})
    report, all_bytes, whole = log_bytes_read(plain, fresh)
    assert len(whole) == 8, report.index
    forget(monkeypatch)
    report, few_bytes, whole = log_bytes_read(table, fresh)
    assert not whole
    assert few_bytes * 3 < all_bytes
    assert report.inserted == 100
    assert "0 key columns read" in report.index, report.index

    forget(monkeypatch)
    both = pa.concat_tables([wide(range(400, 410), 10), fresh])
    report, _, whole = log_bytes_read(table, both)
    assert not whole, "the base files have these keys"
    assert (report.updated, report.inserted) == (110, 0)
    table.check()
    check_all(table.storage)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("form", ["parquet", "avro", "hfile"])
def test_logs_of_others_are_read_once(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, TOLD: "false", FORM: form})
    table.write(Operation.INSERT, spread(range(40), 1))
    table.write(Operation.UPSERT, spread(range(10), 2))
    table.write(Operation.DELETE, spread(range(4), 2))
    forget(monkeypatch)
    with_options(table, **{FORM: form})
    others = {**logs_of(table), **logs_of(table, "p1")}
    assert len(others) == 4
    _, _, whole = log_bytes_read(table, spread(range(10, 12), 3, other=True))
    assert whole == set(others)
    _, read, _ = log_bytes_read(table, spread(range(12, 14), 3, other=True))
    assert read == 0, "this process has seen them"
    table.write(Operation.UPSERT, spread(range(4, 10), 4))
    (newest,) = set(logs_of(table)) - set(others)
    tail = read_key_tail(lambda at, size: table.storage.read_range(newest, at, size), newest, logs_of(table)[newest])
    assert tail is not None
    assert len(tail.index.others) == 2, "the newest tells of those that its writer had read"
    forget(monkeypatch)
    _, _, whole = log_bytes_read(table, spread(range(14, 16), 5, other=True))
    assert not whole & set(others), "nor need another process read them"
    table.check()
    check_all(table.storage)
    if form != "hfile":
        assert read_with_hudi_rs(table.path).num_rows == len(table.model.all_rows())


def test_a_damaged_entry_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), MOR)
    table.write(Operation.INSERT, spread(range(20), 1))
    table.write(Operation.UPSERT, spread(range(20), 2))
    (path,) = logs_of(table)
    data = bytearray(table.storage.read(path))
    data[data.rindex(b"hudimeta.log.keys") + 30] ^= 1
    table.storage.put(path, bytes(data))
    forget(monkeypatch)
    with pytest.raises(CorruptFileError):
        table.write(Operation.UPSERT, spread(range(4, 6), 3, other=True))
    assert not list(Table(table.path).timeline.pending)


@pytest.mark.rotation(4)
@pytest.mark.parametrize("seed", range(12))
def test_histories_give_the_same_with_and_without(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of every form and of those that tell nothing, compactions that are planned, run, or taken back."""
    chance = random.Random(seed)
    index = chance.choice(["BLOOM", "SIMPLE", "GLOBAL_SIMPLE"])
    table = ModelledTable(str(tmp_path / "t"), MOR)
    table.write(Operation.INSERT, simple_rows(range(30), 0))
    for turn in range(1, 16):
        form, told = chance.choice(["parquet", "parquet", "avro"]), chance.choice(["true", "true", "false"])
        with_options(table, **{FORM: form, TOLD: told, "hoodie.index.type": index})
        some = chance.sample(range(60), chance.randint(1, 12))
        act = chance.choice(["upsert", "upsert", "upsert", "delete", "plan", "run", "take back", "forget", "merge logs"])
        verbs = Table(table.path, dict(table.options.given))
        planned = [i.time for i in verbs.timeline.pending if i.action.value == "compaction"]
        if act == "upsert":
            table.write(Operation.UPSERT, simple_rows(some, turn))
        elif act == "delete":
            table.write(Operation.DELETE, simple_rows(some, turn))
        elif act == "plan" and not planned:
            verbs.services.schedule_compaction()
        elif act == "run":
            verbs.services.compact()
        elif act == "take back" and planned:
            verbs.services.rollback(planned[0])
        elif act == "forget":
            forget(monkeypatch)
        elif act == "merge logs" and not planned:
            verbs.services.log_compact()
        table.model.check(table.read())
    check_all(table.storage)


def test_a_slice_whose_logs_are_all_passed_over(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), MOR)
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    table.write(Operation.UPSERT, simple_rows(range(8), 2))
    scan = Table(table.path).scan(where="id = 'k0034'")
    assert scan.to_table()["ts"].to_pylist() == [1]
    assert (scan.report.logs_passed_by, scan.report.log_blocks) == (2, 0)


def test_reads_of_single_keys_pass_over_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), MOR)
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    for turn in range(5):
        with_options(table, **{FORM: "avro" if turn == 3 else "parquet", TOLD: str(turn != 1).lower()})
        table.write(Operation.UPSERT, simple_rows(range(turn * 8, turn * 8 + 8), 2 + turn))
    with_options(table)
    table.write(Operation.DELETE, simple_rows([2, 38], 9))
    table.write(Operation.UPSERT, simple_rows([0], 10))
    expected = {row["id"]: row for row in table.read().to_pylist()}
    for number in (0, 2, 5, 8, 13, 15, 20, 24, 31, 34, 38, 39, 41):
        for where in (f"id = 'k{number:04d}'", f"_hoodie_record_key = 'k{number:04d}'"):
            forget(monkeypatch)
            scan = Table(table.path).scan(where=where)
            row = expected.get(f"k{number:04d}")
            assert scan.to_table().to_pylist() == ([row] if row else [])
    assert len(expected) == 38
    scan = Table(table.path).scan(where="id = 'k0034'")
    assert scan.to_table()["ts"].to_pylist() == [6]
    report = scan.report
    assert (report.logs_asked, report.logs_passed_by) == (12, 8), "but its own log, deletes, and the two that tell nothing"
    assert "8 of 12 log files not read, by their keys" in str(report)
    off = Table(table.path, {TOLD: "false"}).scan(where="id = 'k0034'")
    assert off.to_table()["ts"].to_pylist() == [6]
    assert (off.report.logs_asked, off.report.log_blocks) == (0, 14)
    both = Table(table.path).scan(where="id in ('k0034', 'k0000') and ts > 6")
    assert both.to_table()["id"].to_pylist() == ["k0000"]
    verbs = Table(table.path, {"hoodie.log.compaction.blocks.threshold": "2"})
    merged = verbs.services.log_compact()
    assert merged
    for key, row in list(expected.items())[::4]:
        assert Table(table.path).scan(where=f"id = '{key}'").to_table().to_pylist() == [row]
