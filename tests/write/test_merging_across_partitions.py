"""Merges that give rows another partition: a global index moves them there, or leaves them where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import CommitError, ConfigError
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.write.test_index_types import contents, create, rows

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
INDEXES = {
    "GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "GLOBAL_BLOOM": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "RECORD_INDEX": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.record.index.update.partition.path": "true",
    },
}
GLOBAL = pytest.mark.parametrize("index", INDEXES)


def table_of(path: Path, kind: str, index: str, **more: Any) -> hudimeta.Table:
    """Rows a to e of partition x, as old as 5."""
    table = create(path, kind, **{key.replace(".", "_"): value for key, value in INDEXES[index].items()}, **more)
    table.insert(rows(*((one, "x", 1, 5) for one in "abcde")))
    return table


@BOTH
@GLOBAL
def test_a_merge_moves_rows_whose_partition_it_changes(tmp_path: Path, kind: str, index: str) -> None:
    table = table_of(tmp_path, kind, index)
    source = rows(("a", "y", 2, 6), ("b", "y", 2, 4), ("c", "y", -1, 6), ("d", "y", -2, 6), ("f", "z", 2, 1))
    merge = table.merge(source, "id").when_matched_delete(condition="source.v = -1")
    report = merge.when_matched_update(condition="source.v > 0").when_not_matched_insert().execute()
    # b is older than what is there, d goes to no clause.
    moved = [("a", "y", "y", 2), *((one, "x", "x", 1) for one in "bde"), ("f", "z", "z", 2)]
    assert contents(tmp_path) == moved
    assert (report.moved, report.deleted) == (1, 2)
    check_all(open_storage(tmp_path))
    # Some columns alone: the row that is there fills the others.
    table.merge(rows(("e", "w", 9, 9)), "id").when_matched_update({"part": "source.part", "ts": "source.ts"}).execute()
    assert contents(tmp_path)[3] == ("e", "w", "w", 1)
    # And one more time back to where a deleted row of its key lies.
    table.merge(rows(("a", "x", 3, 7)), "id").when_matched_update().execute()
    assert contents(tmp_path)[0] == ("a", "x", "x", 3)
    check_all(open_storage(tmp_path))


@BOTH
def test_without_an_order_the_newest_merge_moves_rows(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind, "GLOBAL_SIMPLE", ordering=())
    table.merge(rows(("a", "y", 2, 1)), "id").when_matched_update().execute()
    table.merge(rows(("zz", "y", 2, 1)), "id").when_not_matched_by_source_update(
        {"part": "concat(part, '1')"}, condition="id <> 'b'"
    ).execute()
    expected = [("a", "y1", "y1", 2), ("b", "x", "x", 1), *((one, "x1", "x1", 1) for one in "cde")]
    assert contents(tmp_path) == expected
    check_all(open_storage(tmp_path))


@BOTH
@GLOBAL
def test_rows_stay_and_take_the_other_values_without_moves(tmp_path: Path, kind: str, index: str) -> None:
    off = {f"hoodie_{index.split('_')[0 if index == 'RECORD_INDEX' else 1].lower()}_index_update_partition_path": "false"}
    path = tmp_path / "t"
    given = {**INDEXES[index], **{key.replace("_", "."): value for key, value in off.items()}}
    table = create(path, kind, **{key.replace(".", "_"): value for key, value in given.items()})
    table.insert(rows(("a", "x", 1, 5), ("b", "x", 1, 5)))
    report = table.merge(rows(("a", "y", 2, 6), ("b", "y", 2, 4)), "id").when_matched_update().execute()
    assert contents(path) == [("a", "x", "x", 2), ("b", "x", "x", 1)]
    assert report.moved == 0
    check_all(open_storage(path))


@BOTH
def test_changes_of_a_move_are_a_delete_and_an_insert(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind, "GLOBAL_SIMPLE", hoodie_table_cdc_enabled="true")
    first = table.upsert(rows(("b", "x", 2, 6)))
    table.merge(rows(("a", "y", 2, 6)), "id").when_matched_update().execute()
    changes = table.scan(query_type="cdc", begin=first.completion).to_table().to_pylist()
    told = [
        (one["op"], *(side and (json.loads(side)["part"], json.loads(side)["v"]) for side in sides(one))) for one in changes
    ]
    assert sorted(told) == [("d", ("x", 1), None), ("i", None, ("y", 2))]


def sides(change: dict[str, Any]) -> tuple[str | None, str | None]:
    """What a row was, and what it is."""
    return change["before"], change["after"]


@BOTH
def test_rows_of_one_key_do_not_move_with_each_other(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind, "GLOBAL_SIMPLE", ordering=())
    table.bulk_insert(rows(("twin", "x", 1, 5), ("twin", "x", 2, 5)))
    source = pa.table({"v": pa.array([2], pa.int64()), "part": ["y"]})
    with pytest.raises(CommitError, match="several rows of key 'twin'"):
        table.merge(source, "v").when_matched_update({"part": "source.part"}).execute()
    assert len(contents(tmp_path)) == 7


def test_other_indexes_keep_rows_in_their_partition(tmp_path: Path) -> None:
    table = create(tmp_path, "COPY_ON_WRITE")
    table.insert(rows(("a", "x", 1, 1)))
    with pytest.raises(ConfigError, match="neither part of the key nor of the partition"):
        table.merge(rows(("a", "y", 2, 2)), "id").when_matched_update({"part": "source.part"}).execute()
    anywhere = hudimeta.Table(tmp_path, {"hoodie.index.type": "GLOBAL_SIMPLE"})
    with pytest.raises(ConfigError, match="neither part of the key"):
        anywhere.merge(rows(("a", "y", 2, 2)), "id").when_matched_update({"id": "source.id"}).execute()
    assert contents(tmp_path) == [("a", "x", "x", 1)]


def test_a_record_window_leaves_rows_in_their_partition(tmp_path: Path) -> None:
    """It would not find those of days before it."""
    table = create(tmp_path, "COPY_ON_WRITE")
    table.insert(rows(("a", "2026-01-01", 1, 1), ("b", "2026-11-29", 1, 1)))
    table.indexes.create(type="record_window", options={"days": 3})
    source = rows(("a", "2026-11-30", 2, 2), ("b", "2026-11-30", 2, 2))
    with pytest.raises(ConfigError, match="neither part of the key nor of the partition"):
        hudimeta.Table(tmp_path).merge(source, "id").when_matched_update({"part": "source.part"}).execute()
    hudimeta.Table(tmp_path).merge(source, "id").when_matched_update().execute()
    assert contents(tmp_path) == [("a", "2026-01-01", "2026-01-01", 2), ("b", "2026-11-29", "2026-11-29", 2)]


def test_of_one_key_the_newest_row_of_the_source_counts_whatever_its_partition(tmp_path: Path) -> None:
    table = table_of(tmp_path, "COPY_ON_WRITE", "GLOBAL_SIMPLE")
    source = rows(("a", "x", 3, 8), ("a", "y", 4, 9), ("b", "y", 3, 9), ("b", "x", 4, 8))
    table.merge(source, ["id", "part"]).when_matched_update().when_not_matched_insert().execute()
    assert contents(tmp_path)[:2] == [("a", "y", "y", 4), ("b", "y", "y", 3)]
