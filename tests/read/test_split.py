"""Packing slices into splits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudimeta.read.file_slice import FileSlice
from hudimeta.read.split import FILE_COST, pack_slices


def slice_of(number: int, size: int, logs: int = 0) -> FileSlice:
    names = tuple(f".f{number}_1.log.{n}_0-0-0" for n in range(logs))
    return FileSlice("p", f"f{number}", "1", f"f{number}.parquet", size, names, (1,) * logs)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 3)), max_size=60),
    st.integers(1, 1 << 29),
    st.none() | st.integers(1, 20),
)
def test_every_slice_is_in_one_split(sizes: list[tuple[int, int]], target: int, at_most: int | None) -> None:
    slices = [slice_of(number, size, logs) for number, (size, logs) in enumerate(sizes)]
    splits = pack_slices(slices, target, at_most)
    packed = [s for split in splits for s in split.slices]
    assert sorted(packed, key=slices.index) == slices
    assert all(split.slices for split in splits)
    assert at_most is None or len(splits) <= at_most
    for split in splits:
        assert list(split.slices) == sorted(split.slices, key=slices.index), "the order of the plan is kept within a split"


def test_splits_are_of_about_the_size_asked_for() -> None:
    splits = pack_slices([slice_of(n, 32 << 20) for n in range(64)], 256 << 20)
    assert len(splits) == 9
    sizes = [split.size for split in splits]
    assert max(sizes) - min(sizes) <= 32 << 20


def test_tiny_files_are_not_all_put_into_one_split() -> None:
    assert len(pack_slices([slice_of(n, 100) for n in range(1000)], FILE_COST * 32)) == 32


def test_nothing_to_read_makes_no_split() -> None:
    assert pack_slices([], 1 << 20) == []
