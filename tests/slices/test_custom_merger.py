"""Mergers that users bring: called for the right versions, wherever rows are merged, and held to their contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudimeta
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.slices.log_parts import DeletePart, LogPart, data_part
from hudimeta.slices.merge import merge_log_records
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.types import MergeMode
from tests.conftest import Unpack

ADD, ADD_DROP, OLDER = (f"tests.slices.mergers:{n}" for n in ("add_quantities", "add_and_drop_zero", "keep_older"))
COLUMNS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("qty", pa.int64())])
MERGED = pa.schema([("_hoodie_record_key", pa.string()), *COLUMNS])
EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING


def rows_of(rows: list[tuple[str, int, int]]) -> pa.Table:
    return pa.Table.from_pylist([{"id": k, "ts": t, "qty": q} for k, t, q in rows], COLUMNS)


def stock(path: Path, kind: str, **options: str) -> hudimeta.Table:
    given = {"hudimeta.merger": ADD, "hoodie.logfile.data.block.format": "avro", **options}
    return hudimeta.Table.create(path / "stock", COLUMNS, key="id", ordering="ts", type=kind, options=given)


def quantities(table: pa.Table) -> dict[str, int]:
    return dict(zip(table["id"].to_pylist(), table["qty"].to_pylist(), strict=True))


# Where it is used


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_snapshots_add_up_what_was_upserted(tmp_path: Path, kind: str) -> None:
    table = stock(tmp_path, kind)
    table.upsert(rows_of([("a", 1, 5), ("b", 1, 7)]))
    table.upsert(rows_of([("a", 2, 1), ("c", 2, 1)]))
    table.upsert(rows_of([("a", 3, 10)]))
    assert quantities(table.scan().to_table()) == {"a": 16, "b": 7, "c": 1}
    assert table.scan().count() == 3


def test_a_compaction_leaves_what_readers_saw(tmp_path: Path) -> None:
    table = stock(tmp_path, "MERGE_ON_READ")
    table.upsert(rows_of([("a", 1, 5), ("b", 1, 7)]))
    table.upsert(rows_of([("a", 2, 1), ("b", 2, -7)]))
    before = table.scan().to_table().sort_by("id")
    table.compact()
    assert not any(table.file_slices()["log_files"].to_pylist())
    assert (
        table.scan().to_table().sort_by("id").drop_columns("_hoodie_file_name").equals(before.drop_columns("_hoodie_file_name"))
    )
    table.upsert(rows_of([("a", 3, 1)]))
    assert quantities(table.scan().to_table()) == {"a": 7, "b": 0}


def test_one_column_is_merged_from_all(tmp_path: Path) -> None:
    table = stock(tmp_path, "MERGE_ON_READ")
    table.upsert(rows_of([("a", 1, 5)]))
    table.upsert(rows_of([("a", 2, 1)]))
    assert table.scan(columns=["qty"]).to_table().to_pylist() == [{"qty": 6}]


def test_statistics_of_the_files_hide_no_merged_value(tmp_path: Path) -> None:
    table = stock(tmp_path, "MERGE_ON_READ")
    table.upsert(rows_of([("a", 1, 5), ("b", 1, 1)]))
    table.upsert(rows_of([("a", 2, 5)]))
    scan = table.scan(where="qty > 8")
    assert quantities(scan.to_table()) == {"a": 10}
    assert "column_stats not used: hudimeta.merger may make values that no file holds" in scan.report.notes
    assert table.scan(where="id = 'nobody'").to_table().num_rows == 0


def test_a_table_whose_own_merger_is_java_code_reads_with_ours(rich_table: Unpack) -> None:
    path = rich_table("event_late_mor", fresh=True)
    properties = path / ".hoodie" / "hoodie.properties"
    properties.chmod(0o644)
    kept = [line for line in properties.read_text().splitlines() if "merge" not in line and "payload" not in line]
    kept += ["hoodie.record.merge.mode=CUSTOM", "hoodie.compaction.payload.class=com.example.Mine"]
    properties.write_text("\n".join(kept))
    with pytest.raises(UnsupportedFeature, match=r"com\.example\.Mine"):
        hudimeta.Table(path).scan().to_table()
    newest = hudimeta.Table(path, {"hudimeta.merger": "tests.slices.mergers:keep_older"}).scan().to_table()
    assert newest.num_rows == len(set(newest["_hoodie_record_key"].to_pylist())) > 0


def test_workers_get_the_merger_with_their_task(tmp_path: Path) -> None:
    import pickle

    table = stock(tmp_path, "MERGE_ON_READ")
    table.upsert(rows_of([("a", 1, 5)]))
    table.upsert(rows_of([("a", 2, 1)]))
    scan = table.scan(columns=["id", "qty"])
    task, (split,) = pickle.loads(pickle.dumps((scan.task, scan.plan().splits())))
    assert [b.to_pylist() for b in hudimeta.read_split(task, split)] == [[{"id": "a", "qty": 6}]]


# What it is called with


ROW = st.tuples(st.just("row"), st.sampled_from("abc"), st.integers(0, 3), st.integers(-2, 2))
GONE = st.tuples(st.just("delete"), st.sampled_from("abc"), st.none() | st.integers(0, 3), st.just(0))


def part_of(kind: str, key: str, order: int | None, qty: int, rules: MergeRules) -> LogPart:
    if kind == "row":
        rows = pa.Table.from_pylist([{"_hoodie_record_key": key, "id": key, "ts": order, "qty": qty}], MERGED)
        return data_part(rows, MERGED, lambda table, schema: table.select(schema.names), rules)
    ordering = (pa.chunked_array([pa.array([order], pa.int64())]),) if rules.by_event_time else ()
    return DeletePart(pa.chunked_array([pa.array([key])]), np.array([order is None]), ordering)


def model(base: dict[str, tuple[int, int]], log: list[Any], by_time: bool, drop: bool) -> dict[str, int]:
    """One record after the other: (order, quantity or None for a delete)."""

    def two(old: tuple[Any, Any], new: tuple[Any, Any]) -> tuple[Any, Any]:
        newer = not by_time or old[0] is None or new[0] is None or new[0] >= old[0]
        if old[1] is None or new[1] is None:
            return new if newer else old
        total = old[1] + new[1]
        return (None, None) if drop and total == 0 else ((new if newer else old)[0], total)

    folded: dict[str, tuple[Any, Any]] = {}
    for kind, key, order, qty in log:
        version = (order, qty if kind == "row" else None)
        folded[key] = two(folded[key], version) if key in folded else version
    for key, row in base.items():
        folded[key] = two(row, folded[key]) if key in folded else row
    return {key: qty for key, (_, qty) in folded.items() if qty is not None}


@given(
    st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 3), st.integers(-2, 2))),
    st.lists(ROW | GONE, max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_versions_meet_oldest_first(base: dict[str, tuple[int, int]], log: list[Any], by_time: bool, drop: bool) -> None:
    rules = MergeRules(EVENT if by_time else COMMIT, ("ts",), merger=ADD_DROP if drop else ADD)
    parts = [part_of(*record, rules) for record in log]
    stored = [{"_hoodie_record_key": k, "id": k, "ts": t, "qty": q} for k, (t, q) in base.items()]
    merged = merge_log_records(pa.Table.from_pylist(stored, MERGED), parts, MERGED, rules)
    assert quantities(merged) == model(base, log, by_time, drop)


def test_columns_may_come_in_any_order(tmp_path: Path) -> None:
    table = stock(tmp_path, "MERGE_ON_READ", **{"hudimeta.merger": OLDER})
    table.upsert(rows_of([("a", 1, 5)]))
    table.upsert(rows_of([("a", 2, 1)]))
    (row,) = table.scan().to_table().to_pylist()
    assert (row["ts"], row["qty"]) == (1, 5)
    assert row["_hoodie_commit_time"] == table.timeline.writes[0].time


# What is refused


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nonsense", "package.module:function"),
        ("no_such_module:merge", "No module named 'no_such_module'"),
        ("tests.slices.mergers:no_such_function", "no_such_function"),
        ("tests.slices.mergers:not_a_function", "It is a int"),
        ("tests.slices.mergers:lose_a_row", "one row for each of 2 keys"),
        ("tests.slices.mergers:turn_around", "It changed _hoodie_record_key or the order"),
        ("tests.slices.mergers:fail", "KeyError: 'quantity'"),
    ],
)
def test_a_merger_that_does_not_fit_is_named(tmp_path: Path, name: str, why: str) -> None:
    table = stock(tmp_path, "MERGE_ON_READ")
    table.upsert(rows_of([("a", 1, 5), ("b", 1, 5)]))
    table.upsert(rows_of([("a", 2, 1), ("b", 2, 1)]))
    with pytest.raises(ConfigError, match=r"hudimeta\.merger") as caught:
        hudimeta.Table(table.path, {"hudimeta.merger": name}).scan().to_table()
    assert why in str(caught.value)
    assert name in str(caught.value)
