"""Statistics there and back, and against an Avro library that knows only the schema; bounds that are not believed."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.parquet import column_bounds
from hudimeta.metadata import column_stats, partition_stats
from hudimeta.metadata.bounds import wrap_bounds
from hudimeta.metadata.record import BoundKind, layout_of, schema_text
from hudimeta.metadata.statistics import file_statistics
from tests.metadata.expected_forms import WRAPPERS, bound
from tests.metadata.plain_records import INT, LAYOUTS, LONG, NAME, NAMESPACE, TEXT, without_logical_types, write

BODIES = {
    BoundKind.NULL: st.just(None),
    BoundKind.BOOLEAN: st.booleans(),
    BoundKind.INT: INT,
    BoundKind.LONG: LONG,
    BoundKind.FLOAT: st.floats(width=32, allow_nan=False, allow_infinity=False),
    BoundKind.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    BoundKind.BYTES: st.binary(max_size=40),
    BoundKind.STRING: TEXT,
    BoundKind.DATE: INT,
    BoundKind.DECIMAL: st.binary(min_size=1, max_size=14),
    BoundKind.TIME_MICROS: LONG,
    BoundKind.TIMESTAMP_MICROS: LONG,
    BoundKind.LOCAL_DATE: INT,
}
BOUND = st.sampled_from(list(BODIES)).flatmap(lambda kind: st.tuples(st.just(kind), BODIES[kind]))


def body(kind: BoundKind, value: Any) -> bytes:
    """The bytes inside a wrapper, by definition."""
    if kind is BoundKind.NULL:
        return b""
    if kind is BoundKind.BOOLEAN:
        return b"\x01" if value else b"\x00"
    if kind in (BoundKind.FLOAT, BoundKind.DOUBLE):
        return struct.pack("<f" if kind is BoundKind.FLOAT else "<d", value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out, rest])


@st.composite
def statistics(draw: Callable[..., Any], version: int) -> list[dict[str, Any]]:
    rows = []
    for key in sorted(draw(st.lists(NAME, unique=True, max_size=8)), key=str.encode):
        typed = version >= 9 and draw(st.booleans())
        low, high = draw(BOUND), draw(BOUND)
        counts = {n: draw(st.none() | LONG) for n in ("value_count", "null_count", "total_size", "total_uncompressed_size")}
        rows.append(
            {
                "key": key,
                "type": draw(st.sampled_from([3, 6])),
                "file_name": draw(TEXT),
                "column_name": draw(TEXT),
                "min_kind": int(low[0]),
                "min_value": body(*low),
                "max_kind": int(high[0]),
                "max_value": body(*high),
                **counts,
                "is_deleted": draw(st.booleans()),
                "is_tight_bound": draw(st.booleans()),
                "value_type": draw(st.integers(0, 20)) if typed else None,
                "value_type_info": draw(st.none() | TEXT) if typed else None,
            }
        )
    return rows


def as_record(row: dict[str, Any], version: int) -> dict[str, Any]:
    def wrapped(side: str) -> Any:
        kind = row[f"{side}_kind"]
        value = bound(kind, row[f"{side}_value"])
        return None if kind == 0 else (f"{NAMESPACE}{WRAPPERS[kind]}Wrapper", {"value": value})

    stats = {
        "fileName": row["file_name"],
        "columnName": row["column_name"],
        "minValue": wrapped("min"),
        "maxValue": wrapped("max"),
        "valueCount": row["value_count"],
        "nullCount": row["null_count"],
        "totalSize": row["total_size"],
        "totalUncompressedSize": row["total_uncompressed_size"],
        "isDeleted": row["is_deleted"],
        "isTightBound": row["is_tight_bound"],
    }
    if version >= 9:
        info = {"typeOrdinal": row["value_type"], "additionalInfo": row["value_type_info"]}
        stats["valueType"] = info if row["value_type"] is not None else None
    return {"type": row["type"], "filesystemMetadata": None, "ColumnStatsMetadata": stats}


@pytest.mark.parametrize("version", LAYOUTS)
@given(data=st.data())
def test_statistics(version: int, data: st.DataObject) -> None:
    rows = data.draw(statistics(version))
    table = pa.Table.from_pylist(rows, column_stats.SCHEMA)
    cells = column_stats.encode_values(table, layout_of(schema_text(version)))
    assert column_stats.decode_values(cells, schema_text(version)).to_pylist() == rows
    theirs = write({row["key"]: as_record(row, version) for row in rows}, version)
    assert column_stats.decode_values(theirs, schema_text(version)).to_pylist() == rows
    assert theirs.values.to_pylist() == cells.values.to_pylist()
    assert theirs.keys.to_pylist() == cells.keys.to_pylist()


def test_partition_statistics_are_of_their_own_type() -> None:
    row = {"key": "k", "file_name": "p=1", "column_name": "c", "min_kind": 0, "min_value": b"", "max_kind": 0}
    row |= {"max_value": b"", "value_count": 1, "null_count": 1, "total_size": 0, "total_uncompressed_size": 0}
    row |= {"is_deleted": False, "is_tight_bound": True, "value_type": None, "value_type_info": None, "type": 3}
    table = pa.Table.from_pylist([row], column_stats.SCHEMA)
    cells = partition_stats.encode_values(table, layout_of(schema_text(8)))
    assert partition_stats.decode_values(cells, schema_text(8)).to_pylist() == [row | {"type": 6}]


def text_statistics(low: str | None, high: str | None, **changes: Any) -> dict[str, Any]:
    """What a planner hears of a text column of which Hudi recorded this."""
    row: dict[str, Any] = {"key": "k", "type": 3, "file_name": "f", "column_name": "c", "is_deleted": False}
    row |= {"is_tight_bound": False, "value_count": 10, "null_count": 0, "total_size": 100, "total_uncompressed_size": 100}
    for side, text in (("min", low), ("max", high)):
        kind = BoundKind.NULL if text is None else BoundKind.STRING
        row |= {f"{side}_kind": int(kind), f"{side}_value": (text or "").encode()}
    (typed,) = column_stats.typed(pa.Table.from_pylist([row | changes], column_stats.SCHEMA), pa.string()).to_pylist()
    return typed


def test_nulls_that_stand_for_statistics_that_a_footer_lacks_are_not_believed() -> None:
    """Parquet's Java writer drops the statistics of long values, and Hudi then calls all of them null."""
    dropped = {"null_count": 10, "total_uncompressed_size": 50_000}
    assert text_statistics(None, None, **dropped)["null_count"] is None
    assert text_statistics(None, None, **dropped, is_tight_bound=True)["null_count"] == 10
    assert text_statistics(None, None, null_count=10)["null_count"] == 10, "so few bytes hold no long value"
    assert text_statistics("a", "b", **dropped)["null_count"] == 10


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_moments_that_may_be_counted_in_another_unit_bound_nothing(unit: str) -> None:
    """A V1 record of a file of milliseconds looks like one of microseconds of January 1970."""
    kind = pa.timestamp(unit, "UTC")
    in_unit = {"ms": 1_700_000_000_000, "us": 1_700_000_000_000_000}
    other = in_unit["us" if unit == "ms" else "ms"]
    for tight, number, expected in ((False, in_unit[unit], True), (False, other, False), (True, other, True), (False, 0, True)):
        found = wrap_bounds(pa.array([number]).cast(kind), "V1")
        row: dict[str, Any] = {"key": "k", "type": 3, "file_name": "f", "column_name": "c", "is_tight_bound": tight}
        for side in ("min", "max"):
            row |= {f"{side}_kind": int(found.kinds[0]), f"{side}_value": found.bodies[0].as_py()}
        typed = column_stats.typed(pa.Table.from_pylist([row], column_stats.SCHEMA), kind)
        assert [typed[side].is_valid()[0].as_py() for side in ("min", "max")] == [expected, expected]


