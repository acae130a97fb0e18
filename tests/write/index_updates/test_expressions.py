"""Expression indexes over columns of every type: kept by every write, true of every value, and no answer depends on them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.storage import open_storage
from hudimeta.table.properties import update

UTC = datetime.timezone.utc
INDEXES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "to_timestamp": ("column_stats", "text", "to_timestamp", {}),
    "to_date": ("column_stats", "text", "to_date", {"format": "yyyy-MM-dd HH:mm:ss"}),
    "length": ("column_stats", "text", "length", {}),
    "unix": ("column_stats", "text", "unix_timestamp", {}),
    "year": ("column_stats", "day", "year", {}),
    "add": ("column_stats", "day", "date_add", {"days": 3}),
    "month": ("column_stats", "at", "date_format", {"format": "yyyy-MM"}),
    "hour": ("column_stats", "at", "hour", {}),
    "double": ("column_stats", "x", "identity", {}),
    "price": ("column_stats", "price", "identity", {}),
    "flag": ("column_stats", "flag", "identity", {}),
    "lower": ("column_stats", "tag", "lower", {}),
    "head": ("bloom_filters", "text", "substring", {"pos": 1, "len": 7}),
    "days": ("bloom_filters", "day", "identity", {"numEntries": 100, "fpp": "0.01"}),
    "replaced": ("bloom_filters", "tag", "regexp_replace", {"pattern": "A", "replacement": "B"}),
}
WHERE = (
    "to_timestamp(text) > timestamp'2026-01-20 00:00:00'",
    "to_date(text, 'yyyy-MM-dd HH:mm:ss') = date'2026-01-05'",
    "length(text) = 19",
    "year(day) = 2003",
    "date_add(day, 3) = date'2001-01-04'",
    "date_format(at, 'yyyy-MM') = '2026-01'",
    "hour(at) = 0",
    "lower(tag) = 'a7'",
    "substring(text, 1, 7) = '2026-01'",
    "regexp_replace(tag, 'A', 'B') = 'B8'",
)


def rows(ids: range, ts: int) -> pa.Table:
    """Rows with nulls, NaN and values of every kind that expressions take."""
    start = datetime.datetime(2026, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array([str(i) for i in ids], pa.string()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "text": pa.array([None if i % 5 == 0 else f"2026-01-{i % 28 + 1:02d} 10:00:00" for i in ids], pa.string()),
            "at": pa.array([start + datetime.timedelta(days=i % 28) for i in ids], pa.timestamp("us", "UTC")),
            "day": pa.array([datetime.date(2000 + i % 7, 1, 1) for i in ids], pa.date32()),
            "x": pa.array([float("nan") if i % 9 == 0 else None if i % 4 == 0 else i * 1.5 for i in ids], pa.float64()),
            "price": pa.array([Decimal(i) / 100 for i in ids], pa.decimal128(10, 2)),
            "flag": pa.array([i % 2 == 0 for i in ids], pa.bool_()),
            "tag": pa.array([f"A{i}" for i in ids], pa.string()),
            "nested": pa.array([{"a": f"A{i}"} for i in ids], pa.struct([("a", pa.string())])),
        }
    )


@pytest.mark.rotation(3)
@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "8"), ("MERGE_ON_READ", "9")])
def test_expressions_of_every_type_are_kept(tmp_path: Path, kind: str, version: str) -> None:
    path, options = tmp_path / "t", {"hoodie.write.table.version": version}
    table = hudimeta.Table.create(path, rows(range(0), 0).schema, key="id", ordering="ts", type=kind, options=options)
    table.insert(rows(range(30), 1))
    for name, (index, column, expression, arguments) in INDEXES.items():
        table.metadata.create_index(name, index, column, expression=expression, options=arguments)
    table.upsert(rows(range(20, 50), 2))
    table.delete("id in ('3', '4', '45')")
    if kind == "MERGE_ON_READ":
        table.compact()
        table.upsert(rows(range(5), 3))
    trusting = {"hudimeta.index.trust": True}
    report = hudimeta.Table(path, trusting).metadata.validate()
    assert report.holds, report
    assert not any(check.notes for check in report.checks), report
    for where in WHERE:
        without = hudimeta.Table(path, {"hudimeta.index.use": "none"}).scan(where=where).to_table()
        for more in ({}, trusting):
            found = hudimeta.Table(path, {"hudimeta.index.use": "expression_index", **more}).scan(where=where).to_table()
            assert sorted(found["id"].to_pylist()) == sorted(without["id"].to_pylist()), where


def test_definitions_have_the_names_and_arguments_without_which_apache_hudi_fails(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", rows(range(0), 0).schema, key="id", ordering="ts")
    table.insert(rows(range(3), 1))
    create = table.metadata.create_index
    create("low", "bloom_filters", "tag", expression="LOWER", options={"numEntries": 100, "filterType": "SIMPLE"})
    create("rest", "column_stats", "text", expression="substring", options={"pos": "+6"})
    create("hour", "column_stats", "text", expression="regexp_extract", options={"pattern": "(10):"})
    found = {name: one.options for name, one in table.metadata.index_definitions.items() if name.startswith("expr_index_")}
    assert found == {
        "expr_index_low": {"expr": "lower", "numentries": "100", "filtertype": "SIMPLE"},
        "expr_index_rest": {"expr": "substring", "pos": "6", "len": "2147483647"},
        "expr_index_hour": {"expr": "regexp_extract", "pattern": "(10):", "idx": "1"},
    }
    assert {one.function for name, one in table.metadata.index_definitions.items() if name in found} == {
        "lower",
        "substring",
        "regexp_extract",
    }
    for where in (
        "substring(text, 6) = 'x'",
        "regexp_extract(text, '(10):') = '11'",
        "regexp_extract(text, '(10):', 1) = '11'",
        "lower(tag) = 'b1'",
    ):
        scan = hudimeta.Table(tmp_path / "t", {"hudimeta.index.use": "expression_index"}).scan(where=where)
        assert scan.to_table().num_rows == scan.report.slices_kept == 0, where
    with pytest.raises(hudimeta.errors.ConfigError, match="bloom_filters"):
        create("up", "column_stats", "text", expression="upper", options={"fpp": 0.1})
    with pytest.raises(hudimeta.errors.UnsupportedFeature, match="a field of a struct"):
        create("field", "column_stats", "nested.a", expression="lower")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fpp", "1"),  # was built, and every read by it said that it was damaged
        ("fpp", "0"),
        ("fpp", "many"),
        ("fpp", "nan"),
        ("numentries", "0"),
        ("numentries", "10.5"),
        ("numentries", str(10**10)),
        ("maxentries", "-1"),
        ("filtertype", "QUICK"),
    ],
)
def test_filters_that_nobody_could_make_or_read_are_refused(tmp_path: Path, name: str, value: str) -> None:
    table = hudimeta.Table.create(tmp_path / "t", rows(range(0), 0).schema, key="id", ordering="ts")
    table.insert(rows(range(3), 1))
    with pytest.raises(hudimeta.errors.ConfigError, match=name):
        table.metadata.create_index("low", "bloom_filters", "tag", expression="lower", options={name: value})
    assert not [one for one in table.metadata.index_definitions if one.startswith("expr_index_")]
    assert [instant.action.value for instant in table.timeline.completed] == ["commit"]


def test_later_writers_look_at_moments_in_the_zone_in_which_the_first_index_was_built(tmp_path: Path) -> None:
    path, tokyo = tmp_path / "t", {"hudimeta.session.timezone": "Asia/Tokyo"}
    table = hudimeta.Table.create(path, rows(range(0), 0).schema, key="id", ordering="ts")
    table.insert(rows(range(3), 1))
    nowhere = hudimeta.Table(path, {"hudimeta.session.timezone": "Nowhere/Land"})
    with pytest.raises(hudimeta.errors.ConfigError, match=r"Nowhere.*IANA"):
        nowhere.metadata.create_index("hour", "column_stats", "at", expression="hour")
    hudimeta.Table(path, tokyo).metadata.create_index("hour", "column_stats", "at", expression="hour")
    hudimeta.Table(path).insert(rows(range(3, 6), 1))
    berlin = {"hudimeta.index.timezone": "Europe/Berlin"}
    with pytest.raises(hudimeta.errors.ConfigError, match="Asia/Tokyo"):
        hudimeta.Table(path, berlin).metadata.create_index("day", "column_stats", "at", expression="to_date")
    trusting = hudimeta.Table(path, {"hudimeta.index.trust": True, "hudimeta.index.use": "expression_index"})
    assert trusting.scan(where="hour(at) = 9", timezone="Asia/Tokyo").to_table().num_rows == 6
    assert trusting.metadata.validate().holds
    hudimeta.Table(path).metadata.drop_index("hour")
    hudimeta.Table(path, berlin).metadata.create_index("hour", "column_stats", "at", expression="hour")
    assert hudimeta.Table(path).properties["hudimeta.index.timezone"] == "Europe/Berlin"


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        ("to_date", "to_date(at) = date'2026-01-03'"),
        ("hour", "hour(at) = 5"),
        ("date_format", "date_format(at, 'yyyy-MM-dd HH') = '2026-01-06 05'"),
    ],
)
def test_rows_of_writers_that_do_not_know_the_zone_are_found_in_any(tmp_path: Path, expression: str, where: str) -> None:
    path, options = tmp_path / "t", {"format": "yyyy-MM-dd HH"} if expression == "date_format" else {}
    table = hudimeta.Table.create(path, rows(range(0), 0).schema, key="id", ordering="ts")
    table.insert(rows(range(3), 1))
    table.metadata.create_index("e", "column_stats", "at", expression=expression, options=options)
    table.metadata.create_index("f", "bloom_filters", "at", expression="to_date")
    _let_another_build_them(path)
    hudimeta.Table(path, {"hoodie.parquet.small.file.limit": 0}).insert(rows(range(3, 6), 1))
    for zone in ("Asia/Karachi", "America/New_York"):
        every = hudimeta.Table(path, {"hudimeta.index.use": "none"}).scan(where=where, timezone=zone).to_table()
        trusting = hudimeta.Table(path, {"hudimeta.index.use": "expression_index", "hudimeta.index.trust": True})
        found = set(trusting.scan(where=where, timezone=zone).to_table()["id"].to_pylist())
        assert found & {"3", "4", "5"} == set(every["id"].to_pylist()) & {"3", "4", "5"}, zone
    assert trusting.metadata.validate().holds


def _let_another_build_them(path: Path) -> None:
    """As after Apache Hudi, which names no zone."""
    update(open_storage(path), {"hudimeta.index.timezone": None})


@pytest.mark.parametrize("option", ["hudimeta.index.timezone", "hudimeta.session.timezone"])
def test_a_zone_that_is_none_is_refused_before_anything_is_written(tmp_path: Path, option: str) -> None:
    table = hudimeta.Table.create(tmp_path / "t", rows(range(0), 1).schema, key="id", ordering="ts")
    table.insert(rows(range(5), 1))
    table.indexes.create("len", "column_stats", "text", expression="length")
    storage = open_storage(tmp_path / "t")
    before = storage.list(".hoodie/timeline"), storage.list("")
    told = hudimeta.Table(tmp_path / "t", {option: "Atlantis"})
    for write in (told.insert_overwrite_table, told.upsert, lambda _: told.delete(where="x > 0"), lambda _: told.cluster()):
        with pytest.raises(ConfigError, match=option.replace(".", r"\.") + ".*'Atlantis'.*an IANA zone"):
            write(rows(range(2), 2))
    assert (storage.list(".hoodie/timeline"), storage.list("")) == before
    hudimeta.Table(tmp_path / "t", {option: "Europe/Berlin"}).upsert(rows(range(2), 2))
