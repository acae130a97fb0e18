"""Gzip members by ISA-L and by zlib: each unpacks what the other packs, and both see damage."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from hudimeta.formats.hfile import deflate

CONTENT = np.random.default_rng(5).integers(0, 9, 100_000, np.uint8).tobytes()


@pytest.fixture(params=["as installed", "zlib alone"])
def packer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "zlib alone":
        monkeypatch.setattr(deflate, "isal_zlib", None)
    return str(request.param)


@pytest.mark.parametrize("content", [b"", b"x", CONTENT])
@pytest.mark.parametrize("level", [1, 6, 9])
def test_a_member_is_read_by_any_reader(packer: str, content: bytes, level: int) -> None:
    member = deflate.gzip_member(memoryview(content), level)
    unpacker = deflate.gunzip()
    assert gzip.decompress(member) == content == unpacker.decompress(member)
    assert unpacker.eof
    assert deflate.gunzip().decompress(gzip.compress(content)) == content


def test_damage_of_sum_and_length_is_seen(packer: str) -> None:
    member = deflate.gzip_member(CONTENT, 6)
    for at in range(len(member) - 8, len(member)):
        damaged = bytearray(member)
        damaged[at] ^= 1
        with pytest.raises(deflate.DEFLATE_ERRORS):
            deflate.gunzip().decompress(bytes(damaged))


def test_a_piece_at_a_time_is_as_large_as_is_asked_for(packer: str) -> None:
    unpacker, found, left = deflate.gunzip(), b"", deflate.gzip_member(CONTENT, 6) + b"after"
    while not unpacker.eof:
        piece = unpacker.decompress(left, 1000)
        assert len(piece) <= 1000
        found, left = found + piece, unpacker.unconsumed_tail
    assert found == CONTENT
    assert unpacker.unused_data == b"after"
