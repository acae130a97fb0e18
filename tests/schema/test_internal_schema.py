"""Schema history: columns are followed by id through renames, drops, re-additions and type changes."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import CorruptFileError, SchemaError
from hudimeta.schema import SchemaHistory, conform
from hudimeta.schema.internal_schema import SCHEMA_FOLDER, completed_schema_files, decode_schema, encode_history, encode_schema


def newest_history(base):
    folder = base / SCHEMA_FOLDER
    return (folder / completed_schema_files(f.name for f in folder.iterdir())[0]).read_text()


@pytest.mark.parametrize("name", ["alter_rename_mor", "alter_drop_cow9"])
def test_recorded_histories_come_back_letter_by_letter(name, rich_table):
    text = newest_history(rich_table(name))
    assert encode_history(SchemaHistory.decode(text)) == text
    one = json.dumps(json.loads(text)["schemas"][0], separators=(",", ":"))
    assert encode_schema(decode_schema(one)) == one


def test_the_version_of_an_instant(rich_table):
    history = SchemaHistory.decode(newest_history(rich_table("alter_rename_mor")))
    assert [v.version for v in history.versions] == [0, 20261121033652914, 20261121033654751, 20261121033656461]
    assert "note" in history.at("20261121033650190").arrow.names
    assert "remark" in history.at("20261121033652914").arrow.names, "the ALTER's own instant has the new names"
    assert history.at("20270101000000").arrow == history.latest.arrow
    assert history.latest.arrow.names == ["id", "region", "region_code", "amount", "qty", "remark", "ts"]


@pytest.mark.parametrize("name", ["alter_rename_mor", "alter_drop_cow9"])
def test_every_recorded_file_reads_as_the_newest_version(name, rich_table):
    """Values survive the rename; dropped columns are gone; new ones are null."""
    base = rich_table(name)
    history = SchemaHistory.decode(newest_history(base))
    files = [f for f in sorted(base.rglob("*.parquet")) if ".hoodie" not in f.relative_to(base).parts]
    renamed = {"alter_rename_mor": ("note", "remark"), "alter_drop_cow9": ("amount", "price")}[name]
    seen = 0
    for path in files:
        rows = pq.ParquetFile(path).read()
        version = history.at(path.stem.rsplit("_", 1)[1])
        out = conform(version.read_as(rows, history.latest), history.latest.arrow, altered=True)
        assert out.schema.equals(history.latest.arrow)
        if renamed[0] in rows.column_names:
            assert out[renamed[1]].to_pylist() == rows[renamed[0]].to_pylist()
            seen += 1
        if "region_code" in out.column_names and "region_code" not in rows.column_names:
            assert out["region_code"].null_count == out.num_rows
    assert seen


def column(number, name, kind, optional=True):
    return {"id": number, "name": name, "optional": optional, "type": kind}


def version(number, *fields):
    return decode_schema(json.dumps({"max_column_id": 99, "version_id": number, "type": "record", "fields": list(fields)}))


def test_a_name_that_is_used_again_is_another_column():
    old = version(0, column(0, "k", "string"), column(1, "v", "int"))
    new = version(2, column(0, "k", "string"), column(2, "v", "int"))
    rows = pa.table({"k": ["a"], "v": pa.array([1], pa.int32())})
    assert old.sources(new) == {"k": "k", "v": None}
    assert conform(old.read_as(rows, new), new.arrow).to_pylist() == [{"k": "a", "v": None}]


def test_names_that_change_places():
    old = version(0, column(0, "a", "int"), column(1, "b", "int"))
    new = version(1, column(0, "b", "int"), column(1, "a", "int"))
    rows = pa.table({"a": [1], "b": [2]})
    assert old.read_as(rows, new).to_pylist() == [{"b": 1, "a": 2}]


def test_columns_that_the_history_does_not_know_stay():
    old = version(0, column(0, "a", "int"))
    rows = pa.table({"_hoodie_commit_time": ["t"], "a": [1]})
    assert old.read_as(rows, version(1, column(0, "b", "int"))).column_names == ["_hoodie_commit_time", "b"]


def nested(point_x, extra=()):
    point = {"type": "record", "fields": [column(10, point_x, "int"), column(11, "y", "int"), *extra]}
    return [
        column(0, "s", point),
        column(1, "l", {"type": "array", "element_id": 5, "element": point, "element_optional": True}),
        column(
            2, "m", {"type": "map", "key_id": 6, "key": "string", "value_id": 7, "value": point, "value_optional": True}
        ),
    ]  # fmt: skip


def test_nested_fields_are_renamed_and_dropped_also_in_slices():
    old, new = version(0, *nested("x", [column(12, "gone", "string")])), version(1, *nested("east"))
    point = pa.struct([("x", pa.int32()), ("y", pa.int32()), ("gone", pa.string())])
    value = {"x": 1, "y": 2, "gone": "g"}
    rows = pa.table(
        {
            "s": pa.array([None, value, None, value], point),
            "l": pa.array([[value], None, [], [value, None]], pa.list_(point)),
            "m": pa.array([[("k", value)], None, [], [("k", None)]], pa.map_(pa.string(), point)),
        }
    )
    shown = {"east": 1, "y": 2}
    expected = [
        {"s": None, "l": [shown], "m": [("k", shown)]},
        {"s": shown, "l": None, "m": None},
        {"s": None, "l": [], "m": []},
        {"s": shown, "l": [shown, None], "m": [("k", None)]},
    ]
    for start in range(4):
        out = old.read_as(rows.slice(start), new)
        out.validate(full=True)
        assert out.to_pylist() == expected[start:]


def test_types():
    kinds = ["boolean", "date", "timestamp", "decimal(10, 2)", "fixed[4]", "binary", "uuid", "local-timestamp-micros"]
    schema = version(0, *[column(i, f"c{i}", kind) for i, kind in enumerate(kinds)]).arrow
    assert [str(f.type) for f in schema] == [
        *("bool", "date32[day]", "timestamp[us, tz=UTC]", "decimal128(10, 2)"),
        *("fixed_size_binary[4]", "binary", "string", "timestamp[us]"),
    ]


def test_types_are_written_as_apache_hudi_reads_them():
    """It writes them with hyphens, and takes a history that holds one for none."""
    record = {"type": "record", "fields": [{"id": 9, "name": "time-millis", "optional": True, "type": "time-millis"}]}
    array = {"type": "array", "element_id": 8, "element": "timestamp-millis", "element_optional": True}
    held = {"type": "map", "key_id": 6, "key": "string", "value_id": 7, "value": array, "value_optional": True}
    schema = version(0, column(0, "c-0", "local-timestamp-micros"), column(1, "c1", record), column(2, "c2", held))
    for text in (encode_schema(schema), encode_history(SchemaHistory((schema,)))):
        found = SchemaHistory.decode(text).latest if "schemas" in text else decode_schema(text)
        assert found.arrow == schema.arrow
        assert set(re.findall(r"\w+-\w+", text)) == {"c-0", "time-millis"}, "names of columns stay"
        assert text.count("time-millis") == 1


def test_older_spelling_of_keys():
    text = '{"max_column_id":1,"version-id":7,"type":"record","fields":[{"id":0,"name":"a","optional":true,"type":"int"}]}'
    assert decode_schema(text).version == 7


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schemas":[]}', '{"schemas":[{"version_id":0}]}', '{"schemas":[{"version_id":0,"fields":[{}]}]}']
)
def test_damage_is_named(text):
    with pytest.raises(CorruptFileError, match=r"f\.schemacommit is damaged .* schema history"):
        SchemaHistory.decode(text, "f.schemacommit")
    with pytest.raises(SchemaError):
        decode_schema(text)


def test_pending_schema_commits_are_passed_over():
    names = ["20240101000000000_20240101000000500.schemacommit", "20250101000000000.schemacommit.inflight", "x"]
    assert completed_schema_files(names) == names[:1]


def test_names_in_older_files(rich_table):
    history = SchemaHistory.decode(newest_history(rich_table("alter_rename_mor")))
    rows = pa.table({"note": ["n"], "qty": [1]})
    assert history.with_newest_names(rows, "20261121033648883").to_pylist() == [{"remark": "n", "qty": 1}]
