"""Columns that are renamed, dropped, widened and added by name: old files show them, and writing goes on, after SQL too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.api.plain_write import PlainWrite
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, CorruptFileError, HudiError, UnsupportedEvolution
from hudimeta.schema import SchemaHistory, avro_to_arrow
from hudimeta.schema.alteration import internal_schema, reconciled
from hudimeta.schema.internal_schema import decode_schema, encode_schema
from hudimeta.services import compaction
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS, Operation

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
DEEP = pa.struct([("a", pa.int32()), ("b", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float32()),
        ("note", pa.string()),
        ("deep", DEEP),
        ("many", pa.list_(pa.int32())),
    ]
)


def row(n: int, ts: int) -> dict[str, Any]:
    return {"id": f"k{n}", "ts": ts, "fare": float(n), "note": f"n{n}", "deep": {"a": n, "b": "x"}, "many": [n]}


def table_of(path: Path, kind: str) -> Table:
    table = Table.create(path, SCHEMA, key="id", ordering="ts", type=kind)
    table.insert(pa.Table.from_pylist([row(n, 1) for n in range(4)], schema=SCHEMA))
    return table


def session_of(path: Path) -> WriteSession:
    return WriteSession(open_storage(str(path)), OPTIONS.read({}))


def contents(table: Table, as_of: str | None = None) -> list[dict[str, Any]]:
    found = table.scan(as_of=as_of).to_table()
    data = found.drop_columns([c for c in META_COLUMNS if c in found.column_names])
    return sorted(data.to_pylist(), key=lambda r: str(r["id"]))


@pytest.mark.parametrize("name", ["a\nb", "nul\0", "a b", "1st", "'", "\u202ename", "", "_hoodie_mine"])
def test_names_that_columns_cannot_have_are_refused(tmp_path: Path, name: str) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    instants = table.timeline.instants
    for change in ({"add": {name: pa.int32()}}, {"add": {f"deep.{name}": pa.int32()}}, {"rename": {"note": name}}):
        with pytest.raises(HudiError, match=r"SCHEMA_MISMATCH|CONFIG"):
            table.alter(**change)  # type: ignore[arg-type]
    assert Table(table.path).timeline.instants == instants


@pytest.mark.parametrize(("path", "name"), [("note", "note"), ("note", "Note"), ("deep.a", "a")])
def test_a_column_is_not_renamed_to_the_name_that_it_has(tmp_path: Path, path: str, name: str) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    instants = table.timeline.instants
    with pytest.raises(ConfigError, match="another name"):
        table.alter(rename={path: name})
    assert Table(table.path).timeline.instants == instants


def test_a_field_is_renamed_by_the_last_part_of_its_new_name(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    with pytest.raises(ConfigError, match=r"Give \{'deep\.a': 'alpha'\}"):
        table.alter(rename={"deep.a": "deep.alpha"})
    table.alter(rename={"deep.a": "alpha"})
    assert "alpha" in str(table.schema.field("deep").type)


@pytest.mark.parametrize(("name", "allowed"), [("ts", "that no other column has"), ("TS", "differs from ts by more than case")])
def test_a_column_is_not_renamed_to_the_name_of_another(tmp_path: Path, name: str, allowed: str) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    instants = table.timeline.instants
    with pytest.raises(ConfigError, match=allowed):
        table.alter(rename={"note": name})
    assert Table(table.path).timeline.instants == instants


def columns(table: Table) -> list[str]:
    return [name for name in table.schema.names if name not in META_COLUMNS]


@BOTH
def test_old_rows_show_the_new_columns_and_new_rows_join_them(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    table.upsert(pa.Table.from_pylist([row(0, 2)], schema=SCHEMA))
    report = table.alter(
        drop="note",
        rename={"fare": "price", "deep.a": "alpha"},
        retype={"price": pa.float64()},
        add={"tip": pa.float64(), "deep.c": pa.int64()},
        move={"tip": None, "many": "id", "deep.c": "alpha"},
    )
    assert report.operation == "ALTER_SCHEMA"
    assert columns(table) == ["tip", "id", "many", "ts", "price", "deep"]
    assert table.schema.field("deep").type.names == ["alpha", "c", "b"]

    def shown(n: int, ts: int) -> dict[str, Any]:
        deep = {"alpha": n, "b": "x", "c": None}
        return {"id": f"k{n}", "ts": ts, "price": float(n), "deep": deep, "many": [n], "tip": None}

    expected = [shown(0, 2), *(shown(n, 1) for n in (1, 2, 3))]
    assert contents(table) == expected
    new = {**shown(1, 3), "price": 0.1, "tip": 2.0, "deep": {"alpha": 7, "b": "y", "c": 8}}
    fresh = {**shown(9, 3), "price": 0.3}
    schema = pa.schema([f for f in table.schema if f.name not in META_COLUMNS])
    table.upsert(pa.Table.from_pylist([new, fresh], schema=schema))
    table.delete([("id", "=", "k2")])
    expected = [expected[0], new, expected[3], fresh]
    assert contents(table) == expected
    assert contents(table, table.timeline.writes[0].time) == [row(n, 1) for n in range(4)]
    if kind == "MERGE_ON_READ":
        table.compact()
        assert contents(table) == expected
    table.update({"tip": "price * 2"}, where="price < 1")
    assert {r["id"]: r["tip"] for r in contents(table)} == {"k0": 0.0, "k1": 0.2, "k3": None, "k9": 0.6}
    check_all(open_storage(tmp_path / "t"))


@BOTH
def test_writes_add_and_widen_columns_of_an_altered_table_in_its_history(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    table.alter(rename={"note": "remark"})
    rows = pa.table({"id": ["k1"], "ts": pa.array([5], pa.int64()), "fare": pa.array([2.5], pa.float64()), "extra": [1]})
    table.upsert(rows)
    table.alter(rename={"extra": "more"}, drop=["many"])
    table.upsert(rows.rename_columns(["id", "ts", "fare", "more"]).set_column(1, "ts", pa.array([6], pa.int64())))
    found = {r["id"]: r for r in contents(table)}
    assert columns(table) == ["id", "ts", "fare", "remark", "deep", "more"]
    assert (found["k1"]["fare"], found["k1"]["more"], found["k1"]["remark"]) == (2.5, 1, None)
    assert (found["k2"]["fare"], found["k2"]["more"], found["k2"]["remark"]) == (2.0, None, "n2")
    with pytest.raises(UnsupportedEvolution, match="earlier column"):
        table.upsert(rows.append_column("many", pa.array([[1]], pa.list_(pa.int32()))))
    assert {r["id"]: r for r in contents(table)} == found
    check_all(open_storage(tmp_path / "t"))


@pytest.mark.parametrize(
    ("old", "value", "alike", "other"),
    [
        (pa.int32(), 1, pa.decimal128(12, 0), pa.decimal128(12, 2)),
        (pa.int64(), 1, pa.string(), pa.float64()),
        (pa.string(), "2026-03-01", pa.date32(), pa.decimal128(12, 2)),
        (pa.string(), "2026-03-01", pa.date32(), pa.binary()),
        (pa.float32(), 1.1, pa.string(), pa.float64()),
        (pa.decimal128(4, 1), Decimal("1.5"), pa.decimal128(9, 1), pa.decimal128(9, 2)),
    ],
    ids=str,
)
def test_keys_and_partitions_get_no_type_that_spells_them_anew(
    tmp_path: Path, old: pa.DataType, value: object, alike: pa.DataType, other: pa.DataType
) -> None:
    schema = pa.schema([("id", old), ("p", old), ("n", pa.int64())])
    table = Table.create(tmp_path / "t", schema, key="id", ordering="n", partition_by=["p"])
    table.upsert(pa.table({"id": [value], "p": [value], "n": [1]}, schema=schema))
    for column in ("id", "p"):
        with pytest.raises(UnsupportedEvolution, match="spells its values anew"):
            table.alter(retype={column: other})
    table.alter(retype={"id": alike})
    rows = table.scan(columns=["id", "p", "n"]).to_table()
    table.upsert(rows.set_column(2, "n", pa.array([2])))
    assert table.scan(columns=["n"]).to_table().column("n").to_pylist() == [2], "the key is found by its text"


def test_a_compaction_that_was_planned_before_keeps_every_value(tmp_path: Path) -> None:
    """Readers take the names in a file for those that were valid at its instant, which is that of the plan."""
    table = table_of(tmp_path / "t", "MERGE_ON_READ")
    table.upsert(pa.Table.from_pylist([row(0, 2)], schema=SCHEMA))
    planned = compaction.schedule(session_of(tmp_path / "t"))
    assert planned is not None
    table = Table(tmp_path / "t")
    table.alter(drop="note", rename={"fare": "price", "deep.a": "alpha"}, add={"tip": pa.float64()})
    table.upsert(pa.table({"id": ["k1"], "ts": [3], "price": [7.5], "tip": [0.5]}))
    before = contents(Table(tmp_path / "t"))
    assert [r["price"] for r in before] == [0.0, 7.5, 2.0, 3.0]
    compaction.execute(session_of(tmp_path / "t"), planned)
    assert contents(Table(tmp_path / "t")) == before
    assert columns(Table(tmp_path / "t")) == ["id", "ts", "price", "deep", "many", "tip"]
    Table(tmp_path / "t").upsert(pa.table({"id": ["k2"], "ts": [4], "price": [9.0]}))
    Table(tmp_path / "t").compact()
    assert [r["price"] for r in contents(Table(tmp_path / "t"))] == [0.0, 7.5, 9.0, 3.0]
    check_all(open_storage(str(tmp_path / "t")))


@BOTH
def test_an_index_of_a_renamed_column_knows_the_rows_of_older_files(tmp_path: Path, kind: str) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
    table = Table.create(tmp_path / "t", schema, key="id", ordering="ts", type=kind, indexes=["record_index"])
    table.insert(pa.table({"id": ["a", "b"], "ts": [1, 1], "note": ["old", "old"]}))
    table.alter(rename={"note": "remark"})
    Table(tmp_path / "t").metadata.create_index("by_remark", columns="remark")
    check_all(open_storage(str(tmp_path / "t")))
    Table(tmp_path / "t").upsert(pa.table({"id": ["a", "c"], "ts": [2, 2], "remark": ["new", "new"]}))
    check_all(open_storage(str(tmp_path / "t")))


def test_the_list_of_indexes_names_columns_that_are_there(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    table.alter(rename={"note": "remark"}, drop="fare", add={"more": pa.int32()})
    (columns,) = [row["columns"] for row in Table(tmp_path / "t").indexes.list().to_pylist() if row["name"] == "column_stats"]
    assert {c for c in columns if not c.startswith("_hoodie_")} == {"id", "ts", "remark", "more"}
    assert {c for c in columns if c.startswith("_hoodie_")} == {META_COLUMNS[0], META_COLUMNS[2], META_COLUMNS[3]}


@BOTH
def test_columns_change_inside_of_maps_and_lists(tmp_path: Path, kind: str) -> None:
    item = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema([("id", pa.string()), ("by_name", pa.map_(pa.string(), item)), ("all", pa.list_(item))])
    table = Table.create(tmp_path / "t", schema, key="id", type=kind)
    one = {"a": 1, "b": "x"}
    table.insert(pa.Table.from_pylist([{"id": "k0", "by_name": [("n", one)], "all": [one, None]}], schema=schema))
    table.alter(
        rename={"all.element.b": "c"},
        retype={"by_name.value.a": pa.int64()},
        add={"by_name.value.z": pa.int32()},
        drop="all.element.a",
        move={"by_name.value.z": None},
    )
    new = pa.schema([f for f in table.schema if f.name not in META_COLUMNS])
    assert new.field("by_name").type.item_type.names == ["z", "a", "b"]
    assert new.field("by_name").type.item_type.field("a").type == pa.int64()
    table.upsert(
        pa.Table.from_pylist([{"id": "k1", "by_name": [("m", {"z": 1, "a": 1 << 40})], "all": [{"c": "y"}]}], schema=new)
    )
    assert contents(table) == [
        {"id": "k0", "by_name": [("n", {"z": None, **one})], "all": [{"c": "x"}, None]},
        {"id": "k1", "by_name": [("m", {"z": 1, "a": 1 << 40, "b": None})], "all": [{"c": "y"}]},
    ]


@BOTH
def test_columns_may_be_null_from_now_on(tmp_path: Path, kind: str) -> None:
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int32(), nullable=False)])
    table = Table.create(tmp_path / "t", schema, key="id", type=kind)
    table.insert(pa.table({"id": ["k0"], "n": pa.array([1], pa.int32())}, schema=schema))
    nothing = pa.table({"id": ["k1"], "n": pa.array([None], pa.int32())})
    with pytest.raises(HudiError):
        table.upsert(nothing)
    table.alter(nullable="n")
    table.upsert(nothing)
    assert contents(table) == [{"id": "k0", "n": 1}, {"id": "k1", "n": None}]
    stored = table.snapshot().file_schema
    assert [stored.field(name).nullable for name in ("id", "n")] == [False, True]


def test_changes_that_cannot_be_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    changes: list[tuple[dict[str, Any], type[HudiError]]] = [
        ({}, ConfigError),
        ({"drop": "id"}, ConfigError),
        ({"rename": {"ts": "time"}}, ConfigError),
        ({"drop": ["nosuch"]}, ConfigError),
        ({"rename": {"note": "fare"}}, ConfigError),
        ({"rename": {"note": "FARE"}}, ConfigError),
        ({"rename": {"note": "same", "fare": "same"}}, ConfigError),
        ({"rename": {"note": "fare", "fare": "price"}}, ConfigError),
        ({"add": {"note": pa.string()}}, ConfigError),
        ({"add": {"fare.x": pa.string()}}, ConfigError),
        ({"retype": {"fare": pa.int32()}}, UnsupportedEvolution),
        ({"retype": {"deep": pa.string()}}, UnsupportedEvolution),
        ({"drop": ["deep.a", "deep.b"]}, UnsupportedEvolution),
        ({"drop": "_hoodie_record_key"}, ConfigError),
        ({"nullable": "nosuch"}, ConfigError),
        ({"drop": "many.element"}, ConfigError),
        ({"rename": {"many.element": "one"}}, ConfigError),
        ({"add": {"many.one": pa.int32()}}, ConfigError),
        ({"add": {"many.element.one": pa.int32()}}, ConfigError),
        ({"drop": "note", "add": {"note": pa.int32()}}, UnsupportedEvolution),
    ]
    for change, error in changes:
        with pytest.raises(error):
            table.alter(**change)
    assert len(table.timeline.writes) == 1
    assert columns(table) == SCHEMA.names


def test_two_writers_never_mix_up_names(tmp_path: Path) -> None:
    """A writer that began before an ALTER ends with an error or by its rules."""
    path = tmp_path / "t"
    table = table_of(path, "COPY_ON_WRITE")
    rows = pa.Table.from_pylist([row(8, 3)], schema=SCHEMA)
    write = PlainWrite.begin(str(path), {"hoodie.datasource.write.operation": "bulk_insert"}, SCHEMA, overwrite=False)
    message = write.write(rows.to_batches(), 0, 0)
    table.alter(rename={"note": "remark"})
    with pytest.raises(HudiError, match="altered"):
        write.commit([message])
    write.abort()
    assert [r["remark"] for r in contents(table)] == ["n0", "n1", "n2", "n3"]
    check_all(open_storage(path))


def test_a_write_that_was_rolled_back_leaves_no_history(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = table_of(path, "COPY_ON_WRITE")
    table.alter(rename={"note": "remark"})
    storage = open_storage(path)
    session = WriteSession(storage, Table(path)._options)
    write, _ = session.coordinator.begin(Operation.UPSERT)
    storage.put(f".hoodie/.schema/{write.instant}_29990101000000000.schemacommit", b'{"schemas":[]}')
    assert contents(Table(path)) == contents(table)
    session.coordinator.abort(write)
    assert not any(write.instant in f.name for f in storage.list(".hoodie/.schema"))


@BOTH
def test_the_history_of_a_write_that_is_taken_back_tells_what_was_valid_before_it(tmp_path: Path, kind: str) -> None:
    """Apache Hudi's writes delete the histories of those before, and leave their own behind when they are taken back."""
    path = tmp_path / "t"
    table = table_of(path, kind)
    table.alter(rename={"note": "remark"})
    known = contents(table)
    renamed = SCHEMA.set(3, pa.field("remark", pa.string()))
    write = table.upsert(pa.Table.from_pylist([{**known[0], "ts": 2, "remark": "other"}], renamed)).instant
    older, newest = sorted((path / ".hoodie/.schema").glob("*.schemacommit"))
    older.unlink()
    Table(path).rollback(write)
    assert newest.exists()
    assert contents(Table(path)) == known
    Table(path).upsert(pa.Table.from_pylist([{**known[1], "ts": 2, "remark": "again"}], renamed))
    assert [one["remark"] for one in contents(Table(path))] == ["n0", "again", "n2", "n3"]
    assert not newest.exists(), "a later write has a history of its own"
    check_all(open_storage(path))