def test_bounds_of_texts_whose_order_is_not_that_of_their_bytes_are_unknown() -> None:
    """Java puts characters above U+FFFF before U+E000 to U+FFFF, and unites bounds in that order."""
    united = text_statistics("\U0001f600", "\uff5e")
    assert (united["min"], united["max"]) == (None, None)
    either = text_statistics("\uff5e", "\U0001f600")
    assert (either["min"], either["max"]) == ("\uff5e", "\U0001f600")
    ours = text_statistics("\U0001f600", "\uff5e", is_tight_bound=True)
    assert (ours["min"], ours["max"]) == ("\U0001f600", "\uff5e")
    assert text_statistics("a", "\u00fc")["max"] == "\u00fc"


def test_old_layouts_without_later_fields_are_read() -> None:
    """Tables of version 6 know neither tight bounds nor positions nor secondary indexes."""
    schema = json.loads(schema_text(8))
    fields = {f["name"]: f for f in schema["fields"]}
    stats = fields["ColumnStatsMetadata"]["type"][1]
    stats["fields"] = [f for f in stats["fields"] if f["name"] != "isTightBound"]
    schema["fields"] = [f for f in schema["fields"] if f["name"] != "SecondaryIndexMetadata"]
    parsed = fastavro.parse_schema(without_logical_types(schema))
    record = {"key": "", "type": 3, "filesystemMetadata": None}
    record["ColumnStatsMetadata"] = {"fileName": "f", "columnName": "c", "isDeleted": False, "valueCount": 3}
    record["ColumnStatsMetadata"]["maxValue"] = (f"{NAMESPACE}DateWrapper", {"value": 19000})
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, parsed, record)
    cells = KeyValues(pa.array([b"k"], pa.binary()), pa.array([stream.getvalue()], pa.binary()))
    table = column_stats.decode_values(cells, json.dumps(schema))
    (row,) = column_stats.typed(table, pa.date32()).to_pylist()
    assert (row["min"], row["max"], row["value_count"]) == (None, dt.date(2022, 1, 8), 3)
    assert row["is_tight_bound"] is False


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", "UTC")])
def test_bounds_before_the_calendars_are_one_are_unknown_unless_they_are_ours(kind: pa.DataType) -> None:
    """A file of Spark's row writer can hold days of the older calendar, and a record does not say so."""
    early, late = (scalar.cast(kind) for scalar in pa.array([dt.date(1500, 3, 11), dt.date(2026, 1, 1)]))
    for tight, low in ((False, None), (True, early.as_py())):
        bounds = column_bounds(pa.table({"c": pa.array([early, late], kind)}), ["c"])
        table = file_statistics(bounds, "", "f.parquet", "V1", {})
        at = table.schema.get_field_index("is_tight_bound")
        table = table.set_column(at, "is_tight_bound", pa.array([tight]))
        (row,) = column_stats.typed(table, kind).to_pylist()
        assert (row["min"], row["max"]) == (low, late.as_py())
