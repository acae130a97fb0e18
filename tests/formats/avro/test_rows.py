"""Rows of log blocks: the same values and the same bytes as the Avro library, and nothing believed that hostile bytes claim."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import io
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError, SchemaError, SchemaMismatch, UnsupportedFeature
from hudimeta.formats.avro.rows import decode_rows, encode_rows
from hudimeta.schema.avro_arrow import avro_to_arrow

pytestmark = pytest.mark.oldest

UTC = dt.timezone.utc
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
MILLIS = MOMENTS.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))

Typed = tuple[Any, st.SearchStrategy[Any]]
"""An Avro schema and values of it, in the Avro library's Python types."""


def unscaled(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    """Decimals; without negative powers of 256, for which the library spends a byte that Java does not."""
    top = 10**precision - 1
    numbers = st.integers(-top, top).filter(lambda n: n >= 0 or (-n & (-n - 1)) != 0 or n.bit_length() % 8 != 0)
    return numbers.map(lambda n: decimal.Decimal(n).scaleb(-scale, decimal.Context(prec=60)))


def leaf_types() -> list[Typed]:
    number = {"logicalType": "decimal"}
    return [
        ("boolean", st.booleans()),
        ("int", INTS | st.integers(-70, 70)),
        ("long", LONGS),
        ("float", st.floats(width=32)),
        ("double", st.floats()),
        ("bytes", st.binary(max_size=12)),
        ("string", TEXT),
        ({"type": "string", "avro.java.string": "String"}, TEXT),
        ({"type": "int", "logicalType": "date"}, st.dates(dt.date(1900, 1, 1))),
        ({"type": "int", "logicalType": "time-millis"}, MILLIS.map(dt.datetime.time)),
        ({"type": "long", "logicalType": "time-micros"}, st.times()),
        ({"type": "long", "logicalType": "timestamp-millis"}, MILLIS.map(lambda t: t.replace(tzinfo=UTC))),
        ({"type": "long", "logicalType": "timestamp-micros"}, MOMENTS.map(lambda t: t.replace(tzinfo=UTC))),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, MOMENTS),
        ({"type": "bytes", **number, "precision": 30, "scale": 15}, unscaled(30, 15)),
        ({"type": "bytes", **number, "precision": 38, "scale": 0}, unscaled(38, 0)),
        ({"type": "fixed", "name": "N", "size": 5, **number, "precision": 10, "scale": 2}, unscaled(10, 2)),
        ({"type": "fixed", "name": "N", "size": 16, **number, "precision": 38, "scale": 38}, unscaled(38, 38)),
        ({"type": "fixed", "name": "N", "size": 3}, st.binary(min_size=3, max_size=3)),
        ({"type": "enum", "name": "N", "symbols": ["RED", "BLUE"]}, st.sampled_from(["RED", "BLUE"])),
    ]


def optional(inner: Typed) -> st.SearchStrategy[Typed]:
    schema, values = inner
    unions: list[Typed] = [(["null", schema], st.none() | values), ([schema, "null"], st.none() | values), ([schema], values)]
    return st.sampled_from([inner, *unions])


def nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    arrays = inner.map(lambda t: ({"type": "array", "items": t[0]}, st.lists(t[1], max_size=4)))
    maps = inner.map(lambda t: ({"type": "map", "values": t[0]}, st.dictionaries(TEXT, t[1], max_size=4)))
    records = st.lists(inner, min_size=1, max_size=4).map(record_of)
    return (arrays | maps | records).flatmap(optional)


def record_of(fields: list[Typed]) -> Typed:
    schema = {"type": "record", "name": "N", "fields": [{"name": f"f{i}", "type": t[0]} for i, t in enumerate(fields)]}
    return schema, st.fixed_dictionaries({f"f{i}": t[1] for i, t in enumerate(fields)})


def named(schema: Any, counter: list[int]) -> Any:
    """The schema with a name of its own for each named type."""
    if isinstance(schema, list):
        return [named(s, counter) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: named(v, counter) if k in ("type", "items", "values") else v for k, v in schema.items()}
    if "name" in out:
        counter[0] += 1
        out["name"] = f"{out['name']}{counter[0]}"
    if "fields" in out:
        out["fields"] = [{**f, "type": named(f["type"], counter)} for f in out["fields"]]
    return out


