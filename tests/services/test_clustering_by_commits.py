"""Clustering what commits wrote, in their order, and files of the same columns together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError
from hudimeta.services.clustering_by_commits import CHECKPOINT
from hudimeta.services.clustering_plan import COPYING_STREAMS, ClusteringPlan
from hudimeta.storage.at_once import PARALLEL_REQUESTS
from hudimeta.testing.builders import simple_rows
from hudimeta.types import Action, Instant
from tests.read.far_away import FarAway

STRATEGY = "hoodie.clustering.plan.strategy."
BY_COMMITS = {f"{STRATEGY}class": "org.apache.hudi.table.action.cluster.strategy.CommitBasedClusteringPlanStrategy"}
STREAMS = {f"{STRATEGY}class": "SparkStreamCopyClusteringPlanStrategy"}
EARLIEST, GROUP, MOST = (
    f"{STRATEGY}{name}" for name in ("earliest.commit.to.cluster", "max.bytes.per.group", "max.num.groups")
)


def table_of(path: Path, kind: str = "COPY_ON_WRITE", commits: int = 4) -> Table:
    """Each commit writes a file group of its own into both partitions."""
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
    rows = simple_rows(range(2), 1)
    table = Table.create(path, rows.schema, key="id", partition_by="part", ordering="ts", type=kind, options=options)
    for number in range(commits):
        table.insert(simple_rows(range(number * 10, number * 10 + 10), 1))
    return table


def commits_of(table: Table) -> list[str]:
    return [i.time for i in table.timeline.writes if i.action is not Action.REPLACE_COMMIT]


def planned(table: Table, **options: str) -> ClusteringPlan:
    return Table(table.path, {**BY_COMMITS, **options}).services.clustering.plan()


def instants(plan: ClusteringPlan) -> list[list[str]]:
    return [[one.base_instant for one in slices] for slices, _ in plan.groups]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_commits_wrote_is_taken_in_their_order(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    commits = commits_of(table)
    in_order = {f"{STRATEGY}file.slices.sort.by": "INSTANT_TIME"}
    whole = planned(table, **in_order)
    assert instants(whole) == [commits, commits]
    assert whole.checkpoint == commits[-1]
    since = planned(table, **in_order, **{EARLIEST: commits[1]})
    assert instants(since) == [commits[2:], commits[2:]]
    two = sum(one.base_size for one in whole.groups[0][0][:2])
    cut = planned(table, **in_order, **{GROUP: str(two * 5 // 4)})
    assert instants(cut) == [commits[:2], [commits[2]], commits[:2], [commits[2]], [commits[3]], [commits[3]]]


def test_a_plan_with_few_groups_says_where_the_next_one_begins(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    commits = commits_of(table)
    one_file = {GROUP: "1", MOST: "3"}
    first = planned(table, **one_file)
    assert instants(first) == [[commits[0]], [commits[0]], [commits[1]], [commits[1]]]
    assert first.checkpoint == commits[1]
    rest = planned(table, **one_file, **{EARLIEST: first.checkpoint})
    assert instants(rest) == [[commits[2]], [commits[2]], [commits[3]], [commits[3]]]
    few = planned(table, **{MOST: "1"})
    assert len(few.groups) == 1
    assert few.checkpoint == "", "file groups of the first commit are left"


def test_what_was_put_together_is_not_taken_again(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "MERGE_ON_READ")
    before = sorted(map(repr, table.scan(columns=["id", "x"]).to_table().to_pylist()))
    options = {**BY_COMMITS, "hoodie.clustering.plan.partition.filter.mode": "NONE"}
    (report,) = Table(table.path, options).cluster()
    assert report.files_after == 2
    stored = next(i for i in Table(table.path).timeline.instants if i.time == report.instant)
    assert sorted(map(repr, table.scan(columns=["id", "x"]).to_table().to_pylist())) == before
    assert extra_of(Table(table.path), stored)[CHECKPOINT] == commits_of(table)[-1]
    assert planned(table).groups == ()
    table.insert(simple_rows(range(100, 110), 1))
    assert instants(planned(table)) == [[commits_of(table)[-1]]] * 2
    table.upsert(simple_rows(range(4), 5))
    assert [len(group) for group in instants(planned(table))] == [2, 2], "rows of the clustered files were changed since"


def extra_of(table: Table, instant: Instant) -> dict[str, str]:
    """Extra metadata of the plan that a completed clustering carried out."""
    extra: dict[str, str] = table.timeline.plan(instant)["clusteringPlan"]["extraMetadata"]
    return extra


def test_what_is_no_commit_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", commits=1)
    with pytest.raises(ConfigError, match="yesterday"):
        planned(table, **{EARLIEST: "yesterday"})


def test_footers_are_read_at_once_and_of_no_more_partitions_than_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A footer waits for the store: as many are under way as requests of other kinds are."""
    table = table_of(tmp_path / "t", commits=PARALLEL_REQUESTS + 1)
    far = FarAway(meeting=PARALLEL_REQUESTS)
    far.begin(monkeypatch)
    (group,) = Table(table.path, {**STREAMS, MOST: "1"}).services.clustering.plan().groups
    assert far.most == PARALLEL_REQUESTS
    assert len(group[0]) == len(far.opened) == PARALLEL_REQUESTS + 1


def test_files_of_the_same_columns_are_copied_together(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", commits=2)
    more = simple_rows(range(50, 70), 1)
    table.insert(more.append_column("note", pa.array(["new"] * len(more))))
    table.insert(more.set_column(0, "id", pa.array([f"z{i}" for i in range(len(more))])).append_column("note", more["id"]))
    before = sorted(map(repr, table.scan(columns=["id", "note"]).to_table().to_pylist()))
    apart = Table(table.path, STREAMS).services.clustering.plan()
    assert [len(slices) for slices, _ in apart.groups] == [2, 2, 2, 2]
    assert apart.executor == COPYING_STREAMS
    together = Table(table.path, {**STREAMS, f"{STRATEGY}binary.copy.schema.evolution.enable": "true"})
    assert [len(slices) for slices, _ in together.services.clustering.plan().groups] == [4, 4]
    (report,) = Table(table.path, STREAMS).cluster()
    assert report.groups_copied == 2
    assert len(report.decoded_because) == 2, report.decoded_because
    assert sorted(map(repr, table.scan(columns=["id", "note"]).to_table().to_pylist())) == before
