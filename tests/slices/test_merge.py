"""Merging a slice: columnar results equal those of a model that merges one record after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import SchemaMismatch
from hudimeta.slices.fold import fold_log_records
from hudimeta.slices.log_parts import DeletePart, LogPart, data_part
from hudimeta.slices.merge import SliceMerger, merge_log_records
from hudimeta.slices.merge_rules import MergeRules, PartialUpdateMode
from hudimeta.types import MergeMode
from tests.examples import at_most

SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("_hoodie_record_key", pa.string()),
        ("_hoodie_file_name", pa.string()),
        ("ts", pa.int64()),
        ("seq", pa.int32()),
        ("name", pa.string()),
        ("qty", pa.int32()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
CELLS = ("name", "qty")
META = ("_hoodie_commit_time", "_hoodie_file_name")
ORDERING = ("ts", "seq")


@dataclass(frozen=True)
class Version:
    """One version of a row as the model sees it; `own` are the cells that it has, `in_block` is a delete block's record."""

    key: str
    order: tuple[int, ...]
    cells: dict[str, Any]
    own: frozenset[str]
    deleted: bool = False
    natural: bool = False
    whole: bool = True
    in_block: bool = False


def merge_two(old: Version | None, new: Version, rules: MergeRules) -> Version:
    """The rules in their plainest words."""
    if old is None:
        return new
    if rules.by_event_time and not rules.deletes_always and old.natural and new.in_block and not new.natural:
        return old  # there is nothing left that it could delete
    new_wins = not rules.by_event_time or old.natural or new.natural or new.order >= old.order
    high, low = (new, old) if new_wins else (old, new)
    if high.whole or high.deleted or low.deleted:
        return high
    cells = {c: high.cells[c] if c in high.own else low.cells[c] for c in high.cells}
    return replace(high, cells=cells, own=high.own | low.own, whole=low.whole)


def model(base: list[Version], log: list[Version], rules: MergeRules) -> list[dict[str, Any]]:
    folded: dict[str, Version] = {}
    for version in log:
        folded[version.key] = merge_two(folded.get(version.key), version, rules)
    rows = [merge_two(row, folded.pop(row.key), rules) if row.key in folded else row for row in base]
    return [version.cells for version in [*rows, *folded.values()] if not version.deleted]


KEYS = st.sampled_from("abcdef")
FEW = st.integers(-1, 3)
VALUES = {"name": st.none() | st.sampled_from(["x", "y"]), "qty": st.none() | st.integers(0, 3)}
RECORD = st.tuples(KEYS, FEW, FEW, VALUES["name"], VALUES["qty"], st.sampled_from([None, False, False, True]))
DELETE = st.tuples(KEYS, st.none() | FEW, FEW)
BLOCK = st.one_of(
    st.tuples(st.just("data"), st.lists(RECORD, max_size=5)),
    st.tuples(st.just("partial"), st.lists(RECORD, max_size=5)),
    st.tuples(st.just("delete"), st.lists(DELETE, max_size=4)),
)
BASE = st.lists(RECORD, max_size=8)


def row(record: tuple[Any, ...], instant: int) -> dict[str, Any]:
    key, ts, seq, name, qty, flag = record
    return dict(zip(SCHEMA.names, (f"{instant:03}", key, f"file-{instant}", ts, seq, name, qty, flag), strict=True))


def order_of(cells: dict[str, Any], rules: MergeRules) -> tuple[int, ...]:
    return tuple(cells[name] for name in rules.ordering_fields)


def data_versions(rows: list[dict[str, Any]], rules: MergeRules, present: frozenset[str] | None) -> list[Version]:
    fillable = rules.partial_mode is PartialUpdateMode.IGNORE_DEFAULTS
    versions = []
    for cells in rows:
        names = frozenset(SCHEMA.names) if present is None else present
        kept = {*META, "_hoodie_record_key"}
        own = frozenset(c for c in names if not fillable or c in kept or cells[c] is not None)
        blank = {c: cells[c] if c in names else None for c in cells}
        deleted = cells["_hoodie_is_deleted"] is True
        natural = deleted and rules.ordering_fields == ("seq",) and cells["seq"] == 0
        whole = present is None and not fillable
        versions.append(Version(cells["_hoodie_record_key"], order_of(cells, rules), blank, own, deleted, natural, whole))
    return versions