TYPES = st.recursive(st.sampled_from(leaf_types()).flatmap(optional), nested, max_leaves=6)


@st.composite
def schemas_and_rows(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    schema, values = record_of(draw(st.lists(TYPES, min_size=1, max_size=5)))
    return named(schema, [0]), draw(st.lists(values, max_size=40 if draw(st.booleans()) else 4))


def encoded(schema: Any, rows: list[Any]) -> tuple[bytes, list[int], list[int]]:
    """The rows as the Avro library writes them, with offsets and lengths."""
    parsed = fastavro.parse_schema(schema)
    out, ends = io.BytesIO(), [0]
    for row in rows:
        fastavro.schemaless_writer(out, parsed, row)
        ends.append(out.tell())
    return out.getvalue(), ends[:-1], [b - a for a, b in itertools.pairwise(ends)]


def plain(schema: Any, value: Any) -> Any:
    """A value out of Arrow or the library in one comparable form."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(schema, list):
        schema = next(s for s in schema if s != "null")
    if value is None or not isinstance(schema, dict):
        return value
    if schema["type"] == "array":
        return [plain(schema["items"], v) for v in value]
    if schema["type"] == "map":
        return {k: plain(schema["values"], v) for k, v in (value.items() if isinstance(value, dict) else value)}
    if schema["type"] == "record":
        return {f["name"]: plain(f["type"], value[f["name"]]) for f in schema["fields"]}
    return value


@given(schemas_and_rows())
def test_rows_agree_with_the_avro_library(case: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    schema, rows = case
    data, offsets, lengths = encoded(schema, rows)
    table = decode_rows(json.dumps(schema), data, np.array(offsets), np.array(lengths))
    table.validate(full=True)
    assert [plain(schema, row) for row in table.to_pylist()] == [plain(schema, row) for row in rows]
    assert table.schema.equals(avro_to_arrow(json.dumps(schema)))

    fresh = pa.Table.from_pylist(rows, schema=table.schema)
    for source in (table, fresh, pa.concat_tables([fresh.slice(0, 1), fresh.slice(1)])):
        again, borders = encode_rows(source, json.dumps(schema))
        assert bytes(again) == data
        assert borders.tolist() == [*offsets, len(data)]


@given(schemas_and_rows(), st.data())
def test_damaged_rows_are_refused_or_read(case: tuple[dict[str, Any], list[dict[str, Any]]], data: st.DataObject) -> None:
    schema, rows = case
    good, offsets, lengths = encoded(schema, rows)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        if bad:
            bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptFileError):
        table = decode_rows(json.dumps(schema), bytes(bad), np.array(offsets, np.int64), np.array(lengths, np.int64))
        table.validate(full=True)


@given(schemas_and_rows())
def test_projection_gives_the_same_columns(case: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    schema, rows = case
    data, offsets, lengths = encoded(schema, rows)
    where = (json.dumps(schema), data, np.array(offsets), np.array(lengths))
    table, last = decode_rows(*where), schema["fields"][-1]["name"]
    assert repr(decode_rows(*where, columns=[last, "no such field"])) == repr(table.select([last]))
    assert decode_rows(*where, columns=[]).num_rows == len(rows)


def test_length_prefix_is_that_of_log_blocks() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "s", "type": "string"}]}
    content, borders = encode_rows(pa.table({"s": ["a", "", "xyz"]}), json.dumps(schema), length_prefix=True)
    assert bytes(content) == b"\0\0\0\2\2a" + b"\0\0\0\1\0" + b"\0\0\0\4\6xyz"
    assert borders.tolist() == [0, 6, 11, 19]
    table = decode_rows(json.dumps(schema), content, borders[:-1] + 4, np.diff(borders) - 4)
    assert table.column("s").to_pylist() == ["a", "", "xyz"]


def test_many_rows_come_in_one_table() -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "i", "type": ["null", "long"]}]})
    values = pa.array([None if i % 7 == 0 else i * i - 5_000_000 for i in range(70_000)])
    content, borders = encode_rows(pa.table({"i": values}), schema)
    table = decode_rows(schema, content, borders[:-1], np.diff(borders))
    assert table.column("i").combine_chunks() == values


def test_negative_powers_take_as_few_bytes_as_java_takes() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "d", "type": kind}]})
    numbers = pa.array([decimal.Decimal(n) for n in (-128, -129, 127, 128, 0, -1, -32768)], pa.decimal128(20, 0))
    content, borders = encode_rows(pa.table({"d": numbers}), schema)
    assert bytes(content).hex(" ") == "02 80 04 ff 7f 02 7f 04 00 80 02 00 02 ff 04 80 00"
    assert decode_rows(schema, content, borders[:-1], np.diff(borders)).column("d").combine_chunks() == numbers


def array_schema(items: Any) -> str:
    fields = [{"name": "a", "type": {"type": "array", "items": items}}, {"name": "z", "type": "int"}]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize(
    ("items", "value", "item"),
    [("string", "äb", b"\x06\xc3\xa4b"), ("double", 0.5, b"\0\0\0\0\0\0\xe0\x3f"), (["null", "int"], 3, b"\x02\x06")],
)
def test_arrays_in_several_blocks(rows: int, items: Any, value: Any, item: bytes) -> None:
    sized = b"\x03" + bytes([2 * 2 * len(item)]) + item * 2  # minus two items, with their size in bytes
    one = b"\x02" + item + sized + b"\x06" + item * 3 + b"\x00" + b"\x0e"
    lengths = np.full(rows, len(one))
    table = decode_rows(array_schema(items), one * rows, np.arange(rows) * len(one), lengths)
    assert table.to_pylist() == [{"a": [value] * 6, "z": 7}] * rows


def test_one_row_with_a_long_array() -> None:
    schema, words = array_schema(["null", "string"]), [f"wort {i}" if i % 3 else None for i in range(20_000)]
    table = pa.table({"a": [["x"], words, []], "z": pa.array([1, 2, 3], pa.int32())})
    content, borders = encode_rows(table, schema)
    assert decode_rows(schema, content, borders[:-1], np.diff(borders)).column("a").to_pylist() == [["x"], words, []]


@pytest.mark.parametrize(
    ("avro", "datum", "why"),
    [
        ("string", "fe ff ff ff ff ff ff ff ff 01", "length"),
        ("string", "03 61", "length"),
        ("string", "04 61", "length"),
        ("string", "02 ff", "UTF-8"),
        ("long", "ff ff ff ff ff ff ff ff ff ff 01", "varint"),
        ("long", "ff", "within its row"),
        ("int", "fe ff ff ff 1f", "int of 32 bits"),
        ("boolean", "02", "boolean"),
        ("double", "00 00", "within its row"),
        (["null", "int"], "04 00", "branch"),
        (["null", "int"], "", "within its row"),
        ({"type": "array", "items": "int"}, "fe ff ff ff ff ff ff ff ff 01 00", "number of items"),
        ({"type": "array", "items": "int"}, "ff ff ff ff ff ff ff ff ff 01 00 00", "number of items"),
        ({"type": "array", "items": "double"}, "80 80 80 80 80 40 00", "number of items"),
        ({"type": "array", "items": "string"}, "04 02 61 08 61", "items of a.element"),
        ({"type": "map", "values": "int"}, "02 02 61", "items of a"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "00", "decimal of 1 to 16"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "06 7f ff ff", "precision 4"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "02", "symbol"),
        ("null", "00", "ends with its last field"),
    ],
)
def test_hostile_datums_are_refused(avro: Any, datum: str, why: str) -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]})
    data = bytes.fromhex(datum)
    with pytest.raises(CorruptFileError, match=why) as caught:
        decode_rows(schema, b"....." + data + b"\0" * 40, np.array([5]), np.array([len(data)]), path="x.log")
    assert caught.value.path == "x.log"
    assert 5 <= caught.value.offset <= 5 + len(data)


def test_borders_are_checked() -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    with pytest.raises(CorruptFileError, match="within 3 bytes"):
        decode_rows(schema, b"\0\0\0", np.array([2]), np.array([2]))
    with pytest.raises(CorruptFileError, match="datums of 0 to"):
        decode_rows(schema, b"\0\0\0", np.array([0]), np.array([1 << 40]))
    with pytest.raises(ValueError, match="one after the other"):
        decode_rows(schema, b"\0\0\0", np.array([1, 0]), np.array([1, 1]))


@pytest.mark.parametrize(
    ("avro", "error", "why"),
    [
        (["null", "int", "string"], UnsupportedFeature, "column 'a': the Avro union"),
        (["null"], UnsupportedFeature, "union"),
        ({"type": "array", "items": "null"}, UnsupportedFeature, "take no bytes"),
        (["null", "R"], UnsupportedFeature, "contains itself"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2}, UnsupportedFeature, "precision 39"),
        ("nothing", SchemaError, "'nothing' is not defined"),
        ({"type": "fixed", "name": "F", "size": -1}, SchemaError, "size"),
        ({"items": "int"}, SchemaError, "malformed"),
    ],
)
def test_schemas_that_cannot_be_decoded_are_named(avro: Any, error: type[Exception], why: str) -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]})
    with pytest.raises(error, match=why):
        decode_rows(schema, b"", np.array([], np.int64), np.array([], np.int64))


@pytest.mark.parametrize("text", ["", "3", '"int"', "[" * 100_000])
def test_other_texts_are_no_schema(text: str) -> None:
    with pytest.raises(SchemaError):
        encode_rows(pa.table({"a": [1]}), text)


@pytest.mark.parametrize(
    ("avro", "column", "why"),
    [
        ("int", pa.array([1, None]), "null in some rows"),
        ("int", pa.array([2**40]), "int64"),
        ("int", pa.array(["x"]), "string"),
        (["null", {"type": "enum", "name": "E", "symbols": ["A", "B"]}], pa.array(["A", None, "C"]), "'C'"),
        ({"type": "array", "items": "int"}, pa.array([1]), "int64"),
        ({"type": "array", "items": "int"}, pa.array([[1, None]]), "a.element"),
        ({"type": "record", "name": "S", "fields": [{"name": "b", "type": "int"}]}, pa.array([{"c": 1}]), "a.b"),
    ],
)
def test_columns_that_do_not_fit_are_named(avro: Any, column: pa.Array, why: str) -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]})
    with pytest.raises(SchemaMismatch, match=why):
        encode_rows(pa.table({"a": column}), schema)


def test_a_missing_column_is_named() -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    with pytest.raises(SchemaMismatch, match="column 'a' is not there"):
        encode_rows(pa.table({"b": [1]}), schema)


@pytest.mark.parametrize(
    ("column", "into"),
    [
        (pa.array(["x", None]), pa.large_string()),
        (pa.array(["x", None]), pa.dictionary(pa.int32(), pa.string())),
        (pa.array([[1], None], pa.list_(pa.int32())), pa.large_list(pa.int32())),
        (pa.array([5, None], pa.int32()), pa.int16()),
        (pa.array([5, None], pa.timestamp("us", "UTC")), pa.timestamp("ms", "UTC")),
    ],
)
def test_kindred_types_are_converted(column: pa.Array, into: pa.DataType) -> None:
    kinds: dict[Callable[[pa.DataType], bool], Any] = {
        pa.types.is_string: "string",
        pa.types.is_list: {"type": "array", "items": ["null", "int"]},
        pa.types.is_int32: "int",
        pa.types.is_timestamp: {"type": "long", "logicalType": "timestamp-micros"},
    }
    avro = next(kind for matches, kind in kinds.items() if matches(column.type))
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", avro]}]})
    source = column.cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(column.type) else column
    rounded = pa.array([5000, None], column.type) if pa.types.is_timestamp(column.type) else source
    expected = encode_rows(pa.table({"a": rounded}), schema)[0]
    assert encode_rows(pa.table({"a": rounded.cast(into)}), schema)[0] == expected
