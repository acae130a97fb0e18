"""Files of object stores that are read in places."""

from __future__ import annotations

import io

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.storage.ranged import RangedInput

SIZE = 3_000_000
CONTENT = bytes(range(256)) * (SIZE // 256 + 1)

PLACES = st.integers(0, SIZE)
STEPS = st.lists(st.tuples(PLACES, st.sampled_from([0, 1, 900, 300_000, 1_200_000, -1])), max_size=6)


def ranged(content: bytes = CONTENT[:SIZE], size: int = SIZE) -> tuple[RangedInput, list[tuple[int, int]]]:
    asked: list[tuple[int, int]] = []

    def fetch(start: int, end: int) -> bytes:
        asked.append((start, end))
        return content[start:end]

    return RangedInput(fetch, size), asked


@given(STEPS)
def test_it_reads_as_a_file_does(steps: list[tuple[int, int]]) -> None:
    found, file = ranged()[0], io.BytesIO(CONTENT[:SIZE])
    for place, size in steps:
        assert found.seek(place) == file.seek(place)
        assert found.read(size) == file.read(size)
        assert found.tell() == file.tell()


def test_small_reads_in_a_row_are_one_request_and_large_ones_are_as_they_are() -> None:
    file, asked = ranged()
    for _ in range(100):
        file.read(1000)
    assert asked == [(0, 1000 + (256 << 10))]
    file.seek(500_000)
    file.read(2_000_000)
    assert asked[1:] == [(500_000, 2_500_000)]


def test_a_file_that_is_shorter_than_stated_ends_where_it_ends() -> None:
    file, _ = ranged(CONTENT[:1000])
    assert [len(file.read(600)), len(file.read(600)), len(file.read(600))] == [600, 400, 0]


def test_pyarrow_reads_it() -> None:
    file, _ = ranged()
    with pa.PythonFile(file, mode="r") as source:
        assert source.size() == SIZE
        assert source.read_at(10, 2_999_995) == CONTENT[2_999_995:SIZE]
    assert file.closed
