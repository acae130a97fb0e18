"""Partition columns whose values only the partition path tells: files lack them, or hold something else."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import UnsupportedFeature

STAYS = {"hoodie.record.index.update.partition.path": "false"}
SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("val", pa.int32()), ("ts", pa.int64())])
PLACES = (("de", "1"), ("fr", "20"), ("us", "3"))


def rows(*values: tuple[str, str | None, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in values], SCHEMA)


def ids(table: hudimeta.Table, where: str) -> list[str]:
    return sorted(table.scan(where=where).to_table()["id"].to_pylist())


def shown(found: pa.Table) -> dict[str, tuple[int, str, str]]:
    columns = (found.column(name).to_pylist() for name in ("id", "val", "country", "n"))
    return {key: (val, country, n) for key, val, country, n in zip(*columns, strict=True)}


# Hudi 1.2.0 wrote nine rows (`val` = 10 i + 1, partition by i % 3), then k1, k3, k4 and k11 anew (`val` = 10 i + 2). The commit
# of the second write names country and n, which the base files of the first do not have.
FIRST = {f"k{i}": (10 * i + 1, *PLACES[i % 3]) for i in range(9)}
LATEST = {**FIRST, **{f"k{i}": (10 * i + 2, *PLACES[i % 3]) for i in (1, 3, 4, 11)}}


def test_columns_that_no_base_file_holds_have_values_in_every_query(rich_table: Callable[[str], Path]) -> None:
    table = hudimeta.Table(rich_table("drop_partition_mor9"))
    first, written = table.timeline.writes[0].time, table.timeline.writes[0].completion
    assert shown(table.scan().to_table()) == LATEST
    assert shown(table.scan(as_of=first).to_table()) == FIRST
    optimized = shown(table.scan(query_type="read_optimized").to_table())
    assert {key: place for key, (_, *place) in optimized.items()} == {key: place for key, (_, *place) in LATEST.items()}
    changed = shown(table.scan(query_type="incremental", begin=written).to_table())
    assert changed == {key: row for key, row in LATEST.items() if row != FIRST.get(key)}


def test_predicates_over_columns_that_no_base_file_holds_keep_their_rows(rich_table: Callable[[str], Path]) -> None:
    table = hudimeta.Table(rich_table("drop_partition_mor9"))
    for where, keeps in {
        "country = 'de'": lambda row: row[1] == "de",
        "n = '20' AND val > 12": lambda row: row[2] == "20" and row[0] > 12,
        "country = 'us' OR val = 1": lambda row: row[1] == "us" or row[0] == 1,
        "upper(country) = 'FR'": lambda row: row[1] == "fr",
        "country IS NULL": lambda row: False,
    }.items():
        assert shown(table.scan(where=where).to_table()) == {k: r for k, r in LATEST.items() if keeps(r)}, where


def test_deletes_and_updates_by_such_a_column_leave_no_row_behind(rich_table: Callable[..., Path]) -> None:
    table = hudimeta.Table(rich_table("drop_partition_mor9", fresh=True))
    table.delete("country = 'de'")
    assert shown(table.scan().to_table()) == {key: row for key, row in LATEST.items() if row[1] != "de"}
    table.compact()
    assert shown(table.scan().to_table()) == {key: row for key, row in LATEST.items() if row[1] != "de"}
    table.metadata.validate().raise_if_differs()


def test_a_path_that_does_not_state_a_value_is_refused_where_no_file_holds_it(tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    schema = SCHEMA.append(pa.field("n", pa.int32()))
    table = hudimeta.Table.create(tmp_path / "t", schema, "id", ["region", "n"], ordering="ts", options=options)
    table.insert(rows(("a", "x/y", 1, 1)).append_column("n", pa.array([4], pa.int32())))
    with pytest.raises(UnsupportedFeature, match="partition column"):
        hudimeta.Table(tmp_path / "t").scan().to_table()


def test_every_type_comes_back_from_the_path_where_no_file_holds_it(tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    schema = SCHEMA.append(pa.field("n", pa.float64()))
    table = hudimeta.Table.create(tmp_path / "t", schema, "id", ["n"], ordering="ts", options=options)
    table.insert(rows(("a", "x", 1, 1), ("b", "y", 1, 1)).append_column("n", pa.array([-1.5, 1e20])))
    table = hudimeta.Table(tmp_path / "t")
    assert sorted(table.scan().to_table()["n"].to_pylist()) == [-1.5, 1e20]
    assert ids(table, "n > 0") == ["b"]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_that_stays_when_its_partition_column_changes_is_found_where_it_lies(tmp_path: Path, kind: str) -> None:
    indexes = ["column_stats", "partition_stats", "record_index"]
    table = hudimeta.Table.create(
        tmp_path / "t", SCHEMA, "id", ["region"], ordering="ts", type=kind, indexes=indexes, options=STAYS
    )
    table.insert(rows(("a", "eu", 1, 1), ("c", "us", 3, 1)))
    table.metadata.create_index("lowered", "column_stats", "region", expression="lower")
    table.metadata.create_index("regions", "secondary_index", "region")
    hudimeta.Table(tmp_path / "t", STAYS).upsert(rows(("a", "us", 10, 2)))
    table = hudimeta.Table(tmp_path / "t")
    assert {row["id"]: row["region"] for row in table.scan().to_table().to_pylist()} == {"a": "eu", "c": "us"}
    for where in ("region = 'eu'", "region = 'eu' AND val = 10", "region = 'eu' OR val = 77", "lower(region) = 'eu'"):
        assert ids(table, where) == ["a"], where
    assert ids(table, "region = 'us'") == ["c"]
    stored = [pq.read_table(file, columns=["region"], partitioning=None) for file in (tmp_path / "t/eu").glob("*.parquet")]
    assert {value for one in stored for value in one["region"].to_pylist()} == {"eu"}, "the files alone say the same"
    table.metadata.validate().raise_if_differs()


UTC = ZoneInfo("UTC")
EARLY, LATE = dt.datetime(2026, 1, 2, 3, 4, 5, 678901), dt.datetime(2026, 9, 8, 7, 6, 5)
STATED: dict[str, tuple[pa.DataType, Any, Any]] = {
    "decimal": (pa.decimal128(10, 2), Decimal("1.50"), Decimal("-7.25")),
    "whole decimal": (pa.decimal128(20, 0), Decimal(10**19), Decimal(3)),
    "double": (pa.float64(), 1e20, -0.5),
    "not a number": (pa.float64(), math.nan, 2.0),
    "float": (pa.float32(), 0.5, 2.0),
    "timestamp": (pa.timestamp("us", "UTC"), EARLY.replace(tzinfo=UTC), LATE.replace(tzinfo=UTC)),
    "timestamp without a zone": (pa.timestamp("us"), EARLY, LATE),
    "binary": (pa.binary(), b"\x00\xff", b"abc"),
    "null": (pa.decimal128(10, 2), None, Decimal("1.50")),
    "null text": (pa.string(), None, "de"),
    "date": (pa.date32(), EARLY.date(), LATE.date()),
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("of", STATED)
def test_of_every_type_a_row_that_stays_keeps_the_value_of_its_partition(tmp_path: Path, of: str, kind: str) -> None:
    """Of types that are not read from the path it showed a value that no other row of the partition has."""
    column, first, second = STATED[of]
    schema = pa.schema([("id", pa.string()), ("p", column), ("val", pa.int32()), ("q", pa.string())])
    table = hudimeta.Table.create(tmp_path / "t", schema, "id", ["p", "q"], type=kind, indexes=["record_index"], options=STAYS)
    table.insert(
        pa.Table.from_pylist([{"id": "a", "p": first, "val": 1, "q": "x"}, {"id": "b", "p": first, "val": 1, "q": "x"}], schema)
    )
    later = [{"id": "a", "p": second, "val": 2, "q": "x"}, {"id": "c", "p": second, "val": 2, "q": "y"}]
    hudimeta.Table(tmp_path / "t", STAYS).upsert(pa.Table.from_pylist(later, schema))
    table = hudimeta.Table(tmp_path / "t")
    found = {row["id"]: row for row in table.scan().to_table().to_pylist()}
    assert {key: row["val"] for key, row in found.items()} == {"a": 2, "b": 1, "c": 2}
    assert repr(found["a"]["p"]) == repr(found["b"]["p"]) == repr(first)
    assert repr(found["c"]["p"]) == repr(second)
    if kind == "MERGE_ON_READ":
        table.compact()
    for file in (tmp_path / "t").rglob("*/x/*.parquet"):
        assert {repr(value) for value in pq.read_table(file, columns=["p"], partitioning=None)["p"].to_pylist()} == {
            repr(first)
        }
    table.metadata.validate().raise_if_differs()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_text_like_the_folder_of_nulls_reads_as_null_and_every_index_says_so(tmp_path: Path, kind: str) -> None:
    indexes = ["column_stats", "partition_stats", "record_index"]
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, "id", ["region"], ordering="ts", type=kind, indexes=indexes)
    table.metadata.create_index("regions", "secondary_index", "region")
    for ts in (1, 2):
        given = [("a", "__HIVE_DEFAULT_PARTITION__", ts, ts), ("b", None, ts, ts), ("c", "", ts, ts), ("d", "de", ts, ts)]
        hudimeta.Table(tmp_path / "t").upsert(rows(*given))
    table = hudimeta.Table(tmp_path / "t")
    assert ids(table, "region IS NULL") == ["a", "b", "c"]
    assert ids(table, "region = '__HIVE_DEFAULT_PARTITION__'") == []
    assert ids(table, "region = 'de'") == ["d"]
    table.metadata.validate().raise_if_differs()