@BOTH
def test_a_history_that_is_older_than_the_columns_is_refused(tmp_path: Path, kind: str) -> None:
    """By it the rows of files from before the rename have no remark, and a delete would bring the dropped column back."""
    table = table_of(tmp_path / "t", kind)
    table.alter(rename={"note": "remark"})
    table.alter(drop="fare")
    newest = max((tmp_path / "t/.hoodie/.schema").glob("*.schemacommit"))
    text = newest.read_text()
    for change in (newest.unlink, lambda: shutil.rmtree(newest.parent)):
        change()
        for act in (lambda: contents(Table(table.path)), lambda: Table(table.path).delete(pa.table({"id": ["k1"]}))):
            with pytest.raises(CorruptFileError, match=r"\.schema.* expected version \d+ of the columns"):
                act()
    newest.parent.mkdir()
    newest.write_text(text)
    assert [one["remark"] for one in contents(table)] == ["n0", "n1", "n2", "n3"]


# Tables that Apache Hudi's SQL altered


def _versions(path: Path) -> SchemaHistory:
    storage = open_storage(path)
    names = [f.path for f in storage.list(".hoodie/.schema") if "_" in f.name]
    return SchemaHistory.decode(storage.read(max(names)))


@pytest.mark.parametrize("name", ["alter_rename_mor", "alter_drop_cow9"])
def test_a_history_begins_as_hudis_does(rich_table: Callable[..., Path], name: str) -> None:
    oldest = _versions(rich_table(name)).versions[0]
    fields = [c.field for c in oldest.columns]
    assert json.loads(encode_schema(internal_schema(pa.schema(fields)))) == {
        **json.loads(encode_schema(oldest)),
        "max_column_id": oldest.max_column_id,
    }
    assert reconciled(oldest, pa.schema(fields), 1) is oldest


