"""Every codec there and back, and against an Avro library that knows only the schema."""

from __future__ import annotations

import contextlib
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

from hudimeta.errors import CorruptFileError
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import bloom_filters, column_stats, files, partition_stats, record_index, secondary_index
from hudimeta.metadata.bounds import wrap_bounds
from hudimeta.metadata.record import BoundKind, layout_of, schema_text
from tests.metadata.expected_forms import bound

LAYOUTS = [8, 9]
WRAPPERS = ["", "Boolean", "Int", "Long", "Float", "Double", "Bytes", "String", "Date", "Decimal", "TimeMicros"]
WRAPPERS += ["TimestampMicros", "LocalDate"]
NAMESPACE = "org.apache.hudi.avro.model."
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
TEXT = st.text(max_size=90)
NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def read(cells: KeyValues, version: int) -> dict[str, dict[str, Any]]:
    """Records by key, decoded by fastavro without logical types."""
    schema = json.loads(schema_text(version))
    raw = fastavro.parse_schema(_without_logical_types(schema))
    found = {}
    for key, value in zip(cells.keys.to_pylist(), cells.values.to_pylist(), strict=True):
        stream = io.BytesIO(value)
        found[key.decode()] = fastavro.schemaless_reader(stream, raw)
        assert stream.read() == b""
    return found


def write(records: dict[str, dict[str, Any]], version: int) -> KeyValues:
    """Records as cells, encoded by fastavro."""
    raw = fastavro.parse_schema(_without_logical_types(json.loads(schema_text(version))))
    keys, values = [], []
    for key in sorted(records, key=str.encode):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, raw, {"key": "", **records[key]})
        keys.append(key.encode())
        values.append(stream.getvalue())
    return KeyValues(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _without_logical_types(v) for k, v in schema.items() if k not in ("logicalType", "precision", "scale")}
    return [_without_logical_types(item) for item in schema] if isinstance(schema, list) else schema


# files

ENTRIES = st.dictionaries(NAME, st.tuples(LONG.filter(lambda n: n >= 0), st.booleans()), min_size=1, max_size=12)
LISTINGS = st.dictionaries(NAME | st.just("__all_partitions__"), ENTRIES, max_size=5)


def file_rows(listings: dict[str, dict[str, tuple[int, bool]]]) -> list[dict[str, Any]]:
    return [
        {"key": key, "name": name, "size": size, "is_deleted": deleted}
        for key in sorted(listings, key=str.encode)
        for name, (size, deleted) in listings[key].items()
    ]


@pytest.mark.parametrize("version", LAYOUTS)
@given(listings=LISTINGS)
def test_files(version: int, listings: dict[str, dict[str, tuple[int, bool]]]) -> None:
    rows = file_rows(listings)
    cells = files.encode_values(pa.Table.from_pylist(rows, files.SCHEMA), layout_of(schema_text(version)), ("empty\0",))
    assert files.decode_values(cells, schema_text(version)).to_pylist() == rows
    maps = {key: {name: {"size": s, "isDeleted": d} for name, (s, d) in entries.items()} for key, entries in listings.items()}
    found = read(cells, version)
    assert found.pop("empty\0")["filesystemMetadata"] == {}
    assert {key: record["filesystemMetadata"] for key, record in found.items()} == maps
    assert {key: record["type"] for key, record in found.items()} == {
        key: 1 if key == "__all_partitions__" else 2 for key in listings
    }
    theirs = write({key: {"type": 2, "filesystemMetadata": entries} for key, entries in maps.items()}, version)
    assert files.decode_values(theirs, schema_text(version)).to_pylist() == rows


def test_maps_of_several_blocks_are_read() -> None:
    def entry(name: bytes, size: int, deleted: int) -> bytes:
        assert len(name) < 64
        assert size < 64
        return bytes([len(name) << 1]) + name + bytes([size << 1, deleted])

    head, tail = bytes(6) + b"\x04\x02", bytes(4)
    two = entry(b"a", 1, 0) + entry(b"b", 2, 1)
    sized = entry(b"c\x00\x01", 3, 0)
    values = [
        head + b"\x04" + two + b"\x02" + entry(b"d", 4, 0) + b"\x00" + tail,  # two plain blocks
        head + b"\x01" + bytes([len(sized) << 1]) + sized + b"\x00" + tail,  # one block with its size in front
        head + b"\x02" + entry(b"e", 5, 0) + b"\x00" + tail,
        head + b"\x00" + tail,
        head + b"\x02" + entry(b"f", 6, 0) + b"\x01" + bytes([len(sized) << 1]) + sized + b"\x00" + tail,
    ]
    cells = KeyValues(pa.array([b"p0", b"p1", b"p2", b"p3", b"p4"], pa.binary()), pa.array(values, pa.binary()))
    found = files.decode_values(cells, schema_text(9))
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert rows == [
        ("p0", "a", 1, False),
        ("p0", "b", 2, True),
        ("p0", "d", 4, False),
        ("p1", "c\0\1", 3, False),
        ("p2", "e", 5, False),
        ("p4", "f", 6, False),
        ("p4", "c\0\1", 3, False),
    ]