def plain_conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table.select(schema.names).cast(schema)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def block_of(kind: str, records: list[tuple[Any, ...]], instant: int, rules: MergeRules) -> tuple[LogPart, list[Version]]:
    """One block, as a part for the code under test and as versions for the model."""
    if kind == "delete":
        versions = [
            Version(
                key,
                tuple({"ts": ts, "seq": seq}[f] for f in rules.ordering_fields),
                {},
                frozenset(),
                True,
                ts is None,
                in_block=True,
            )
            for key, ts, seq in records
        ]
        columns = {"ts": [ts for _, ts, _ in records], "seq": [seq for *_, seq in records]}
        ordering = tuple(pa.chunked_array([pa.array(columns[f], SCHEMA.field(f).type)]) for f in rules.ordering_fields)
        natural = np.array([version.natural for version in versions], bool)
        keys = pa.chunked_array([pa.array([version.key for version in versions], pa.string())])
        return DeletePart(keys, natural, ordering if rules.by_event_time else ()), versions
    rows = [row(record, instant) for record in records]
    table = table_of(rows)
    if kind == "data":
        return data_part(table, SCHEMA, plain_conform, rules), data_versions(rows, rules, None)
    left_out = CELLS[instant % 2]
    part = data_part(table.drop_columns([left_out]), SCHEMA, plain_conform, rules, partial=True)
    return part, data_versions(rows, rules, frozenset(SCHEMA.names) - {left_out})


def check(base: list[tuple[Any, ...]], blocks: list[tuple[str, list[tuple[Any, ...]]]], rules: MergeRules) -> None:
    base_rows = [{**row(record, 0), "_hoodie_is_deleted": None} for record in base]
    parts, log = [], []
    for instant, (kind, records) in enumerate(blocks, start=1):
        part, versions = block_of(kind, records, instant, rules)
        parts.append(part)
        log += versions
    merged = merge_log_records(table_of(base_rows), parts, SCHEMA, rules)
    assert merged.schema == SCHEMA
    assert merged.to_pylist() == model(data_versions(base_rows, rules, None), log, rules)


@pytest.mark.parametrize(
    "rules",
    [
        MergeRules(MergeMode.COMMIT_TIME_ORDERING, ("ts",)),
        MergeRules(MergeMode.EVENT_TIME_ORDERING),
        MergeRules(MergeMode.EVENT_TIME_ORDERING, ("ts",)),
        MergeRules(MergeMode.EVENT_TIME_ORDERING, ("seq",)),
        MergeRules(MergeMode.EVENT_TIME_ORDERING, ("seq", "ts")),
        MergeRules(MergeMode.COMMIT_TIME_ORDERING, partial_mode=PartialUpdateMode.IGNORE_DEFAULTS),
        MergeRules(MergeMode.EVENT_TIME_ORDERING, ("ts",), partial_mode=PartialUpdateMode.IGNORE_DEFAULTS),
    ],
    ids=lambda rules: f"{rules.mode.value}-{'-'.join(rules.ordering_fields)}-{rules.partial_mode.value}",
)
@settings(max_examples=at_most(120))
@given(base=BASE, blocks=st.lists(BLOCK, max_size=5))
def test_a_merged_slice_equals_the_model(rules: MergeRules, base: list[Any], blocks: list[Any]) -> None:
    check(base, blocks, rules)


@settings(max_examples=at_most(100))
@given(base=BASE, blocks=st.lists(BLOCK.filter(lambda b: b[0] != "partial"), max_size=5), by_event_time=st.booleans())
def test_a_merged_slice_without_partial_blocks_equals_the_model(
    base: list[Any], blocks: list[Any], by_event_time: bool
) -> None:
    mode = MergeMode.EVENT_TIME_ORDERING if by_event_time else MergeMode.COMMIT_TIME_ORDERING
    check(base, blocks, MergeRules(mode, ("ts",)))


COMMIT_TIME = MergeRules(MergeMode.COMMIT_TIME_ORDERING, ("ts",))
EVENT_TIME = MergeRules(MergeMode.EVENT_TIME_ORDERING, ("ts",))


