"""Procedures that change the table: what readers see afterwards."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.errors import ConfigError, TableError, UndoError, UnsupportedFeature
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all


def trips(ids: range, ts: int, month: str) -> pa.Table:
    """Rows of one partition."""
    columns = {"id": [f"k{n}" for n in ids], "fare": [float(n) for n in ids], "ts": pa.array([ts] * len(ids), pa.int64())}
    return pa.table({**columns, "month": [month] * len(ids)})


def made(path: Path, kind: str = "COPY_ON_WRITE") -> hudimeta.Table:
    quiet = {"hoodie.clean.automatic": "false", "hoodie.metadata.compact.max.delta.commits": "50"}
    table = hudimeta.Table.create(path, trips(range(1), 0, "a").schema, "id", "month", "ts", kind, options=quiet)
    table.insert(trips(range(20), 1, "a"))
    table.insert(trips(range(20, 30), 1, "b"))
    return table


def test_clustering_of_partitions_that_a_predicate_names(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    done = table.call("run_clustering", predicate="month = 'b'", order="fare", show_involved_partition=True).to_pylist()
    assert [(r["input_group_size"], r["state"], r["involved_partitions"]) for r in done] == [(1, "COMPLETED", "b")]
    assert table.call("run_clustering", predicate="month = 'c'").num_rows == 0
    with pytest.raises(ConfigError, match=r"over partition columns \(month\).*Leave fare out"):
        table.call("run_clustering", predicate="month = 'b' AND fare > 1")
    with pytest.raises(ConfigError, match=r"mont'.*Did you mean 'month'"):
        table.call("run_clustering", predicate="mont = 'b'")
    assert table.scan().count() == 30


def test_clustering_in_steps(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (planned,) = table.call("run_clustering", op="schedule").to_pylist()
    assert planned["state"] == "REQUESTED"
    with pytest.raises(ConfigError, match="pending instants"):
        table.call("run_clustering", instants="20010101000000000")
    (done,) = table.call("run_clustering", op="execute").to_pylist()
    assert (done["timestamp"], done["state"]) == (planned["timestamp"], "COMPLETED")
    with pytest.raises(ConfigError, match="schedule, execute"):
        table.call("run_clustering", op="perhaps")
    check_all(open_storage(table.path))


def test_compaction_in_steps_and_taken_back(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "MERGE_ON_READ")
    table.upsert(trips(range(5), 2, "a"))
    # With a timestamp it executes, whatever it says, as Apache Hudi does.
    with pytest.raises(ConfigError, match=r"'timestamp' has the value '20270101000000000', allowed is pending instants"):
        table.call("run_compaction", op="schedule", timestamp=20270101000000000)
    (planned,) = table.call("run_compaction", op="schedule")["timestamp"].to_pylist()
    with pytest.raises(UnsupportedFeature, match="delete_request_instant_file"):
        table.call("run_rollback_inflight_tableservice", pending_instant=planned)
    taken = table.call("run_rollback_inflight_tableservice", pending_instant=planned, delete_request_instant_file=True)
    assert taken["instant"].to_pylist() == [planned]
    assert table.timeline.pending == ()
    (done,) = table.call("run_compaction", op="run").to_pylist()
    assert (done["operation_size"], done["state"]) == (1, "COMPLETED")
    assert table.call("run_compaction", op="execute").num_rows == 0
    with pytest.raises(UnsupportedFeature, match="copy-on-write"):
        made(tmp_path / "cow").call("run_compaction", op="run")


def test_back_to_a_savepoint_and_one_write_back(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    assert table.call("create_savepoint", comments="before").to_pylist() == [{"create_savepoint_result": True}]
    table.upsert(trips(range(5), 2, "a"))
    with pytest.raises(UndoError):
        table.call("rollback_to_instant", instant_time=table.timeline.writes[0].time)
    table.call("rollback_to_instant", instant_time=table.timeline.writes[-1].time)
    table.delete("id = 'k1'")
    table.call("rollback_to_savepoint")
    assert table.scan().count() == 30
    table.call("delete_savepoint")
    assert table.call("show_savepoints").num_rows == 0
    with pytest.raises(TableError, match="no savepoint"):
        table.call("rollback_to_savepoint")


def test_partitions_go(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.call("drop_partition", partition="a")
    assert set(table.scan(columns="month").to_table()["month"].to_pylist()) == {"b"}
    assert table.call("truncate_table")["result"].to_pylist() == ["SUCCESS"]
    assert table.scan().count() == 0
    assert table.scan(as_of=table.timeline.writes[1].time).count() == 30


@pytest.mark.parametrize(("procedure", "argument"), [("drop_partition", "partition"), ("truncate_table", "partitions")])
def test_partitions_that_are_not_there_are_named(tmp_path: Path, procedure: str, argument: str) -> None:
    """The result says that all is well, as that of Apache Hudi does."""
    table = made(tmp_path / "t")
    with pytest.warns(HudiWarning, match="nothing was taken out of 'month=a'"):
        table.call(procedure, **{argument: "month=a,b"})
    assert set(table.scan(columns="month").to_table()["month"].to_pylist()) == {"a"}


def test_the_metadata_table_goes_and_comes(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    with pytest.raises(TableError, match="has a metadata table"):
        table.call("create_metadata_table")
    table.call("delete_metadata_table")
    assert not (tmp_path / "t" / ".hoodie" / "metadata").exists()
    assert not table.properties.has_metadata_table
    assert table.scan("month = 'b'").count() == 10
    assert table.call("create_metadata_table")["result"][0].as_py().startswith("Created Metadata Table")
    assert table.metadata.validate().holds
    table.call("init_metadata_table")


def test_versions_by_their_words(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.call("upgrade_table", to_version="NINE")
    assert table.properties.version == 9
    table.call("downgrade_table", to_version="8")
    assert table.properties.version == 8
    with pytest.raises(ConfigError, match="SIX, EIGHT, NINE"):
        table.call("upgrade_table", to_version="LATEST")


def test_partitions_that_have_outlived_their_time(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    assert table.call("run_ttl", retain_days=1000).num_rows == 0
    assert table.scan().count() == 30


def test_markers_of_a_pending_write_stay(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "MERGE_ON_READ")
    table.upsert(trips(range(5), 2, "a"))
    planned = table.schedule_compaction()
    folders = [tmp_path / "t" / ".hoodie" / ".temp" / f"2020010100000000{n}" for n in range(2)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "x.parquet.marker.CREATE").touch()
    with pytest.raises(TableError, match="is pending"):
        table.call("delete_marker", instant_time=f"20200101000000000,{planned}")
    assert folders[0].exists()
    table.call("delete_marker", instant_time="20200101000000000, 20200101000000001")
    assert not any(folder.exists() for folder in folders)


def test_repairs_look_first(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (tmp_path / "t" / "a" / ".hoodie_partition_metadata").unlink()
    looked = table.call("repair_add_partition_meta").to_pylist()
    assert [tuple(r.values()) for r in looked] == [("a", "No", "None"), ("b", "Yes", "None")]
    assert [r["action"] for r in table.call("repair_add_partition_meta", dry_run=False).to_pylist()] == ["Repaired", "None"]
    assert (tmp_path / "t" / "a" / ".hoodie_partition_metadata").exists()
    assert table.call("repair_corrupted_clean_files")["result"].to_pylist() == [True]
    said = table.call("repair_deduplicate", duplicated_partition_path="a", repaired_output_path="x")["result"][0].as_py()
    assert said == "no key is there twice"


def test_buckets_by_new_rules(tmp_path: Path) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = hudimeta.Table.create(tmp_path / "t", trips(range(1), 0, "a").schema, "id", "month", "ts", options=options)
    table.upsert(trips(range(40), 1, "a"))
    table.upsert(trips(range(40, 80), 1, "b"))
    manage = partial(table.call, "partition_bucket_index_manager")

    def groups() -> int:
        return table.file_slices().num_rows

    (shown,) = manage(overwrite="a,3").to_pylist()
    assert (shown["operation"], groups()) == ("OVERWRITE", 4), "it only looks"
    manage(overwrite="a,3", dry_run=False)
    manage(add="b,5", dry_run=False)
    assert groups() == 8
    told = [json.loads(text) for text in manage(show_config=True)["details"].to_pylist()]
    assert [one["expressions"] for one in told] == ["a,3", "b,5;a,3"]
    manage(rollback=told[1]["instant"], dry_run=False)
    assert groups() == 5
    manage(overwrite="a,3", bucket_number=4, dry_run=False)
    assert groups() == 7, "another default is a last rule"
    assert table.upsert(trips(range(40), 2, "a")).updated == 40
    twice, strange = {"overwrite": "a,3", "add": "b,1"}, {"overwrite": "a,3", "rule": "range"}
    for wrong in ({}, twice, strange, {"rollback": "20260101000000000"}):
        with pytest.raises(ConfigError):
            manage(**wrong)
    check_all(open_storage(table.path))
