"""What a write may do to a table's schema."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import SchemaMismatch, UnsupportedEvolution
from hudimeta.schema import avro_to_arrow, check_compatible, conform
from tests.schema.test_avro_arrow import schemas_of


def one(kind, nullable=True):
    return pa.schema([pa.field("c", kind, nullable)])


WIDENING = [
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.float64(), pa.string()),
    (pa.binary(), pa.string()),
    (pa.date32(), pa.string()),
    (pa.decimal128(10, 2), pa.decimal128(14, 3)),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDENING)
def test_wider_rows_widen_the_table_and_narrower_rows_are_widened(narrow, wide):
    change = check_compatible(one(wide), one(narrow))
    assert (change.schema, change.added, change.widened) == (one(wide), (), ())
    if narrow != pa.binary():
        change = check_compatible(one(narrow), one(wide))
        assert (change.schema, change.widened) == (one(wide), (("c", narrow, wide),))


def test_strings_go_into_a_binary_column_without_changing_it():
    assert check_compatible(one(pa.binary()), one(pa.string())).schema == one(pa.binary())


@pytest.mark.parametrize(
    ("table", "rows", "error", "says"),
    [
        (pa.bool_(), pa.int32(), SchemaMismatch, "Cast the column to bool"),
        (pa.float64(), pa.decimal128(10, 2), SchemaMismatch, "Cast the column to double"),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), SchemaMismatch, "time zone"),
        (pa.decimal128(10, 2), pa.decimal128(10, 4), UnsupportedEvolution, r"decimal128\(12, 4\)"),
        (pa.int32(), pa.struct([("a", pa.int32())]), UnsupportedEvolution, "new column"),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), UnsupportedEvolution, "new column"),
        (pa.int64(), pa.uint64(), SchemaMismatch, "Cast it to int64"),
    ],
)
def test_other_types_are_refused_and_the_text_says_what_to_do(table, rows, error, says):
    with pytest.raises(error, match=says) as caught:
        check_compatible(one(table), one(rows))
    assert caught.value.column == "c"


def test_new_columns_go_to_the_end_and_are_nullable():
    table = pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int32())]))])
    required = pa.field("new", pa.string(), nullable=False)
    rows = pa.schema([required, ("s", pa.struct([("y", pa.int32()), ("x", pa.int32())])), ("a", pa.int32())])
    change = check_compatible(table, rows)
    assert change.schema == pa.schema(
        [("a", pa.int32()), ("s", pa.struct([("x", pa.int32()), ("y", pa.int32())])), ("new", pa.string())]
    )
    assert change.added == ("s.y", "new")
    with pytest.raises(UnsupportedEvolution, match="add it to the table first"):
        check_compatible(table, rows, allow_added=False)


def test_missing_columns_stay_in_the_table():
    table = pa.schema([pa.field("k", pa.string(), nullable=False), ("v", pa.int32()), ("s", pa.struct([("x", pa.int32())]))])
    rows = pa.schema([("k", pa.string()), ("s", pa.struct([("y", pa.int32())]))])
    change = check_compatible(table, rows)
    assert change.missing == ("v", "s.x")
    with pytest.raises(UnsupportedEvolution, match=r"hoodie\.write\.set\.null\.for\.missing\.columns"):
        check_compatible(table, rows, allow_missing=False)
    with pytest.raises(SchemaMismatch, match="column 'k' is missing"):
        check_compatible(table, pa.schema([("v", pa.int32())]))


def test_a_required_column_stays_required():
    change = check_compatible(one(pa.int32(), nullable=False), one(pa.int32()))
    assert not change.schema.field("c").nullable


def test_meta_columns_of_the_rows_are_ignored():
    rows = pa.schema([("_hoodie_record_key", pa.string()), ("c", pa.int32()), ("_hoodie_operation", pa.string())])
    assert check_compatible(one(pa.int32()), rows).schema == one(pa.int32())


def test_a_column_of_nulls_takes_the_type_of_the_table():
    assert check_compatible(one(pa.date32()), one(pa.null())).schema == one(pa.date32())
    with pytest.raises(SchemaMismatch, match="give it a type"):
        check_compatible(one(pa.date32()), pa.schema([("new", pa.null())]))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([("a", pa.int32()), ("a", pa.int32())], "there twice"),
        ([("a", pa.int32()), ("A", pa.int32())], "upper and lower case"),
        ([("s", pa.struct([("x", pa.int32()), ("X", pa.int32())]))], r"'s\.X'"),
        ([("_hoodie_mine", pa.int32())], "reserved prefix"),
        ([("two words", pa.int32())], "two__words"),
        ([("1st", pa.int32())], "Avro cannot hold"),
        ([("_hoodie_record_key", pa.string())], "without any column of data"),
        ([("e", pa.struct([]))], "at least one field"),
        ([("m", pa.map_(pa.int32(), pa.int32()))], "string keys"),
        ([("t", pa.time64("us"))], "Cast it to string"),
        ([("d", pa.decimal256(60, 2))], "at most 38 digits"),
    ],
)
def test_names_and_types_that_no_table_can_have(fields, says):
    with pytest.raises(SchemaMismatch, match=says):
        check_compatible(one(pa.int32()), pa.schema(fields))


def test_the_deleted_marker_is_a_data_column():
    rows = pa.schema([("c", pa.int32()), ("_hoodie_is_deleted", pa.bool_())])
    assert check_compatible(one(pa.int32()), rows).added == ("_hoodie_is_deleted",)


def test_a_column_that_differs_by_case_from_the_tables_is_refused():
    with pytest.raises(SchemaMismatch, match="told from 'c' only by upper and lower case"):
        check_compatible(one(pa.int32()), pa.schema([("C", pa.int32())]))


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(8), pa.binary()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.decimal256(20, 2), pa.decimal128(20, 2)),
        (pa.large_list(pa.int8()), pa.list_(pa.int32())),
        (pa.list_(pa.float16(), 3), pa.list_(pa.float32())),
    ],
)
def test_types_of_other_libraries_are_taken_as_the_nearest(given, stored):
    change = check_compatible(one(pa.int32()), pa.schema([("c", pa.int32()), ("new", given)]))
    assert change.schema.field("new").type == stored


def test_polars_and_pandas_frames_fit_a_new_table():
    import pandas
    import polars

    frame = pandas.DataFrame(
        {"k": ["a", "b"], "t": pandas.to_datetime(["2024-01-01", "2024-01-02"], utc=True), "c": pandas.Categorical(["x", "y"])}
    )
    for rows in (pa.Table.from_pandas(frame), polars.from_pandas(frame).to_arrow()):
        table = pa.schema([("k", pa.string()), ("t", pa.timestamp("us", "UTC")), ("c", pa.string())])
        change = check_compatible(table, rows.schema)
        assert (change.added, change.widened) == ((), ())
        assert conform(rows, change.schema)["c"].to_pylist() == ["x", "y"]


def test_the_evolution_that_apache_hudi_made_is_the_one_we_make(rich_table):
    """Each commit's schema, laid beside the one before it, gives itself: new columns, wider types, new nested fields."""
    texts = list(schemas_of(rich_table("evolve_write_cow8")))
    assert len(texts) == 3
    table = avro_to_arrow(texts[0])
    for text in texts[1:]:
        table = check_compatible(table, avro_to_arrow(text)).schema
        assert table == avro_to_arrow(text), json.loads(text)["name"]


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (pa.null(), "c"),
        (pa.list_(pa.null()), "c.element"),
        (pa.map_(pa.string(), pa.null()), "c.value"),
        (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.null()))]), "c.b.element"),
    ],
)
def test_a_new_column_needs_a_type_at_every_depth(kind, where):
    for table, rows, path in (
        (pa.schema([("id", pa.string())]), one(kind), where),
        (one(pa.struct([("x", pa.int64())])), one(pa.struct([("c", kind)])), f"c.{where}"),
    ):
        with pytest.raises(SchemaMismatch, match="new and has no value") as caught:
            check_compatible(table, rows)
        assert caught.value.column == path
    assert check_compatible(one(pa.list_(pa.int64())), one(pa.list_(pa.null()))).schema == one(pa.list_(pa.int64()))


def test_a_write_with_a_column_of_empty_lists_leaves_the_table_readable(tmp_path):
    table = hudimeta.Table.create(tmp_path / "t", pa.schema([("id", pa.string())]), key="id")
    table.insert([{"id": "a"}])
    before = table.history()
    with pytest.raises(SchemaMismatch, match=r"tags\.element"):
        table.upsert([{"id": "b", "tags": []}])
    assert (table.history(), table.scan().to_table()["id"].to_pylist()) == (before, ["a"])
