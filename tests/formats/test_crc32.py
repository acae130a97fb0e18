"""CRC-32 by whichever library computes it."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.crc32 import crc32


def test_the_sum_is_the_one_that_gzip_and_parquet_have() -> None:
    assert crc32(b"123456789") == 0xCBF43926  # the check value that catalogues of CRCs give


@given(st.binary(max_size=200), st.binary(max_size=40_000))
def test_sums_are_those_of_zlib_also_of_pieces(first: bytes, second: bytes) -> None:
    assert crc32(memoryview(second), crc32(first)) == zlib.crc32(first + second)