# statistics

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


# record index

UUIDS = st.uuids().map(str)
FILE_IDS = (
    UUIDS
    | st.tuples(UUIDS, INT.filter(lambda n: n >= 0)).map(lambda p: f"{p[0]}-{p[1]}")
    | st.tuples(UUIDS, st.sampled_from(["-", "-01", "-x", "x", "-+1", "-2147483648", "--1"])).map("".join)
    | UUIDS.map(str.upper)
    | TEXT
)
LOCATION = st.tuples(TEXT, FILE_IDS, LONG, st.none() | LONG)


@pytest.mark.parametrize("version", LAYOUTS)
@given(locations=st.dictionaries(NAME, LOCATION, max_size=10))
def test_record_index(version: int, locations: dict[str, tuple[str, str, int, int | None]]) -> None:
    columns = ("partition_path", "file_id", "instant_ms", "position")
    rows = [{"record_key": key, **dict(zip(columns, locations[key], strict=True))} for key in sorted(locations, key=str.encode)]
    table = pa.Table.from_pylist(rows, record_index.SCHEMA)
    cells = record_index.encode_values(table, layout_of(schema_text(version)))
    assert record_index.decode_values(cells, schema_text(version)).to_pylist() == rows
    found = read(cells, version)
    for row in rows:
        entry = found[row["record_key"]]["recordIndexMetadata"]
        assert (entry["partitionName"], entry["instantTime"]) == (row["partition_path"], row["instant_ms"])
        assert entry["position"] == row["position"]
        if entry["fileIdEncoding"] == 0:
            text = struct.pack(">qq", entry["fileIdHighBits"], entry["fileIdLowBits"]).hex()
            spelled = "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])
            spelled += f"-{entry['fileIndex']}" if entry["fileIndex"] != -1 else ""
            assert (spelled, entry["fileId"]) == (row["file_id"], "")
        else:
            assert (entry["fileId"], entry["fileIdHighBits"], entry["fileIndex"]) == (row["file_id"], -1, -1)


def test_record_index_entry_as_hudi_wrote_it() -> None:
    """The bytes of one entry of a table of version 8, and what it says."""
    value = bytes.fromhex(
        "0000000000000a00000002022463"
        + b"ity=san_francisco".hex()
        + "02be9ea2edb3e0f6ed0602c9e1ff85c4aec7958601"
        + "0200"
        + "0200"
        + "02dcc987d9e766"
        + "00"
        + "00"
        + "00"
    )
    key = "e96c4396-3fad-413a-a942-4cb36106d721"
    cells = KeyValues(pa.array([key.encode()], pa.binary()), pa.array([value], pa.binary()))
    (row,) = record_index.decode_values(cells, schema_text(8)).to_pylist()
    assert row == {
        "record_key": key,
        "partition_path": "city=san_francisco",
        "file_id": "036ded81-9ed4-479f-bcea-7145dfa0079b-0",
        "instant_ms": 1766264468078,
        "position": None,
    }
    again = record_index.encode_values(pa.Table.from_pylist([row], record_index.SCHEMA), layout_of(schema_text(8)))
    assert again.values.to_pylist() == [value]


# bloom filters, secondary index


@pytest.mark.parametrize("version", LAYOUTS)
@given(entries=st.dictionaries(NAME, st.tuples(TEXT, TEXT, st.binary(max_size=300), st.booleans()), max_size=6))
def test_bloom_filters(version: int, entries: dict[str, tuple[str, str, bytes, bool]]) -> None:
    columns = ("type_code", "instant", "bloom", "is_deleted")
    rows = [{"key": key, **dict(zip(columns, entries[key], strict=True))} for key in sorted(entries, key=str.encode)]
    table = pa.Table.from_pylist(rows, bloom_filters.SCHEMA)
    cells = bloom_filters.encode_values(table, layout_of(schema_text(version)))
    assert bloom_filters.decode_values(cells, schema_text(version)).to_pylist() == rows
    for key, record in read(cells, version).items():
        bloom = record["BloomFilterMetadata"]
        assert tuple(bloom.values()) == entries[key]


@pytest.mark.parametrize("version", LAYOUTS)
@given(pairs=st.lists(st.tuples(st.none() | TEXT, TEXT), unique=True, max_size=10))
def test_secondary_index(version: int, pairs: list[tuple[str | None, str]]) -> None:
    table = pa.table(
        {"secondary": pa.array([v for v, _ in pairs], pa.string()), "record_key": pa.array([k for _, k in pairs], pa.string())}
    )
    cells = secondary_index.encode_values(table, layout_of(schema_text(version)))
    found = secondary_index.decode_values(cells, schema_text(version))
    assert {(r["secondary"], r["record_key"]) for r in found.to_pylist()} == set(pairs)
    assert all(r["SecondaryIndexMetadata"] == {"isDeleted": False} for r in read(cells, version).values())


