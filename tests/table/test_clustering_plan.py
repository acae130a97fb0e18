"""The plan of a clustering as its requested file stores it, both ways."""

from __future__ import annotations

from hudimeta.formats.avro.container import decode_container
from hudimeta.table.clustering_plan import PlannedGroup, StoredClustering, decode_clustering_plan, encode_clustering_plan
from hudimeta.table.compaction_plan import PlannedSlice

ID = "2723df48-080c-4b44-b863-7527924630fc-0"
BASE = f"{ID}_0-176-431_20261121025111375.parquet"
LOG = f".{ID}_20261121025118758.log.1_0-246-600"
OF_HUDI = {
    "operationType": "CLUSTER",
    "clusteringPlan": {
        "inputGroups": [
            {
                "slices": [
                    {
                        "dataFilePath": f"file:/tbl/part=p0/{BASE}",
                        "deltaFilePaths": [f"file:/tbl/part=p0/{LOG}"],
                        "fileId": ID,
                        "partitionPath": "part=p0",
                        "bootstrapFilePath": "",
                        "version": 1,
                    }
                ],
                "metrics": {"TOTAL_LOG_FILES": 2.0},
                "numOutputFileGroups": 1,
                "extraMetadata": None,
                "version": 1,
            }
        ],
        "strategy": {
            "strategyClassName": "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
            "strategyParams": {"hoodie.clustering.plan.strategy.sort.columns": "rider"},
            "version": 1,
        },
        "extraMetadata": {},
        "version": 1,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": [],
    },
    "extraMetadata": {},
    "version": 1,
}
"""As Apache Hudi 1.0.2 wrote it."""


def test_a_plan_of_hudi_is_read_and_written_as_it_was() -> None:
    plan = decode_clustering_plan(OF_HUDI)
    (group,) = plan.groups
    assert group.slices == (PlannedSlice("part=p0", ID, "20261121025111375", BASE, (LOG,)),)
    assert plan.parameters == {"hoodie.clustering.plan.strategy.sort.columns": "rider"}
    content = encode_clustering_plan(plan, "/tbl")
    assert decode_container(content, "t", ("HoodieRequestedReplaceMetadata",)) == [OF_HUDI]


def test_slices_of_logs_alone_and_tables_in_stores() -> None:
    slices = (PlannedSlice("", ID, "20261121025118758", None, (LOG,)),)
    plan = StoredClustering((PlannedGroup(slices, 3),), "x.Y")
    (record,) = decode_container(encode_clustering_plan(plan, "s3://b/t"), "t", ("HoodieRequestedReplaceMetadata",))
    (stored,) = record["clusteringPlan"]["inputGroups"][0]["slices"]
    assert (stored["dataFilePath"], stored["deltaFilePaths"]) == ("", [f"s3://b/t/{LOG}"])
    assert decode_clustering_plan(record) == plan


def test_an_overwrite_names_no_groups() -> None:
    assert decode_clustering_plan({"operationType": None, "clusteringPlan": None}).groups == ()
    assert decode_clustering_plan({}).groups == ()
