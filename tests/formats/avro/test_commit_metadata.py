"""Commit metadata: one shape from Avro and JSON, and the defaults that Java needs."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from hudimeta.errors import CorruptFileError
from hudimeta.formats.avro.commit_metadata import decode_commit_metadata, encode_commit_metadata, write_stat
from hudimeta.formats.avro.container import decode_container_schema, encode_container
from hudimeta.formats.avro.schemas import INDEX_PLAN

BASE = write_stat(
    fileId="f-0",
    path="p=1/f-0_0-1-1_20260101000000000.parquet",
    partitionPath="p=1",
    fileSizeInBytes=435_000,
    numWrites=3,
    numInserts=3,
    runtimeStats={"totalCreateTime": 72},
)


def test_java_commits_are_reproduced(recorded_containers: dict[str, bytes]) -> None:
    seen = 0
    for name, data in recorded_containers.items():
        kind = decode_container_schema(data)["name"]
        if kind in ("HoodieCommitMetadata", "HoodieReplaceCommitMetadata"):
            sync = data[-16:]
            replace = kind == "HoodieReplaceCommitMetadata"
            again = encode_commit_metadata(decode_commit_metadata(data, name), replace=replace, sync=sync)
            assert again[again.index(sync) :] == data[data.index(sync) :], name
            seen += 1
    assert seen > 800


def test_json_of_version_6_has_the_same_shape(recorded_timeline: dict[str, bytes]) -> None:
    commits = {name: data for name, data in recorded_timeline.items() if data.startswith(b"{")}
    assert len(commits) > 30
    for name, data in commits.items():
        raw, decoded = json.loads(data), decode_commit_metadata(data, name)
        assert decoded["operationType"] == raw["operationType"]
        assert decoded["extraMetadata"] == raw["extraMetadata"]
        assert decoded["partitionToReplaceFileIds"] == raw.get("partitionToReplaceFileIds", {})
        for partition, stats in raw["partitionToWriteStats"].items():
            for stat, ours in zip(stats, decoded["partitionToWriteStats"][partition], strict=True):
                assert ours.keys() == BASE.keys()
                assert {k: ours[k] for k in ours.keys() & stat.keys()} == {k: stat[k] for k in ours.keys() & stat.keys()}
        assert decode_commit_metadata(encode_commit_metadata(decoded, replace=True))["extraMetadata"] == raw["extraMetadata"]


def test_base_file_stat_has_zeros_where_java_has_primitives() -> None:
    counters = {name for name, value in BASE.items() if value == 0}
    assert counters == {
        "numDeletes",
        "numUpdateWrites",
        "totalWriteErrors",
        "totalLogRecords",
        "totalUpdatedRecordsCompacted",
        "totalLogBlocks",
        "totalCorruptLogBlock",
        "totalRollbackBlocks",
        "totalLogFilesCompacted",
        "totalLogReadTimeMs",
        "totalLogSizeCompacted",
        "numUpdates",
    }
    nulls = {name for name, value in BASE.items() if value is None}
    assert nulls == {
        "totalLogFiles",
        "logVersion",
        "logOffset",
        "baseFile",
        "logFiles",
        "cdcStats",
        "prevBaseFile",
        "minEventTime",
        "maxEventTime",
        "tempPath",
    }
    assert BASE["prevCommit"] == "null"
    assert BASE["totalWriteBytes"] == 435_000
    assert BASE["runtimeStats"] == {"totalScanTime": 0, "totalCreateTime": 72, "totalUpsertTime": 0}


def test_log_file_stat() -> None:
    stat = write_stat(
        fileId="f-0",
        path=".f-0_20260101000000000.log.1_0-1-1",
        partitionPath="",
        fileSizeInBytes=1153,
        logVersion=1,
        prevCommit="20260101000000000",
        numWrites=1,
        numUpdateWrites=1,
    )
    assert stat["logFiles"] == [".f-0_20260101000000000.log.1_0-1-1"]
    assert (stat["logVersion"], stat["logOffset"], stat["baseFile"]) == (1, 0, "")
    assert stat["prevCommit"] == "20260101000000000"


def test_write_stat_refuses_what_would_be_lost() -> None:
    with pytest.raises(ValueError, match="numWrite"):
        write_stat(fileId="f", path="f", partitionPath="", fileSizeInBytes=1, numWrite=3)
    with pytest.raises(ValueError, match="fileSizeInBytes"):
        write_stat(fileId="f", path="f", partitionPath="")


def test_round_trip_and_defaults() -> None:
    data = encode_commit_metadata({"partitionToWriteStats": {"p=1": [BASE]}, "operationType": "INSERT"})
    assert decode_commit_metadata(data) == {
        "partitionToWriteStats": {"p=1": [BASE]},
        "compacted": False,
        "extraMetadata": {},
        "version": None,
        "operationType": "INSERT",
        "partitionToReplaceFileIds": {},
    }
    (raw,) = fastavro.reader(io.BytesIO(data))
    assert raw["version"] is None
    assert "partitionToReplaceFileIds" not in raw


def test_replace_metadata() -> None:
    replaced = {"partitionToReplaceFileIds": {"p=1": ["a-0", "b-0"]}, "operationType": "INSERT_OVERWRITE"}
    data = encode_commit_metadata(replaced, replace=True)
    assert decode_container_schema(data)["name"] == "HoodieReplaceCommitMetadata"
    assert decode_commit_metadata(data)["partitionToReplaceFileIds"] == {"p=1": ["a-0", "b-0"]}
    with pytest.raises(ValueError, match="replacecommit"):
        encode_commit_metadata(replaced)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"\x00\x01", b"[" * 200_000, b'{"partitionToWriteStats": [1]}', encode_container(INDEX_PLAN, [{}])],
    ids=["empty", "cut", "no object", "binary", "deep", "odd field", "other record"],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        decode_commit_metadata(data, "t.commit")
    assert caught.value.path == "t.commit"
