"""A dataset becomes a table: described or copied by partition, read, written to, and finished by the next call if it dies."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import hudimeta
from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.errors import ConfigError, HudiError, SchemaMismatch, TableError, UnsupportedFeature
from hudimeta.formats.avro.container import decode_container
from hudimeta.formats.hfile import HFileReader
from hudimeta.services.bootstrapping import bootstrap
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.table.bootstrap_index import BY_FILE, BY_PARTITION
from hudimeta.testing.builders import simple_rows
from tests.conftest import Unpack
from tests.rotation import in_turn

RECORD_INDEX = {"hoodie.metadata.record.index.enable": "true"}
PARTS = 12
LOST_LOCK = pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left to a later write")


def dataset(path: Path, extension: str = "parquet") -> Path:
    """Three partitions of two files with ten rows in all each; the partition column stands in the folders alone."""
    for part in range(3):
        for file in range(2):
            rows = simple_rows([n for n in range(30) if n % 3 == part and n % 2 == file], 1, partitions=3)
            folder = path / f"part=p{part}"
            folder.mkdir(parents=True, exist_ok=True)
            write = pq.write_table if extension == "parquet" else orc.write_table
            write(rows.drop_columns(["part"]), folder / f"f{file}.{extension}")
    (path / "_SUCCESS").write_bytes(b"")
    return path


def rows_of(path: Path, **scan: Any) -> list[dict[str, Any]]:
    rows = Table(path).scan(columns=["id", "part", "ts", "x"], **scan).to_table()
    return sorted(rows.to_pylist(), key=lambda row: str(row["id"]))


def plain(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.select(["id", "part", "ts", "x"]).to_pylist(), key=lambda row: str(row["id"]))


ROWS = plain(simple_rows(range(30), 1, partitions=3))
MODES = [(None, None, 6), ("FULL_RECORD", None, 0), ("METADATA_ONLY", "part=p[01]", 4), ("FULL_RECORD", "part=p0", 4)]


@pytest.mark.rotation(2)
@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("mode", "pattern", "described"), MODES)
def test_a_dataset_is_a_table_to_write_to(
    tmp_path: Path, mode: str | None, pattern: str | None, described: int, type: str, version: str
) -> None:
    source, path = dataset(tmp_path / "source"), tmp_path / "t"
    before = {p: p.read_bytes() for p in source.rglob("*.parquet")}
    options = {**RECORD_INDEX, "hoodie.write.table.version": version}
    given = (source, path, "id", "part", "ts", type)
    plan = hudimeta.bootstrap(*given, options=options, mode=mode, pattern=pattern, dry_run=True)
    assert str(plan).startswith("bootstrap 6 files in 3 partitions")
    assert not path.exists()
    report = hudimeta.bootstrap(*given, options=options, mode=mode, pattern=pattern)
    assert f"described {described} files" in str(report)
    assert len(list(path.rglob("*_00000000000001.parquet"))) == described
    assert rows_of(path) == ROWS
    assert [row["id"] for row in rows_of(path, where="id = 'k0005'")] == ["k0005"]
    assert [row["id"] for row in rows_of(path, where="part = 'p1' and x < 2 and ts = 1")] == [
        row["id"] for row in ROWS if row["part"] == "p1"
    ]
    face = Table(path)
    face.metadata.validate(deep=True).raise_if_differs()
    assert face.upsert(simple_rows(range(5, 8), 2, partitions=3)).updated == 3 or type == "MERGE_ON_READ"
    face.delete("id = 'k0007'")
    face.upsert(simple_rows([50], 2, partitions=3))
    expected = {row["id"]: row for row in [*ROWS, *plain(simple_rows([5, 6, 50], 2, partitions=3))]}
    del expected["k0007"]
    wanted = [expected[key] for key in sorted(expected)]
    assert rows_of(path) == wanted
    if type == "MERGE_ON_READ":
        assert face.compact()
        assert rows_of(path) == wanted
    face.metadata.validate(deep=True).raise_if_differs()
    small = {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"}
    assert Table(path, small).cluster("ts")
    assert rows_of(path) == wanted
    assert not list(path.rglob("*_00000000000001.parquet")) or Table(path).repair.orphans().findings == ()
    assert {p: p.read_bytes() for p in source.rglob("*.parquet")} == before, "the source stays as it is"


def test_a_table_that_is_bootstrapped_keeps_its_options(tmp_path: Path) -> None:
    given = {"options": RECORD_INDEX, "partition_by": "part", "ordering": "ts", "mode": "FULL_RECORD"}
    source = dataset(tmp_path / "source")
    with pytest.raises(ConfigError, match="dry_run"):
        Table.bootstrap(source, tmp_path / "t", "id", **given, dry_run=True)
    table = Table.bootstrap(source, tmp_path / "t", "id", **given)
    assert "record_index" in table.metadata.ready
    assert table.upsert(simple_rows([50], 2, partitions=3)).inserted == 1
    assert table.scan().count() == len(ROWS) + 1


@pytest.mark.parametrize("style", ["true", "false"])
def test_without_partitions_any_style_of_folders_will_do(tmp_path: Path, style: str) -> None:
    """As options that a user gives to all tables may say."""
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": ["a", "b"], "x": [1, 2]}), tmp_path / "source" / "f.parquet")
    options = {"hoodie.datasource.write.hive_style_partitioning": style}
    hudimeta.bootstrap(tmp_path / "source", tmp_path / "t", "id", options=options)
    Table(tmp_path / "t", options).upsert({"id": ["b"], "x": [3]})
    assert Table(tmp_path / "t").scan("x > 1", columns=["id", "x"]).to_table().to_pylist() == [{"id": "b", "x": 3}]


def test_orc_files_are_copied(tmp_path: Path) -> None:
    source = dataset(tmp_path / "source", "orc")
    with pytest.raises(UnsupportedFeature, match="ORC"):
        hudimeta.bootstrap(source, tmp_path / "t", "id", "part")
    hudimeta.bootstrap(source, tmp_path / "t", "id", "part", mode="FULL_RECORD")
    assert rows_of(tmp_path / "t") == ROWS


def test_the_index_is_as_apache_hudis(tmp_path: Path, recorded_table: Unpack) -> None:
    """Keys, schemas and members as in the one that Apache Hudi wrote."""
    theirs, path = recorded_table("bootstrap_meta"), tmp_path / "t"
    hudimeta.bootstrap(dataset(tmp_path / "source"), path, "id", "part", "ts")
    for name in (BY_FILE, BY_PARTITION):
        their, our = (HFileReader((root / name).read_bytes(), name) for root in (theirs, path))
        for reader, count in ((their, 3), (our, 6 if name == BY_FILE else 3)):
            cells = reader.scan()
            assert reader.entry_count == count
            (info,) = decode_container(reader.file_info["INDEX_INFO"])
            assert info["numKeys"] == count
            (record,) = decode_container(cells.values[0].as_py())
            assert cells.keys[0].as_py().startswith(f"part={record['partitionPath']}".encode())
            status = record.get("bootstrapFileStatus") or next(iter(record["fileIdToBootstrapFile"].values()))
            assert status["path"]["uri"].startswith(f"file:{info['bootstrapBasePath']}/{record['partitionPath']}/")
            assert status["length"] > 0


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"partition_by": "month"}, ConfigError, "month=value"),
        ({"partition_by": ()}, ConfigError, "folders of 0 levels"),
        ({"key": None}, ConfigError, "recordkey"),
        ({"key": "nothing"}, ConfigError, "nothing"),
        ({"pattern": "("}, ConfigError, "regular expression"),
        ({"mode": "SOME"}, ConfigError, "METADATA_ONLY or FULL_RECORD"),
        ({"indexes": ["column_stats"]}, ConfigError, "only described"),
        ({"path": "source/inside"}, ConfigError, "outside of the source"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, change: dict[str, Any], error: type[HudiError], match: str) -> None:
    source = dataset(tmp_path / "source")
    given = {"path": "t", "key": "id", "partition_by": "part", "ordering": "ts", **change}
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error, match=match):
        hudimeta.bootstrap(source, tmp_path / given.pop("path"), **given)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("mode", ["METADATA_ONLY", "FULL_RECORD"])
@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_file_without_a_value_of_a_column_takes_the_type_of_others(tmp_path: Path, names: str, mode: str) -> None:
    """Pandas and Polars write such: the column has no type there."""
    no_type, typed = pa.null(), pa.int64()
    stored = []
    for name, kind, values in ((names[0], no_type, [None, None]), (names[1], typed, [1, 2])):
        columns = {
            "id": pa.array([f"{name}0", f"{name}1"]),
            "x": pa.array(values, kind),
            "s": pa.array([{"k": value} for value in values], pa.struct([("k", kind)])),
            "l": pa.array([[value] for value in values], pa.list_(kind)),
            "m": pa.array([[("k", value)] for value in values], pa.map_(pa.string(), kind)),
        }
        (tmp_path / "source").mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / f"source/{name}.parquet")
        stored += pa.table(columns).to_pylist()
    table = Table.bootstrap(tmp_path / "source", tmp_path / "t", "id", mode=mode)

    def rows(where: str | None = None) -> list[dict[str, Any]]:
        found = table.scan(where, columns=["id", "x", "s", "l", "m"]).to_table()
        return sorted(found.to_pylist(), key=lambda row: str(row["id"]))

    assert rows() == sorted(stored, key=lambda row: str(row["id"]))
    assert [row["id"][0] for row in rows("x IS NULL")] == [names[0]] * 2
    assert [row["x"] for row in rows("x > 1")] == [2]
    table.upsert(table.scan().to_table().slice(0, 1))
    assert rows() == sorted(stored, key=lambda row: str(row["id"]))
    assert table.metadata.validate(deep=True).holds


def test_a_column_that_no_file_has_a_type_of_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": ["a"], "x": pa.nulls(1)}), tmp_path / "source/a.parquet")
    with pytest.raises(SchemaMismatch, match=r"'x' is null"):
        Table.bootstrap(tmp_path / "source", tmp_path / "t", "id")
    assert not (tmp_path / "t").exists()


def test_files_that_disagree_and_tables_are_refused(tmp_path: Path) -> None:
    source = dataset(tmp_path / "source")
    pq.write_table(pa.table({"id": [1]}), source / "part=p0/odd.parquet")
    with pytest.raises(SchemaMismatch, match="odd"):
        hudimeta.bootstrap(source, tmp_path / "t", "id", "part")
    (source / "part=p0/odd.parquet").unlink()
    hudimeta.bootstrap(source, tmp_path / "t", "id", "part", mode="FULL_RECORD")
    with pytest.raises(TableError, match="there is a table"):
        hudimeta.bootstrap(source, tmp_path / "t", "id", "part")
    with pytest.raises(ConfigError, match="Hudi table"):
        hudimeta.bootstrap(tmp_path / "t", tmp_path / "u", "id", "part")


def test_statistics_of_described_files_are_refused(tmp_path: Path) -> None:
    hudimeta.bootstrap(dataset(tmp_path / "source"), tmp_path / "t", "id", "part", "ts")
    assert Table(tmp_path / "t").properties.metadata_partitions == ("files",)
    with pytest.raises(UnsupportedFeature, match="column_stats over rows"):
        Table(tmp_path / "t").metadata.create_index(type="column_stats")


@LOST_LOCK
@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
@pytest.mark.parametrize("number", in_turn(range(60), PARTS))
def test_one_that_fails_is_finished_by_the_next(tmp_path: Path, number: int, fault: Fault) -> None:
    source, path = dataset(tmp_path / "source"), tmp_path / "t"
    asked = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.bootstrap.mode.selector": "BootstrapRegexModeSelector",
        "hoodie.bootstrap.mode.selector.regex": "part=p[01]",
        **RECORD_INDEX,
    }
    options, engine = OPTIONS.read(asked), LocalEngine(1)
    faulty = FaultyStorage(open_storage(str(path)), FaultPlan(number, fault))
    try:
        bootstrap(open_storage(str(source)), faulty, options, engine)
    except HudiError:
        try:
            bootstrap(open_storage(str(source)), open_storage(str(path)), options, engine)
        except TableError:  # what failed came after the last row
            assert rows_of(path) == ROWS
    assert rows_of(path) == ROWS
    WriteSession(open_storage(str(path)), OPTIONS.read({})).coordinator.recover()
    Table(path).metadata.validate().raise_if_differs()
    Table(path).upsert(simple_rows(range(3), 4, partitions=3))
    assert len(rows_of(path)) == 30


def test_a_source_that_is_gone_is_no_answer(tmp_path: Path) -> None:
    hudimeta.bootstrap(dataset(tmp_path / "source"), tmp_path / "t", "id", "part", "ts")
    shutil.rmtree(tmp_path / "source/part=p0")
    with pytest.raises(HudiError):
        rows_of(tmp_path / "t")
    assert len(rows_of(tmp_path / "t", where="part = 'p1'")) == 10


def test_writers_and_services_open_the_source_with_the_options_of_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, path = dataset(tmp_path / "source"), tmp_path / "t"
    hudimeta.bootstrap(source, path, "id", "part", "ts")
    stores = {"hudimeta.storage.region": "somewhere"}
    opened: list[Any] = []

    def noted(where: str, options: Any = None) -> Any:
        opened.append(options)
        return open_storage(where, options)

    monkeypatch.setattr("hudimeta.slices.bootstrap.open_storage", noted)
    table = Table(path, {**stores, **RECORD_INDEX})
    table.upsert(simple_rows([0, 31], 2, partitions=3))
    table.delete("id = 'k0001'")
    table.metadata.create_index(type="secondary_index", name="by_ts", columns="ts")
    table.insert_overwrite(simple_rows([2], 3, partitions=3))
    Table(path, stores).cluster()
    assert len(opened) > 3
    assert all(options == stores for options in opened)
    assert table.scan().count() == 21


@pytest.mark.parametrize("mode", ["METADATA_ONLY", "FULL_RECORD"])
def test_moments_of_sparks_own_files_are_what_spark_reads(tmp_path: Path, mode: str) -> None:
    """Spark stores INT96 unless it is told otherwise, and days of the calendar of before 1582 where it is told so."""
    source, path = tmp_path / "source", tmp_path / "t"
    source.mkdir()
    at = [dt.datetime(year, 3, 1, tzinfo=dt.timezone.utc) for year in (2026, 9999)]
    stored = {"id": ["a", "b"], "day": pa.array([20455, -171595], pa.int32()).cast(pa.date32()), "at": pa.array(at)}
    entries = {"org.apache.spark.version": "3.5.6", "org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"}
    rows = pa.table(stored)
    with pq.ParquetWriter(source / "f.parquet", rows.schema, use_deprecated_int96_timestamps=True, store_schema=False) as file:
        file.write_table(rows)
        file.add_key_value_metadata(entries)
    hudimeta.bootstrap(source, path, key="id", mode=mode)
    table = Table(path)
    expected = [("a", dt.date(2026, 1, 2), at[0]), ("b", dt.date(1500, 3, 1), at[1])]
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    for again in (True, False):
        for where, found in ((None, expected), ("day = date'1500-03-01'", expected[1:]), ("at > '9000-01-01'", expected[1:])):
            shown = table.scan(where, columns=["id", "day", "at"]).to_table().to_pylist()
            assert sorted((row["id"], row["day"], row["at"]) for row in shown) == found, where
        if again:  # which writes the other row of the file anew
            table.upsert({"id": ["a"], "day": [expected[0][1]], "at": [at[0]]})
