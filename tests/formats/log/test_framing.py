"""The frame of log blocks: what goes in comes out, and what is damaged is reported."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import ConfigError, CorruptFileError, HudiError, UnsupportedFeature
from hudimeta.formats.log import BlockType, HeaderKey, encode_block, encode_command_block, framing, read_blocks
from tests.examples import at_most

INSTANT = "20260102030405000"
EMPTY_DELETE = bytes.fromhex(
    "23485544492300000000000000420000000100000001000000010000000000000011"
    + "30" * 17
    + "000000000000000900000003000000010000000000"
    + "0000000000000048"
)
ROLLBACK = bytes.fromhex(
    "234855444923000000000000005b00000001000000000000000300000000000000113230323530313236303430393336353738"
    "000000030000000130000000010000001132303235303132363034303832363837380000000000000000000000000000000000000061"
)

_types = st.sampled_from(
    [BlockType.AVRO_DATA, BlockType.DELETE, BlockType.PARQUET_DATA, BlockType.HFILE_DATA, BlockType.CDC_DATA]
)
_free_keys = [HeaderKey.SCHEMA, HeaderKey.COMPACTED_BLOCK_TIMES, HeaderKey.RECORD_POSITIONS, HeaderKey.BLOCK_IDENTIFIER]
_headers = st.dictionaries(st.sampled_from(_free_keys), st.text(max_size=40))
_blocks = st.tuples(_types, _headers, st.binary(max_size=200), st.booleans())


def block_bytes(content: bytes = b"some content", kind: BlockType = BlockType.AVRO_DATA, seal: bool = False) -> bytes:
    return encode_block(kind, {HeaderKey.INSTANT_TIME: INSTANT, HeaderKey.SCHEMA: "{}"}, content, seal=seal)


@given(st.lists(_blocks, max_size=4))
def test_blocks_come_back_as_they_were_written(
    blocks: list[tuple[BlockType, dict[HeaderKey, str], bytes, bool]],
) -> None:
    encoded = [encode_block(kind, header, content, seal=seal) for kind, header, content, seal in blocks]
    scan = read_blocks(b"".join(encoded), "f.log")
    assert scan.corrupt == []
    assert [block.type for block in scan.blocks] == [kind for kind, *_ in blocks]
    assert [bytes(block.content) for block in scan.blocks] == [content for _, _, content, _ in blocks]
    assert [block.size for block in scan.blocks] == [len(data) for data in encoded]
    for block, (_, header, _, seal) in zip(scan.blocks, blocks, strict=True):
        assert block.is_sealed == seal
        assert {k: v for k, v in block.header.items() if k is not HeaderKey.TARGET_INSTANT_TIME} == header


def test_the_empty_delete_block_of_a_new_file_group_is_byte_exact() -> None:
    content = struct.pack(">ii", 3, 1) + b"\0"
    assert encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "0" * 17}, content) == EMPTY_DELETE
    block = read_blocks(EMPTY_DELETE).blocks[0]
    assert (block.type, block.instant, bytes(block.content), block.size) == (BlockType.DELETE, "0" * 17, content, 80)


def test_a_rollback_block_names_its_target() -> None:
    block = read_blocks(ROLLBACK).blocks[0]
    assert (block.type, block.instant, block.rollback_target) == (
        BlockType.COMMAND,
        "20250126040936578",
        "20250126040826878",
    )
    again = read_blocks(encode_command_block("20250126040936578", "20250126040826878")).blocks[0]
    assert again.header == block.header
    assert again.size == 105


def test_a_torn_tail_is_reported_and_the_blocks_before_it_are_returned() -> None:
    good, torn = block_bytes(), block_bytes(b"x" * 50)
    for cut in range(len(torn)):
        scan = read_blocks(good + torn[:cut], "f.log")
        assert [bytes(b.content) for b in scan.blocks] == [b"some content"]
        spans = [(span.offset, span.size) for span in scan.corrupt]
        assert spans == ([] if cut == 0 else [(len(good), cut)])


def test_a_block_before_garbage_is_doubted_as_hudi_does() -> None:
    scan = read_blocks(block_bytes() + b"garbage" + block_bytes(b"next"), "f.log")
    assert [bytes(block.content) for block in scan.blocks] == [b"next"]
    assert [(span.offset, span.reason) for span in scan.corrupt] == [
        (0, "neither another block nor the end of the file follows")
    ]


@pytest.mark.parametrize("length", [0, -1, 31, 2**31, 2**62, -(2**63)])
def test_a_hostile_length_is_skipped_to_the_next_magic(length: int) -> None:
    bad = bytearray(block_bytes())
    bad[6:14] = struct.pack(">q", length)
    scan = read_blocks(bytes(bad) + block_bytes(b"next"))
    assert [bytes(block.content) for block in scan.blocks] == [b"next"]
    assert [(span.offset, span.size) for span in scan.corrupt] == [(0, len(bad))]


@pytest.mark.parametrize(
    ("offset", "value", "error"),
    [
        (14, 2, UnsupportedFeature),  # log format version
        (18, 7, UnsupportedFeature),  # block type
        (18, 2, CorruptFileError),  # CORRUPT is never written
        (18, 0, CorruptFileError),  # a command has no content
        (22, 2**31 - 1, CorruptFileError),  # header entries
        (22, -1, CorruptFileError),
        (26, 9, UnsupportedFeature),  # header entry
        (26, 2, CorruptFileError),  # the same entry twice
        (30, 2**31 - 1, CorruptFileError),  # entry length
        (30, -1, CorruptFileError),
    ],
)
def test_what_does_not_add_up_inside_a_right_frame_is_refused(offset: int, value: int, error: type[HudiError]) -> None:
    data = bytearray(block_bytes())
    data[offset : offset + 4] = struct.pack(">i", value)
    with pytest.raises(error):
        read_blocks(bytes(data), "f.log")


@pytest.mark.parametrize("length", [-1, 11, 13, 2**40])
def test_a_wrong_content_length_is_refused(length: int) -> None:
    data = bytearray(block_bytes())
    at = data.index(struct.pack(">q", 12) + b"some")
    data[at : at + 8] = struct.pack(">q", length)
    with pytest.raises(CorruptFileError):
        read_blocks(bytes(data))


def test_a_block_without_a_usable_instant_says_so() -> None:
    block = read_blocks(encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "2026o1"}, b"")).blocks[0]
    with pytest.raises(CorruptFileError, match="instant time"):
        _ = block.instant


def test_a_block_over_the_limit_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_BLOCK_SIZE", 100)
    with pytest.raises(ConfigError, match=r"max\.size"):
        block_bytes(b"x" * 100)


@settings(max_examples=at_most(300))
@given(st.data())
def test_any_flipped_bit_of_a_sealed_block_is_noticed(data: st.DataObject) -> None:
    first, second = block_bytes(seal=True), block_bytes(b"second", BlockType.DELETE, seal=True)
    raw = bytearray(first + second)
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    try:
        scan = read_blocks(bytes(raw))
    except HudiError:
        return
    assert scan.corrupt


def test_a_seal_that_tells_nothing_of_its_file_is_still_verified() -> None:
    blank = "crc32:" + "0" * 8
    header = {HeaderKey.INSTANT_TIME: INSTANT, HeaderKey.TARGET_INSTANT_TIME: blank}
    block = encode_block(BlockType.HFILE_DATA, header, b"content", seal=False)
    block = block.replace(blank.encode(), f"crc32:{zlib.crc32(block):08x}".encode())
    assert bytes(read_blocks(block, "part/f.log").blocks[0].content) == b"content"
    with pytest.raises(CorruptFileError, match="checksum"):
        read_blocks(block.replace(b"content", b"c0ntent"), "part/f.log")


@settings(max_examples=at_most(300))
@given(st.binary(max_size=120), st.integers(0, 200))
def test_arbitrary_bytes_never_do_more_than_raise_our_errors(noise: bytes, at: int) -> None:
    data = block_bytes()
    try:
        scan = read_blocks(data[:at] + noise + data[at:])
    except HudiError:
        return
    assert sum(b.size for b in scan.blocks) + sum(s.size for s in scan.corrupt) == len(data) + len(noise)
