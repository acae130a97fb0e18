"""Restores to a savepoint of Apache Hudi, and rollbacks both ways: the other engine reads what is left and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import ALWAYS, check_all
from tests.interop.apache_hudi import ApacheHudi, HudiFailed, Installation
from tests.interop.sides import Model, Ours, Theirs, plain_rows, row

FOUND = Installation.find()
# With a secondary index 1.2.0 cannot write, its own tables either: see `alternation._hudi_cannot`.
HAS_SECONDARY = FOUND is None or FOUND.release != "1.2.0"
COMPACTS_FIRST = FOUND is not None and FOUND.release == "1.2.0"
"""It compacts its metadata table before it rolls back, and then refuses to roll back what is older than the compaction."""
SECONDARY = {"hoodie.metadata.index.secondary.column": "note"} if HAS_SECONDARY else {}
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    **SECONDARY,
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.table.services.enabled": "false",
}
CASES = [
    ("COPY_ON_WRITE", True, "50"),
    ("COPY_ON_WRITE", False, "2"),
    ("MERGE_ON_READ", True, "50"),
    ("MERGE_ON_READ", True, "2"),
]
"""Type, partitioned, delta commits of the metadata table before a compaction."""


class Table:
    """A table that both write to by turns, and its model."""

    def __init__(self, path: Path, hudi: ApacheHudi, type: str, partitioned: bool, compact: str) -> None:
        options = {**INDEXES, "hoodie.metadata.compact.max.delta.commits": compact}
        self.path, self.hudi, self.model = path, hudi, Model()
        self.ours = Ours(path, partitioned=partitioned, type=type, options=options)
        self.theirs = Theirs(path, hudi, partitioned=partitioned, type=type, options=options)

    @property
    def face(self) -> hudimeta.Table:
        return self.ours.table()

    def write(self, side: Ours | Theirs, first: int, last: int, ts: int) -> None:
        rows = [row(n, ts) for n in range(first, last)]
        side.write("upsert", rows)
        self.model.put(rows)

    def agree(self) -> None:
        """Both read the model's rows, with the metadata table and without, and each index holds."""
        wanted = self.model.sorted()
        assert plain_rows(self.face.scan().to_table()) == wanted
        assert plain_rows(self.hudi.read(self.path).table) == wanted
        assert plain_rows(self.hudi.read(self.path, metadata=False).table) == wanted
        assert plain_rows(self.hudi.read(self.path, where="ts >= 3").table) == [r for r in wanted if r["ts"] >= 3]
        check_all(open_storage(str(self.path)), [i for i in ALWAYS if i.__name__ != "indexes_know_every_row"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("type", "partitioned", "compact"), CASES)
def test_a_restore_to_the_others_savepoint(
    hudi: ApacheHudi, tmp_path: Path, type: str, partitioned: bool, compact: str
) -> None:
    table = Table(tmp_path / "table", hudi, type, partitioned, compact)
    table.write(table.ours, 0, 20, 1)
    table.write(table.theirs, 10, 30, 2)
    kept = dict(table.model.rows)
    point = table.face.timeline.writes[-1].time
    hudi.service(table.path, "savepoint", table.theirs.options, point)
    assert [(s.instant, s.user) for s in table.face.savepoints()] == [(point, "interop")]
    table.write(table.theirs, 20, 40, 3)
    table.write(table.ours, 0, 5, 4)
    if type == "MERGE_ON_READ":
        table.ours.write("compact", [])
    table.write(table.theirs, 3, 8, 5)
    assert table.face.restore(point).deleted
    table.face.metadata.validate().raise_if_differs()
    table.model.rows = kept
    table.agree()
    table.write(table.theirs, 5, 12, 6)
    table.agree()
    table.write(table.ours, 28, 45, 7)
    table.agree()
    table.face.metadata.validate(["files", "column_stats"]).raise_if_differs()
    table.face.delete_savepoint(point)
    table.write(table.theirs, 40, 50, 8)
    table.agree()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_rollback_of_the_others_write(hudi: ApacheHudi, tmp_path: Path, type: str) -> None:
    table = Table(tmp_path / "table", hudi, type, True, "50")
    table.write(table.ours, 0, 20, 1)
    kept = dict(table.model.rows)
    table.write(table.theirs, 10, 30, 3)
    table.face.rollback(table.face.timeline.writes[-1].time)
    table.model.rows = dict(kept)
    table.agree()
    table.face.metadata.validate().raise_if_differs()
    table.write(table.ours, 15, 25, 4)
    last = table.face.timeline.writes[-1].time
    if COMPACTS_FIRST:
        with pytest.raises(HudiFailed, match=f"Commit being rolled back {last} is earlier than the latest compaction"):
            hudi.service(table.path, "rollback", table.theirs.options, last)
        table.face.recover()  # which finishes what it has begun
    else:
        hudi.service(table.path, "rollback", table.theirs.options, last)
    table.model.rows = dict(kept)
    table.agree()
    table.write(table.theirs, 3, 8, 5)
    table.write(table.ours, 6, 28, 6)
    table.agree()
