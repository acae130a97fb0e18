"""Procedures that show: rows of tables whose history is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import ConfigError, TableError
from hudimeta.storage import open_storage

QUIET = {"hoodie.clean.automatic": "false", "hoodie.metadata.compact.max.delta.commits": "50"}


def trips(ids: range, ts: int, month: str) -> pa.Table:
    """Rows of one partition."""
    columns = {"id": [f"k{n}" for n in ids], "fare": [float(n) for n in ids], "ts": pa.array([ts] * len(ids), pa.int64())}
    return pa.table({**columns, "month": [month] * len(ids)})


@pytest.fixture(scope="module")
def cow(tmp_path_factory: pytest.TempPathFactory) -> hudimeta.Table:
    """Two inserts, an update, a clustering, an update that was rolled back, a savepoint."""
    path = tmp_path_factory.mktemp("cow") / "cow"
    table = hudimeta.Table.create(path, trips(range(1), 0, "a").schema, "id", "month", "ts", options=QUIET)
    table.insert(trips(range(100), 1, "a"))
    table.insert(trips(range(100, 150), 1, "b"))
    table.upsert(trips(range(20), 2, "a"))
    table.savepoint(table.timeline.writes[0].time)
    table.cluster("fare")
    table.upsert(trips(range(2), 3, "a"))
    table.rollback(table.timeline.writes[-1].time)
    return table


@pytest.fixture(scope="module")
def mor(tmp_path_factory: pytest.TempPathFactory, cow: hudimeta.Table) -> hudimeta.Table:
    """Later than `cow`: an insert, an update and a delete in logs; a compaction is planned."""
    path = tmp_path_factory.mktemp("mor") / "mor"
    table = hudimeta.Table.create(path, trips(range(1), 0, "a").schema, "id", "month", "ts", "MERGE_ON_READ", options=QUIET)
    table.insert(trips(range(100), 1, "a"))
    table.upsert(trips(range(20), 2, "a"))
    table.delete("id = 'k3'")
    table.schedule_compaction()
    return table


def rows(table: hudimeta.Table, name: str, *columns: str, **arguments: Any) -> list[Any]:
    """Some columns of what a procedure gives; a single one as it is."""
    found = table.call(name, **arguments).select(columns)
    return [next(iter(r.values())) if len(columns) == 1 else tuple(r.values()) for r in found.to_pylist()]


def test_where_rows_of_a_bootstrapped_table_are(tmp_path: Path) -> None:
    for part in range(2):
        (tmp_path / f"raw/part=p{part}").mkdir(parents=True)
        for file in range(2):
            pq.write_table(pa.table({"id": [10 * part + file], "x": [0.5]}), tmp_path / f"raw/part=p{part}/f{file}.parquet")
    hudimeta.bootstrap(tmp_path / "raw", tmp_path / "t", "id", "part", options={"hoodie.metadata.record.index.enable": "false"})
    table = hudimeta.Table(tmp_path / "t")
    assert table.call("show_bootstrap_partitions")["indexed_partitions"].to_pylist() == ["part=p0", "part=p1"]
    found = table.call("show_bootstrap_mapping", sort_by="source_file", desc=True, limit=3).to_pylist()
    assert [row["source_file"].rpartition("raw/")[2] for row in found] == [
        "part=p1/f1.parquet",
        "part=p1/f0.parquet",
        "part=p0/f1.parquet",
    ]
    assert {row["source_base_path"] for row in found} == {str(tmp_path / "raw")}
    groups = {(row["partition_path"], row["file_id"]) for row in table.file_slices().to_pylist()}
    assert {(row["partition"], row["file_id"]) for row in found} < groups
    (one,) = table.call("show_bootstrap_mapping", partition_path="part=p1", file_ids=found[0]["file_id"]).to_pylist()
    assert one == found[0]
    with pytest.raises(ConfigError, match="where file_ids are given"):
        table.call("show_bootstrap_mapping", file_ids="x")
    with pytest.raises(ConfigError, match="sort_by"):
        table.call("show_bootstrap_mapping", sort_by="nope")


def test_commits_with_their_totals(cow: hudimeta.Table) -> None:
    figures = ("action", "total_files_added", "total_files_updated", "total_records_written", "total_update_records_written")
    assert rows(cow, "show_commits", *figures) == [
        ("replacecommit", 2, 0, 150, 0),
        ("commit", 0, 1, 100, 20),
        ("commit", 1, 0, 50, 0),
        ("commit", 1, 0, 100, 0),
    ]
    times = [i.time for i in reversed(cow.timeline.writes)]
    assert rows(cow, "show_commits", "commit_time", limit=2) == times[:2]
    assert rows(cow, "show_commits_metadata", "partition", "num_writes", limit=3) == [("a", 100), ("b", 50), ("a", 100)]


def test_one_commit(cow: hudimeta.Table) -> None:
    update = cow.timeline.writes[2].time
    first = cow.timeline.writes[0].time
    assert rows(cow, "show_commit_files", "previous_commit", "total_records_updated", instant_time=update) == [(first, 20)]
    shown = ("partition_path", "total_files_added", "total_files_updated", "total_records_updated")
    assert rows(cow, "show_commit_partitions", *shown, instant_time=update) == [("a", 0, 1, 20)]
    ((bytes_written, average),) = rows(
        cow, "show_commit_write_stats", "total_bytes_written", "avg_record_size", instant_time=update
    )
    assert average == -(-bytes_written // 100)
    extra = dict(rows(cow, "show_commit_extra_metadata", "metadata_key", "metadata_value", instant_time=update))
    assert [f["name"] for f in json.loads(extra["schema"])["fields"]] == ["id", "fare", "ts", "month"]
    key = rows(cow, "show_commit_extra_metadata", "metadata_key", instant_time=update, metadata_key="schema")
    assert key == ["schema"]
    with pytest.raises(TableError, match="no completed write at 2001"):
        cow.call("show_commit_files", instant_time="2001")


def test_services_that_ran_or_are_planned(cow: hudimeta.Table, mor: hudimeta.Table) -> None:
    assert rows(cow, "show_clustering", "input_group_size", "state", "involved_partitions") == [(2, "COMPLETED", "*")]
    assert rows(cow, "show_clustering", "involved_partitions", show_involved_partition=True) == ["a,b"]
    planned = mor.timeline.pending[0].time
    assert rows(mor, "show_compaction", "timestamp", "operation_size", "state") == [(planned, 1, "REQUESTED")]


def test_what_was_taken_back(cow: hudimeta.Table) -> None:
    (instant,) = [i for i in cow.timeline.completed if i.action.value == "rollback"]
    (undone,) = cow.timeline.metadata(instant)["commitsRollback"]
    assert rows(cow, "show_rollbacks", "instant", "rollback_instant", "total_files_deleted") == [(instant.time, undone, 1)]
    (shown,) = rows(cow, "show_rollback_detail", "rollback_instant", "partition", "succeeded", instant_time=instant.time)
    assert shown == (f"[{undone}]", "a", True)
    assert rows(cow, "show_savepoints", "savepoint_time") == [cow.timeline.writes[0].time]
    ((name,),) = [rows(cow, "show_rollback_detail", "deleted_file", instant_time=instant.time)]
    status = rows(cow, "show_file_status", "status", "action", "instant", partition="a", file=name.rpartition("/")[2])
    assert status == [("deleted", "rollback", instant.time)]


def test_the_timeline_and_a_filter_over_it(cow: hudimeta.Table) -> None:
    every = [i.time for i in reversed(cow.timeline.instants)]
    assert rows(cow, "show_timeline", "instant_time") == every
    kept = rows(cow, "show_timeline", "rollback_info", filter="action = 'rollback' AND state = 'COMPLETED'")
    assert [text.split(":")[0] for text in kept] == ["Rolled back"]
    first = cow.timeline.writes[1].time
    assert rows(cow, "show_timeline", "instant_time", startTime=first, endTime=first, limit=0) == [first]


def test_ends_of_ranges_are_times_in_any_spelling(cow: hudimeta.Table) -> None:
    every = rows(cow, "show_timeline", "instant_time")
    year = every[0][:4]
    year_after = f"{int(year) + 1:04}"
    assert rows(cow, "show_timeline", "instant_time", startTime=f"{year}-01-01", endTime=f"{year_after}-01-01") == every
    assert rows(cow, "show_timeline", "instant_time", startTime=f"{year_after}-01-01") == []
    assert rows(cow, "show_fsview_latest", "file_id", max_instant=f"{year}-01-01") == []
    for name, parameter in (
        ("show_timeline", "startTime"),
        ("show_timeline", "endTime"),
        ("show_fsview_all", "max_instant"),
        ("show_archived_commits", "start_ts"),
        ("show_archived_commits_metadata", "end_ts"),
    ):
        with pytest.raises(ConfigError, match=f"'{parameter}' has the value 'yesterday'"):
            cow.call(name, **{parameter: "yesterday"})


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("show_fsview_all", "path_regex"),
        ("show_fsview_latest", "path_regex"),
        ("show_fsview_latest", "partition_path"),
        ("stats_file_sizes", "partition_path"),
        ("show_logfile_records", "log_file_path_pattern"),
    ],
)
def test_a_pattern_that_means_nothing_is_named_by_its_parameter(mor: hudimeta.Table, name: str, parameter: str) -> None:
    with pytest.raises(ConfigError, match=rf"argument '{parameter}' has the value '\[', allowed is a pattern that has its \]"):
        mor.call(name, **{parameter: "["})


def test_files_of_a_savepointed_write_are_left_out_with_it(cow: hudimeta.Table) -> None:
    first = cow.timeline.writes[0].time
    assert rows(cow, "show_fsview_latest", "file_id", max_instant=first) == []
    assert rows(cow, "show_fsview_latest", "base_instant", max_instant=first, include_max=True) == [first]


def test_details_of_a_rollback_that_is_not_there_are_refused(cow: hudimeta.Table) -> None:
    with pytest.raises(TableError, match="no completed rollback at 20200101000000000"):
        cow.call("show_rollback_detail", instant_time="20200101000000000")


def test_file_slices_of_now_and_of_before(cow: hudimeta.Table, mor: hudimeta.Table) -> None:
    latest = rows(cow, "show_fsview_latest", "partition", "base_instant")
    assert latest == [("a", cow.timeline.writes[-1].time), ("b", cow.timeline.writes[-1].time)]
    assert len(rows(cow, "show_fsview_all", "file_id")) == 5
    for pattern, count in (("b", 2), ("*/", 5), ("{a,c}/", 3), ("*/*", 0)):
        assert len(rows(cow, "show_fsview_all", "file_id", path_regex=pattern)) == count
        assert rows(cow, "stats_file_sizes", "num_files", partition_path=pattern)[-1] == count
    assert rows(cow, "show_fsview_latest", "partition", path_regex="*/") == ["a", "b"]
    (logs,) = rows(mor, "show_fsview_latest", "num_delta_files", "delta_size_compaction_scheduled")
    assert logs[0] == 2
    assert logs[1] == rows(mor, "show_fsview_all", "total_delta_file_size")[0]


def test_log_files_block_by_block(mor: hudimeta.Table) -> None:
    blocks = rows(mor, "show_logfile_metadata", "block_type", "record_count", log_file_path_pattern=f"{mor.path}/a/.*.log.*")
    assert blocks == [("PARQUET_DATA_BLOCK", 20), ("DELETE_BLOCK", 1)]
    records = rows(mor, "show_logfile_records", "records", log_file_path_pattern="*/.*.log.*", limit=2)
    assert [json.loads(text)["ts"] for text in records] == [2, 2]


def test_what_the_metadata_table_knows(cow: hudimeta.Table) -> None:
    assert rows(cow, "show_metadata_table_partitions", "partition") == ["a", "b"]
    assert len(rows(cow, "show_metadata_table_files", "file_path", partition="a")) == 3
    stats = dict(rows(cow, "show_metadata_table_stats", "stat_key", "stat_value"))
    assert int(stats["files.logFileCount"]) > 0
    bounds = rows(cow, "show_metadata_table_column_stats", "column_name", "min_value", "max_value", targetColumns="fare,ts")
    assert sorted(bounds) == [("fare", "-0.0", "99.0"), ("fare", "100.0", "149.0"), ("ts", "1", "1"), ("ts", "1", "2")]
    overlap = rows(cow, "show_metadata_column_stats_overlap", "Partition path", "Maximum file overlap", targetColumns="fare")
    assert overlap == [("a", 1), ("b", 1)]
    assert rows(cow, "validate_metadata_table_files", "file_name") == []
    assert len(rows(cow, "validate_metadata_table_files", "file_name", verbose=True)) == 5


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", trips(range(1), 0, "a").schema, "id", "month", "ts")
    table.insert(trips(range(5), 1, "a"))
    name = table.file_slices()["base_file"][0].as_py()
    open_storage(tmp_path / "t").delete(f"a/{name}")
    shown = rows(table, "validate_metadata_table_files", "file_name", "is_present_in_fs", "is_present_in_metadata")
    assert shown == [(name, False, True)]
    (tmp_path / "t" / "a" / name).write_bytes(b"PAR1 no")
    assert rows(table, "show_invalid_parquet", "path", path=str(tmp_path / "t")) == [f"file:{tmp_path}/t/a/{name}"]


def test_sizes_and_amplification(cow: hudimeta.Table, mor: hudimeta.Table) -> None:
    assert rows(cow, "stats_wa", "total_upserted", "total_written", "write_amplification_factor") == [
        (0, 100, "0"),
        (0, 50, "0"),
        (20, 100, "5.00"),
        (0, 150, "0"),
        (20, 400, "20.00"),
    ]
    sizes = rows(cow, "stats_file_sizes", "num_files", "min", "max")
    assert sizes[-1][0] == 5
    assert sizes[-1][1] == min(size for _, size, _ in sizes)
    ((files, size),) = rows(cow, "show_fs_path_detail", "file_num", "storage_size", path=f"{cow.path}/b")
    assert files == 3
    assert size == sum(f.size for f in open_storage(cow.path).list("b"))


def test_two_tables_beside_each_other(cow: hudimeta.Table, mor: hudimeta.Table) -> None:
    (detail,) = rows(cow, "commits_compare", "compare_detail", path=mor.path)
    later = [i.time for i in mor.timeline.writes]
    assert detail == f"Source cow is behind by 3 commits. Commits to catch up - [{', '.join(later)}]"


def test_archived_commits_and_cleans(tmp_path: Path) -> None:
    options = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
    options["hoodie.metadata.compact.max.delta.commits"] = "3"  # archival stops where the metadata table was compacted last
    table = hudimeta.Table.create(tmp_path / "t", trips(range(1), 0, "a").schema, "id", "month", "ts", options=options)
    for turn in range(8):
        table.upsert(trips(range(3), turn, "a"))
    assert table.call("run_clean", retain_commits=1)["total_files_deleted"].to_pylist() == [6]
    times = [i.time for i in table.timeline.writes]
    table.call("archive_commits", min_commits=2, max_commits=3, retain_commits=1)
    kept = [i.time for i in table.timeline.writes]
    assert kept == times[-len(kept) :]
    archived = rows(table, "show_archived_commits", "commit_time", start_ts="2000", end_ts="2999")
    assert archived == times[: -len(kept)][::-1]
    assert rows(table, "show_archived_commits_metadata", "partition", start_ts="2000", end_ts="2999", limit=1) == ["a"]
    (clean,) = rows(table, "show_cleans", "total_files_deleted", "earliest_commit_to_retain", showArchived=True)
    assert clean == (6, times[-1])
    assert rows(table, "show_cleans_metadata", "partition_path", "success_delete_files", showArchived=True) == [("a", 6)]
    plan = rows(table, "show_clean_plans", "policy", "total_partitions_to_clean", showArchived=True)
    assert plan == [("KEEP_LATEST_COMMITS", 1)]
    folder = tmp_path / "out"
    folder.mkdir()
    assert rows(table, "export_instants", "export_detail", local_folder=str(folder)) == [f"Exported 9 Instants to {folder}"]
    one = json.loads(min(folder.iterdir()).read_text())
    assert one["partitionToWriteStats"]["a"][0]["numWrites"] == 3
