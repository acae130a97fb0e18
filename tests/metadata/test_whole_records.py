"""Records of all partitions of the metadata table in one shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.metadata.record import RecordType
from hudimeta.metadata.whole_records import WHOLE_RECORD


@pytest.mark.parametrize("name", ["mdt_all_v8", "mdt_all_v9"])
def test_records_of_all_partitions(recorded_table: Callable[[str], Path], name: str) -> None:
    metadata = hudimeta.Table(recorded_table(name)).metadata
    whole = pa.concat_tables(metadata.whole_records())
    assert whole.schema == WHOLE_RECORD
    rows = whole.to_pylist()
    kinds = Counter(row["type"] for row in rows)
    assert kinds[RecordType.RECORD_INDEX] == metadata.records("record_index").num_rows
    assert kinds[RecordType.BLOOM_FILTER] == metadata.records("bloom_filters").num_rows
    assert kinds[RecordType.ALL_PARTITIONS] == 1
    listed = {
        (row["key"], file, info["size"])
        for row in rows
        if row["type"] == RecordType.FILES
        for file, info in row["filesystemMetadata"]
    }
    files = metadata.files().to_pylist()
    assert listed == {(f["partition_path"] or ".", f["name"], f["size"]) for f in files}
    (all_partitions,) = [row for row in rows if row["type"] == RecordType.ALL_PARTITIONS]
    assert {path for path, _ in all_partitions["filesystemMetadata"]} == {path for path, _, _ in listed}
    about = {RecordType.COLUMN_STATS: "ColumnStatsMetadata", RecordType.RECORD_INDEX: "recordIndexMetadata"}
    for kind, column in about.items():
        assert all((row[column] is not None) == (row["type"] == kind) for row in rows if row["type"] in about)


def test_bounds_and_locations_say_what_the_partitions_say(recorded_table: Callable[[str], Path]) -> None:
    metadata = hudimeta.Table(recorded_table("mdt_all_v8")).metadata
    rows = pa.concat_tables(metadata.whole_records()).to_pylist()
    places = {
        row["record_key"]: (row["partition_path"], row["file_id"]) for row in metadata.records("record_index").to_pylist()
    }
    for row in rows:
        if (found := row["recordIndexMetadata"]) is not None:
            halves = [found[name] & (1 << 64) - 1 for name in ("fileIdHighBits", "fileIdLowBits")]
            digits = "".join(f"{half:016x}" for half in halves)
            spelled = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:], str(found["fileIndex"])))
            assert (found["partitionName"], spelled) == places[row["key"]]
    keys = [s for row in rows if (s := row["ColumnStatsMetadata"]) is not None and s["columnName"] == "_hoodie_record_key"]
    assert keys
    assert all(s["minValue"]["member6"]["value"] <= s["maxValue"]["member6"]["value"] for s in keys)
    assert all(s["minValue"]["member1"] is None for s in keys)


def test_bounds_of_every_type_lie_in_their_member(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": ["a", "b"],
            "flag": [False, True],
            "n": pa.array([1, 2], pa.int32()),
            "x": [0.5, 2.5],
            "price": pa.array([Decimal("-1.25"), Decimal("3.50")], pa.decimal128(10, 2)),
        }
    )
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=["column_stats"])
    table.insert(rows)
    found = pa.concat_tables(hudimeta.Table(tmp_path / "t").metadata.whole_records()).to_pylist()
    bounds = {s["columnName"]: (s["minValue"], s["maxValue"]) for row in found if (s := row["ColumnStatsMetadata"]) is not None}
    for column, member in {"flag": "member0", "n": "member1", "x": "member4", "id": "member6", "price": "member8"}.items():
        least, most = bounds[column]
        assert (least[member]["value"], most[member]["value"]) == tuple(rows[column].to_pylist()), column
        assert [name for name, value in least.items() if value is not None] == [member]
