"""Lists of deletes: the same as the Avro library reads and writes, and ordering values in the column's own type."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError, SchemaMismatch, UnsupportedFeature
from hudimeta.formats.avro.delete_list import decode_delete_list, encode_delete_list
from hudimeta.formats.avro.ordering import DELETES_SCHEMA, Wrapper, ordering_values, wrapper_for
from hudimeta.formats.avro.schemas import DELETE_RECORD_LIST

UTC = dt.timezone.utc
LIBRARY_SCHEMA = fastavro.parse_schema(DELETE_RECORD_LIST)
RECORD_NAMES = [
    branch if isinstance(branch, str) else branch["name"]
    for branch in DELETE_RECORD_LIST["fields"][0]["type"]["items"]["fields"][2]["type"]
]
EPOCH, DAY = dt.date(1970, 1, 1), dt.timedelta(days=1)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.just("k" * 70)
DECIMALS = st.integers(-(10**29), 10**29).map(lambda n: decimal.Decimal(n).scaleb(-15, decimal.Context(prec=60)))
SINGLE: dict[str, st.SearchStrategy[Any]] = {
    "BooleanWrapper": st.booleans(),
    "IntWrapper": st.integers(-(2**31), 2**31 - 1),
    "LongWrapper": st.integers(-(2**63), 2**63 - 1),
    "FloatWrapper": st.floats(width=32, allow_nan=False),
    "DoubleWrapper": st.floats(allow_nan=False),
    "BytesWrapper": st.binary(max_size=5),
    "StringWrapper": TEXT,
    "DateWrapper": st.integers(-30_000, 60_000),
    "DecimalWrapper": DECIMALS,
    "TimeMicrosWrapper": st.times(),
    "TimestampMicrosWrapper": st.integers(0, 2**51),
}
ONE = st.sampled_from(sorted(SINGLE)).flatmap(lambda name: SINGLE[name].map(lambda value: (name, {"value": value})))
LOCAL = st.integers(-30_000, 60_000).map(lambda days: ("LocalDateWrapper", {"value": days}))
MANY = (st.none() | st.lists(st.none() | ONE | LOCAL, max_size=3)).map(lambda items: ("ArrayWrapper", {"wrappedValues": items}))
RECORDS = st.fixed_dictionaries(
    {"recordKey": st.none() | TEXT, "partitionPath": st.none() | TEXT, "orderingVal": st.none() | ONE | MANY}
)


def qualified(value: Any) -> Any:
    """Ordering values with the full names that the library asks for."""
    if isinstance(value, tuple):
        return "org.apache.hudi.avro.model." + value[0], qualified(value[1])
    if isinstance(value, dict):
        return {k: qualified(v) for k, v in value.items()}
    return [qualified(v) for v in value] if isinstance(value, list) else value


def library_bytes(records: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, LIBRARY_SCHEMA, {"deleteRecordList": [qualified(r) for r in records]})
    return out.getvalue()


def readable(field: str, value: Any) -> Any:
    """What stands in a field of the decoded ordering, from what the library was given."""
    if field in ("date", "local_date"):
        return EPOCH + value * DAY
    return dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=value) if field == "timestamp_micros" else value


def given_value(ordering: Any) -> tuple[str | None, Any]:
    """Field of the decoded struct and its value, from what the library was given."""
    if ordering is None:
        return None, None
    name, record = ordering
    if name == "ArrayWrapper":
        values = record["wrappedValues"]
        return "array", values if values is None else [given_value(v) for v in values]
    field = "local_date" if name == "LocalDateWrapper" else Wrapper(RECORD_NAMES.index(name)).column
    return field, readable(field, record["value"])


def found_value(struct: dict[str, Any]) -> tuple[str | None, Any]:
    """The one field of a decoded struct that is set."""
    filled = [(k, v) for k, v in struct.items() if v is not None and k != "wrapper"]
    assert len(filled) <= 1
    field, value = filled[0] if filled else (None, None)
    return field, [found_value(v) for v in value] if field == "array" else value


@given(st.lists(RECORDS, max_size=60))
def test_every_branch_is_read(records: list[dict[str, Any]]) -> None:
    deletes = decode_delete_list(library_bytes(records))
    deletes.validate(full=True)
    assert deletes.schema == DELETES_SCHEMA
    assert deletes["record_key"].to_pylist() == [r["recordKey"] for r in records]
    assert deletes["partition_path"].to_pylist() == [r["partitionPath"] for r in records]
    for row, record in zip(deletes.to_pylist(), records, strict=True):
        name = "null" if record["orderingVal"] is None else record["orderingVal"][0]
        assert RECORD_NAMES[row["ordering_wrapper"]] == name
        field, value = given_value(record["orderingVal"])
        expected = (None, None) if value is None else (field, value)
        assert found_value(row["ordering"]) == expected


@given(st.lists(RECORDS, min_size=1, max_size=8), st.data())
def test_damage_is_refused_or_read(records: list[dict[str, Any]], data: st.DataObject) -> None:
    bad = bytearray(library_bytes(records))
    for _ in range(data.draw(st.integers(1, 3))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFileError):
        decode_delete_list(bytes(bad)).validate(full=True)


@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_truncation_is_refused(records: list[dict[str, Any]], data: st.DataObject) -> None:
    whole = library_bytes(records)
    with pytest.raises(CorruptFileError):
        decode_delete_list(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "within its block"),
        ("00 00", "1 bytes more"),
        ("fe ff ff ff ff ff ff ff ff 01 00", "number of deletes"),
        ("02 02 fe ff ff ff 0f 61 00 00 00", "within its block"),
        ("02 02 01 61 00 00 00", "length -1"),
        ("02 04 00 00 00", "branch 0x4"),
        ("02 00 00 1c 00", "branch 0x1c"),
        ("02 00 00 06 ff ff ff ff ff ff ff ff ff ff ff 01 00", "varint"),
        ("02 00 00 18 02 fe ff ff ff ff ff 0f 00", "within its block"),
    ],
)
def test_hostile_lists_are_refused(data: str, why: str) -> None:
    with pytest.raises(CorruptFileError, match=why):
        decode_delete_list(bytes.fromhex(data), "x.log", 100)


def test_the_block_of_a_sql_delete() -> None:
    data = bytes.fromhex("02 02 48") + b"e3cf430c-889d-4015-bc98-59bdce1e530c" + b"\x02\x1ccity=sao_paulo\x04\x00\x00"
    deletes = decode_delete_list(data)
    assert deletes["record_key"].to_pylist() == ["e3cf430c-889d-4015-bc98-59bdce1e530c"]
    assert deletes["partition_path"].to_pylist() == ["city=sao_paulo"]
    assert deletes["ordering_wrapper"].to_pylist() == [Wrapper.INT]
    assert encode_delete_list(pa.array(deletes["record_key"].to_pylist()), pa.array(["city=sao_paulo"])) == data


def test_blocks_that_state_their_size_are_read() -> None:
    deletes = decode_delete_list(bytes.fromhex("03 14 02 02 61 00 00 02 02 62 00 00 02 02 02 63 00 00 00"))
    assert deletes["record_key"].to_pylist() == ["a", "b", "c"]


def test_no_deletes() -> None:
    assert encode_delete_list(pa.array([], pa.string()), pa.array([], pa.string())) == b"\0"
    assert decode_delete_list(b"\0").schema == DELETES_SCHEMA
    assert decode_delete_list(b"\0").num_rows == 0


COLUMNS: list[tuple[pa.Array, str]] = [
    (pa.array([7, -1], pa.int32()), "IntWrapper"),
    (pa.array([7, -1], pa.int16()), "IntWrapper"),
    (pa.array([0, 2**40]), "LongWrapper"),
    (pa.array(["b", ""]), "StringWrapper"),
    (pa.array(["b", "a"], pa.large_string()), "StringWrapper"),
    (pa.array([b"b", b""]), "BytesWrapper"),
    (pa.array([1.5, -0.5]), "DoubleWrapper"),
    (pa.array([1.5, -0.5], pa.float32()), "FloatWrapper"),
    (pa.array([True, False]), "BooleanWrapper"),
    (pa.array([dt.date(2026, 1, 1), dt.date(1969, 1, 1)]), "DateWrapper"),
    (pa.array([decimal.Decimal("1.50"), decimal.Decimal("-2.25")], pa.decimal128(10, 2)), "DecimalWrapper"),
    (pa.array([5, 2**50], pa.timestamp("us", "UTC")), "LongWrapper"),
    (pa.array([5, 2**40], pa.timestamp("ms")), "LongWrapper"),
    (pa.array([5, 2**35], pa.time64("us")), "TimeMicrosWrapper"),
    (pa.array([5, 1000], pa.time32("ms")), "IntWrapper"),
]


@pytest.mark.parametrize(("column", "name"), COLUMNS, ids=lambda v: v if isinstance(v, str) else str(v.type))
def test_each_column_type_has_its_branch(column: pa.Array, name: str) -> None:
    keys, paths = pa.array(["a", "b", "c"]), pa.array(["", "", ""])
    column = pa.concat_arrays([column, pa.nulls(1, column.type)])
    data = encode_delete_list(keys, paths, [column])
    raw = fastavro.schemaless_reader(io.BytesIO(data), LIBRARY_SCHEMA, return_record_name=True)["deleteRecordList"]
    assert [r["orderingVal"][0].rpartition(".")[2] for r in raw] == [name, name, "IntWrapper"]
    assert raw[2]["orderingVal"][1] == {"value": 0}  # no value: natural order
    assert wrapper_for(column.type) == RECORD_NAMES.index(name)

    (values,), natural = ordering_values(decode_delete_list(data), [column.type])
    assert values == column
    assert natural.tolist() == [False, False, True]


def test_several_columns() -> None:
    columns = [pa.array([3, None, 2**40]), pa.array(["x", "y", None]), pa.array([dt.date(2026, 1, 1)] * 3)]
    data = encode_delete_list(pa.array(["a", "b", "c"]), pa.array(["p", "p", "p"]), columns)
    records = fastavro.schemaless_reader(io.BytesIO(data), LIBRARY_SCHEMA, return_record_name=True)["deleteRecordList"]
    assert data == library_bytes([{**r, "orderingVal": unqualified(r["orderingVal"])} for r in records])
    values, natural = ordering_values(decode_delete_list(data), [c.type for c in columns])
    assert values == columns
    assert not natural.any()


def unqualified(value: Any) -> Any:
    """The inverse of `qualified`."""
    if isinstance(value, tuple):
        return value[0].rpartition(".")[2], unqualified(value[1])
    if isinstance(value, dict):
        return {k: unqualified(v) for k, v in value.items()}
    return [unqualified(v) for v in value] if isinstance(value, list) else value


def test_values_of_another_class_mean_natural_order() -> None:
    records = [
        {"recordKey": "a", "partitionPath": "", "orderingVal": ("LongWrapper", {"value": 5})},
        {"recordKey": "b", "partitionPath": "", "orderingVal": ("IntWrapper", {"value": 5})},
        {"recordKey": "c", "partitionPath": "", "orderingVal": None},
        {"recordKey": "d", "partitionPath": "", "orderingVal": ("LongWrapper", {"value": 0})},
    ]
    (values,), natural = ordering_values(decode_delete_list(library_bytes(records)), [pa.int64()])
    assert values.to_pylist() == [5, None, None, 0]
    assert natural.tolist() == [False, True, True, False]


def test_lists_of_another_shape_mean_natural_order() -> None:
    def listed(*values: Any) -> dict[str, Any]:
        return {"recordKey": "a", "partitionPath": "", "orderingVal": ("ArrayWrapper", {"wrappedValues": list(values)})}

    one, text = ("LongWrapper", {"value": 1}), ("StringWrapper", {"value": "x"})
    records = [listed(one, text), listed(one), listed(text, one), listed(), listed(None, text)]
    records.append({"recordKey": "b", "partitionPath": "", "orderingVal": ("IntWrapper", {"value": 0})})
    values, natural = ordering_values(decode_delete_list(library_bytes(records)), [pa.int64(), pa.string()])
    assert natural.tolist() == [False, True, True, True, False, True]
    assert [v.to_pylist() for v in values] == [[1, None, None, None, None, None], ["x", None, None, None, "x", None]]


def test_a_branch_can_be_chosen() -> None:
    keys, paths, stamps = pa.array(["a"]), pa.array([""]), pa.array([7], pa.timestamp("us", "UTC"))
    data = encode_delete_list(keys, paths, [stamps], wrapper=Wrapper.TIMESTAMP_MICROS)
    deletes = decode_delete_list(data)
    assert deletes["ordering_wrapper"].to_pylist() == [Wrapper.TIMESTAMP_MICROS]
    assert ordering_values(deletes, [stamps.type])[0] == [stamps]
    assert decode_delete_list(encode_delete_list(keys, paths, wrapper=Wrapper.NULL))["ordering_wrapper"].to_pylist() == [0]


def test_what_cannot_be_an_ordering_value_is_refused() -> None:
    keys, paths = pa.array(["a"]), pa.array([""])
    with pytest.raises(UnsupportedFeature, match="list<item: int64>"):
        encode_delete_list(keys, paths, [pa.array([[1]])])
    with pytest.raises(SchemaMismatch, match="ordering value of a delete"):
        encode_delete_list(keys, paths, [pa.array([decimal.Decimal("1e-20")])])


def test_many_deletes_come_back() -> None:
    rows = 30_000
    keys = pa.array([f"key-{i * i}" for i in range(rows)])
    data = encode_delete_list(keys, pa.array(["p=1"] * rows), [pa.array(range(rows), pa.int64())])
    deletes = decode_delete_list(memoryview(data))
    assert deletes["record_key"].combine_chunks() == keys
    assert ordering_values(deletes, [pa.int64()])[0][0].to_pylist() == list(range(rows))
