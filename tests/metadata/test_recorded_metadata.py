"""Everything that Apache Hudi's metadata tables hold, record by record, against what was recorded of them."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.metadata import answers
from hudimeta.metadata.keys import shard
from hudimeta.metadata.metadata_table import MetadataTable
from tests.conftest import Unpack
from tests.metadata.expected_forms import MEMBERS, bound, hash64, md5, zigzag
from tests.metadata.opened import open_metadata
from tests.recorded_tables import CONFORMANCE, RICH, SHARED

METADATA_ANSWERS = SHARED / "conformance" / "expected_metadata"
WITH_ANSWERS = sorted(p.stem for p in METADATA_ANSWERS.glob("*.json")) if METADATA_ANSWERS.is_dir() else []
TYPES = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "LONG": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP_MICROS": pa.timestamp("us", "UTC"),
    "StringWrapper": pa.string(),
    "LongWrapper": pa.int64(),
    "DoubleWrapper": pa.float64(),
}
UNCOMMITTED = {"failed_write_markers", "inflight_left_mor", "inflight_left_mor_next"}
"""Tables with files of a write that never completed: those lie on disk and are no part of the table."""


def recorded_answer(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((METADATA_ANSWERS / f"{name}.json").read_text())
    return answer


def type_of(row: dict[str, Any]) -> pa.DataType:
    name = row["valueType"] or row["wrapper"]
    if name and name.startswith("DECIMAL"):
        precision, scale = name[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return TYPES.get(name, pa.string())


def as_recorded(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def statistics_rows(tables: dict[str, pa.Table]) -> dict[tuple[str, str], tuple[Any, ...]]:
    columns = ("min", "max", "value_count", "null_count", "total_size", "total_uncompressed_size", "is_tight_bound")
    return {
        (name, row[table.column_names[0]]): tuple(as_recorded(row[c]) for c in columns)
        for name, table in tables.items()
        for row in table.to_pylist()
    }


def expected_statistics(
    rows: list[dict[str, Any]], of: str, wanted: dict[str, pa.DataType]
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Recorded rows; bounds of another type than the wanted one (the column changed its type) are unknown."""
    columns = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize", "isTightBound")
    found = {}
    for row in rows:
        bounds = (row["min"], row["max"]) if type_of(row) == wanted[row["column"]] else (None, None)
        found[row["column"], row[of]] = (*bounds, *(row[c] for c in columns))
    return found


def with_section(section: str) -> list[str]:
    """Tables of which a section was recorded and is not empty."""
    return [name for name in WITH_ANSWERS if recorded_answer(name).get(section)]


@pytest.fixture
def metadata(name: str, conformance_table: Unpack) -> MetadataTable:
    return open_metadata(conformance_table(name))[0]


@pytest.mark.parametrize("name", WITH_ANSWERS)
def test_partitions_and_files(name: str, metadata: MetadataTable) -> None:
    answer = recorded_answer(name)
    assert [p or "." for p in metadata.partitions().to_pylist()] == sorted(p or "." for p in answer["all_partitions"])
    found: dict[str, dict[str, int]] = {}
    for row in metadata.files().to_pylist():
        found.setdefault(row["partition_path"] or ".", {})[row["name"]] = row["size"]
    assert found == {p or ".": listed for p, listed in answer["files"].items()}


@pytest.mark.parametrize("name", with_section("partitions"))
def test_file_groups(name: str, metadata: MetadataTable) -> None:
    for partition, recorded in recorded_answer(name)["partitions"].items():
        found = [
            {
                "file_id": group.file_id,
                "base_file": group.base and group.base.path.rpartition("/")[2],
                "log_files": [log.path.rpartition("/")[2] for log in group.logs],
            }
            for group in metadata.file_groups(partition)
        ]
        expected = [{key: group[key] for key in ("file_id", "base_file", "log_files")} for group in recorded["file_slices"]]
        for group in expected:
            group["log_files"] = [log for log in group["log_files"] if not log.endswith(".log.1_0-0-0")]
        assert found == expected


@pytest.mark.parametrize("name", with_section("column_stats"))
def test_column_stats(name: str, metadata: MetadataTable) -> None:
    rows = recorded_answer(name)["column_stats"]
    wanted = {row["column"]: type_of(row) for row in sorted(rows, key=lambda r: r["min"] is not None)}
    found = answers.column_stats(metadata, wanted)
    assert statistics_rows(found) == expected_statistics(rows, "file", wanted)
    assert sum(len(t) for t in found.values()) == len(rows) == len(metadata.records("column_stats"))


