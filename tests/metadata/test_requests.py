"""How many requests the metadata table costs, where it looks, and when it refuses."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import IndexNotReady, MetadataOutOfSync
from hudimeta.formats.avro.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudimeta.metadata import answers, files
from hudimeta.metadata.file_listing import FileListing
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.metadata.stated_files import LOGS_KEY
from hudimeta.storage import CountingStorage, RequestKind
from hudimeta.types import Action
from tests.conftest import Unpack
from tests.metadata.opened import open_metadata
from tests.read.far_away import FarAway


def asked(storage: CountingStorage) -> Counter[str]:
    return Counter(storage.log.counts())


def uncompacted(metadata: MetadataTable) -> int:
    """Delta commits that completed after the last compaction of the metadata table."""
    since = max((i.time for i in metadata.timeline.writes if i.action is Action.COMMIT), default="")
    deltas = [i for i in metadata.timeline.writes if i.action is Action.DELTA_COMMIT and i.time > "0001"]
    return sum(i.completed_at >= since for i in deltas)


@pytest.mark.parametrize("name", ["archived_lsm", "archived_kept", "big_mor", "mdt_all_v9", "compacted_mor"])
def test_listing_a_table_takes_two_listings_and_a_few_reads(name: str, rich_table: Unpack) -> None:
    """Properties, both timelines, the last compaction, its base file, and one read for each instant after it."""
    metadata, storage = open_metadata(rich_table(name))
    assert asked(storage) == {"GET": 1, "LIST": 2}
    assert len(metadata.files()) > 0
    assert asked(storage) == {"LIST": 2, "GET": 3 + uncompacted(metadata)}
    before = len(storage.log)
    assert len(metadata.partitions()) > 0
    assert len(metadata.files(metadata.partitions().to_pylist())) == len(metadata.files())
    assert len(storage.log) == before, "everything that was read is kept"


def test_fewer_partitions_share_what_was_read_and_travel_as_fewer(rich_table: Unpack) -> None:
    metadata, storage = open_metadata(rich_table("big_mor"))
    files_before, before = metadata.files(), len(storage.log)
    fewer = metadata.having(["files"])
    assert fewer.files().equals(files_before)
    assert len(storage.log) == before, "everything that was read is kept"
    assert (fewer.ready, pickle.loads(pickle.dumps(fewer)).ready) == (("files",), ("files",))
    assert set(metadata.ready) > {"files"}


def test_a_read_plan_of_an_archived_table_stays_in_its_budget(rich_table: Unpack) -> None:
    metadata, storage = open_metadata(rich_table("big_mor"))
    metadata.files()
    answers.column_stats(metadata, {"_hoodie_record_key": pa.string()})
    logs = sum(request.path.rpartition("/")[2].startswith(".") for request in storage.log.since(0))
    counts = asked(storage)
    assert counts["LIST"] == 2
    # Apache Hudi's own commits do not name the metadata logs, so those of the metadata table are asked.
    assert counts["GET"] <= 6 + 2 * uncompacted(metadata) + logs


def test_statistics_of_a_column_cover_every_file(rich_table: Unpack) -> None:
    metadata, _ = open_metadata(rich_table("mdt_all_v9"))
    found = answers.column_stats(metadata, {"note": pa.string(), "no_such_column": pa.int64()})
    assert set(found["note"].column("file_name").to_pylist()) == set(metadata.files().column("name").to_pylist())
    assert (len(found["no_such_column"]), found["no_such_column"].schema.field("min").type) == (0, pa.int64())
    assert answers.partition_stats(metadata, {"note": pa.string()})["note"].column("partition_path").to_pylist() != []


def test_a_key_look_up_lists_the_partition_once(rich_table: Unpack) -> None:
    metadata, storage = open_metadata(rich_table("mdt_all_v9"))
    known = metadata.records("record_index").column("record_key").to_pylist()
    lists = asked(storage)["LIST"]
    assert lists == 3
    before = len(storage.log)
    assert answers.record_locations(metadata, known[:3]).num_rows == 3
    assert answers.record_locations(metadata, []).num_rows == 0
    assert len(storage.log) == before + 1, "once it is made sure that nobody dropped the index while it was listed"


def add_log_names(path: Path, change: Any) -> int:
    """Name the metadata logs in the data table's commits, as hudimeta's own writer does; returns how many were changed."""
    changed = 0
    timeline = path / ".hoodie" / "timeline"
    for commit in [*timeline.glob("*.commit"), *timeline.glob("*.deltacommit"), *timeline.glob("*.replacecommit")]:
        instant = commit.name.partition("_")[0]
        (inner,) = (path / ".hoodie" / "metadata" / ".hoodie" / "timeline").glob(f"{instant}_*.deltacommit")
        stats = decode_commit_metadata(inner.read_bytes())["partitionToWriteStats"]
        names = {partition: [s["path"].rpartition("/")[2] for s in found] for partition, found in stats.items()}
        metadata = decode_commit_metadata(commit.read_bytes())
        metadata["extraMetadata"] = metadata["extraMetadata"] | {LOGS_KEY: change(json.dumps(names))}
        replace = commit.suffix == ".replacecommit"
        if not replace:
            metadata.pop("partitionToReplaceFileIds")
        commit.write_bytes(encode_commit_metadata(metadata, replace=replace))
        changed += 1
    return changed


def test_a_clean_of_ours_names_its_metadata_logs_too(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "n": [1]})
    once = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=["column_stats"], options=once)
    for _ in range(4):
        table.upsert(rows)
    assert table.clean().deleted > 0
    metadata, storage = open_metadata(tmp_path / "t")
    there = set(metadata.files().column("name").to_pylist())
    named = set(answers.column_stats(metadata, {"n": pa.int64()})["n"].column("file_name").to_pylist())
    assert named == there, "what it removed is gone from the index as well"
    laid_out = [path for path in storage.log.paths(RequestKind.GET) if "/metadata/.hoodie/timeline/" in path]
    assert all(path.rpartition("/")[2] < "0001" for path in laid_out), "of the metadata table's commits only the first are read"


def test_commits_that_name_their_metadata_logs_save_a_read_each(rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v9", fresh=True)
    plain, _ = open_metadata(path)
    expected = answers.column_stats(plain, {"note": pa.string()})["note"]
    assert add_log_names(path, lambda text: text) > 3
    metadata, storage = open_metadata(path)
    assert (
        answers.column_stats(metadata, {"note": pa.string()})["note"].sort_by("file_name").equals(expected.sort_by("file_name"))
    )
    inner = [r.path for r in storage.log.since(0) if r.purpose == "metadata timeline" and r.kind.value == "GET"]
    assert [p.rpartition(".")[2] for p in inner] == ["commit"], "the last compaction and nothing else"


def test_log_names_that_cannot_be_read_are_not_believed(rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v9", fresh=True)
    expected = answers.column_stats(open_metadata(path)[0], {"note": pa.string()})["note"]
    add_log_names(path, lambda text: text[:-1])
    found = answers.column_stats(open_metadata(path)[0], {"note": pa.string()})["note"]
    assert found.sort_by("file_name").equals(expected.sort_by("file_name"))


@pytest.mark.parametrize("name", ["mdt_all_v9", "cleaned_commits", "partition_ops_cow", "clustered_sorted", "cdc_mor_full8"])
def test_files_told_by_data_commits_are_those_of_the_metadata_logs(
    name: str, rich_table: Unpack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shortcut changes the requests, never the answer."""
    short, _ = open_metadata(rich_table(name))
    told = short.files().sort_by([("partition_path", "ascending"), ("name", "ascending")])
    monkeypatch.setattr("hudimeta.metadata.file_deltas.derive", lambda instant, metadata: None)
    long, storage = open_metadata(rich_table(name))
    assert long.files().sort_by([("partition_path", "ascending"), ("name", "ascending")]).equals(told)
    assert long.partitions().equals(short.partitions())
    assert any("/files/.files-0000-0_" in request.path for request in storage.log.since(0))


