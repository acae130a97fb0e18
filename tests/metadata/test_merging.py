"""Which record counts when a key was written more than once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.metadata import column_stats, files, record_index
from hudimeta.metadata.bounds import wrap_bounds
from hudimeta.metadata.log_entries import LogEntry, arrange
from hudimeta.metadata.merging import LogRows, in_stretches, merge

# The partition files: what one entry does to another


def entries(*rows: tuple[str, int | None]) -> pa.Table:
    """Entries of partition "p": name and size, None for a deletion."""
    return pa.Table.from_pylist(
        [{"key": "p", "name": name, "size": size or 0, "is_deleted": size is None} for name, size in rows], files.SCHEMA
    )


def state(table: pa.Table) -> dict[str, int | None]:
    return {row["name"]: None if row["is_deleted"] else row["size"] for row in table.to_pylist()}


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ([1], 1),
        ([None], None),
        ([1, 5], 5),
        ([5, 1], 5),
        ([1, None], "gone"),
        ([None, None], None),
        ([None, 3], 3),
        ([1, None, 2], 2),
        ([1, None, None], None),
        ([1, 2, 3, None], "gone"),
    ],
)
def test_folding_one_name(written: list[int | None], left: int | str | None) -> None:
    found = state(files.fold(entries(*(("a", size) for size in written), ("b", 9))))
    assert found == {"b": 9} | ({} if left == "gone" else {"a": left})


@pytest.mark.parametrize(
    ("base", "logs", "left"),
    [
        ([7], [], {"a": 7}),
        ([7], [None], {}),
        ([], [None], {}),
        ([], [7, None], {}),
        ([7], [9], {"a": 9}),
        # Not associative: the two entries of the logs cancel out, and the base never hears of the deletion.
        ([7], [7, None], {"a": 7}),
    ],
)
def test_logs_are_folded_before_they_meet_the_base(
    base: list[int | None], logs: list[int | None], left: dict[str, int]
) -> None:
    other = pa.Table.from_pylist([{"key": "q", "name": "a", "size": 3, "is_deleted": False}], files.SCHEMA)
    below = pa.concat_tables([entries(*(("a", size) for size in base)), other])
    merged = files.live(files.apply_to_base(below, files.fold(entries(*(("a", size) for size in logs)))))
    assert {r["name"]: r["size"] for r in merged.to_pylist() if r["key"] == "p"} == left
    assert [r["size"] for r in merged.to_pylist() if r["key"] == "q"] == [3]


ENTRY = st.tuples(st.sampled_from("abc"), st.none() | st.integers(1, 9))


def plain_fold(rows: list[tuple[str, int | None]]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name, size in rows:
        if name in found and size is None and found[name] is not None:
            del found[name]
        elif name in found and size is not None and found[name] is not None:
            found[name] = max(size, found[name] or 0)
        else:
            found[name] = size
    return found


@given(st.lists(ENTRY, max_size=7), st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9)))
def test_folding_is_the_rule_applied_one_by_one(rows: list[tuple[str, int | None]], base: dict[str, int]) -> None:
    folded = files.fold(entries(*rows))
    assert state(folded) == plain_fold(rows)
    merged = files.apply_to_base(entries(*base.items()), folded)
    assert state(files.live(merged).append_column("is_deleted", pa.array([False] * len(files.live(merged))))) == {
        name: size for name, size in plain_fold([*base.items(), *plain_fold(rows).items()]).items() if size is not None
    }


# All other partitions: the newest record of a key


def locations(*rows: tuple[str, str]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"record_key": k, "partition_path": p, "file_id": "f", "instant_ms": 1, "position": None} for k, p in rows],
        record_index.SCHEMA,
    )


def log_rows(rows: pa.Table, turns: list[int], deleted: dict[str, int]) -> LogRows:
    gone = pa.array(list(deleted), pa.string())
    return LogRows(rows, np.array(turns, np.int64), gone, np.array(list(deleted.values()), np.int64))


EVENTS = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from("xyz")), max_size=10)


@given(st.dictionaries(st.sampled_from("abcde"), st.just("base")), EVENTS)
def test_the_newest_record_counts(base: dict[str, str], events: list[tuple[str, str | None]]) -> None:
    """Each event is a block of its own: a record, or None for the removal of a key."""
    expected = dict(base)
    for key, place in events:
        if place is None:
            expected.pop(key, None)
        else:
            expected[key] = place
    written = [(turn, key, place) for turn, (key, place) in enumerate(events) if place is not None]
    removed = {key: turn for turn, (key, place) in enumerate(events) if place is None}
    # A key may be removed twice; only the last time can matter.
    logs = log_rows(locations(*((k, p) for _, k, p in written)), [t for t, _, _ in written], removed)
    found = merge(locations(*base.items()), logs, "record_key")
    assert {r["record_key"]: r["partition_path"] for r in found.to_pylist()} == expected
    assert len(found) == len(expected)


@given(
    st.sets(st.sampled_from("bdfhjl")),
    st.lists(st.integers(0, 6)),
    st.lists(st.tuples(st.sampled_from("abcdefm"), st.booleans())),
)
def test_pieces_of_a_base_are_merged_as_the_whole_is(base: set[str], cuts: list[int], events: list[tuple[str, bool]]) -> None:
    whole = locations(*((key, "base") for key in sorted(base)))
    written = [(turn, key) for turn, (key, is_record) in enumerate(events) if is_record]
    removed = {key: turn for turn, (key, is_record) in enumerate(events) if not is_record}
    logs = log_rows(locations(*((key, f"log{turn}") for turn, key in written)), [turn for turn, _ in written], removed)
    by_key = logs.in_order_of("record_key")
    borders = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole.slice(start, end - start) for start, end in itertools.pairwise(borders)]
    keys = by_key.rows["record_key"].combine_chunks()
    merged, last = [], ""
    for piece, (rows, deleted) in in_stretches(pieces, whole.slice(0, 0), "record_key", keys, by_key.deleted):
        merged.append(merge(piece, by_key.stretch(rows, deleted), "record_key").sort_by("record_key"))
        found = merged[-1]["record_key"].to_pylist()
        assert all(key > last for key in found)
        last = found[-1] if found else last
    assert pa.concat_tables(merged).equals(merge(whole, logs, "record_key").sort_by("record_key"))


def statistics(*rows: tuple[str, int, int, bool, bool]) -> pa.Table:
    """Rows of key, minimum, maximum, tight, deleted; every row counts two values of which one is null."""
    out = []
    for key, low, high, tight, deleted in rows:
        bounds = wrap_bounds(pa.array([low, high], pa.int64()))
        row: dict[str, Any] = {"key": key, "type": 3, "file_name": "f", "column_name": "c", "value_count": 2, "null_count": 1}
        row |= {"min_kind": bounds.kinds[0], "min_value": bounds.bodies[0], "max_kind": bounds.kinds[1]}
        row |= {"max_value": bounds.bodies[1], "total_size": 10, "total_uncompressed_size": 20}
        out.append(row | {"is_deleted": deleted, "is_tight_bound": tight, "value_type": 4, "value_type_info": None})
    plain = [{k: v.as_py() if isinstance(v, pa.Scalar) else v for k, v in row.items()} for row in out]
    return pa.Table.from_pylist(plain, column_stats.SCHEMA)


def united(base: pa.Table, rows: pa.Table, turns: list[int], deleted: dict[str, int] | None = None) -> dict[str, Any]:
    found = merge(base, log_rows(rows, turns, deleted or {}), "key", column_stats.merge_rows)
    typed = column_stats.typed(found, pa.int64()).to_pylist()
    keys = found.column("key").to_pylist()
    return {key: (row["min"], row["max"], row["value_count"], row["total_size"]) for key, row in zip(keys, typed, strict=True)}


def test_statistics_unite_unless_the_newer_is_tight() -> None:
    base = statistics(("k", 5, 6, False, False), ("other", 0, 0, False, False))
    wide = statistics(("k", 1, 2, False, False), ("k", 8, 9, False, False))
    assert united(base, wide, [1, 2]) == {"k": (1, 9, 6, 30), "other": (0, 0, 2, 10)}
    tight = statistics(("k", 1, 2, False, False), ("k", 8, 9, True, False))
    assert united(base, tight, [1, 2])["k"] == (8, 9, 2, 10)
    late = statistics(("k", 8, 9, True, False), ("k", 1, 2, False, False))
    assert united(base, late, [1, 2])["k"] == (1, 9, 4, 20)


def test_statistics_of_a_removed_file_are_not_united() -> None:
    base = statistics(("k", 5, 6, False, False))
    again = statistics(("k", 1, 2, False, False))
    assert united(base, again, [2], {"k": 1}) == {"k": (1, 2, 2, 10)}
    assert united(base, again, [1], {"k": 2}) == {}
    assert united(base, statistics(("k", 0, 0, False, True)), [1]) == {}
    after_deletion = statistics(("k", 0, 0, False, True), ("k", 3, 4, False, False))
    assert united(base, after_deletion, [1, 2]) == {"k": (3, 4, 2, 10)}


def test_a_side_without_bound_unites_to_unknown_unless_it_held_only_nulls() -> None:
    older, newer = statistics(("k", 5, 6, False, False), ("k", 1, 2, False, False)).to_pylist()
    unknown = newer | {"min_kind": 0, "min_value": b"", "max_kind": 0, "max_value": b""}
    assert column_stats.merge_rows(older, unknown)["min_kind"] == 0
    only_nulls = unknown | {"null_count": 2}
    merged = column_stats.merge_rows(older, only_nulls)
    assert (merged["min_value"], merged["max_value"]) == (older["min_value"], older["max_value"])
    other_kind = newer | {"min_kind": 7, "min_value": b"x", "max_kind": 7, "max_value": b"x"}
    assert column_stats.merge_rows(older, other_kind)["max_kind"] == 0


# The order of log entries


def entry(instant: str, *covered: str, withdraws: str | None = None) -> LogEntry:
    return LogEntry(instant, "log", covered, withdraws=withdraws)


def order(*found: LogEntry, hidden: str = "") -> list[str]:
    return [e.instant for e in arrange(found, lambda instant: instant != hidden)]


def test_entries_keep_their_order_and_hidden_ones_are_left_out() -> None:
    assert order(entry("1"), entry("2"), entry("3"), hidden="2") == ["1", "3"]


def test_a_log_compaction_stands_where_its_newest_original_stood() -> None:
    """It was requested before a log that it does not cover, or after one: the covered instants decide, not its own."""
    assert order(entry("1"), entry("2"), entry("4"), entry("5", "2", "1")) == ["5", "4"]
    assert order(entry("1"), entry("3"), entry("2", "1")) == ["2", "3"]
    assert order(entry("5", "2", "1"), entry("6")) == ["5", "6"]


def test_a_second_log_compaction_covers_the_first() -> None:
    found = order(entry("1"), entry("2"), entry("3", "2", "1"), entry("4"), entry("5"), entry("6", "4", "3"))
    assert found == ["6", "5"]


def test_a_withdrawal_takes_back_what_came_before_it() -> None:
    found = order(entry("1"), entry("2"), entry("3", withdraws="2"), entry("2"), entry("4", withdraws="9"))
    assert found == ["1", "2"]
    assert order(entry("1"), entry("2"), entry("3", withdraws="2")) == ["1"]
