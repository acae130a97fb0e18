"""Creating tables: what is refused before anything is written, and with what advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.api.table import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, HudiError, IndexNotReady, SchemaError, TableError, UnsupportedFeature
from hudimeta.storage import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.creation import create_table

SCHEMA = simple_rows([], 0).schema


def create(path: Path, changes: Mapping[str, str | None], schema: pa.Schema = SCHEMA) -> None:
    merged = {**SIMPLE_OPTIONS, **changes}
    create_table(open_storage(path), schema, OPTIONS.read({k: v for k, v in merged.items() if v is not None}))


@pytest.mark.parametrize("partition_by", ["part", ()])
@pytest.mark.parametrize(("version", "key"), [("8", "k1"), ("9", "id:k1")])
def test_the_complex_generator_is_stored_for_one_key_too(
    tmp_path: Path, version: str, key: str, partition_by: str | tuple[str, ...]
) -> None:
    """Writers of Apache Hudi that name it refuse a table that says SIMPLE."""
    options = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.write.table.version": version,
    }
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
    Table.create(tmp_path / "t", schema, "id", partition_by, options=options).insert([{"id": "k1", "part": "p", "n": 1}])
    table = Table(tmp_path / "t", options)
    assert table.properties["hoodie.table.keygenerator.type"] == "COMPLEX"
    table.upsert([{"id": "k1", "part": "p", "n": 2}])
    rows = table.scan(columns=["_hoodie_record_key", "n"]).to_table().to_pylist()
    assert rows == [{"_hoodie_record_key": key, "n": 2}]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hoodie.table.name": None}, "hoodie.table.name"),
        ({"hoodie.datasource.write.recordkey.field": "ids"}, "Did you mean id?"),
        ({"hoodie.datasource.write.partitionpath.field": "prat"}, "Did you mean part?"),
        ({"hoodie.datasource.write.precombine.field": "tss"}, "Did you mean ts?"),
        ({"hoodie.datasource.write.recordkey.fields": "id"}, "Did you mean hoodie.datasource.write.recordkey.field?"),
        ({"hudimeta.nothing": "1"}, "hudimeta.nothing"),
        ({"hoodie.write.table.version": "7"}, "hoodie.write.table.version"),
        ({"hoodie.datasource.write.table.type": "COPY_ON_READ"}, "COPY_ON_WRITE"),
        ({"hoodie.datasource.write.precombine.field": "ts,x"}, "version 9"),
        ({"hoodie.metadata.index.column.stats.column.list": "nothing"}, "nothing"),
        ({"hoodie.datasource.write.keygenerator.class": "com.acme.Keys"}, "com.acme.Keys"),
        ({"hoodie.write.lock.provider": "com.acme.Lock"}, "com.acme.Lock"),
        ({"hoodie.parquet.compression.codec": "brotli"}, "zstd, gzip, snappy, uncompressed"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(tmp_path: Path, changes: Mapping[str, str | None], says: str) -> None:
    with pytest.raises((ConfigError, TableError)) as caught:
        create(tmp_path / "t", changes)
    assert says in str(caught.value)
    assert not (tmp_path / "t").exists()


def test_columns_that_no_table_can_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="span"):
        create(tmp_path / "t", {}, SCHEMA.append(pa.field("span", pa.duration("s"))))
    assert not (tmp_path / "t").exists()


def test_a_table_is_not_created_over_another(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows([1], 1))
    with pytest.raises(TableError, match="already"):
        create(tmp_path / "t", {})
    home = tmp_path / "t/.hoodie"
    for hide in (home / "hoodie.properties.backup", home / "hoodie.properties.lost"):
        # Between two steps of Java's replacement only the backup is there; and a lost file is no reason to begin anew.
        kept = home / "hoodie.properties"
        kept.rename(hide)
        with pytest.raises(TableError):
            create(tmp_path / "t", {})
        hide.rename(kept)
    table.check()
    check_all(table.storage)


def test_another_folder_may_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "t/other").mkdir(parents=True)
    (tmp_path / "t/notes.txt").write_text("mine")
    create(tmp_path / "t", {})
    assert Table(tmp_path / "t").scan().to_table().num_rows == 0
    assert (tmp_path / "t/notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.write.recordkey.field", "x"),
        ("hoodie.datasource.write.partitionpath.field", ""),
        ("hoodie.datasource.write.precombine.field", "x"),
        ("hoodie.table.name", "another"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ"),
    ],
)
def test_a_write_cannot_contradict_its_table(tmp_path: Path, key: str, value: str) -> None:
    create(tmp_path / "t", {})
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        WriteSession(open_storage(tmp_path / "t"), OPTIONS.read({key: value}))


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({"name": "trips"}, {"hoodie.datasource.write.table.name": "rides"}),
        ({"type": "MERGE_ON_READ"}, {"hoodie.table.type": "COPY_ON_WRITE"}),
        ({"key": "id"}, {"hoodie.table.recordkey.fields": "ts"}),
        ({"partition_by": ["part"]}, {"hoodie.datasource.write.partitionpath.field": "id"}),
        ({"ordering": "ts"}, {"Hoodie.Table.Ordering.Fields": "x"}),
    ],
)
def test_an_option_that_contradicts_an_argument_is_refused(
    tmp_path: Path, arguments: Mapping[str, Any], options: Mapping[str, str]
) -> None:
    with pytest.raises(ConfigError, match=f"the argument {next(iter(arguments))}"):
        Table.create(tmp_path / "t", SCHEMA, **arguments, options=options)
    assert not (tmp_path / "t").exists()


def test_options_stand_in_for_arguments_by_any_of_their_names(tmp_path: Path) -> None:
    given = {"hoodie.datasource.write.table.name": "trips", "hoodie.table.type": "merge_on_read"}
    table = Table.create(tmp_path / "t", SCHEMA, key="id", options={**given, "hoodie.table.recordkey.fields": "id"})
    assert repr(table).endswith("trips, merge on read, version 8)")
    assert table.properties.record_keys == ("id",)
    assert Table.create(tmp_path / "rides", SCHEMA).properties.name == "rides"


def test_a_form_of_changes_without_capture_is_kept_and_does_not_stop_writes(tmp_path: Path) -> None:
    mode = "hoodie.table.cdc.supplemental.logging.mode"
    table = Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", options={mode: "OP_KEY_ONLY"})
    table.upsert(simple_rows([1], 1))
    assert (table.properties[mode], table.properties.cdc_enabled) == ("OP_KEY_ONLY", False)


def test_an_empty_table_can_be_read_and_written(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.check()
    check_all(table.storage)
    for operation in (Operation.UPSERT, Operation.DELETE, Operation.INSERT):
        assert table.write(operation, simple_rows([], 1)).completion is None, "no rows, no commit"
    table.write(Operation.DELETE, simple_rows([1], 1))
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows([], 1))
    table.write(Operation.UPSERT, simple_rows([1], 1))
    table.check()
    check_all(table.storage)


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HudiError) as caught:
        create(tmp_path / "t", {"hoodie.datasource.write.recordkey.field": "ids"})
    assert str(caught.value).startswith("HUDIMETA_CONFIG: ")


@pytest.mark.parametrize("inside", ["new", "a/new", ".hoodie/new"])
def test_a_table_is_not_created_in_the_folder_of_another(tmp_path: Path, inside: str) -> None:
    outer = Table.create(tmp_path / "t", SCHEMA, key="id")
    before = sorted(tmp_path.rglob("*"))
    for place in (tmp_path / "t" / inside, f"file://{tmp_path}/t/{inside}"):
        with pytest.raises(TableError, match=f"is in the folder of the table at {outer.path}"):
            Table.create(place, SCHEMA, key="id")
    assert sorted(tmp_path.rglob("*")) == before
    assert Table.create(tmp_path / "t2" / inside, SCHEMA, key="id").scan().count() == 0


@pytest.mark.parametrize("keeps_metadata", [True, False])
@pytest.mark.parametrize("n_rows", [0, 1])
def test_a_table_is_not_created_around_another(tmp_path: Path, n_rows: int, keeps_metadata: bool) -> None:
    inner = Table.create(tmp_path / "all" / "a" / "t", SCHEMA, key="id")
    inner.upsert(simple_rows(range(n_rows), 1))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TableError, match=r"/all holds a file of another table, a/t/.*Choose a folder of its own"):
        Table.create(tmp_path / "all", SCHEMA, key="id", options={"hoodie.metadata.enable": keeps_metadata})
    assert sorted(tmp_path.rglob("*")) == before
    assert Table.create(tmp_path / "all" / "b", SCHEMA, key="id").scan().count() == 0


def test_a_tilde_is_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for written, place in (("~/t", "home/t"), (Path("~/u"), "home/u"), ("./~/t", "~/t"), ("~x", "~x")):
        assert Table.create(written, SCHEMA, key="id").path == str(tmp_path / place)
        assert Table(written).path == str(tmp_path / place)


@pytest.mark.parametrize("below", ["", "t", "a/t"])
def test_a_table_is_not_created_below_a_file(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="is a file"):
        Table.create(tmp_path / "file" / below, SCHEMA, key="id")
    assert (tmp_path / "file").read_text() == "x"


NAMES = [("RECORD_INDEX", "8"), ("GLOBAL_RECORD_LEVEL_INDEX", "9"), ("RECORD_LEVEL_INDEX", "9")]


@pytest.mark.parametrize(("name", "version"), NAMES)
def test_a_new_table_gets_the_record_index_that_its_writes_look_up_by(tmp_path: Path, name: str, version: str) -> None:
    """It was made without, and its first write refused."""
    rows = pa.table({"id": ["a", "b"], "part": ["x", "y"], "n": [1, 2]})
    options = {"hoodie.index.type": name, "hoodie.write.table.version": version}
    table = Table.create(str(tmp_path / "t"), rows.schema, "id", "part", options=options)
    table.insert(rows)
    moved = pa.table({"id": ["a"], "part": ["y"], "n": [3]})
    report = table.upsert(moved)
    assert "record index" in str(report.index)
    # Keys of one kept for each partition are unique there alone.
    assert table.scan().to_table().num_rows == (3 if name == "RECORD_LEVEL_INDEX" else 2)
    assert table.metadata.validate(deep=True).holds


def test_both_options_together_build_the_record_index_of_a_table_that_is_there(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    path = str(tmp_path / "t")
    Table.create(path, rows.schema, "id").insert(rows)
    by_type = {"hoodie.index.type": "RECORD_INDEX"}
    with pytest.raises(IndexNotReady, match=r"A write with hoodie\.metadata\.record\.index\.enable=true builds it"):
        Table(path, by_type).upsert(rows)
    report = Table(path, by_type | {"hoodie.metadata.record.index.enable": "true"}).upsert(rows)
    assert "record index: 2 keys looked up, 2 keys found" in str(report)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "false"}, "'record_index' is not built"),
        ({"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.enable": "false"}, "'record_index' is not built"),
        ({"hoodie.index.type": "RECORD_LEVEL_INDEX"}, "partitioned tables of version 9"),
        ({"hoodie.index.type": "RECORD_WINDOW"}, "'record_window' is not there"),
        ({"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}, "a MERGE_ON_READ table"),
        ({"hoodie.write.concurrency.early.conflict.detection.enable": "true"}, "OPTIMISTIC_CONCURRENCY_CONTROL"),
        ({"hudimeta.merger": "mine"}, "a function as package.module:function"),
    ],
)
def test_what_the_first_write_would_refuse_makes_no_table(tmp_path: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(HudiError, match=said):
        Table.create(str(tmp_path / "t"), pa.schema([("id", pa.string()), ("n", pa.int64())]), "id", options=options)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("levels", [65, 2_000])
@pytest.mark.parametrize("wrap", [pa.list_, lambda kind: pa.struct([("f", kind)]), lambda kind: pa.map_(pa.string(), kind)])
def test_columns_that_nest_too_deep_are_refused(
    tmp_path: Path, wrap: Callable[[pa.DataType], pa.DataType], levels: int
) -> None:
    """At some hundred levels it was a RecursionError."""
    kind: pa.DataType = pa.int64()
    for _ in range(levels):
        kind = wrap(kind)
    with pytest.raises(UnsupportedFeature, match=r"nesting deeper than 64 levels \(column 's'\)(?s:.*)Flatten it"):
        Table.create(str(tmp_path / "t"), pa.schema([("id", pa.string()), ("s", kind)]), "id")
