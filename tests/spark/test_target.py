"""Which table a read or a write means, by options and by the metadata that Spark leaves on columns. Needs no session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from pyspark_hudimeta.plain.location import given_location, resolve
from pyspark_hudimeta.plain.registration import kept_options, registered_schema
from pyspark_hudimeta.plain.target import read_target, stream_target, write_target

from hudimeta.errors import ConfigError, TableError

PLAIN = StructType([StructField("id", LongType()), StructField("name", StringType()), StructField("city", StringType())])
NUMBERS = StructType([StructField("id", LongType()), StructField("n", LongType())])
MARKER = "__CHAR_VARCHAR_TYPE_STRING"


def registered(location: str, schema: StructType = PLAIN, **options: str) -> StructType:
    """What the catalog keeps."""
    return registered_schema(schema, location, options)


def cast(schema: StructType) -> StructType:
    """What Spark makes of the catalog's columns in an INSERT whose query has other types: metadata without the marker."""
    return StructType([StructField(c.name, c.dataType, c.nullable, _unmarked(c.metadata)) for c in schema])


def _unmarked(metadata: dict[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (metadata or {}).items() if key != MARKER}


def test_the_marker_is_on_the_first_string_column_and_depends_on_the_place() -> None:
    a, b = registered("/a"), registered("/b")
    assert [MARKER in (c.metadata or {}) for c in a] == [False, True, False]
    assert a["name"].metadata[MARKER].startswith("varchar(20")
    assert a["name"].metadata[MARKER] != b["name"].metadata[MARKER]


def test_meta_columns_do_not_carry_the_marker() -> None:
    schema = StructType([StructField("_hoodie_commit_time", StringType()), *PLAIN])
    assert MARKER in registered("/a", schema)["name"].metadata


def test_a_read_takes_the_path_and_else_the_registration() -> None:
    schema = registered("/a", **{"hudimeta.filter": "id > 1"})
    assert read_target({}, schema).location == "/a"
    assert read_target({"hudimeta.filter": "id > 2"}, schema).options == {"hudimeta.filter": "id > 2"}
    other = read_target({"path": "/b"}, schema)
    assert (other.location, other.options) == ("/b", {"path": "/b"}), "options of another registration do not leak"


def test_reads_that_name_nothing_are_refused_with_what_to_do() -> None:
    with pytest.raises(TableError, match=r"no path was given.*CREATE TABLE t USING hudimeta LOCATION"):
        read_target({})
    with pytest.raises(TableError, match="list of columns"):
        read_target({}, PLAIN)


def test_a_write_trusts_the_targets_own_metadata() -> None:
    schema = cast(registered("/a", **{"hoodie.datasource.write.operation": "insert"}))
    target = write_target({}, schema)
    assert (target.location, target.options) == ("/a", {"hoodie.datasource.write.operation": "insert"})


def test_a_write_never_trusts_metadata_that_came_along_with_the_rows() -> None:
    with pytest.raises(TableError, match=r"where the rows come from \(/a\)"):
        write_target({}, registered("/a"))


def test_a_path_wins_over_what_came_along_with_the_rows() -> None:
    assert write_target({"path": "/b"}, registered("/a")).location == "/b"


def test_a_path_that_contradicts_the_statements_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="/a, where the table named in this statement is"):
        write_target({"path": "/b"}, cast(registered("/a")))
    assert write_target({"path": "/a"}, cast(registered("/a"))).location == "/a"


def test_without_a_string_column_reads_work_and_inserts_are_refused() -> None:
    schema = registered("/a", NUMBERS)
    assert read_target({}, schema).location == "/a"
    for seen in (schema, cast(schema)):
        with pytest.raises(TableError, match=r"no string column.*CREATE TEMP VIEW"):
            write_target({}, seen)


def test_rows_from_a_table_without_string_columns_do_not_disturb_a_trusted_target() -> None:
    rows = registered("/a", StructType([StructField("id", LongType())]))
    target = cast(registered("/b"))
    assert write_target({}, StructType([rows["id"], target["name"]])).location == "/b"


def test_two_trusted_targets_are_none() -> None:
    a, b = cast(registered("/a")), cast(registered("/b"))
    with pytest.raises(TableError):
        write_target({}, StructType([a["name"], StructField("other", StringType(), True, b["name"].metadata)]))


def test_a_write_that_names_nothing_is_refused() -> None:
    with pytest.raises(TableError, match=r"no path was given.*AS SELECT"):
        write_target({}, PLAIN)


def test_metadata_that_is_not_ours_is_reported() -> None:
    schema = StructType([StructField("id", LongType(), True, {"hudimeta": "/a"})])
    with pytest.raises(TableError, match="the catalog's entry holds '/a'"):
        read_target({}, schema)


def test_a_catalog_keeps_options_but_no_secrets() -> None:
    given = {"hudimeta.filter": "id > 1", "hoodie.metadata.enable": "false", "provider": "hudimeta", "option.k": "v"}
    assert set(kept_options(given)) == {"hudimeta.filter", "hoodie.metadata.enable"}
    assert kept_options({"hudimeta.storage.region": "x"}) == {"hudimeta.storage.region": "x"}
    for key in ("hudimeta.storage.secret", "hudimeta.storage.account_key", "hudimeta.storage.token"):
        with pytest.raises(ConfigError) as caught:
            kept_options({key: "hunter2"})
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "location"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE:/a/b", "/a/b"),
        ("file:/a/50%25 c", "/a/50%25 c"),
        ("s3://bucket/a", "s3://bucket/a"),
    ],
)
def test_paths_are_taken_as_spark_hands_them_over(given: str, location: str) -> None:
    assert resolve(given) == location


def test_a_relative_path_is_of_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve("trips") == str(tmp_path / "trips")


def test_a_relative_path_is_refused_where_the_folder_is_a_connect_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "userFiles-1f0" / "session"
    scratch.mkdir(parents=True)
    monkeypatch.chdir(scratch)
    with pytest.raises(ConfigError, match="Spark Connect"):
        resolve("trips")


def test_several_paths_are_refused() -> None:
    with pytest.raises(ConfigError, match="one table"):
        given_location({"paths": '["/a","/b"]'})


def test_a_stream_is_told_by_a_path_alone(tmp_path: Path) -> None:
    assert stream_target({"path": str(tmp_path)}, PLAIN).location == str(tmp_path)
    for schema in (PLAIN, registered("/a"), cast(registered("/a"))):
        with pytest.raises(TableError, match=r"toTable passes none on.*start\('/folder.*attach\(spark\).*DROP TABLE"):
            stream_target({}, schema)