def test_a_pending_data_instant_hides_its_metadata(rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v9", fresh=True)
    before = set(open_metadata(path)[0].files().column("name").to_pylist())
    timeline = path / ".hoodie" / "timeline"
    last = max(timeline.glob("*.deltacommit"), key=lambda p: p.name)
    instant = last.name.partition("_")[0]
    last.unlink()
    metadata, _ = open_metadata(path)
    hidden = before - set(metadata.files().column("name").to_pylist())
    assert hidden
    assert all(instant in name for name in hidden)
    stats = answers.column_stats(metadata, {"note": pa.string()})["note"].column("file_name").to_pylist()
    assert not any(instant in name for name in stats)


def test_a_write_that_the_metadata_table_lacks_is_noticed(rich_table: Unpack) -> None:
    """Its files would be missing from every answer, so storage is listed instead, and the report says why."""
    path = rich_table("mdt_all_v9", fresh=True)
    timeline = path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    last = max(timeline.glob("*.deltacommit"), key=lambda p: p.name)
    instant = last.name.partition("_")[0]
    expected = hudimeta.Table(path).scan().to_table()
    last.unlink()
    with pytest.raises(MetadataOutOfSync, match=instant):
        open_metadata(path)
    scan = hudimeta.Table(path).scan()
    assert scan.to_table().sort_by("_hoodie_record_key").equals(expected.sort_by("_hoodie_record_key"))
    assert instant in str(scan.report)
    with pytest.raises(IndexNotReady, match=rf"{instant}; t\.metadata\.rebuild\(\) makes it anew"):
        hudimeta.Table(path).metadata.validate()
    hudimeta.Table(path).metadata.rebuild()
    assert hudimeta.Table(path).metadata.validate().holds


def test_a_metadata_table_from_the_day_of_its_making_is_noticed(tmp_path: Path) -> None:
    """It has no delta commit that could tell which write is the first that it should know."""
    path, folder = tmp_path / "t", tmp_path / "t/.hoodie/metadata"
    rows = pa.table({"id": ["a", "b"]})
    table = hudimeta.Table.create(path, rows.schema, key="id")
    shutil.copytree(folder, tmp_path / "copy")
    table.insert(rows)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "copy", folder)
    with pytest.raises(MetadataOutOfSync, match=table.timeline.writes[0].time):
        open_metadata(path)
    assert sorted(hudimeta.Table(path).scan(columns=["id"]).to_table()["id"].to_pylist()) == ["a", "b"]
    assert hudimeta.Table(path).metadata.rebuild().parts
    open_metadata(path)