@pytest.mark.parametrize("name", with_section("column_stats"))
def test_column_stats_of_one_partition(name: str, metadata: MetadataTable) -> None:
    rows = recorded_answer(name)["column_stats"]
    column, partition = rows[-1]["column"], rows[-1]["partition"]
    kept = [row for row in rows if row["column"] == column and row["partition"] == partition]
    wanted = {column: type_of(rows[-1])}
    found = answers.column_stats(metadata, wanted, ["" if partition == "." else partition])
    assert statistics_rows(found) == expected_statistics(kept, "file", wanted)


@pytest.mark.parametrize("name", with_section("partition_stats"))
def test_partition_stats(name: str, metadata: MetadataTable) -> None:
    rows = recorded_answer(name)["partition_stats"]
    wanted = {row["column"]: type_of(row) for row in sorted(rows, key=lambda r: r["min"] is not None)}
    assert statistics_rows(answers.partition_stats(metadata, wanted)) == expected_statistics(rows, "partition", wanted)
    assert len(metadata.records("partition_stats")) == len(rows)


@pytest.mark.parametrize("name", with_section("record_index"))
def test_record_index(name: str, metadata: MetadataTable) -> None:
    known = recorded_answer(name)["record_index"]
    for table in (metadata.records("record_index"), answers.record_locations(metadata, [*known, "no such key"])):
        found = {
            row["record_key"]: (row["partition_path"], row["file_id"], row["instant_ms"], row["position"])
            for row in table.to_pylist()
        }
        assert len(table) == len(known)
        assert found == {
            key: (entry["partition"], entry["fileId"], entry["instant_epoch_ms"], entry["position"])
            for key, entry in known.items()
        }
    groups = [group.file_id for group in metadata.file_groups("record_index")]
    at = shard(pa.array(list(known)), len(groups))
    assert [groups[i] for i in at] == [entry["shard"] for entry in known.values()]


@pytest.mark.parametrize("name", with_section("secondary_indexes"))
def test_secondary_indexes(name: str, metadata: MetadataTable) -> None:
    for index, entries in recorded_answer(name)["secondary_indexes"].items():
        expected = sorted((e["key"], e["secondary"], e["record_key"]) for e in entries)
        found = [(r["key"], r["secondary"], r["record_key"]) for r in metadata.records(index).to_pylist()]
        assert sorted(found, key=lambda e: e[0]) == expected
        for value in {e["secondary"] for e in entries}:
            answer = answers.keys_with_values(metadata, index, [value, "no such value"]).to_pylist()
            expected_keys = sorted(e["record_key"] for e in entries if e["secondary"] == value)
            assert sorted(r["record_key"] for r in answer) == expected_keys


