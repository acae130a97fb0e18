"""Bad input is refused with an error that names the fact and the next step, and leaves everything on disk as it was."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.errors import (
    ConfigError,
    HudiError,
    SchemaError,
    SchemaMismatch,
    TableError,
    TableNotFound,
    UnsupportedEvolution,
    UnsupportedFeature,
    UnsupportedTableVersion,
)
from tests.acceptance.refusals import ROWS, SCHEMA, WRITES, Table, refused

# What is not a table


def test_paths_that_are_no_table(tmp_path: Path, written: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "half" / ".hoodie").mkdir(parents=True)
    for name in ("missing", "empty", "half", "missing/deeper"):
        refused(TableNotFound, f"{name}.*Check the path", tmp_path, lambda name=name: Table(tmp_path / name))
    refused(TableNotFound, "it is a file.*Give the folder", tmp_path, lambda: Table(tmp_path / "file"))
    assert not (tmp_path / "missing").exists()
    refused(TableNotFound, "it is in the folder of the table at .*Open ", written, lambda: Table(written / "a"))
    refused(TableNotFound, "metadata table of another table", written, lambda: Table(written / ".hoodie" / "metadata"))
    refused(ConfigError, "path", tmp_path, lambda: Table(""))
    refused(ConfigError, "nosuch.*install", tmp_path, lambda: Table("nosuch://bucket/table"))


@pytest.mark.rotation(3)
@pytest.mark.parametrize("version", ["1", "5", "7", "10", "99"])
def test_unknown_versions(version: str, copy: Path) -> None:
    properties = copy / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=8", f"hoodie.table.version={version}"))
    says = rf"version {version} .*6, 8, 9.*Upgrade or downgrade"
    refused(UnsupportedTableVersion, says, copy, lambda: Table(copy))
    for verb in WRITES:
        refused(UnsupportedTableVersion, says, copy, lambda verb=verb: getattr(Table(copy), verb)(ROWS))


@pytest.mark.parametrize("text", [b"", b"\x00\xff not properties \xfe", b"hoodie.table.version=abc\nhoodie.table.name=t\n"])
def test_properties_that_cannot_be_read(text: bytes, copy: Path) -> None:
    (copy / ".hoodie" / "hoodie.properties").write_bytes(text)
    refused(HudiError, "hoodie.properties|hoodie.table.version", copy, lambda: Table(copy))


# Creating


@pytest.mark.parametrize(
    ("creation", "kind", "says"),
    [
        ({"key": "idd"}, ConfigError, "recordkey.*'idd'.*Did you mean id"),
        ({"key": "id", "partition_by": "prat"}, ConfigError, "partitionpath.*'prat'.*Did you mean part"),
        ({"key": "id", "ordering": "tss"}, ConfigError, "precombine.*'tss'.*Did you mean ts"),
        ({"key": ["id", "id"]}, ConfigError, "recordkey.*once"),
        ({"key": "id", "partition_by": ["part", "part"]}, ConfigError, "partitionpath.*once"),
        ({"key": "tags"}, ConfigError, "recordkey.*tags.*list"),
        ({"key": "id", "type": "MERGE_ON_WRITE"}, ConfigError, "COPY_ON_WRITE, MERGE_ON_READ"),
        ({"key": "id", "indexes": ["column_stat"]}, ConfigError, "column_stat.*column_stats"),
        ({"key": "id", "options": {"hoodie.write.table.version": "7"}}, ConfigError, "'7'.*8, 9"),
        ({"key": "id", "options": {"hoodie.metadata.enable": "maybe"}}, ConfigError, "'maybe'.*true or false"),
        ({"key": "id", "options": {"hoodie.parquet.max.file.size": "big"}}, ConfigError, "'big'.*whole number"),
        ({"key": "id", "options": {"hoodie.index.bloom.fpp": "2"}}, ConfigError, "fpp.*between 0 and 1"),
        (
            {"key": "id", "options": {"hoodie.parquet.max.file.sise": "1"}},
            ConfigError,
            "Did you mean hoodie.parquet.max.file.size",
        ),
        ({"key": "id", "options": {"hudimeta.colums": "id"}}, ConfigError, "Did you mean hudimeta.columns"),
        (
            {"key": "id", "options": {"hoodie.metadata.index.column.stats.column.list": "idd"}},
            ConfigError,
            "column.list.*'idd'",
        ),
        ({"key": "id", "options": {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}}, ConfigError, "merge.mode.*ordering"),
        (
            {"key": "id", "options": {"hoodie.datasource.write.payload.class": "x.Mine"}},
            UnsupportedFeature,
            "x.Mine.*merge.mode",
        ),
        ({"key": "id", "options": {"hoodie.datasource.write.keygenerator.type": "MINE"}}, ConfigError, "'MINE'.*SIMPLE"),
        ({"key": "id", "options": {"hoodie.write.lock.provider": "x.Lock"}}, UnsupportedFeature, "x.Lock.*StorageBased"),
    ],
)
def test_tables_that_cannot_be_created(creation: dict[str, Any], kind: type[HudiError], says: str, tmp_path: Path) -> None:
    refused(kind, says, tmp_path, lambda: Table.create(tmp_path / "new", SCHEMA, **creation))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([("id", pa.int64()), ("id", pa.string())], "'id' is there twice.*Rename"),
        ([("id", pa.int64()), ("a", pa.string()), ("A", pa.string())], "upper and lower case"),
        ([("id", pa.int64()), ("s", pa.struct([("x", pa.int8()), ("x", pa.int8())]))], "'s.x' is there twice"),
        ([("id", pa.int64()), ("at", pa.time64("us"))], "'at' is time64.*Cast"),
        ([("id", pa.int64()), ("nothing", pa.null())], "'nothing' is null.*drop it"),
        ([("id", pa.int64()), ("a b", pa.int8())], "'a b'.*Rename"),
        ([("id", pa.int64()), ("", pa.int8())], "letters, digits and underscores"),
        ([], "without any column of data"),
    ],
)
def test_schemas_that_cannot_be_a_table(fields: list[tuple[str, pa.DataType]], says: str, tmp_path: Path) -> None:
    refused(
        SchemaError, says, tmp_path, lambda: Table.create(tmp_path / "new", pa.schema(fields), key="id" if fields else None)
    )


def test_places_where_no_table_can_be(written: Path, tmp_path: Path) -> None:
    refused(TableError, "already.*Open it", written, lambda: Table.create(written, SCHEMA, key="id"))
    (tmp_path / "file").write_text("x")
    refused(ConfigError, "this is a file", tmp_path, lambda: Table.create(tmp_path / "file", SCHEMA, key="id"))


# Writing


def with_column(name: str, values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    column = pa.array(values, kind)
    if name in ROWS.column_names:
        return ROWS.set_column(ROWS.column_names.index(name), name, column)
    return ROWS.append_column(name, column)


BAD_ROWS: dict[str, tuple[Any, type[HudiError], str]] = {
    "null key": (with_column("id", [1, None, 3, 4], pa.int64()), SchemaMismatch, "'id' is null.*row 1.*Fill the column"),
    "no key column": (ROWS.drop_columns(["id"]), SchemaMismatch, "'id' is missing.*record key.*Add the column"),
    "no partition column": (ROWS.drop_columns(["part"]), SchemaMismatch, "'part' is missing.*partition.*Add the column"),
    "no ordering column": (ROWS.drop_columns(["ts"]), SchemaMismatch, "'ts' is missing.*newer.*Add the column"),
    "null ordering value": (with_column("ts", [1, None, 1, 1], pa.int64()), SchemaMismatch, "'ts' is null.*newer"),
    "duplicate columns": (
        pa.Table.from_arrays([*ROWS.columns, ROWS["n"]], names=[*ROWS.column_names, "n"]),
        SchemaMismatch,
        "'n' is there twice.*Rename or drop",
    ),
    "columns that differ by case": (with_column("N", [1] * 4), SchemaMismatch, "'N'.*upper and lower case"),
    "list for a number": (with_column("n", [[1]] * 4), UnsupportedEvolution, "'n'.*new column"),
    "struct for a number": (with_column("n", [{"x": 1}] * 4), UnsupportedEvolution, "'n'.*new column"),
    "date for a number": (with_column("n", [dt.date(2024, 1, 1)] * 4), SchemaError, "'n'"),
    "number for a list": (with_column("tags", [1] * 4), UnsupportedEvolution, "'tags'.*new column"),
    "a type that Hudi lacks": (with_column("at", [dt.time(1)] * 4), SchemaMismatch, "'at' is time64.*Cast"),
    "a name that Avro lacks": (with_column("a-b", [1] * 4), SchemaMismatch, "'a-b'.*Rename"),
    "columns of two lengths": ({"id": [1], "part": ["a", "b"]}, SchemaMismatch, "length"),
    "no rows at all": ([], SchemaMismatch, "without any column of data.*Pass rows"),
    "text": ("hello", SchemaMismatch, "str.*path of a file"),
    "nothing": (None, SchemaMismatch, "NoneType.*Convert"),
}


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("case", BAD_ROWS)
def test_rows_that_cannot_be_written(case: str, verb: str, written: Path) -> None:
    rows, kind, says = BAD_ROWS[case]
    refused(kind, says, written, lambda: getattr(Table(written), verb)(rows))


@pytest.mark.parametrize(
    ("what", "kind", "says"),
    [
        ("idd = 5", ConfigError, "'idd'.*Did you mean 'id'"),
        ("id = ", ConfigError, "predicate 'id = '"),
        ([("id", "~", 5)], ConfigError, "'~'"),
        ({"n": [1]}, SchemaMismatch, "'id' is missing.*Add the column"),
        ({"id": [1]}, SchemaMismatch, "'part' is missing.*Add the column"),
        (ROWS.select([0, 1, 0]), SchemaMismatch, "'id' is there twice"),
    ],
)
def test_deletes_that_cannot_be_done(what: Any, kind: type[HudiError], says: str, written: Path) -> None:
    refused(kind, says, written, lambda: Table(written).delete(what))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.datasource.write.recordkey.field", "n"),
        ("hoodie.datasource.write.partitionpath.field", "n"),
        ("hoodie.datasource.write.precombine.field", "n"),
        ("hoodie.table.name", "another"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ"),
        ("hoodie.write.table.version", "9"),
        ("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING"),
        ("hoodie.datasource.write.hive_style_partitioning", "true"),
        ("hoodie.datasource.write.partitionpath.urlencode", "true"),
    ],
)
def test_options_that_contradict_the_table(option: str, value: str, written: Path) -> None:
    for verb in WRITES:
        error = refused(
            ConfigError, "what the table has", written, lambda verb=verb: getattr(Table(written, {option: value}), verb)(ROWS)
        )
        assert isinstance(error, ConfigError)
        assert (error.key, error.value) == (option, value)


# Reading


@pytest.mark.parametrize(
    ("asked", "kind", "says"),
    [
        ({"columns": ["idd"]}, ConfigError, "'idd'.*Did you mean id"),
        ({"columns": []}, ConfigError, "at least one column"),
        ({"where": "idd > 5"}, ConfigError, "'idd'.*Did you mean 'id'"),
        ({"where": "id >"}, ConfigError, "'id >'.*near"),
        ({"where": "id > 'abc'"}, ConfigError, "'abc'.*BIGINT"),
        ({"where": "id + 1"}, ConfigError, "a predicate"),
        ({"where": "frobnicate(id) = 1"}, ConfigError, "frobnicate"),
        ({"where": "id IN (SELECT 1)"}, ConfigError, "SELECT"),
        ({"where": 5}, ConfigError, "SQL text"),
        ({"as_of": "yesterday"}, ConfigError, "'yesterday'.*yyyy-MM-dd"),
        ({"as_of": 2026}, ConfigError, "as.of.instant"),
        ({"query_type": "snapshoot"}, ConfigError, "'snapshoot'.*snapshot, read_optimized"),
        ({"where": "id = 1", "timezone": "Mars/Olympus"}, ConfigError, "Mars/Olympus.*IANA"),
    ],
)
def test_reads_that_cannot_be_done(asked: dict[str, Any], kind: type[HudiError], says: str, written: Path) -> None:
    refused(kind, says, written, lambda: Table(written).scan(**asked).to_table())


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("hoodie.enable.data.skiping", "hoodie.enable.data.skipping"),
        ("hoodie.datasource.query.typ", "hoodie.datasource.query.type"),
        ("hudimeta.filtr", "hudimeta.filter"),
        ("as.of.instnt", "as.of.instant"),
        ("as.of.instants", "as.of.instant"),
    ],
)
def test_options_with_a_near_miss(option: str, near: str, written: Path) -> None:
    refused(ConfigError, f"{option}.*Did you mean {near}", written, lambda: Table(written, {option: "x"}))
    refused(ConfigError, f"Did you mean {near}", written, lambda: Table.create(written / "new", SCHEMA, options={option: "x"}))
