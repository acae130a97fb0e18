"""What a write prepared for the record index before it took the lock: kept where others left its keys alone, else made anew.

Each write here stands still with its files planned while others complete something. Then it goes on, and table and index must
be as if it had come last.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.indexes.protocol import CommitChange, IndexDelta
from hudimeta.indexes.record_index.keep import RecordIndexKeep
from hudimeta.metadata import MetadataTable, record_index
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.table import stated_keys
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Paused

GROUPS = {"hoodie.metadata.record.index.min.filegroup.count": "2"}
PLAIN = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.metadata.index.partition.stats.enable": "false"}
INDEXED = {**SIMPLE_OPTIONS, **GROUPS, **PLAIN, "hoodie.metadata.record.index.enable": "true"}
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
MOVES = {"hoodie.record.index.update.partition.path": "true"}
NO_SMALL = {"hoodie.parquet.small.file.limit": "0"}
"""Each write has file groups of its own, so that none is rebased: what it prepared is for these very files."""


def moved(ids: list[int], ts: int, part: str) -> pa.Table:
    """Rows of another partition than theirs."""
    rows = simple_rows(ids, ts)
    return rows.set_column(1, "part", pa.array([part] * len(rows), pa.string()))


class Beside:
    """A table, and a write to it that stands still with its files planned.

    Args:
        path: Of the table.
        rows: Of the write.
        operation: Of the write.
        options: Beyond `INDEXED`.
        before: Rows that are there.
    """

    def __init__(
        self,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        rows: pa.Table,
        operation: Operation = Operation.UPSERT,
        before: pa.Table | None = None,
        **options: str,
    ) -> None:
        self.table = ModelledTable(str(path / "t"), {**INDEXED, **NO_SMALL, **options})
        first = simple_rows(range(10), 1) if before is None else before
        if len(first):
            self.table.write(Operation.UPSERT, first)
        self._made: list[str] = []
        delta, made = RecordIndexKeep.delta, self._made

        def noted(keep: RecordIndexKeep, partition: str, change: CommitChange) -> IndexDelta:
            made.append(change.instant)
            return delta(keep, partition, change)

        monkeypatch.setattr(RecordIndexKeep, "delta", noted)
        self.operation, self.rows = operation, rows
        chosen = OPTIONS.read({**self.table.options.given})
        self._paused = Paused(
            lambda engine: write_rows(WriteSession(self.table.storage, chosen, engine=engine), operation, rows)
        )

    def other(self, ids: list[int], operation: Operation = Operation.UPSERT, ts: int = 2) -> None:
        """Another write, from its beginning to its end."""
        self.table.write(operation, simple_rows(ids, ts))

    def finish(self, attempts: int = 1) -> bool:
        """Let it go on, and hold the table to rows and invariants; whether what it had prepared was kept."""
        report = self._paused.finish()
        self.table.model.write(self.operation, self.rows)
        assert report.attempts == attempts
        self.table.model.check(self.table.read())
        check_all(self.table.storage)
        return self._made.count(report.instant) == 1

    @property
    def proven(self) -> bool:
        """Whether the record index lacks no row, as the newest commit says."""
        return record_index.PARTITION in proven_indexes(self._metadata())

    def place_of(self, number: int) -> str:
        """The partition that the record index has for a row."""
        found = hudimeta.Table(self.table.path).metadata.records(record_index.PARTITION)
        return str(found.filter(pc.equal(found["record_key"], f"k{number:04d}"))["partition_path"][0].as_py())

    def _metadata(self) -> MetadataTable:
        session = self.table.session()
        found = session.snapshot_now().metadata
        assert found is not None
        return found


Meanwhile = Callable[[Beside], object]


def _services(beside: Beside) -> hudimeta.Table:
    return hudimeta.Table(beside.table.path)


def _rebuilt(beside: Beside) -> None:
    _services(beside).metadata.drop_index("record_index")
    _services(beside).metadata.create_index(type="record_index", options={**GROUPS})


def _taken_back(beside: Beside) -> None:
    report = write_rows(beside.table.session(), Operation.UPSERT, simple_rows([70], 2))
    _services(beside).rollback(report.instant)


KEPT: dict[str, Meanwhile] = {
    "other new keys": lambda b: b.other([60, 61]),
    "updates of other keys": lambda b: b.other([2, 3]),
    "an update of its own partition's rows": lambda b: b.other([0, 4, 60]),
    "deletes of other keys": lambda b: b.other([2, 3], Operation.DELETE),
    "many commits": lambda b: [b.other([n]) for n in range(60, 64)],
    "inserts of other keys, unasked": lambda b: b.other([60, 61], Operation.INSERT),
}


@pytest.mark.parametrize("kind", [{}, MERGE], ids=["copy", "merge"])
@pytest.mark.parametrize("what", KEPT)
def test_kept_where_others_had_other_keys(
    what: str, kind: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Beside(tmp_path, monkeypatch, simple_rows([20, 22], 2), **kind)
    KEPT[what](beside)
    assert beside.finish()
    assert beside.proven


def test_kept_where_the_metadata_table_was_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    often = {"hoodie.metadata.compact.max.delta.commits": "1"}
    beside = Beside(tmp_path, monkeypatch, simple_rows([20, 22], 2), **often)
    for number in range(60, 66):
        beside.other([number])
    compactions = [i for i in beside._metadata().timeline.completed if i.action.value == "commit"]
    assert compactions
    assert beside.finish()
    assert beside.proven


def test_kept_where_log_files_were_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Beside(tmp_path, monkeypatch, simple_rows([20, 22], 2), before=simple_rows(range(10), 1), **MERGE)
    beside.other([2, 3])
    assert _services(beside).compact()
    assert beside.finish()


ANEW: dict[str, Meanwhile] = {
    "the index was dropped and built": _rebuilt,
    "a write was taken back": _taken_back,
    "file groups were clustered": lambda b: _services(b).cluster(),
    "a savepoint": lambda b: _services(b).savepoint(),
    "a partition was emptied": lambda b: _emptied(b),
}


def _emptied(beside: Beside) -> None:
    _services(beside).delete_partition("p1")
    beside.table.model.write(Operation.DELETE_PARTITION, simple_rows([1], 1))


@pytest.mark.parametrize("what", ANEW)
def test_made_anew_after(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Beside(tmp_path, monkeypatch, simple_rows([20, 22], 2))
    ANEW[what](beside)
    assert not beside.finish()
    assert beside.proven


def test_made_anew_beside_writers_that_state_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Beside(tmp_path, monkeypatch, simple_rows([20, 22], 2))
    with monkeypatch.context() as patched:
        patched.setattr(stated_keys, "_MOST", 0)
        beside.other([60])
    assert not beside.finish()
    assert beside.proven


def test_a_key_that_two_insert_ends_the_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Beside(tmp_path, monkeypatch, simple_rows([20], 2), Operation.INSERT)
    assert beside.proven
    beside.other([20], Operation.INSERT)
    assert not beside.finish()
    assert not beside.proven, "the key is doubled, and the index can name one place only"
    assert hudimeta.Table(beside.table.path).scan(where="id = 'k0020'").to_table().num_rows == 2


def test_a_key_that_another_deleted_is_there_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Beside(tmp_path, monkeypatch, simple_rows([2], 3), Operation.INSERT)
    beside.other([2], Operation.DELETE)
    assert beside.finish(attempts=2), "its instant was older than the delete's: it is tried again"
    assert hudimeta.Table(beside.table.path).scan(where="id = 'k0002'").to_table().num_rows == 1


def test_a_deleted_key_that_another_inserted_stays_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Beside(tmp_path, monkeypatch, simple_rows([2], 3), Operation.DELETE)
    beside.other([30, 32])
    assert beside.finish()
    beside.other([2])
    assert beside.place_of(2) == "p0"


@pytest.mark.parametrize(("theirs", "attempts"), [(4, 1), (2, 2)], ids=["another row", "the same row"])
def test_rows_that_move_between_partitions(theirs: int, attempts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spread = pa.concat_tables([simple_rows([2], 1), moved([4], 1, "p5")])
    beside = Beside(tmp_path, monkeypatch, moved([2], 3, "p7"), before=spread, **MOVES)
    write_rows(beside.table.session(), Operation.UPSERT, moved([theirs], 2, "p9"))
    beside._paused.finish()
    rows = {row["id"]: row["part"] for row in beside.table.read().to_pylist()}
    assert rows == {"k0002": "p7", "k0004": "p9" if theirs == 4 else "p5"}
    assert {f"k{n:04d}": beside.place_of(n) for n in (2, 4)} == rows
    check_all(beside.table.storage)
    assert beside.proven
    assert len(set(beside._made)) == 1 + attempts


def test_many_keys_into_an_index_that_was_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"hudimeta.index.proof.max.keys": "2"}
    beside = Beside(tmp_path, monkeypatch, simple_rows(range(20, 26), 2), before=simple_rows([], 1), **few)
    beside.other([60])
    assert not beside.finish()
    assert not beside.proven, "nobody asked whether the index knows so many keys, and it was not empty any more"
