"""Rows of one schema as rows of another."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import SchemaMismatch
from hudimeta.schema import conform


def column(values, kind):
    return pa.table({"c": pa.array(values, kind)})


def conformed(values, source, target, **options):
    return conform(column(values, source), pa.schema([pa.field("c", target)]), **options)["c"].to_pylist()


PROMOTIONS = [
    ([1, None], pa.int32(), pa.int64(), [1, None]),
    ([1, None], pa.int32(), pa.float32(), [1.0, None]),
    ([2**53 + 1], pa.int64(), pa.float64(), [float(2**53)]),
    ([7], pa.int64(), pa.string(), ["7"]),
    ([0.1, 16777216.0, float("nan")], pa.float32(), pa.string(), ["0.1", "1.6777216E7", "NaN"]),
    ([1.0, 1e7, 1e-4, None], pa.float64(), pa.string(), ["1.0", "1.0E7", "1.0E-4", None]),
    (["é", None], pa.string(), pa.binary(), ["é".encode(), None]),
    ([b"abc"], pa.binary(), pa.string(), ["abc"]),
    ([dt.date(2024, 1, 15)], pa.date32(), pa.string(), ["2024-01-15"]),
    ([decimal.Decimal("1.50")], pa.decimal128(10, 2), pa.decimal128(12, 3), [decimal.Decimal("1.500")]),
    ([decimal.Decimal("1.50")], pa.decimal128(10, 2), pa.string(), ["1.50"]),
]


@pytest.mark.parametrize(("values", "source", "target", "expected"), PROMOTIONS)
def test_promotions(values, source, target, expected):
    assert conformed(values, source, target) == expected


def test_a_float_becomes_the_double_that_its_text_stands_for():
    assert conformed([0.1], pa.float32(), pa.float64()) == [0.1]


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([1], pa.int64(), pa.int32()),
        ([1.0], pa.float64(), pa.float32()),
        ([True], pa.bool_(), pa.string()),
        (["1"], pa.string(), pa.int32()),
        ([1], pa.int64(), pa.timestamp("us", "UTC")),
        ([decimal.Decimal("1.5")], pa.decimal128(10, 1), pa.decimal128(10, 2)),
        ([{"a": 1}], pa.struct([("a", pa.int32())]), pa.string()),
        ([[1]], pa.list_(pa.int32()), pa.int32()),
        ([dt.datetime(2024, 1, 1)], pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ],
)
def test_what_does_not_promote_is_refused_and_says_what_to_do(values, source, target):
    with pytest.raises(SchemaMismatch, match=r"^HUDIMETA_SCHEMA_MISMATCH: column 'c' is .*(before writing|rebuild)"):
        conformed(values, source, target)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(SchemaMismatch, match=r"column .* is bytes that are no UTF-8, the table needs text"):
        conformed([b"\xff"], pa.binary(), pa.string())


def test_nanoseconds_are_never_cut_in_silence():
    good, bad = pa.scalar(1_000, pa.timestamp("ns", "UTC")), pa.scalar(1_001, pa.timestamp("ns", "UTC"))
    assert conformed([good], pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"))[0].microsecond == 1
    with pytest.raises(SchemaMismatch, match="Round the column to us"):
        conformed([bad], pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"))


def test_columns_go_by_name_missing_ones_are_null_and_extra_ones_go():
    rows = pa.table({"b": [1, 2], "extra": ["x", "y"], "a": ["p", None]})
    target = pa.schema([("a", pa.string()), ("b", pa.int64()), ("new", pa.float64())])
    out = conform(rows, target)
    assert out.schema.equals(target)
    assert out.to_pylist() == [{"a": "p", "b": 1, "new": None}, {"a": None, "b": 2, "new": None}]


def test_nested_fields_go_by_name_at_every_depth():
    inner = pa.struct([("x", pa.int32()), ("gone", pa.string())])
    wider = pa.struct([("new", pa.string()), ("x", pa.int64())])
    rows = pa.table(
        {
            "s": pa.array([{"x": 1, "gone": "g"}, None], inner),
            "l": pa.array([[{"x": 2, "gone": None}, None], None], pa.list_(inner)),
            "m": pa.array([[("k", {"x": 3, "gone": None})], []], pa.map_(pa.string(), inner)),
        }
    )
    target = pa.schema([("s", wider), ("l", pa.list_(wider)), ("m", pa.map_(pa.string(), wider))])
    out = conform(rows, target)
    out.validate(full=True)
    assert out.schema.equals(target)
    assert out.to_pylist() == [
        {"s": {"new": None, "x": 1}, "l": [{"new": None, "x": 2}, None], "m": [("k", {"new": None, "x": 3})]},
        {"s": None, "l": None, "m": []},
    ]


def test_a_null_where_none_is_allowed_names_the_column():
    target = pa.schema([pa.field("c", pa.int32(), nullable=False)])
    assert conform(column([1, 2], pa.int32()), target)["c"].to_pylist() == [1, 2]
    with pytest.raises(SchemaMismatch, match="column 'c' is null in 1 rows"):
        conform(column([1, None], pa.int32()), target)


def test_a_required_field_below_a_null_struct_is_no_null():
    loose, strict = pa.struct([("x", pa.int32())]), pa.struct([pa.field("x", pa.int32(), nullable=False)])
    rows = pa.table({"c": pa.array([{"x": 1}, None], loose)})
    assert conform(rows, pa.schema([("c", strict)]))["c"].to_pylist() == [{"x": 1}, None]


def test_an_alter_casts_text_as_spark_does_and_only_when_asked():
    days = ["2024-02-29", "2023-02-29", " 2024-01-01 ", "soon", None]
    expected = [dt.date(2024, 2, 29), None, dt.date(2024, 1, 1), None, None]
    assert conformed(days, pa.string(), pa.date32(), altered=True) == expected
    numbers = conformed(["1.005", "-2.5", "x", "1e1"], pa.string(), pa.decimal128(8, 2), altered=True)
    assert numbers == [decimal.Decimal("1.01"), decimal.Decimal("-2.50"), None, decimal.Decimal("10.00")]
    assert conformed([1.5], pa.float64(), pa.decimal128(8, 2), altered=True) == [decimal.Decimal("1.50")]
    with pytest.raises(SchemaMismatch):
        conformed(["1"], pa.string(), pa.decimal128(8, 2))


def test_a_doubled_column_is_refused():
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaMismatch, match="column 'a' is there twice"):
        conform(rows, pa.schema([("a", pa.int64())]))


def test_rows_that_fit_are_not_copied():
    rows = column([1, 2, 3], pa.int64())
    out = conform(rows, pa.schema([("c", pa.int64())]))
    assert out["c"].chunk(0).buffers()[1].address == rows["c"].chunk(0).buffers()[1].address


def optional(values):
    return st.none() | values


words = st.text(alphabet="aé😀 ", max_size=3)
rows_of = {
    "list": (optional(st.lists(optional(words), max_size=3)), pa.list_(pa.string())),
    "map": (optional(st.dictionaries(words, optional(words), max_size=3).map(lambda d: list(d.items()))), None),
    "struct": (optional(st.fixed_dictionaries({"a": optional(words), "b": optional(st.lists(words, max_size=2))})), None),
}
strings = pa.string()
MAP = pa.map_(strings, strings)
STRUCT = pa.struct([("a", strings), ("b", pa.list_(strings))])
LAYOUTS = {
    "list": [
        pa.list_(pa.large_string()),
        pa.large_list(strings),
        pa.list_(pa.string_view()),
        pa.list_(pa.dictionary(pa.int8(), strings)),
        pa.list_view(strings),
    ],
    "map": [pa.map_(pa.large_string(), pa.large_string()), pa.map_(strings, pa.dictionary(pa.int32(), strings))],
    "struct": [
        pa.struct([("b", pa.large_list(pa.large_string())), ("a", pa.large_string()), ("c", pa.int8())]),
        pa.struct([("a", pa.dictionary(pa.int8(), strings)), ("b", pa.list_view(strings))]),
    ],
}
TARGETS = {"list": pa.list_(strings), "map": MAP, "struct": STRUCT}


@given(st.data())
def test_every_layout_of_nested_values_conforms_also_in_slices(data):
    shape = data.draw(st.sampled_from(sorted(LAYOUTS)))
    rows = data.draw(st.lists(rows_of[shape][0], max_size=8))
    layout = data.draw(st.sampled_from(LAYOUTS[shape]))
    start = data.draw(st.integers(0, len(rows)))
    length = data.draw(st.integers(0, len(rows) - start))
    try:
        given_rows = pa.array(rows, layout)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        given_rows = pa.array(rows, TARGETS[shape])
    table = pa.table({"c": given_rows.slice(start, length)})
    out = conform(table, pa.schema([("c", TARGETS[shape])]))
    out.validate(full=True)
    assert out["c"].to_pylist() == pa.array(rows, TARGETS[shape]).to_pylist()[start : start + length]


@given(st.lists(optional(st.lists(st.integers(0, 9), min_size=2, max_size=2)), max_size=6), st.integers(0, 6))
def test_fixed_size_lists_conform(rows, start):
    values = pa.array(rows, pa.list_(pa.int8(), 2)).slice(start)
    out = conform(pa.table({"c": values}), pa.schema([("c", pa.list_(pa.int32()))]))
    out.validate(full=True)
    assert out["c"].to_pylist() == rows[start:]


@given(st.lists(optional(st.floats(width=32)), max_size=20))
def test_text_of_floats_reads_back(values):
    text = conform(column(values, pa.float32()), pa.schema([("c", pa.string())]))["c"]
    back = pc.cast(pc.cast(text, pa.float64()), pa.float32())
    assert str(back.to_pylist()) == str(pa.array(values, pa.float32()).to_pylist())


@pytest.mark.parametrize("view", [pa.string_view(), pa.binary_view()])
def test_views_within_other_layouts(view):
    plain = pa.string() if view == pa.string_view() else pa.binary()
    values = pa.array(["a", None, "b", "a"], plain)
    coded = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 2, 1]), pa.array(["x", "y", None], plain).cast(view))
    lists = pa.array([["a"], None, [], ["b", None]], pa.list_view(view))
    for found, kind, expected in (
        (values.cast(view).slice(1), plain, values.slice(1)),
        (coded.slice(1), plain, pa.array([None, "x", None, "y"], plain)),
        (lists.slice(1), pa.list_(plain), pa.array([None, [], ["b", None]], pa.list_(plain))),
    ):
        rows = conform(pa.table({"c": found}), pa.schema([("c", kind)]))
        assert rows["c"].combine_chunks().equals(expected)


def test_moments_out_of_range_are_not_to_be_rounded():
    late = column([2**55], pa.timestamp("s"))
    with pytest.raises(SchemaMismatch, match=r"out of bounds.*Correct or filter"):
        conform(late, pa.schema([("c", pa.timestamp("us"))]))
    fine = column([1], pa.timestamp("ns"))
    with pytest.raises(SchemaMismatch, match=r"would lose data.*Round the column"):
        conform(fine, pa.schema([("c", pa.timestamp("us"))]))
