"""Records that no codec takes: cut short, damaged, of another kind, or twice."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import bloom_filters, column_stats, files, record_index, secondary_index
from hudimeta.metadata.record import layout_of, schema_text
from tests.metadata.plain_records import write


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
