"""Writes of ours while services of Apache Hudi are planned and not run, and Apache Hudi runs them afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import CommitConflict
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import TABLE_VERSION, Model, Ours, Theirs, plain_rows, row

CLUSTER = {"hoodie.clustering.inline.max.commits": "1", "hoodie.clustering.async.max.commits": "1"}
COMPACT = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.blocks.threshold": "1",
}


class Sides:
    """A table of ours with rows in three partitions, what both must read, and its writers."""

    def __init__(self, path: Path, hudi: ApacheHudi, kind: str) -> None:
        self.path, self.hudi, self.model = path, hudi, Model()
        self.ours = Ours(path, type=kind)
        self.options = {"hoodie.write.table.version": TABLE_VERSION, "hoodie.write.auto.upgrade": "false"}
        self.write("insert", 0, 30, 1)

    def write(self, operation: str, first: int, last: int, ts: int) -> None:
        rows = [row(n, ts) for n in range(first, last)]
        self.ours.write(operation, rows)
        self.model.put(rows)

    def service(self, name: str, more: dict[str, str], instant: str | None = None) -> str:
        made = self.hudi.service(self.path, name, {**self.options, **more}, instant)
        assert made
        return made

    def agree(self) -> None:
        assert plain_rows(hudimeta.Table(self.path).scan().to_table()) == self.model.sorted()
        assert plain_rows(self.hudi.read(self.path).table) == self.model.sorted()
        report = hudimeta.Table(self.path).metadata.validate()
        assert report.holds, str(report)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_new_rows_go_round_a_planned_clustering(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    sides = Sides(tmp_path / "table", hudi, kind)
    planned = sides.service("plan_clustering", CLUSTER)
    sides.write("insert", 40, 50, 2)
    sides.write("upsert", 50, 55, 2)
    sides.agree()
    with pytest.raises(CommitConflict, match=f"the pending clustering {planned} is going to replace"):
        sides.ours.write("upsert", [row(3, 3)])
    sides.agree()
    sides.service("run_clustering", CLUSTER, planned)
    sides.agree()
    sides.write("upsert", 0, 60, 4)
    sides.agree()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_hudi_overwrites_while_a_clustering_is_planned_comes_back_with_its_run(
    hudi: ApacheHudi, tmp_path: Path, kind: str
) -> None:
    """Why our overwrites wait for such a plan, or take it back, and why we do not run one that was overwritten."""
    sides = Sides(tmp_path / "table", hudi, kind)
    planned = sides.service("plan_clustering", CLUSTER)
    with pytest.raises(CommitConflict, match=f"the pending clustering {planned} is going to replace"):
        sides.ours.write("insert_overwrite_table", [row(77, 3)])
    theirs = Theirs(sides.path, hudi, type=kind)
    theirs.write("insert_overwrite_table", [row(77, 3)])
    sides.model.rows.clear()
    sides.model.put([row(77, 3)])
    sides.agree()
    with pytest.raises(CommitConflict, match="a write after the plan changed"):
        hudimeta.Table(sides.path).services.clustering.execute(planned)
    sides.agree()
    sides.service("run_clustering", CLUSTER, planned)
    assert len(plain_rows(sides.hudi.read(sides.path).table)) == 31


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["plan_compaction", "plan_log_compaction"])
def test_updates_go_behind_a_planned_compaction(hudi: ApacheHudi, tmp_path: Path, what: str) -> None:
    sides = Sides(tmp_path / "table", hudi, "MERGE_ON_READ")
    sides.write("upsert", 0, 10, 2)
    sides.write("upsert", 5, 12, 3)
    planned = sides.service(
        what, {**COMPACT, "hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "1"}
    )
    sides.write("upsert", 8, 20, 4)
    sides.write("insert", 40, 50, 4)
    sides.agree()
    sides.service(what.replace("plan", "run"), COMPACT, planned)
    sides.agree()
    sides.write("upsert", 0, 60, 5)
    sides.agree()
