"""Rows before a record window: which of them a write is about that finds their key in the window, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.write.windows import BOTH, SCHEMA, THREE, contents, create, rows


@BOTH
def test_older_rows_of_one_key_in_one_write_are_rows_of_their_days(tmp_path: Path, kind: str) -> None:
    for name, portion in (("whole", 1 << 20), ("portions", 1)):
        table = create(tmp_path / name, kind, hudimeta_record_window_days="3", hudimeta_write_portion_bytes=str(portion))
        table.insert(rows(("n", 20, 1), ("w", 19, 1)))
        given = rows(("a", 1, 1), ("a", 2, 2), ("b", 3, 3), ("b", 20, 4), ("w", 1, 5), ("w", 2, 6), ("a", 2, 7))
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, given.to_batches(max_chunksize=2)))
        assert contents(tmp_path / name) == [("a", 1, 1), ("a", 2, 7), ("b", 20, 4), ("n", 20, 1), ("w", 19, 6)]
        check_all(open_storage(tmp_path / name))


def in_and_before_the_window(path: Path, kind: str, **options: str) -> hudimeta.Table:
    table = create(path, kind, hudimeta_record_window_days="3", **options)
    table.insert(rows(("a", 1, 1), ("n", 20, 1)))
    table.upsert(rows(("a", 20, 2)))
    assert contents(path) == [("a", 1, 1), ("a", 20, 2), ("n", 20, 1)]
    return table


@BOTH
@pytest.mark.parametrize("moves", ["true", "false"])
def test_a_row_that_was_read_is_changed_where_it_lies(tmp_path: Path, kind: str, moves: str) -> None:
    old = "day = '2026-01-01'"
    moving = {"hoodie_record_index_update_partition_path": moves}
    table = in_and_before_the_window(tmp_path / "t", kind, **moving)
    table.update({"v": "7"}, where=old)
    assert contents(tmp_path / "t") == [("a", 1, 7), ("a", 20, 2), ("n", 20, 1)]
    table.update({"v": "v + 10"}, where="id = 'a'")
    assert contents(tmp_path / "t") == [("a", 1, 17), ("a", 20, 12), ("n", 20, 1)]
    table.merge(rows(("a", 1, 8)), on=["id", "day"]).when_matched_update({"v": "source.v"}).execute()
    assert contents(tmp_path / "t") == [("a", 1, 8), ("a", 20, 12), ("n", 20, 1)]
    table.delete(where=old)
    assert contents(tmp_path / "t") == [("a", 20, 12), ("n", 20, 1)]
    check_all(open_storage(tmp_path / "t"))


@BOTH
def test_a_delete_is_about_the_older_row_as_well(tmp_path: Path, kind: str) -> None:
    table = in_and_before_the_window(tmp_path, kind)
    table.delete(keys=rows(("a", 1, 0), ("a", 20, 0)))
    assert contents(tmp_path) == [("n", 20, 1)]
    check_all(open_storage(tmp_path))


@BOTH
def test_a_row_that_moves_to_an_older_day_is_the_row_that_is_there(tmp_path: Path, kind: str) -> None:
    table = in_and_before_the_window(tmp_path, kind, hoodie_record_index_update_partition_path="true")
    table.upsert(rows(("a", 1, 3)))
    assert contents(tmp_path) == [("a", 1, 3), ("n", 20, 1)]
    check_all(open_storage(tmp_path))


@BOTH
def test_an_older_row_that_was_deleted_and_inserted_anew_is_one_row(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind, hudimeta_record_window_days="3", hoodie_parquet_small_file_limit="0")
    table.insert(rows(("a", 1, 1), ("b", 1, 1), ("n", 20, 1)))
    table.delete(keys=rows(("a", 1, 0), ("b", 1, 0)))
    dropping = hudimeta.Table(tmp_path, {"hoodie.datasource.insert.dup.policy": "drop"})
    assert dropping.insert(rows(("a", 1, 2), ("n", 20, 2))).dropped_duplicates == 1
    assert contents(tmp_path) == [("a", 1, 2), ("n", 20, 1)]
    table.upsert(rows(("a", 1, 3)))
    assert contents(tmp_path) == [("a", 1, 3), ("n", 20, 1)]
    check_all(open_storage(tmp_path))


def test_older_rows_by_event_time_are_rows_of_their_partitions(tmp_path: Path) -> None:
    window = {"hudimeta_record_window_days": "3", "hudimeta_record_window_column": "ts"}
    table = create(tmp_path, hoodie_parquet_small_file_limit="0", **window)
    table.insert(rows(("n", 20, 1)))
    table.upsert(rows(("a", 1, 1), ("a", 2, 2), ("b", 2, 3), ("b", 20, 4)))
    assert contents(tmp_path) == [("a", 1, 1), ("a", 2, 2), ("b", 20, 4), ("n", 20, 1)]


def test_a_late_row_that_nobody_sees_is_no_duplicate(tmp_path: Path) -> None:
    options = {**THREE, "hudimeta.log.inserts": "true"}
    given: dict[str, Any] = {"key": "id", "partition_by": "day", "ordering": "v", "type": "MERGE_ON_READ", "options": options}
    table = hudimeta.Table.create(tmp_path, SCHEMA, **given)
    table.upsert(rows(("a", 20, 5), ("b", 20, 5)))
    table.delete(keys=rows(("a", 20, 0)))
    table.upsert(rows(("a", 20, 3)))
    assert contents(tmp_path) == [("b", 20, 5)]
    dropping = hudimeta.Table(tmp_path, {"hoodie.datasource.insert.dup.policy": "drop"})
    assert dropping.insert(rows(("a", 20, 6), ("b", 20, 6))).dropped_duplicates == 1
    assert contents(tmp_path) == [("a", 20, 6), ("b", 20, 5)]