def recorded_rows(rows: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """Recorded rows by key and type; nested values without the nulls."""
    found = {}
    for row in rows["rows"]:
        named = dict(zip(rows["columns"], row, strict=True))
        found[named["key"], named["type"]] = {k: v for k, v in named.items() if v is not None and k not in ("key", "type")}
    assert len(found) == rows["n_rows"]
    return found


def statistics_form(row: dict[str, Any]) -> dict[str, Any]:
    form = {"fileName": row["file_name"], "columnName": row["column_name"]}
    for side in ("min", "max"):
        value = bound(row[f"{side}_kind"], row[f"{side}_value"])
        if value is not None:
            if isinstance(value, bytes):
                unscaled = decimal.Decimal(int.from_bytes(value, "big", signed=True))
                value = format(unscaled.scaleb(-15), "f") if row[f"{side}_kind"] == 9 else value.hex()
            form[f"{side}Value"] = {MEMBERS[row[f"{side}_kind"]]: {"value": value}}
    for ours, theirs in (
        ("value_count", "valueCount"),
        ("null_count", "nullCount"),
        ("total_size", "totalSize"),
        ("total_uncompressed_size", "totalUncompressedSize"),
        ("is_deleted", "isDeleted"),
        ("is_tight_bound", "isTightBound"),
    ):
        form[theirs] = row[ours]
    if row["value_type"] is not None:
        form["valueType"] = {"typeOrdinal": row["value_type"]}
        if row["value_type_info"] is not None:
            form["valueType"]["additionalInfo"] = row["value_type_info"]
    return {"ColumnStatsMetadata": form}


def location_form(row: dict[str, Any]) -> dict[str, Any]:
    form: dict[str, Any] = {"partitionName": row["partition_path"], "instantTime": row["instant_ms"]}
    try:
        head = uuid.UUID(row["file_id"][:36])
    except ValueError:
        return form | {"fileId": row["file_id"], "fileIdEncoding": 1}
    high, low = (int.from_bytes(head.bytes[i : i + 8], "big", signed=True) for i in (0, 8))
    index = int(row["file_id"][37:]) if len(row["file_id"]) > 36 else -1
    form |= {"fileIdHighBits": high, "fileIdLowBits": low, "fileIndex": index, "fileId": "", "fileIdEncoding": 0}
    return form


def bloom_form(row: dict[str, Any]) -> dict[str, Any]:
    text = row["bloom"].hex()
    if len(row["bloom"]) > 2000:
        text = f"sha256:{hashlib.sha256(row['bloom']).hexdigest()}:{len(row['bloom'])}"
    form = {"type": row["type_code"], "timestamp": row["instant"], "bloomFilter": text, "isDeleted": row["is_deleted"]}
    return {"BloomFilterMetadata": form}


def all_rows(metadata: MetadataTable) -> dict[tuple[str, int], dict[str, Any]]:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for path in metadata.partitions().to_pylist():
        entry = {"size": 0, "isDeleted": False}
        found.setdefault(("__all_partitions__", 1), {"filesystemMetadata": {}})["filesystemMetadata"][path or "."] = entry
    for row in metadata.files().to_pylist():
        entry = {"size": row["size"], "isDeleted": False}
        files = found.setdefault((row["partition_path"] or ".", 2), {"filesystemMetadata": {}})
        files["filesystemMetadata"][row["name"]] = entry
    for partition in metadata.ready:
        if partition == "files":
            continue
        for row in metadata.records(partition).to_pylist():
            if "column_name" in row:
                found[row["key"], row["type"]] = statistics_form(row)
            elif "instant_ms" in row:
                found[row["record_key"], 5] = {"recordIndexMetadata": location_form(row)}
            elif "bloom" in row:
                found[row["key"], 4] = bloom_form(row)
            else:
                found[row["key"], 7] = {"SecondaryIndexMetadata": {"isDeleted": False}}
    return found


WITH_ROWS = [name for name in RICH.names() if RICH.answer(name).get("metadata_rows")]


@pytest.mark.parametrize("name", WITH_ROWS)
def test_every_record_as_hudi_shows_it(name: str, rich_table: Unpack) -> None:
    expected = recorded_rows(RICH.answer(name)["metadata_rows"])
    found = all_rows(open_metadata(rich_table(name))[0])
    emptied = {k: v for k, v in expected.items() if v == {"filesystemMetadata": {}} or v == {}}
    expected = {k: v for k, v in expected.items() if k not in emptied}
    assert found.keys() == expected.keys()
    assert found == expected


def listed(path: Path) -> dict[tuple[str, str], int]:
    """Partition, name and size of every data file below a table."""
    found = {}
    for folder, folders, names in os.walk(path):
        if ".hoodie" in folders:
            folders.remove(".hoodie")
        partition = os.path.relpath(folder, path).replace(os.sep, "/")
        for name in names:
            if not name.startswith(".hoodie_partition_metadata") and not name.endswith(".crc"):
                found["" if partition == "." else partition, name] = (Path(folder) / name).stat().st_size
    return found


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", [*CONFORMANCE.names(), *RICH.names()])
def test_files_are_what_lies_on_disk(name: str, recorded_table: Unpack) -> None:
    path = recorded_table(name)
    if "hoodie.table.metadata.partitions=" not in (path / ".hoodie" / "hoodie.properties").read_text():
        assert not (path / ".hoodie" / "metadata" / "files").exists()
        return
    metadata, storage = open_metadata(path)
    on_disk = listed(path)
    everything = metadata.files().to_pylist()
    found = {(row["partition_path"], row["name"]): row["size"] for row in everything}
    if name in UNCOMMITTED:
        assert found.items() < on_disk.items()
        pending = {instant.time for instant in metadata.data_timeline.pending_writes}
        assert all(any(time in file for time in pending) for _, file in on_disk.keys() - found.keys())
    else:
        assert found == on_disk
    assert len(everything) == len(found)
    paths = metadata.partitions().to_pylist()
    assert {partition for partition, _ in found} <= set(paths)
    again, _ = open_metadata(path)
    by_partition = {(row["partition_path"], row["name"]): row["size"] for p in paths for row in again.files([p]).to_pylist()}
    assert by_partition == found
    assert len(storage.log) < 40


def test_zigzag_of_the_helpers_is_avro() -> None:
    assert [zigzag(b) for b in (b"\x00", b"\x01", b"\x02", b"\xff\x01", b"\x80\x02")] == [0, -1, 1, -128, 128]
    assert hash64("_hoodie_record_key") == "uSJGdDiVr/k="
    assert md5("c923cb31-a2d3-49c6-8f47-4be96502c239-0_0-27-52_20260307162557587.parquet") == "gBn6/LGqbT7smt5eZVKpjg=="
