"""Snapshots: where the schema and the listing come from when the usual place has nothing, and what partition paths state."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.errors import SchemaError, TableNotFound
from hudimeta.keys import PartitionLayout
from hudimeta.snapshot.partition_columns import path_values
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import QueryType
from tests.conftest import Unpack


def opened(path: Path) -> Snapshot:
    return Snapshot.open(CountingStorage(open_storage(path)), OPTIONS.read({}))


def sorted_rows(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


def test_opening_costs_two_requests(rich_table: Unpack) -> None:
    snapshot = opened(rich_table("big_mor"))
    assert snapshot.storage.log.by_purpose() == {("GET", "properties"): 1, ("LIST", "timeline"): 1}


def test_another_table_in_the_place_of_an_empty_one_is_seen(tmp_path: Path) -> None:
    def make(column: str) -> None:
        hudimeta.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), (column, pa.string())]), key="id")

    make("old")
    table = hudimeta.Table(tmp_path / "t")
    seen = table.snapshot()
    assert table.snapshot() is seen
    shutil.rmtree(tmp_path / "t")
    make("new")
    assert table.schema.names[-1] == "new"
    assert table.scan().to_table().column_names[-1] == "new"
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFound):
        table.scan().plan()


def test_a_metadata_table_that_is_gone_does_not_hide_rows(rich_table: Unpack) -> None:
    path = rich_table("deletes_mor", fresh=True)
    expected = sorted_rows(hudimeta.Table(path).scan().to_table())
    shutil.rmtree(path / ".hoodie" / "metadata")
    scan = hudimeta.Table(path).scan()
    assert sorted_rows(scan.to_table()) == expected
    (reason,) = scan.report.fallbacks
    assert "any completed instant" in reason


def test_commits_without_a_schema_leave_it_to_a_base_file(conformance_table: Unpack) -> None:
    path = conformance_table("cow__v6_simplekeygen_nonhivestyle", fresh=True)
    expected = hudimeta.Table(path).schema
    for commit in (path / ".hoodie").glob("*.commit"):
        content = json.loads(commit.read_bytes())
        del content["extraMetadata"]["schema"]
        commit.chmod(0o644)
        commit.write_text(json.dumps(content))
    properties = path / ".hoodie" / "hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.create.schema")]
    properties.chmod(0o644)
    properties.write_text("\n".join(lines) + "\n")
    found = hudimeta.Table(path)
    assert found.schema.names == expected.names
    assert found.scan().to_table().num_rows == found.scan().count() > 0
    for file in path.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(SchemaError, match="nothing tells the table's schema"):
        _ = hudimeta.Table(path).schema


def test_read_optimized_sees_the_newest_base_file_of_every_group(rich_table: Unpack) -> None:
    snapshot = opened(rich_table("pending_compaction"))
    slices = snapshot.slices(query_type=QueryType.READ_OPTIMIZED)
    assert slices.column("base_file").null_count == 0
    assert not any(slices.column("log_files").to_pylist())


def test_a_moment_shares_what_the_table_has_read(rich_table: Unpack) -> None:
    snapshot = opened(rich_table("event_late_mor"))
    snapshot.slices()
    mark = len(snapshot.storage.log)
    early = snapshot.at(snapshot.timeline.writes[1].time)
    assert early.slices().num_rows > 0
    assert ("LIST", "timeline") not in snapshot.storage.log.by_purpose(mark)
    assert ("GET", "metadata table") not in snapshot.storage.log.by_purpose(mark)
    assert not early.is_latest
    assert early.latest_write == snapshot.timeline.writes[1].time


def test_a_version_6_listing_leaves_out_logs_of_later_commits(conformance_table: Unpack) -> None:
    table = hudimeta.Table(conformance_table("trips__mor__avro__v6_trips_8i1u"))
    first, second = (i.time for i in table.timeline.writes)
    assert not any(table.file_slices(as_of=first).column("log_files").to_pylist())
    assert any(table.file_slices(as_of=second).column("log_files").to_pylist())


# Partition paths

SCHEMA = pa.schema([("day", pa.date32()), ("hr", pa.int32()), ("place", pa.string()), ("x", pa.float64())])


def values(paths: list[str], fields: str, **properties: str) -> dict[str, list[object]]:
    given = {"hoodie.table.partition.fields": fields, "hoodie.table.keygenerator.type": "COMPLEX"}
    given |= {f"hoodie.datasource.write.{name.replace('_', '.')}": text for name, text in properties.items()}
    layout = PartitionLayout.from_properties(given)
    found: dict[str, list[object]] = path_values(pa.array(paths, pa.string()), layout, SCHEMA, given).to_pydict()
    return found


def test_paths_state_typed_values() -> None:
    import datetime

    found = values(["2024-02-01/7", "__HIVE_DEFAULT_PARTITION__/8"], "day,hr")
    assert found == {"day": [datetime.date(2024, 2, 1), None], "hr": [7, 8]}


def test_what_a_path_cannot_state_exactly_is_left_to_the_files() -> None:
    assert values(["1.5"], "x") == {}, "a float has more than one text"
    assert values(["a/b/c"], "place,hr") == {}, "an unencoded slash hides where a value ends"
    assert values(["seven"], "hr") == {}, "not a value of the column's type"
    assert values(["2024/02/01"], "place", slash_separated_date_partitioning="true") == {}
