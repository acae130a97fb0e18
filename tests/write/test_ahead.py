"""Writes to far-away tables: requests that do not need each other wait at the same time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from tests.read.far_away import FarAway

ROWS = pa.table({"id": ["a", "b"], "day": ["1", "1"], "n": [1, 2]})
LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"}


@pytest.mark.parametrize(
    ("among", "together"),
    [
        (r"/files/files-0000-0_\S+\.hfile$|\.hoodie/timeline/\d+\.deltacommit\.requested$", 2),
        (r"^1/\.[^/]+\.log\.1_[^/]+$|\.marker\.CREATE$", 2),
        (r"/partition_stats/\.partition-stats-0000-0_\d{17}\.log|\.hoodie/\.locks/table_lock\.json$", 3),
        (r"\.index_defs/index\.json$|metadata/\.hoodie/timeline$|elsewhere/\.hoodie/timeline/\d+_\d+\.deltacommit$", 3),
    ],
    ids=[
        "the listing and the instant",
        "what a log says of its keys and the marker of the next",
        "two logs and the lock",
        "definitions of indexes, the metadata table's timeline and the newest commit",
    ],
)
def test_requests_of_an_upsert_that_do_not_need_each_other_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, among: str, together: int
) -> None:
    how = {"key": "id", "partition_by": "day", "type": "MERGE_ON_READ", "indexes": ["column_stats", "partition_stats"]}
    table = hudimeta.Table.create(tmp_path / "t", ROWS.schema, **how)
    table.upsert(ROWS)
    table.upsert(ROWS)
    path = Path(shutil.copytree(tmp_path / "t", tmp_path / "elsewhere"))  # of which this process remembers nothing
    far = FarAway(meeting=together, among=among)
    far.begin(monkeypatch)
    hudimeta.Table(path, LOCK).upsert(ROWS.slice(1))
    assert far.most == together
    monkeypatch.undo()
    assert hudimeta.Table(path).scan().to_table().sort_by("id").select(ROWS.column_names).equals(ROWS)


def test_the_base_file_of_an_index_waits_beside_its_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compacting = {"hoodie.metadata.compact.max.delta.commits": "1"}
    table = hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id", indexes=["column_stats"], options=compacting)
    table.upsert(ROWS)
    table.upsert(ROWS)
    hudimeta.Table(tmp_path / "t", {"hoodie.metadata.compact.max.delta.commits": "9"}).upsert(ROWS)
    far = FarAway(meeting=2, among=r"/column_stats/\.?col-stats-0000-0_")
    far.begin(monkeypatch)
    scan = hudimeta.Table(tmp_path / "t").scan("n = 2")
    assert scan.to_table()["id"].to_pylist() == ["b"]
    assert far.most == 2


def test_a_write_lists_the_timeline_beside_the_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id").upsert(ROWS)
    far = FarAway(meeting=2, among=r"/t/\.hoodie/timeline$|\.hoodie/hoodie\.properties$")
    table = hudimeta.Table(tmp_path / "t")
    far.begin(monkeypatch)
    table.upsert(ROWS.slice(1))
    assert far.most == 2


@pytest.mark.parametrize(
    "among",
    [
        r"/record_index$|\.hoodie/timeline/\d+\.deltacommit\.inflight$",
        r"record_index/\.record-index-\S+\.log\.\S+$|\.hoodie/hoodie\.properties$",
        r"record_index/\.record-index-\S+\.log\.\S+$|\.hoodie/timeline/\d+\.deltacommit\.requested$",
    ],
    ids=["its files and the instant", "its logs and whether it was dropped", "its logs and the instant"],
)
def test_a_record_index_is_looked_into_beside_what_does_not_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, among: str
) -> None:
    how = {"key": "id", "partition_by": "day", "type": "MERGE_ON_READ", "indexes": ["record_index"]}
    table = hudimeta.Table.create(tmp_path / "t", ROWS.schema, **how)
    table.upsert(ROWS.slice(1))
    table.upsert(ROWS.slice(1))
    path = Path(shutil.copytree(tmp_path / "t", tmp_path / "elsewhere"))
    far = FarAway(meeting=2, among=among)
    far.begin(monkeypatch)
    hudimeta.Table(path, LOCK).upsert(ROWS.slice(1))
    assert far.most == 2
    monkeypatch.undo()
    assert hudimeta.Table(path).scan().to_table()["id"].to_pylist() == ["b"]
    hudimeta.Table(path).metadata.validate().raise_if_differs()


@pytest.mark.parametrize(
    ("among", "together"),
    [
        (r"\.hoodie/timeline/\d+\.deltacommit\.requested$", 3),
        (r"\.hoodie_partition_metadata$|\.log\.1_0-0-0$", 8),
    ],
    ids=["the beginnings of three partitions", "their files"],
)
def test_a_new_table_lays_its_metadata_partitions_out_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, among: str, together: int
) -> None:
    options = {"hoodie.metadata.record.index.min.filegroup.count": "2"}
    far = FarAway(meeting=together, among=among)
    far.begin(monkeypatch)
    hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id", indexes=["column_stats", "record_index"], options=options)
    assert far.most >= together
    monkeypatch.undo()
    table = hudimeta.Table(tmp_path / "t")
    table.upsert(ROWS)
    assert table.metadata.validate().holds
    assert sorted(table.metadata.ready) == ["column_stats", "files", "record_index"]
