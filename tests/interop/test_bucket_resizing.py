"""Buckets of a hash ring that one side splits and merges, and the other writes to afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import ConfigError
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import TABLE_VERSION, Model, Ours, Theirs, plain_rows, row

RUN = "org.apache.hudi.client.clustering."
RINGS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.bucket.index.hash.field": "id",
}
SPLITS = {"hoodie.parquet.max.file.size": "500"}
MERGES = {"hoodie.parquet.max.file.size": str(1 << 30)}
THEIRS = {
    **RINGS,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.clustering.plan.strategy.class": RUN + "plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": RUN + "run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.async.max.commits": "1",
    "hoodie.write.table.version": TABLE_VERSION,
    "hoodie.write.auto.upgrade": "false",
}


class Sides:
    """A table of ours in two buckets a partition, with logs over them, and what both must read."""

    def __init__(self, path: Path, hudi: ApacheHudi) -> None:
        self.path, self.hudi, self.model = path, hudi, Model()
        self.ours = Ours(path, type="MERGE_ON_READ", options=RINGS)
        self.theirs = Theirs(path, hudi, type="MERGE_ON_READ", options=RINGS)
        self.write(self.ours, 0, 60, 1)
        self.write(self.theirs, 20, 70, 2)

    def write(self, side: Ours | Theirs, first: int, last: int, ts: int) -> None:
        rows = [row(n, ts) for n in range(first, last)]
        side.write("upsert", rows)
        self.model.put(rows)

    def their_service(self, name: str, instant: str | None = None, **more: str) -> str:
        made = self.hudi.service(self.path, name, {**THEIRS, **more}, instant)
        assert made
        return made

    def buckets(self) -> int:
        """Of one partition, as its newest ring has it."""
        rings = sorted((self.path / ".hoodie/.bucket_index/consistent_hashing_metadata/2026-01").glob("*.hashing_meta"))
        return len(json.loads(rings[-1].read_text())["nodes"])

    def go_on(self, ts: int) -> None:
        self.write(self.theirs, 10, 75, ts)
        self.write(self.ours, 5, 80, ts + 1)
        table = hudimeta.Table(self.path)
        assert plain_rows(table.scan().to_table()) == self.model.sorted()
        assert plain_rows(self.hudi.read(self.path).table) == self.model.sorted()
        report = table.metadata.validate()
        assert report.holds, str(report)


@pytest.mark.timeout(500)
def test_each_side_goes_on_after_the_other_split_and_merged(hudi: ApacheHudi, tmp_path: Path) -> None:
    sides = Sides(tmp_path / "table", hudi)
    (report,) = hudimeta.Table(sides.path, {**RINGS, **SPLITS}).cluster()
    assert (report.commit.file_groups_added, sides.buckets()) == (12, 4)
    sides.go_on(3)
    sides.their_service("cluster", **MERGES)
    assert sides.buckets() == 1
    sides.go_on(5)
    sides.their_service("cluster", **SPLITS)
    assert sides.buckets() == 2
    sides.go_on(7)
    assert hudimeta.Table(sides.path, {**RINGS, **MERGES}).cluster()
    assert sides.buckets() == 1
    sides.go_on(9)


@pytest.mark.timeout(500)
def test_both_go_on_after_an_overwrite_of_ours(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Apache Hudi names the file groups of its own nowhere, and writes what comes next where nobody sees it."""
    sides = Sides(tmp_path / "table", hudi)
    sides.ours.write("insert_overwrite", kept := [row(n, 3) for n in range(10, 40)])
    sides.model.overwrite(kept, partitioned=True)
    sides.go_on(4)
    sides.theirs.write("insert_overwrite", theirs := [row(n, 6) for n in range(10, 40)])
    sides.model.overwrite(theirs, partitioned=True)
    table = hudimeta.Table(sides.path, RINGS)
    with pytest.raises(ConfigError, match="overwrite it once more with its rows"):
        sides.write(sides.ours, 0, 50, 7)
    months = ", ".join(sorted({f"'{one['month']}'" for one in theirs}))
    table.insert_overwrite(table.scan(where=f"month IN ({months})", columns=list(theirs[0])).to_table())
    sides.go_on(8)


@pytest.mark.timeout(500)
def test_each_side_runs_a_plan_of_the_other(hudi: ApacheHudi, tmp_path: Path) -> None:
    sides = Sides(tmp_path / "table", hudi)
    planned = hudimeta.Table(sides.path, {**RINGS, **SPLITS}).services.clustering.schedule()
    assert planned is not None
    sides.their_service("run_clustering", planned)
    assert sides.buckets() == 4
    sides.go_on(3)
    planned = sides.their_service("plan_clustering", **MERGES)
    hudimeta.Table(sides.path, RINGS).services.clustering.execute(planned)
    assert sides.buckets() == 1
    sides.go_on(5)