@pytest.mark.parametrize("name", ["alter_rename_mor", "alter_drop_cow9"])
def test_we_write_to_tables_that_sql_altered(rich_table: Callable[..., Path], name: str) -> None:
    path = rich_table(name, fresh=True)
    table = Table(path)
    before = contents(table)
    names = columns(table)
    ordering = table.properties.ordering_fields[0]
    key = table.properties.record_keys[0]
    changed = {**before[0], ordering: before[0][ordering] + 1000}
    added = {**before[1], key: "fresh"} if isinstance(before[1][key], str) else {**before[1], key: 99_999}
    schema = pa.schema([f for f in table.schema if f.name not in META_COLUMNS])
    table.upsert(pa.Table.from_pylist([changed, added], schema=schema))
    table.delete(pa.Table.from_pylist([before[2]], schema=schema))
    expected = sorted([changed, *before[1:2], *before[3:], added], key=str)
    assert sorted(contents(table), key=str) == expected
    assert columns(table) == names
    newest = table.timeline.writes[-1]
    extra = table.timeline.metadata(newest)["extraMetadata"]
    assert decode_schema(extra["latest_schema"]) == _versions(path).latest
    assert avro_to_arrow(extra["schema"]).names == [*META_COLUMNS, *names]
    table.alter(add={"another": pa.int32()}, rename={names[-2]: "renamed"} if names[-2] != ordering else {})
    if table.properties.type.value == "MERGE_ON_READ":
        table.compact()
    assert len(contents(table)) == len(expected)


@BOTH
def test_the_history_has_partition_columns_that_no_file_holds(tmp_path: Path, kind: str) -> None:
    """As Apache Hudi's has: its readers by history failed ("Cannot find columns")."""
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    table = Table.create(tmp_path / "t", SCHEMA, key="id", ordering="ts", partition_by="note", type=kind, options=options)
    table.insert(pa.Table.from_pylist([row(n, 1) for n in range(3)], schema=SCHEMA))
    table.alter(rename={"fare": "price"})
    fresh = {"id": "k1", "ts": 2, "price": 7.0, "note": "n1", "more": 5}
    Table(table.path).upsert(pa.Table.from_pylist([fresh]))
    if kind == "MERGE_ON_READ":
        Table(table.path).compact()
    timeline = Table(table.path).timeline
    told = [timeline.metadata(instant)["extraMetadata"]["latest_schema"] for instant in timeline.writes[1:]]
    assert all("note" in decode_schema(text).arrow.names for text in told)
    found = Table(table.path).scan(columns=["id", "price", "note", "more"]).to_table().sort_by("id").to_pylist()
    assert [(one["price"], one["note"], one["more"]) for one in found] == [(0.0, "n0", None), (7.0, "n1", 5), (2.0, "n2", None)]
