"""Runs: what is written is found again, few blocks are read for few keys, and damage is an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError, HudiError
from hudimeta.indexes.record_window.content import KeysOfGroups, all_keys
from hudimeta.indexes.record_window.runs import Prints, Run, RunContent, write_run
from hudimeta.storage import CountingStorage, LocalStorage

SLICES = [("p", "f0", 10), ("p", "f1", 11), ("q", "f2", 12)]


def texts(keys: list[str]) -> pa.StringArray:
    return pa.array(keys, pa.string())


def content(*keys: list[str]) -> RunContent:
    return all_keys(SLICES[: len(keys)], [texts(own) for own in keys])


def found(run: Run | RunContent, keys: list[str]) -> set[tuple[str, int]]:
    prints = Prints.of(texts(keys))
    matches = run.find(prints)
    return {(keys[int(prints.order[at])], int(owner) >> 1) for at, owner in zip(matches.at, matches.owner, strict=True)}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 200), max_size=60, unique=True), min_size=1, max_size=3), st.lists(st.integers(0, 300)))
def test_what_was_written_is_found(tmp_path_factory: pytest.TempPathFactory, own: list[list[int]], asked: list[int]) -> None:
    storage = LocalStorage(str(tmp_path_factory.mktemp("runs")))
    keys = [[f"k{n}" for n in one] for one in own]
    whole = content(*keys)
    run = Run(storage, write_run(storage, "a.run", whole))
    wanted = [f"k{n}" for n in set(asked)]
    expected = {(key, number) for number, one in enumerate(keys) for key in one if key in wanted}
    assert found(run, wanted) == found(whole, wanted) == expected
    assert run.segments.equals(whole.segments)
    again = run.whole()
    assert all(np.array_equal(a, b) for a, b in zip((again.first, again.owner), (whole.first, whole.owner), strict=True))


def test_few_keys_read_few_blocks(tmp_path: Path) -> None:
    storage = CountingStorage(LocalStorage(str(tmp_path)))
    many = content([f"k{n}" for n in range(200_000)])
    run = Run(storage, write_run(storage, "a.run", many))
    assert found(run, ["k7", "k123456", "absent"]) == {("k7", 0), ("k123456", 0)}
    read = sum(one.n_bytes for one in storage.log.since(0) if one.kind.value == "GET")
    assert read < run.stamp.size / 3, f"{read:,} of {run.stamp.size:,} bytes"


def test_every_flipped_byte_is_an_error(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    stamp = write_run(storage, "a.run", content(["a", "b"], ["c"]))
    whole = (tmp_path / "a.run").read_bytes()
    assert len(whole) == stamp.size
    for at in range(len(whole)):
        (tmp_path / "a.run").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CorruptFileError, match=r"a\.run"):
            Run(storage, stamp).whole()


@pytest.mark.parametrize("left", [0, 1, 30, -1])
def test_a_short_file_is_an_error(tmp_path: Path, left: int) -> None:
    storage = LocalStorage(str(tmp_path))
    stamp = write_run(storage, "a.run", content(["a", "b"], ["c"]))
    whole = (tmp_path / "a.run").read_bytes()
    (tmp_path / "a.run").write_bytes(whole[:left])
    with pytest.raises(HudiError):
        Run(storage, stamp).whole()


def test_a_key_of_two_groups_is_told_of_twice() -> None:
    run = content(["a", "b"], ["a"])
    keys = KeysOfGroups([run], {"p\0f0": 10, "p\0f1": 11})
    at, group = keys.find(Prints.of(texts(["b", "a"])))
    assert sorted(zip(at.tolist(), group.tolist(), strict=True)) == [(0, 0), (1, 0), (1, 1)]