def rows_of(*rows: tuple[str, int, str], instant: int = 1) -> pa.Table:
    return table_of([row((key, ts, 0, name, None, None), instant) for key, ts, name in rows])


def deletes_of(*records: tuple[str, int | None]) -> DeletePart:
    keys = pa.chunked_array([pa.array([key for key, _ in records])])
    ordering = pa.chunked_array([pa.array([ts for _, ts in records], pa.int64())])
    return DeletePart(keys, np.array([ts is None for _, ts in records]), (ordering,))


def merged_names(base: pa.Table | None, parts: list[pa.Table | DeletePart], rules: MergeRules) -> dict[str, str]:
    log = [part if isinstance(part, DeletePart) else data_part(part, SCHEMA, plain_conform, rules) for part in parts]
    merged = merge_log_records(base, log, SCHEMA, rules)
    return dict(zip(merged["_hoodie_record_key"].to_pylist(), merged["name"].to_pylist(), strict=True))


def test_a_late_row_loses_under_event_time_and_wins_under_commit_time() -> None:
    base, late = rows_of(("k", 10, "stored")), rows_of(("k", 5, "late"))
    assert merged_names(base, [late], EVENT_TIME) == {"k": "stored"}
    assert merged_names(base, [late], COMMIT_TIME) == {"k": "late"}


def test_of_equal_ordering_values_the_later_write_wins() -> None:
    parts = [rows_of(("k", 10, "first")), rows_of(("k", 10, "second"))]
    assert merged_names(rows_of(("k", 10, "base")), parts, EVENT_TIME) == {"k": "second"}


def test_a_delete_with_an_older_value_is_ignored_and_one_with_an_equal_value_is_not() -> None:
    base = rows_of(("a", 10, "a"), ("b", 10, "b"), ("c", 10, "c"))
    assert merged_names(base, [deletes_of(("a", 9), ("b", 10), ("c", None))], EVENT_TIME) == {"a": "a"}
    assert merged_names(base, [deletes_of(("a", 9), ("b", 10), ("c", None))], COMMIT_TIME) == {}


def test_a_row_after_a_delete_without_value_meets_the_base_row_again() -> None:
    base = rows_of(("k", 10, "base"))
    assert merged_names(base, [deletes_of(("k", None)), rows_of(("k", 3, "again"))], EVENT_TIME) == {"k": "base"}
    assert merged_names(base, [deletes_of(("k", None)), rows_of(("k", 11, "again"))], EVENT_TIME) == {"k": "again"}
    assert merged_names(None, [deletes_of(("k", None)), rows_of(("k", 3, "again"))], EVENT_TIME) == {"k": "again"}


def test_a_custom_marker_and_the_operation_column_delete() -> None:
    rules = MergeRules(MergeMode.COMMIT_TIME_ORDERING, (), "Op", "D")
    marked = rows_of(*((key, 1, "kept") for key in "abcd")).append_column("Op", pa.array(["D", None, "U", "U"]))
    operations = marked.append_column("_hoodie_operation", pa.array(["+U", "I", "D", "-U"]))
    base = rows_of(*((key, 1, key) for key in "abcd"))
    assert merged_names(base, [operations], rules) == {"b": "kept"}


def test_a_log_without_base_file_keeps_the_meta_columns_of_its_rows() -> None:
    rows = rows_of(("k", 1, "x"), instant=7)
    merged = merge_log_records(None, [data_part(rows, SCHEMA, plain_conform, EVENT_TIME)], SCHEMA, EVENT_TIME)
    assert merged.to_pylist() == rows.to_pylist()
    assert merge_log_records(None, [], SCHEMA, EVENT_TIME).num_rows == 0


def test_only_the_first_of_several_base_rows_with_one_key_meets_the_log() -> None:
    base = rows_of(("k", 1, "one"), ("k", 1, "two"), ("j", 1, "three"))
    merged = merge_log_records(
        base, [data_part(rows_of(("k", 2, "new")), SCHEMA, plain_conform, EVENT_TIME)], SCHEMA, EVENT_TIME
    )
    assert merged["name"].to_pylist() == ["new", "two", "three"]


