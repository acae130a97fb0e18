"""Codecs of listings, keys and filters, there and back, and against an Avro library that knows only the schema."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import bloom_filters, files, record_index, secondary_index
from hudimeta.metadata.record import layout_of, schema_text
from tests.metadata.plain_records import INT, LAYOUTS, LONG, NAME, TEXT, read, write

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


@given(LISTINGS, st.lists(st.integers(0, 5)))
def test_of_the_partitions_something_is_told(listings: dict[str, dict[str, tuple[int, bool]]], cuts: list[int]) -> None:
    """In any case, at its place among the keys, in whatever pieces they come."""
    layout, none = layout_of(schema_text(8)), files.SCHEMA.empty_table()
    by_key = [pa.Table.from_pylist(file_rows({key: listings[key]}), files.SCHEMA) for key in sorted(listings, key=str.encode)]
    borders = [0, *sorted(min(cut, len(by_key)) for cut in cuts), len(by_key)]
    rows = [pa.concat_tables([none, *by_key[start:end]]) for start, end in itertools.pairwise(borders)]
    empty_keys = () if "__all_partitions__" in listings else ("__all_partitions__",)
    whole = files.encode_values(pa.concat_tables(rows), layout, empty_keys)
    pieces = [files.encode_values(piece, layout) for piece in rows]
    found = KeyValues.concat(list(files.with_partition_list(pieces, layout)))
    assert found.keys.equals(whole.keys)
    assert found.values.equals(whole.values)


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
