"""What a pending clustering means for a write, and what a commit that the timeline holds already means."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.errors import CommitConflict
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import REQUESTED_REPLACE_METADATA
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, check_all
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation


def plan_clustering(table: ModelledTable, partition: str) -> str:
    """A clustering that is going to rewrite every file group of a partition, planned by another writer."""
    slices = Table(table.path).file_slices().to_pylist()
    group = [
        {
            "dataFilePath": f"file:{table.path}/{s['partition_path']}/{s['base_file']}",
            "deltaFilePaths": [],
            "fileId": s["file_id"],
            "partitionPath": s["partition_path"],
            "bootstrapFilePath": "",
            "version": 1,
        }
        for s in slices
        if s["partition_path"] == partition
    ]
    record = {
        "operationType": "CLUSTER",
        "clusteringPlan": {
            "inputGroups": [{"slices": group, "metrics": None, "numOutputFileGroups": 1, "extraMetadata": None, "version": 1}],
            "strategy": None,
            "extraMetadata": {},
            "version": 1,
            "preserveHoodieMetadata": True,
            "missingSchedulePartitions": [],
        },
        "extraMetadata": {},
        "version": 1,
    }
    time = table.session().times.next(Table(table.path).timeline.last_time)
    TimelineWriter(table.storage).create_requested(
        time, Action.CLUSTERING, encode_container(REQUESTED_REPLACE_METADATA, [record])
    )
    return time


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"))
    made.write(Operation.INSERT, simple_rows(range(10), 1))
    return made


@pytest.mark.parametrize(
    ("operation", "rows"),
    [
        (Operation.UPSERT, simple_rows([2], 2)),
        (Operation.DELETE, simple_rows([2], 2)),
        (Operation.INSERT_OVERWRITE, simple_rows([2], 2)),
    ],
)
def test_a_file_group_that_a_clustering_will_replace_is_not_changed(
    table: ModelledTable, operation: Operation, rows: object
) -> None:
    planned = plan_clustering(table, "p0")
    with pytest.raises(CommitConflict, match=f"the pending clustering {planned} is going to replace") as refused:
        table.write(operation, rows)  # type: ignore[arg-type]
    assert "cancel that clustering" in str(refused.value)
    table.check()
    check_all(table.storage, ALWAYS)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", [Operation.INSERT, Operation.UPSERT])
def test_new_rows_go_round_file_groups_that_a_clustering_will_replace(tmp_path: Path, kind: str, operation: Operation) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    planned = {s["file_id"] for s in Table(table.path).file_slices().to_pylist()}
    for partition in ("p0", "p1"):
        plan_clustering(table, partition)
    table.write(operation, simple_rows(range(20, 30), 2))
    slices = Table(table.path).file_slices().to_pylist()
    assert len(slices) == 2 * len(planned)
    table.write(operation, simple_rows(range(30, 36), 3))
    assert len(Table(table.path).file_slices()) == len(slices), "the small files that no plan names are filled"
    table.check()
    check_all(table.storage)


def test_other_partitions_can_be_written(table: ModelledTable) -> None:
    planned = plan_clustering(table, "p0")
    table.write(Operation.UPSERT, simple_rows([1, 3, 51], 2))
    table.write(Operation.BULK_INSERT, simple_rows([50], 2))
    assert [i.time for i in Table(table.path).timeline.pending] == [planned], "plans of services are not rolled back"
    table.check()
    check_all(table.storage)