@given(base=BASE, blocks=st.lists(BLOCK, max_size=4), size=st.integers(1, 4))
def test_a_base_file_read_in_pieces_merges_as_a_whole(base: list[Any], blocks: list[Any], size: int) -> None:
    parts = [block_of(kind, records, i, EVENT_TIME)[0] for i, (kind, records) in enumerate(blocks, start=1)]
    table = table_of([row(record, 0) for record in base])
    merger = SliceMerger(fold_log_records(parts, SCHEMA, EVENT_TIME), EVENT_TIME)
    pieces = [merger.merge(table.slice(at, size)) for at in range(0, len(base), size)]
    merged = pa.concat_tables([*pieces, merger.remaining()])
    assert merged.to_pylist() == merge_log_records(table, parts, SCHEMA, EVENT_TIME).to_pylist()
    counts = merger.counts
    assert counts.read == len(base)
    assert counts.written == merged.num_rows == counts.read - counts.deleted + counts.inserted


def test_the_counts_say_what_happened() -> None:
    base = rows_of(("a", 1, "a"), ("b", 1, "b"), ("c", 5, "c"))
    log = [
        data_part(rows_of(("a", 2, "A"), ("c", 4, "C"), ("d", 1, "D")), SCHEMA, plain_conform, EVENT_TIME),
        deletes_of(("b", 9)),
    ]
    merger = SliceMerger(fold_log_records(log, SCHEMA, EVENT_TIME), EVENT_TIME)
    merger.merge(base)
    merger.remaining()
    counts = merger.counts
    assert (counts.updated, counts.deleted, counts.inserted, counts.read, counts.written) == (1, 1, 1, 3, 3)


def test_a_partial_block_leaves_required_columns_to_the_stored_row() -> None:
    schema = pa.schema(
        [pa.field("_hoodie_record_key", pa.string()), pa.field("a", pa.int32(), nullable=False), ("b", pa.int32())]
    )
    base = pa.table({"_hoodie_record_key": ["k"], "a": [1], "b": [2]}, schema=schema)
    raw = pa.table({"_hoodie_record_key": ["k"], "b": pa.array([9], pa.int32())})
    rules = MergeRules(MergeMode.COMMIT_TIME_ORDERING)
    part = data_part(raw, schema, plain_conform, rules, partial=True)
    assert merge_log_records(base, [part], schema, rules).to_pylist() == [{"_hoodie_record_key": "k", "a": 1, "b": 9}]


def test_a_default_other_than_null_gives_way_too() -> None:
    rules = MergeRules(
        MergeMode.COMMIT_TIME_ORDERING,
        partial_mode=PartialUpdateMode.IGNORE_DEFAULTS,
        column_defaults=(("name", "none"),),
    )
    assert merged_names(rows_of(("k", 1, "kept")), [rows_of(("k", 1, "none"))], rules) == {"k": "kept"}
    assert merged_names(None, [rows_of(("k", 1, "none"))], rules) == {"k": "none"}


def test_a_log_record_without_key_is_refused() -> None:
    rows = rows_of(("k", 1, "x")).set_column(1, "_hoodie_record_key", pa.array([None], pa.string()))
    with pytest.raises(SchemaMismatch, match="_hoodie_record_key"):
        merge_log_records(None, [data_part(rows, SCHEMA, plain_conform, EVENT_TIME)], SCHEMA, EVENT_TIME)


def test_a_delete_by_its_ordering_value_takes_no_delete_without_one_back() -> None:
    """Both releases of Apache Hudi go on with the first; else a base row that is newer than the second would come back."""
    rules = MergeRules(MergeMode.EVENT_TIME_ORDERING, ("ts",))
    base = table_of([row(("a", 10, 0, "x", 1, None), 1)])
    gone, late = ([("a", ts, 0)] for ts in (None, 5))
    parts = [block_of("delete", records, instant, rules)[0] for instant, records in enumerate((gone, late), 2)]
    assert merge_log_records(base, parts, SCHEMA, rules).num_rows == 0
    again = block_of("data", [("a", 3, 0, "y", 1, None)], 4, rules)[0]
    assert merge_log_records(None, [*parts, again], SCHEMA, rules)["name"].to_pylist() == ["y"]
