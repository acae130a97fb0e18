"""Record positions: the Roaring bitmap in a block's header."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import ConfigError, CorruptFileError
from hudimeta.formats.log import decode_positions, encode_positions
from tests.examples import at_most

_dense = st.tuples(st.integers(0, 2**33), st.integers(1, 20_000)).map(lambda p: list(range(p[0], p[0] + p[1])))
_sparse = st.lists(st.integers(0, 2**63 - 1), max_size=50)


@given(st.one_of(_dense, _sparse))
def test_positions_come_back_sorted_and_once(positions: list[int]) -> None:
    assert decode_positions(encode_positions(positions + positions[:3])).tolist() == sorted(set(positions))


def test_the_text_is_the_one_that_hudi_writes() -> None:
    assert encode_positions(range(7)) == "AQAAAAAAAAAAAAAAOzAAAAEAAAYAAQAAAAYA"
    assert encode_positions([3, 0]) == "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAAAAwA="
    assert encode_positions([]) == base64.b64encode(bytes(8)).decode()


def test_run_containers_are_understood() -> None:
    runs = struct.pack("<QIIBHHHHHHH", 1, 0, 12347, 1, 7, 5 - 1, 2, 10, 1, 100, 2)
    assert decode_positions(base64.b64encode(runs).decode()).tolist() == [(7 << 16) + low for low in (10, 11, 100, 101, 102)]


def test_few_bytes_that_claim_many_positions_are_refused() -> None:
    full = struct.pack("<QIIB", 1, 0, 12347, 1) + struct.pack("<HHHHH", 0, 65535, 1, 0, 65535)
    text = base64.b64encode(full).decode()
    assert len(decode_positions(text)) == 65536
    with pytest.raises(CorruptFileError, match="at most 100 positions"):
        decode_positions(text, limit=100)


@pytest.mark.parametrize("text", ["", "not base64!", "AAAA", base64.b64encode(struct.pack("<Q", 2**60)).decode()])
def test_text_that_is_no_bitmap_is_refused(text: str) -> None:
    with pytest.raises(CorruptFileError):
        decode_positions(text)


def test_negative_positions_are_not_written() -> None:
    with pytest.raises(ConfigError):
        encode_positions([-1])


WHOLE = base64.b64decode(encode_positions([*range(0, 300_000, 7), *range(400_000, 500_000)]))


@settings(max_examples=at_most(200))
@given(st.data())
def test_damaged_text_is_refused_or_still_ascending(data: st.DataObject) -> None:
    raw = bytearray(WHOLE)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        positions = decode_positions(base64.b64encode(bytes(raw)).decode())
    except CorruptFileError:
        return
    assert np.all(np.diff(positions) > 0)
