"""Packing slices into splits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.read.split import FILE_COST, Split, pack_slices
from hudimeta.slices.reader import ReadCounts
from hudimeta.snapshot.file_slice import FileSlice


def slice_of(number: int, size: int, logs: int = 0) -> FileSlice:
    names = tuple(f".f{number}_1.log.{n}_0-0-0" for n in range(logs))
    return FileSlice("p", f"f{number}", "1", f"f{number}.parquet", size, names, (1,) * logs)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 3)), max_size=60),
    st.integers(1, 1 << 29),
    st.none() | st.integers(1, 20),
)
def test_every_slice_is_read_once(sizes: list[tuple[int, int]], target: int, at_most: int | None) -> None:
    slices = [slice_of(number, size, logs) for number, (size, logs) in enumerate(sizes)]
    splits = pack_slices(slices, target, at_most)
    packed = [s for split in splits for s in split.slices]
    for one in slices:
        parts = [s for s in packed if s.file_id == one.file_id]
        assert sorted(s.share for s in parts) == list(range(parts[0].shares))
        assert {replace(s, share=0, shares=1) for s in parts} == {one}
        assert len(parts) == 1 or not one.log_files, "rows of a log may belong anywhere"
    assert all(split.slices for split in splits)
    assert at_most is None or len(splits) <= at_most
    for split in splits:
        order = [int(s.file_id[1:]) for s in split.slices]
        assert order == sorted(order), "the order of the plan is kept within a split"


def test_a_large_base_file_is_cut_and_small_ones_are_not() -> None:
    splits = pack_slices([slice_of(0, 1 << 30), slice_of(1, 1 << 20), slice_of(2, 1 << 30, logs=1)], 128 << 20)
    parts = [s for split in splits for s in split.slices]
    assert {s.file_id: s.shares for s in parts} == {"f0": 8, "f1": 1, "f2": 1}
    assert {s.size for s in parts if s.file_id == "f0"} == {128 << 20}
    assert [s.shares for split in pack_slices([slice_of(0, 16 << 20)], 1) for s in split.slices] == [2, 2], "no finer"


def test_parts_have_each_row_group_once(tmp_path: Path) -> None:
    schema, options = pa.schema([("id", pa.string()), ("n", pa.int64())]), {"hoodie.copyonwrite.record.size.estimate": "64"}
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", options=options)
    table.insert(pa.table({"id": [f"{n:06}" for n in range(300_000)], "n": range(300_000)}))
    scan = table.scan(columns=["n"])
    (whole,) = scan.plan().splits()
    for where in (None, "n >= 250000"):
        scan = table.scan(where=where, columns=["n"])
        for parts in (1, 2, 3, 7):
            counts = ReadCounts()
            shares = [Split((replace(whole.slices[0], share=share, shares=parts),)) for share in range(parts)]
            rows = [sum(b.num_rows for b in hudimeta.read_split(scan.task, one, counts=counts)) for one in shares]
            assert sum(rows) == (300_000 if where is None else 50_000)
            assert where is not None or rows.count(0) == max(0, parts - 3), "three row groups"
            assert where is None or (counts.row_groups, counts.row_groups_skipped) == (3, 2)


def test_splits_are_of_about_the_size_asked_for() -> None:
    splits = pack_slices([slice_of(n, 32 << 20) for n in range(64)], 256 << 20)
    assert len(splits) == 9
    sizes = [split.size for split in splits]
    assert max(sizes) - min(sizes) <= 32 << 20


def test_tiny_files_are_not_all_put_into_one_split() -> None:
    assert len(pack_slices([slice_of(n, 100) for n in range(1000)], FILE_COST * 32)) == 32


def test_nothing_to_read_makes_no_split() -> None:
    assert pack_slices([], 1 << 20) == []


def test_what_is_no_task_and_no_split_is_refused_at_once(tmp_path: Path) -> None:
    scan = hudimeta.Table.create(tmp_path / "t", pa.schema({"id": pa.string()}), key="id").scan()
    split = Split(())
    for task, share, says in ((scan, split, r"Give scan\.task"), (scan.task, scan.plan(), r"Give one of scan\.plan\(\)")):
        with pytest.raises(ConfigError, match=says):
            hudimeta.read_split(task, share)  # type: ignore[arg-type]
    assert list(hudimeta.read_split(scan.task, split)) == []
