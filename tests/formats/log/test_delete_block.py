"""Delete blocks: keys and ordering values."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError, HudiError, SchemaMismatch, UnsupportedFeature
from hudimeta.formats.avro.ordering import ordering_values
from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    LogBlock,
    decode_delete_block,
    encode_block,
    encode_delete_content,
    read_blocks,
)
from tests.examples import at_most


def block_with(content: bytes, kind: BlockType = BlockType.DELETE, seal: bool = False) -> LogBlock:
    return read_blocks(encode_block(kind, {HeaderKey.INSTANT_TIME: "1"}, content, seal=seal), "f.log").blocks[0]


def content_of(records: list[tuple[str, int | None]]) -> bytes:
    keys, values = [key for key, _ in records], [value for _, value in records]
    return encode_delete_content(
        pa.array(keys, pa.string()), pa.array(["p"] * len(keys), pa.string()), [pa.array(values, pa.int64())]
    )


@given(st.lists(st.tuples(st.text(max_size=6), st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_deletes_come_back(records: list[tuple[str, int | None]]) -> None:
    deletes = decode_delete_block(block_with(content_of(records)))
    (values,), natural = ordering_values(deletes, [pa.int64()])
    assert list(zip(deletes["record_key"].to_pylist(), values.to_pylist(), strict=True)) == records
    assert natural.tolist() == [value is None for _, value in records]


def test_the_bytes_are_those_of_hudi() -> None:
    key, path = "e3cf430c-889d-4015-bc98-59bdce1e530c", "city=sao_paulo"
    content = encode_delete_content(pa.array([key]), pa.array([path]))
    expected = "000000030000003a020248" + key.encode().hex() + "021c" + path.encode().hex() + "040000"
    assert content.hex() == expected


@pytest.mark.parametrize("version", [1, 2])
def test_versions_that_hold_kryo_are_refused_by_name(version: int) -> None:
    content = struct.pack(">ii", version, 5) + b"\x01\x02abc"
    with pytest.raises(UnsupportedFeature, match=f"version {version} \\(Kryo\\) at byte 0 of f.log"):
        decode_delete_block(block_with(content))
    with pytest.raises(UnsupportedFeature, match="version 4"):
        decode_delete_block(block_with(struct.pack(">iib", 4, 1, 0)))


@pytest.mark.parametrize("size", [-1, 0, 1000, 2**31 - 1])
def test_a_length_other_than_the_content_s_is_refused(size: int) -> None:
    content = bytearray(content_of([("a", 1)]))
    content[4:8] = struct.pack(">i", size)
    with pytest.raises(CorruptFileError, match="is damaged at byte"):
        decode_delete_block(block_with(bytes(content)))


def test_a_record_without_key_is_refused_both_ways() -> None:
    with pytest.raises(SchemaMismatch, match="recordKey"):
        encode_delete_content(pa.array([None], pa.string()), pa.array([""]))
    with pytest.raises(CorruptFileError, match="a key in every delete record"):
        decode_delete_block(block_with(struct.pack(">ii", 3, 6) + bytes([2, 0, 0, 4, 0, 0])))


def test_rows_are_not_deletes() -> None:
    with pytest.raises(UnsupportedFeature, match="AVRO_DATA"):
        decode_delete_block(block_with(content_of([]), BlockType.AVRO_DATA))


@settings(max_examples=at_most(200))
@given(st.data())
def test_damage_is_refused_or_leaves_the_number_of_deletes(data: st.DataObject) -> None:
    content = bytearray(content_of([(f"key-{n}", n) for n in range(30)]))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    try:
        deletes = decode_delete_block(block_with(bytes(content)))
    except HudiError:
        return
    assert deletes.num_rows == 30


def test_a_cut_list_is_refused() -> None:
    content = content_of([("a", 1), ("b", 2)])
    for cut in range(len(content)):
        with pytest.raises(HudiError):
            decode_delete_block(block_with(content[:cut]))