# what must not pass


def one_of_each() -> list[tuple[Any, KeyValues]]:
    layout = layout_of(schema_text(9))
    location = [{"record_key": "k", "partition_path": "p", "file_id": "f", "instant_ms": 1, "position": None}]
    listing = [{"key": "p", "name": f"file-{i}", "size": 300 + i, "is_deleted": False} for i in range(3)]
    row = {"key": "k", "type": 3, "file_name": "f", "column_name": "c", "min_kind": 7, "min_value": b"abc", "max_kind": 3}
    row |= {"max_value": b"\x06", "value_count": 1, "null_count": 1, "total_size": 300, "total_uncompressed_size": 0}
    row |= {"is_deleted": False, "is_tight_bound": True, "value_type": 10, "value_type_info": "5,2"}
    bloom = [{"key": "k", "type_code": "SIMPLE", "instant": "1", "bloom": b"abc", "is_deleted": False}]
    pair = pa.table({"secondary": ["v"], "record_key": ["k"]})
    return [
        (files, files.encode_values(pa.Table.from_pylist(listing, files.SCHEMA), layout)),
        (column_stats, column_stats.encode_values(pa.Table.from_pylist([row], column_stats.SCHEMA), layout)),
        (record_index, record_index.encode_values(pa.Table.from_pylist(location, record_index.SCHEMA), layout)),
        (bloom_filters, bloom_filters.encode_values(pa.Table.from_pylist(bloom, bloom_filters.SCHEMA), layout)),
        (secondary_index, secondary_index.encode_values(pair, layout)),
    ]


def test_records_cut_short_are_refused() -> None:
    for codec, cells in one_of_each():
        value = cells.values[0].as_py()
        for length in range(len(value)):
            with pytest.raises(CorruptFileError):
                codec.decode_values(KeyValues(cells.keys, pa.array([value[:length]], pa.binary())), schema_text(9), "x")
        with pytest.raises(CorruptFileError):
            codec.decode_values(KeyValues(cells.keys, pa.array([value + b"\0"], pa.binary())), schema_text(9), "x")


def test_records_of_another_kind_are_refused() -> None:
    each = one_of_each()
    for codec, _ in each:
        for other, cells in each:
            if other is not codec:
                with pytest.raises(CorruptFileError):
                    codec.decode_values(cells, schema_text(9), "x")


@given(st.data())
def test_damaged_bytes_are_refused_or_harmless(data: st.DataObject) -> None:
    """A flipped byte may give another value, never an error of another kind, nor a walk out of bounds."""
    codec, cells = data.draw(st.sampled_from(one_of_each()))
    value = bytearray(cells.values[0].as_py())
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    neighbour = cells.values[0].as_py()
    keys = pa.array([b"a$b", b"b$c"], pa.binary())
    damaged = KeyValues(keys, pa.array([bytes(value), neighbour], pa.binary()))
    with contextlib.suppress(CorruptFileError):
        assert len(codec.decode_values(damaged, schema_text(9), "x")) >= 2


def test_lengths_beyond_the_record_are_refused_before_anything_is_allocated() -> None:
    huge = bytes(6) + b"\x04\x02" + b"\xfe\xff\xff\xff\x0f" + b"\x00" * 8
    cells = KeyValues(pa.array([b"p"], pa.binary()), pa.array([huge], pa.binary()))
    with pytest.raises(CorruptFileError):
        files.decode_values(cells, schema_text(9), "x")
    negative = bytes(6) + b"\x0a\x00\x00\x00\x02" + b"\x02\x03" + b"\x00" * 20
    cells = KeyValues(pa.array([b"p"], pa.binary()), pa.array([negative], pa.binary()))
    with pytest.raises(CorruptFileError):
        record_index.decode_values(cells, schema_text(9), "x")


def test_a_secondary_key_without_its_separator_is_refused() -> None:
    (_, cells) = one_of_each()[-1]
    for key in (b"k", b"k\\$v", b""):
        with pytest.raises(CorruptFileError):
            secondary_index.decode_values(KeyValues(pa.array([key], pa.binary()), cells.values), schema_text(9), "x")


def test_a_key_twice_is_refused() -> None:
    rows = [{"record_key": "k", "partition_path": "p", "file_id": "f", "instant_ms": 1, "position": None}] * 2
    with pytest.raises(ValueError, match="twice"):
        record_index.encode_values(pa.Table.from_pylist(rows, record_index.SCHEMA), layout_of(schema_text(9)))


def test_meta_fields_of_compacted_files_are_passed_over() -> None:
    record = {
        "_hoodie_file_name": "files-0000-0_1.hfile",
        "type": 2,
        "filesystemMetadata": {"a": {"size": 1, "isDeleted": False}},
    }
    cells = write({"p": record, "q": record | {"_hoodie_file_name": None}}, 8)
    assert [row["key"] for row in files.decode_values(cells, schema_text(8)).to_pylist()] == ["p", "q"]


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
    parsed = fastavro.parse_schema(_without_logical_types(schema))
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
