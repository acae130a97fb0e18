"""Tables that store less than others: virtual keys, and partition columns that are in partition paths alone."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import ConfigError, SchemaMismatch, UnsupportedFeature
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS
from tests.edited_properties import edit_properties

SCHEMA = pa.schema(
    [("id", pa.string()), ("n", pa.int32()), ("part", pa.int32()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))]
)
VIRTUAL = {"hoodie.populate.meta.fields": "false"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
MOMENT = datetime.datetime(2026, 3, 1, 12, 30, tzinfo=datetime.timezone.utc)
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


def rows(*given: tuple[Any, ...]) -> pa.Table:
    """(id, n, part, v, ts) as a table."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in given], SCHEMA)


def create(path: Path, kind: str = "COPY_ON_WRITE", key: Any = "id", options: Any = None, **more: Any) -> hudimeta.Table:
    given = {"partition_by": "part", "ordering": "ts", **more}
    return hudimeta.Table.create(path, SCHEMA, key=key, type=kind, options=options or {}, name="t", **given)


def contents(path: Path) -> list[tuple[str, int, int]]:
    """(id, part, v), sorted."""
    found = hudimeta.Table(path).scan().to_table()
    return sorted(zip(*(found[c].to_pylist() for c in ("id", "part", "v")), strict=True))


def base_files(path: Path) -> list[Path]:
    return [f for f in path.rglob("*.parquet") if ".hoodie" not in f.parts]


@pytest.mark.rotation(5)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("stored", [VIRTUAL, DROPPED, {**VIRTUAL, **DROPPED}], ids=["virtual", "dropped", "both"])
@pytest.mark.parametrize(
    ("key", "index"),
    [("id", {}), (["id", "n"], {"hoodie.index.type": "GLOBAL_SIMPLE"}), (["id", "n"], BUCKETS)],
    ids=["simple", "complex and global", "complex and buckets"],
)
def test_every_operation_works(tmp_path: Path, kind: str, stored: dict[str, str], key: Any, index: dict[str, str]) -> None:
    table = create(tmp_path, kind, key, {**stored, **index})
    table.insert(rows(("a", 1, 1, 1, 1), ("b", 1, 1, 1, 1), ("c", 1, 2, 1, 1)))
    table.upsert(rows(("a", 1, 1, 2, 2), ("b", 1, 1, 2, 0), ("d", 1, 3, 2, 2)))
    table.upsert(rows(("c", 1, 2, 3, 3)))
    table.delete(rows(("d", 1, 3, 0, 9)))
    table.delete("id = 'b'")
    table.update({"v": 7}, where="id = 'c'")
    if kind == "MERGE_ON_READ":
        table.compact()
    table.upsert(rows(("e", 1, 1, 4, 4), ("a", 1, 1, 5, 5)))
    assert contents(tmp_path) == [("a", 1, 5), ("c", 2, 7), ("e", 1, 4)]
    table.insert_overwrite(rows(("f", 1, 2, 1, 1)))
    table.delete_partition("1")
    assert contents(tmp_path) == [("f", 2, 1)]
    check_all(open_storage(tmp_path))


def test_files_of_virtual_keys_hold_their_name_only(tmp_path: Path) -> None:
    create(tmp_path, options=VIRTUAL).insert(rows(("a", 1, 1, 1, 1), ("b", 1, 2, 1, 1)))
    for file in base_files(tmp_path):
        read = pq.read_table(file)
        assert tuple(read.column_names[:5]) == META_COLUMNS
        assert [read[name].null_count for name in META_COLUMNS] == [1, 1, 1, 1, 0]
        assert read["_hoodie_file_name"].to_pylist() == [file.name]
        assert not any(b"hoodie_" in key or b"bloom" in key for key in pq.read_metadata(file).metadata or {})
    shown = hudimeta.Table(tmp_path).scan().to_table()
    assert shown["_hoodie_record_key"].null_count == 2


