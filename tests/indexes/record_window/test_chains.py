"""Segments of runs: which of them speak of a slice, and that merging changes no answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.indexes.record_window.chains import living
from hudimeta.indexes.record_window.content import KeysOfGroups, merged
from hudimeta.indexes.record_window.runs import SEGMENTS, Prints, RunContent, sorted_entries

KEYS = pa.array([f"k{n}" for n in range(8)], pa.string())
NAME = "p\0f"


def run(*segments: tuple[str, bool, int, int, set[int], set[int]]) -> RunContent:
    """A run of (file id, all keys, slice before, slice after, keys added, keys removed)."""
    parts = []
    for number, (_, _, _, _, added, removed) in enumerate(segments):
        for numbers, bit in ((removed, 1), (added, 0)):
            prints = Prints.of(KEYS.take(pa.array(sorted(numbers), pa.int64())))
            parts.append((prints.first, prints.second, np.full(len(prints), 2 * number + bit, np.uint32)))
    rows = [("p", i, full, before, after, len(a) + len(r)) for i, full, before, after, a, r in segments]
    return RunContent(pa.table(list(zip(*rows, strict=True)), schema=SEGMENTS), *sorted_entries(parts))


def keys_of(runs: list[RunContent], now: dict[str, int]) -> dict[str, set[int] | None]:
    """The keys of each group; None where they are not known."""
    known = KeysOfGroups(runs, now)
    at, group = known.find(Prints.of(KEYS))
    found: dict[str, set[int] | None] = {n: set() if c else None for n, c in zip(known.groups, known.covered, strict=True)}
    for key, number in zip(at.tolist(), group.tolist(), strict=True):
        own = found[known.groups[number]]
        assert own is not None
        own.add(key)
    return found


FULL = run(("f", True, 0, 1, {1, 2}, set()))
NEXT = run(("f", False, 1, 2, {3}, {1}))
LAST = run(("f", False, 2, 3, {1}, set()))


def test_changes_follow_one_another() -> None:
    assert keys_of([FULL, NEXT, LAST], {NAME: 3}) == {NAME: {1, 2, 3}}


def test_what_comes_after_the_slice_does_not_count() -> None:
    assert keys_of([FULL, NEXT, LAST], {NAME: 2}) == {NAME: {2, 3}}
    assert keys_of([FULL, NEXT, LAST], {NAME: 1}) == {NAME: {1, 2}}


def test_a_link_that_is_missing_leaves_the_slice_unknown() -> None:
    assert keys_of([FULL, LAST], {NAME: 3}) == {NAME: None}
    assert keys_of([NEXT, LAST], {NAME: 3}) == {NAME: None}
    assert keys_of([FULL, NEXT], {NAME: 9}) == {NAME: None}


def test_all_keys_anew_end_what_was_before() -> None:
    anew = run(("f", True, 0, 9, {5}, set()))
    assert keys_of([FULL, NEXT, anew], {NAME: 9}) == {NAME: {5}}


def test_a_slice_that_was_read_late_hides_no_later_one() -> None:
    late = run(("f", True, 0, 1, {1, 2}, set()))
    assert keys_of([FULL, NEXT, late], {NAME: 2}) == {NAME: {2, 3}}


def test_groups_do_not_mix() -> None:
    both = run(("f", True, 0, 1, {1}, set()), ("g", True, 0, 1, {2}, set()))
    assert keys_of([both, run(("g", False, 1, 2, {3}, {2}))], {NAME: 1, "p\0g": 2}) == {NAME: {1}, "p\0g": {3}}
    assert [mask.tolist() for mask in living([both.segments], {NAME: 1})] == [[True, False]]


SLICES = range(6)
keys_of_slices = st.lists(st.sets(st.integers(0, 7)), min_size=len(SLICES), max_size=len(SLICES))
step = st.tuples(st.sampled_from("fg"), st.booleans(), st.sampled_from(SLICES), st.sampled_from(SLICES))


@settings(max_examples=300, deadline=None)
@given(
    st.fixed_dictionaries({"f": keys_of_slices, "g": keys_of_slices}),
    st.lists(step, min_size=1, max_size=8),
    st.integers(0, 7),
    st.sampled_from(SLICES),
    st.sampled_from(SLICES),
)
def test_what_is_told_is_what_the_slice_holds_merged_or_not(
    held: dict[str, list[set[int]]], steps: list[tuple[str, bool, int, int]], cut: int, f: int, g: int
) -> None:
    """Whatever order changes come in, and whichever of them are missing, or are there twice."""

    def keys(name: str, full: bool, before: int, after: int) -> tuple[set[int], set[int]]:
        then, now = set() if full else held[name][before], held[name][after]
        return now - then, then - now

    runs = [run((*one, *keys(*one))) for one in steps]
    now = {NAME: f, "p\0g": g}
    right = {NAME: held["f"][f], "p\0g": held["g"][g]}
    before = keys_of(runs, now)
    assert keys_of([merged(runs, now)], now) == before
    after = keys_of([*runs[:cut], merged(runs[cut:], None)], now)
    for name in now:
        assert before[name] in (right[name], None)
        assert after[name] in (right[name], None), "what was known may have to be read anew, but is never told wrongly"
    assert keys_of([FULL, merged([NEXT, LAST], None)], {NAME: 3}) == {NAME: {1, 2, 3}}