def test_a_table_without_metadata_table_says_so(conformance_table: Unpack) -> None:
    with pytest.raises(IndexNotReady, match="files"):
        open_metadata(conformance_table("cow__v8_nonpartitioned"))


def test_an_index_that_is_not_there_says_so(rich_table: Unpack) -> None:
    metadata, _ = open_metadata(rich_table("compacted_mor"))
    for call in (
        lambda: answers.column_stats(metadata, {"a": pa.string()}),
        lambda: answers.partition_stats(metadata, {"a": pa.string()}),
        lambda: answers.record_locations(metadata, ["a"]),
        lambda: answers.file_filters(metadata, [("a", "b")]),
        lambda: answers.keys_with_values(metadata, "secondary_index_x", ["a"]),
        lambda: answers.expression_stats(metadata, "expr_index_x", pa.string()),
        lambda: metadata.records("column_stats"),
    ):
        with pytest.raises(IndexNotReady):
            call()


def test_a_metadata_table_that_vanished_says_so(rich_table: Unpack) -> None:
    path = rich_table("compacted_mor", fresh=True)
    shutil.rmtree(path / ".hoodie" / "metadata")
    with pytest.raises(MetadataOutOfSync):
        open_metadata(path)


def test_a_partition_that_vanished_says_so(rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v9", fresh=True)
    shutil.rmtree(path / ".hoodie" / "metadata" / "record_index")
    with pytest.raises(MetadataOutOfSync, match="record_index"):
        answers.record_locations(open_metadata(path)[0], ["a"])


def test_no_base_file_at_all_is_read_from_logs_alone(rich_table: Unpack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first compaction of a table whose creator wrote no base file there are only logs."""
    metadata, _ = open_metadata(rich_table("typed_keys"))
    expected = metadata.files().sort_by("name")
    monkeypatch.setattr(FileListing, "_base", None)
    found = open_metadata(rich_table("typed_keys"))[0].files().sort_by("name")
    assert found.equals(expected)
    assert files.PARTITION in metadata.ready


def test_bloom_filters_are_found_by_file(rich_table: Unpack) -> None:
    for name in ("zstd_no_dict", "mdt_all_v8"):
        metadata, _ = open_metadata(rich_table(name))
        listed = [(r["partition_path"], r["name"]) for r in metadata.files().to_pylist() if r["name"].endswith(".parquet")]
        found = answers.file_filters(metadata, [*listed, ("nowhere", "no.parquet")]).to_pylist()
        assert sorted((r["partition_path"], r["file_name"]) for r in found) == sorted(listed)
        assert {r["type_code"] for r in found} <= {"SIMPLE", "DYNAMIC_V0"}


def test_expression_index_bounds_the_expression(rich_table: Unpack) -> None:
    metadata, _ = open_metadata(rich_table("expr_index_v9"))
    found = answers.expression_stats(metadata, "expr_index_ex_day", pa.string())
    base_files = {n for n in metadata.files().column("name").to_pylist() if n.endswith(".parquet")}
    assert set(found.column("file_name").to_pylist()) <= base_files
    row = next(r for r in found.to_pylist() if r["file_name"].startswith("34e9778b-83d8-4001-9101-4abbce44f8bf"))
    assert (row["min"], row["max"]) == ("1970-01-01 02:17", "1970-01-01 02:17")


def test_record_index_kept_by_partition(rich_table: Unpack) -> None:
    metadata, _ = open_metadata(rich_table("part_rli"))
    everything = metadata.records("record_index")
    keys = everything.column("record_key").combine_chunks().unique()
    found = answers.record_locations(metadata, keys)
    order = [("record_key", "ascending"), ("partition_path", "ascending")]
    columns = ["record_key", "partition_path", "instant_ms"]
    assert found.select(columns).sort_by(order).equals(everything.select(columns).sort_by(order))


def test_requests_of_a_look_up_far_away_do_not_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends of all file groups at once, then all blocks that hold a key: not one after the other."""
    keys = sorted(hashlib.sha256(b"%d" % number).hexdigest() for number in range(80_000))
    rows = pa.table({"id": keys, "n": range(len(keys))})
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=[])
    table.bulk_insert(rows)
    table.indexes.create(type="record_index", options={"hoodie.metadata.record.index.min.filegroup.count": "2"})
    wanted = keys[:: len(keys) // 16]

    far = FarAway(meeting=6)
    far.begin(monkeypatch)
    found = hudimeta.Table(tmp_path / "t").metadata.record_index(pa.array(wanted))
    assert sorted(found["record_key"].to_pylist()) == wanted
    assert far.most >= 6, "more than there are files"