def test_dropped_columns_are_in_no_file_and_in_every_row(tmp_path: Path) -> None:
    create(tmp_path, options=DROPPED).insert(rows(("a", 1, 7, 1, 1), ("b", 1, None, 1, 1)))
    assert all("part" not in pq.read_schema(file).names for file in base_files(tmp_path))
    found = hudimeta.Table(tmp_path).scan(where="part = 7").to_table()
    assert found["part"].to_pylist() == [7]
    assert found.schema.field("part").type == pa.int32()
    assert contents(tmp_path)[0] == ("a", 7, 1)


@pytest.mark.parametrize(
    ("options", "more", "error", "words"),
    [
        (VIRTUAL, {"key": None}, UnsupportedFeature, "without key columns"),
        ({**VIRTUAL, "hoodie.metadata.index.bloom.filter.enable": "true"}, {}, UnsupportedFeature, "bloom_filters"),
        (DROPPED, {"ordering": "part"}, UnsupportedFeature, "ordering by part"),
        ({**VIRTUAL, **DROPPED}, {"key": "part"}, UnsupportedFeature, "not in the files"),
        (DROPPED, {"partition_by": SCHEMA.names, "ordering": ()}, ConfigError, "partition columns alone"),
        (
            {
                **VIRTUAL,
                "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
                "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
                "hoodie.keygen.timebased.output.dateformat": "yyyy",
            },
            {"partition_by": "v"},
            UnsupportedFeature,
            "key generator TIMESTAMP",
        ),
    ],
)
def test_what_cannot_work_is_refused(
    tmp_path: Path, options: dict[str, str], more: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        create(tmp_path, options=options, **more)
    assert not (tmp_path / ".hoodie").exists()


def test_a_write_cannot_change_what_is_stored(tmp_path: Path) -> None:
    create(tmp_path, options=VIRTUAL).insert(rows(("a", 1, 1, 1, 1)))
    for options in ({"hoodie.populate.meta.fields": "true"}, DROPPED):
        with pytest.raises(ConfigError, match="what the table has"):
            hudimeta.Table(tmp_path, options=options).insert(rows(("b", 1, 1, 1, 1)))
    with pytest.raises(UnsupportedFeature, match="no bloom filters"):
        hudimeta.Table(tmp_path, options={"hoodie.index.type": "BLOOM"}).upsert(rows(("a", 1, 1, 2, 2)))
    allowed = {"hoodie.index.type": "BLOOM", "hudimeta.index.allow.fallback": "true"}
    report = hudimeta.Table(tmp_path, options=allowed).upsert(rows(("a", 1, 1, 2, 2)))
    assert "instead of BLOOM: files without meta columns have no bloom filters" in report.index
    assert contents(tmp_path) == [("a", 1, 2)]


CUSTOM = {
    "hoodie.datasource.write.keygenerator.type": "CUSTOM",
    "hoodie.keygen.timebased.timestamp.type": "SCALAR",
    "hoodie.keygen.timebased.timestamp.scalar.time.unit": "days",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM",
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_custom_keys_mix_values_and_times(tmp_path: Path, kind: str) -> None:
    fields = ["part:SIMPLE", "n:TIMESTAMP"]
    table = create(tmp_path, kind, "id", CUSTOM, partition_by=fields)
    table.insert(rows(("a", 0, 1, 1, 1), ("b", 59, 1, 1, 1)))
    table.upsert(rows(("a", 30, 1, 2, 2), ("b", 31, 1, 2, 2)))
    found = hudimeta.Table(tmp_path).scan().to_table().sort_by("id")
    assert sorted(found["_hoodie_partition_path"].to_pylist()) == ["1/1970-01", "1/1970-02", "1/1970-03"]
    assert contents(tmp_path) == [("a", 1, 2), ("b", 1, 1), ("b", 1, 2)]
    assert hudimeta.Table(tmp_path).scan(where="part = 1 and n = 30").to_table()["id"].to_pylist() == ["a"]


def test_settings_of_times_that_a_table_does_not_store_come_as_options(tmp_path: Path) -> None:
    """Apache Hudi stores them with the generator TIMESTAMP alone."""
    create(tmp_path, key="id", options=CUSTOM, partition_by="n:TIMESTAMP").insert(rows(("a", 0, 1, 1, 1)))
    edit_properties(tmp_path, lambda text: "".join(x for x in text.splitlines(True) if not x.startswith("hoodie.keygen")))
    with pytest.raises(ConfigError, match=r"timebased\.timestamp\.type"):
        hudimeta.Table(tmp_path).upsert(rows(("a", 0, 1, 2, 2)))
    hudimeta.Table(tmp_path, options=CUSTOM).upsert(rows(("a", 0, 1, 2, 2)))
    assert contents(tmp_path) == [("a", 1, 2)]


@pytest.mark.parametrize("fields", [["part"], ["part:NONE"], ["n:TIMESTAMP", "part"]])
def test_custom_partition_columns_say_how_they_are_written(tmp_path: Path, fields: list[str]) -> None:
    with pytest.raises(ConfigError, match="field:SIMPLE or field:TIMESTAMP"):
        create(tmp_path, options=CUSTOM, partition_by=fields)


def test_generated_keys_count_the_rows_as_they_came(tmp_path: Path) -> None:
    table = create(tmp_path, key=None)
    report = table.insert(rows(("a", 0, 1, 1, 1), ("b", 0, 2, 1, 1), ("a", 0, 1, 1, 1)))
    found = hudimeta.Table(tmp_path).scan().to_table()
    numbers = {
        key: (n, part)
        for key, n, part in zip(*(found[c].to_pylist() for c in ("_hoodie_record_key", "id", "part")), strict=True)
    }
    instant = report.instant
    assert numbers == {f"{instant}_0_0": ("a", 1), f"{instant}_0_1": ("b", 2), f"{instant}_0_2": ("a", 1)}
    table.upsert(rows(("a", 0, 1, 1, 1)))
    assert len(contents(tmp_path)) == 4
    assert len(set(hudimeta.Table(tmp_path).scan().to_table()["_hoodie_record_key"].to_pylist())) == 4
    table.delete("id = 'a'")
    assert contents(tmp_path) == [("b", 2, 1)]


def test_values_that_no_file_holds_are_of_the_tables_type(tmp_path: Path) -> None:
    """Nothing else tells them than the folder: of `7.0` or `x` no reader could make the integer any more."""
    table = create(tmp_path / "t", options=DROPPED)
    table.insert(rows(("a", 1, 7, 1, MOMENT)))
    for wrong in ([7.0], ["7"], ["x"], [1 << 40]):
        given = rows(("a", 1, 0, 2, MOMENT)).drop_columns("part").append_column("part", pa.array(wrong))
        with pytest.raises(SchemaMismatch, match=r"part.*needs int32"):
            table.upsert(given)
        with pytest.raises(SchemaMismatch, match=r"part.*needs int32"):
            table.delete(given)
    wide = rows(("a", 1, 7, 2, MOMENT)).cast(SCHEMA.set(2, pa.field("part", pa.int64())))
    table.upsert(wide)
    assert contents(tmp_path / "t") == [("a", 7, 2)]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_moments_that_no_file_holds_are_read_as_they_were_written(tmp_path: Path, unit: str) -> None:
    """Paths hold the number of microseconds, whatever the unit of the rows."""
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp(unit, "UTC"))])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", partition_by="at", options=DROPPED)
    table.insert(pa.Table.from_pylist([{"id": "a", "at": MOMENT}], schema))
    (found,) = hudimeta.Table(tmp_path / "t").scan(columns=["at"]).to_table()["at"].to_pylist()
    assert found == MOMENT
