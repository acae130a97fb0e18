"""What the end of a log file says of its keys and of those before it."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError
from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    KeyProbe,
    KeyTail,
    LogFileKeys,
    encode_delete_content,
    encode_key_index,
    encode_parquet_content,
    frame_block,
    read_blocks,
    read_key_tail,
    seal_blocks,
)
from tests.examples import at_most

KEY = "_hoodie_record_key"
SCHEMA = json.dumps(
    {"type": "record", "name": "r", "fields": [{"name": KEY, "type": "string"}, {"name": "qty", "type": "long"}]}
)
NAME = ".f-0_20260102030405000.log.1_0-0-0"
RATE = 1e-9
ROOM = 96 << 10


def keys(*texts: str) -> pa.StringArray:
    return pa.array(texts, pa.string())


def log_file(own: LogFileKeys, others: list[LogFileKeys], texts: list[str], deletes: list[str], name: str = NAME) -> bytes:
    header = {HeaderKey.INSTANT_TIME: "20260102030405000", HeaderKey.SCHEMA: SCHEMA}
    rows = pa.table({KEY: pa.array(texts, pa.string()), "qty": pa.array(range(len(texts)), pa.int64())})
    content = encode_parquet_content(rows, entries=encode_key_index(own, others, ROOM))
    blocks = [frame_block(BlockType.PARQUET_DATA, header, content)]
    if deletes:
        paths = pa.array(["p"] * len(deletes), pa.string())
        blocks.append(frame_block(BlockType.DELETE, header, encode_delete_content(keys(*deletes), paths)))
    seal_blocks(blocks, name)
    return b"".join(blocks)


def tail_of(data: bytes, name: str = NAME, size: int | None = None) -> KeyTail | None:
    return read_key_tail(lambda offset, length: data[offset : offset + length], f"p/{name}", size or len(data))


@settings(max_examples=at_most(40), deadline=None)
@given(
    own=st.lists(st.text(max_size=12), max_size=20),
    deletes=st.lists(st.text(max_size=12), max_size=3),
    before=st.lists(st.lists(st.text(max_size=12), max_size=20), max_size=4),
    foreign=st.lists(st.text(max_size=12), min_size=1, max_size=20),
)
def test_every_key_is_told_and_hardly_any_other(
    own: list[str], deletes: list[str], before: list[list[str]], foreign: list[str]
) -> None:
    others = [LogFileKeys.of(f".f-0_{n}.log.1_0-0-0", 100 + n, keys(*texts), RATE) for n, texts in enumerate(before)]
    data = log_file(LogFileKeys.of(NAME, 0, keys(*own, *deletes), RATE), others, own, deletes)
    assert len(read_blocks(data, NAME).blocks) == 1 + bool(deletes)
    tail = tail_of(data)
    assert tail is not None
    assert tail.rows == len(own)
    told = [tail.index.own, *tail.index.others]
    assert [(one.name, one.size) for one in told] == [(NAME, len(data)), *((o.name, o.size) for o in others)]
    for one, texts in zip(told, [[*own, *deletes], *before], strict=True):
        ends = sorted(text.encode() for text in texts)
        assert len(one.prints) == len(set(texts))
        assert (one.low, one.high) == ((ends[0].decode(), ends[-1].decode()) if ends else (None, None))
        asked = [*foreign, *texts]
        found = one.touched(KeyProbe(keys(*asked)))
        assert sorted(found.tolist()) == [at for at, text in enumerate(asked) if text in texts]
    assert tail.read_column(KEY, lambda offset, length: data[offset : offset + length]).to_pylist() == own


def test_what_does_not_fit_is_left_to_older_files() -> None:
    many = [LogFileKeys.of(f".f-0_{n}.log.1_0-0-0", 9, keys(*(f"{n}-{i}" for i in range(2000))), RATE) for n in range(60)]
    data = log_file(LogFileKeys.of(NAME, 0, keys("a"), RATE), many, ["a"], [])
    tail = tail_of(data)
    assert tail is not None
    told = tail.index.others
    assert [one.name for one in told] == [one.name for one in many[: len(told)]]
    assert 5 < len(told) < 60
    assert sum(len(one.encoded) for one in told) <= ROOM


def test_damage_is_noticed_or_leaves_the_file_unknown() -> None:
    other = LogFileKeys.of(".f-0_1.log.1_0-0-0", 77, keys("x", "y"), RATE)
    data = log_file(LogFileKeys.of(NAME, 0, keys("a", "b"), RATE), [other], ["a"], ["b"])
    right = tail_of(data)
    assert right is not None
    chance = random.Random(6)
    outcomes = {"noticed": 0, "unknown": 0, "same": 0}
    for at in range(right.start, len(data)):
        spoilt = bytearray(data)
        spoilt[at] ^= 1 << chance.randrange(8)
        try:
            found = tail_of(bytes(spoilt))
        except CorruptFileError:
            outcomes["noticed"] += 1
            continue
        if found is None:
            outcomes["unknown"] += 1
            continue
        assert found.index.own.encoded == right.index.own.encoded
        assert [one.encoded for one in found.index.others] == [other.encoded]
        outcomes["same"] += 1
    assert outcomes["noticed"] > 300, outcomes
    assert outcomes["unknown"] > 10, outcomes


def test_files_of_others_shortened_ones_and_strange_names_are_not_believed() -> None:
    data = log_file(LogFileKeys.of(NAME, 0, keys("a"), RATE), [], ["a"], [])
    with pytest.raises(CorruptFileError, match=r"\.f-0_20260102030405000\.log\.2_0-0-0"):
        tail_of(data, NAME.replace("log.1", "log.2"))
    assert tail_of(data[:-5], size=len(data)) is None
    assert tail_of(data[:-5]) is None
    assert tail_of(b"") is None
    plain = frame_block(
        BlockType.PARQUET_DATA,
        {HeaderKey.INSTANT_TIME: "20260102030405000", HeaderKey.SCHEMA: SCHEMA},
        encode_parquet_content(pa.table({KEY: ["a"], "qty": [1]})),
    )
    assert tail_of(bytes(plain)) is None, "a block without the entry"
