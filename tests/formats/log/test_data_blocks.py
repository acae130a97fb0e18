"""Rows in Avro, Parquet and HFile blocks."""

from __future__ import annotations

import itertools
import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import ConfigError, CorruptFileError, HudiError, UnsupportedFeature
from hudimeta.formats.avro.rows import encode_rows
from hudimeta.formats.hfile import HFileInfo, write_hfile
from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    LogBlock,
    avro_datums,
    decode_data_block,
    encode_avro_content,
    encode_block,
    encode_parquet_content,
    open_hfile_block,
    read_blocks,
)
from tests.examples import at_most

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "_hoodie_record_key", "type": ["null", "string"], "default": None},
            {"name": "qty", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)
ARROW = pa.schema([("_hoodie_record_key", pa.string()), pa.field("qty", pa.int64(), nullable=False), ("note", pa.string())])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "_hoodie_record_key": st.none() | st.text(max_size=8),
            "qty": st.integers(-(2**63), 2**63 - 1),
            "note": st.none() | st.text(max_size=8),
        }
    ),
    max_size=8,
)
SOME = [{"_hoodie_record_key": f"k{n}", "qty": n, "note": None if n % 2 else "n" * n} for n in range(20)]


def block_with(kind: BlockType, content: bytes, **kwargs: Any) -> LogBlock:
    header = {HeaderKey.INSTANT_TIME: "20260102030405000", HeaderKey.SCHEMA: SCHEMA}
    return read_blocks(encode_block(kind, header, content, **kwargs), "f.log").blocks[0]


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=ARROW)


def content_of(kind: BlockType, rows: list[dict[str, Any]]) -> bytes:
    if kind is BlockType.PARQUET_DATA:
        return encode_parquet_content(table(rows))
    if kind is BlockType.HFILE_DATA:
        data, borders = encode_rows(table(rows), SCHEMA)
        values = [bytes(data[a:b]) for a, b in itertools.pairwise(borders)]
        return write_hfile([row["_hoodie_record_key"].encode() for row in rows], values, HFileInfo(SCHEMA))
    return encode_avro_content(table(rows), SCHEMA)


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.CDC_DATA])
@given(rows=ROWS)
def test_rows_come_back(kind: BlockType, rows: list[dict[str, Any]]) -> None:
    assert decode_data_block(block_with(kind, content_of(kind, rows))).to_pylist() == rows


def test_rows_of_an_hfile_come_in_key_order_and_by_look_up() -> None:
    rows = sorted(SOME, key=lambda row: row["_hoodie_record_key"])
    block = block_with(BlockType.HFILE_DATA, content_of(BlockType.HFILE_DATA, rows))
    assert decode_data_block(block).to_pylist() == rows
    assert open_hfile_block(block).lookup([b"k3", b"none"]).keys.to_pylist() == [b"k3"]


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA])
def test_only_the_wanted_columns_are_decoded(kind: BlockType) -> None:
    block = block_with(kind, content_of(kind, SOME))
    found = decode_data_block(block, columns=["qty", "absent", "_hoodie_record_key"])
    assert found.column_names == ["_hoodie_record_key", "qty"]
    assert found.to_pylist() == [{k: row[k] for k in found.column_names} for row in SOME]


def test_the_bytes_of_an_avro_block_are_those_of_hudi() -> None:
    content = encode_avro_content(table([{"_hoodie_record_key": "k", "qty": -1, "note": None}]), SCHEMA)
    assert content == struct.pack(">iii", 3, 1, 5) + bytes([2, 2]) + b"k" + bytes([1, 0])


@pytest.mark.parametrize("count", [-1, 21, 2**31 - 1])
def test_a_row_count_that_the_content_cannot_hold_is_refused(count: int) -> None:
    content = bytearray(content_of(BlockType.AVRO_DATA, SOME))
    content[4:8] = struct.pack(">i", count)
    block = block_with(BlockType.AVRO_DATA, bytes(content))
    with pytest.raises(CorruptFileError) as raised:
        avro_datums(block)
    assert raised.value.path == "f.log"
    assert raised.value.offset >= block.content_offset


@pytest.mark.parametrize("length", [-1, 2**31 - 1, 0])
def test_a_row_length_outside_the_content_is_refused(length: int) -> None:
    content = bytearray(content_of(BlockType.AVRO_DATA, SOME))
    content[8:12] = struct.pack(">i", length)
    with pytest.raises(CorruptFileError):
        decode_data_block(block_with(BlockType.AVRO_DATA, bytes(content)))


def test_an_unknown_content_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeature, match="Avro log block of version 4"):
        decode_data_block(block_with(BlockType.AVRO_DATA, struct.pack(">ii", 4, 0)))
    with pytest.raises(UnsupportedFeature, match="DELETE"):
        decode_data_block(block_with(BlockType.DELETE, b""))


def test_an_unknown_codec_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="codec"):
        encode_parquet_content(table(SOME), compression="middle-out")


@settings(max_examples=at_most(400))
@given(st.data())
def test_a_flipped_bit_in_a_parquet_block_is_refused_or_harmless_even_without_a_seal(data: st.DataObject) -> None:
    content = bytearray(content_of(BlockType.PARQUET_DATA, SOME))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    try:
        found = decode_data_block(block_with(BlockType.PARQUET_DATA, bytes(content)))
    except HudiError:
        return
    assert found.to_pylist() == SOME


@settings(max_examples=at_most(300))
@given(st.data())
def test_a_flipped_bit_in_an_avro_block_without_seal_never_does_more_than_raise_our_errors(data: st.DataObject) -> None:
    content = bytearray(content_of(BlockType.AVRO_DATA, SOME))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    try:
        found = decode_data_block(block_with(BlockType.AVRO_DATA, bytes(content)))
    except HudiError:
        return
    assert found.schema == ARROW
    assert found.num_rows == len(SOME)


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA])
def test_content_that_is_cut_is_refused(kind: BlockType) -> None:
    content = content_of(kind, SOME[:3])
    for cut in range(len(content)):
        with pytest.raises(HudiError):
            decode_data_block(block_with(kind, content[:cut]))
