"""The five meta columns."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.keys import add_meta_columns, drop_meta_columns, with_file_name
from hudimeta.types import META_COLUMNS

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


def meta(**options):
    given = {"instant": "20240101000000000", "task": 3, "record_keys": ROWS["id"], "partition_path": "p=1", "file_name": "f"}
    return add_meta_columns(ROWS, **(given | options))


def test_they_come_first_and_are_filled():
    out = meta(first=5)
    assert out.column_names == [*META_COLUMNS, "id", "v"]
    assert out.select(META_COLUMNS).to_pylist()[1] == {
        "_hoodie_commit_time": "20240101000000000",
        "_hoodie_commit_seqno": "20240101000000000_3_6",
        "_hoodie_record_key": "b",
        "_hoodie_partition_path": "p=1",
        "_hoodie_file_name": "f",
    }
    assert all(f.type == pa.string() and f.nullable for f in list(out.schema)[:5])


def test_partition_paths_may_differ_by_row():
    assert meta(partition_path=pa.array(["x", "y"]))["_hoodie_partition_path"].to_pylist() == ["x", "y"]


def test_virtual_keys_leave_all_but_the_file_name_null():
    row = meta(populate=False).to_pylist()[0]
    assert [row[c] for c in META_COLUMNS] == [None, None, None, None, "f"]


def test_they_are_replaced_never_doubled():
    again = add_meta_columns(
        meta().append_column("_hoodie_operation", pa.array(["I", "U"])),
        instant="20250101000000000", task=0, record_keys=ROWS["id"], partition_path="", file_name="g",
    )  # fmt: skip
    assert again.column_names == [*META_COLUMNS, "id", "v"]
    assert drop_meta_columns(again).equals(ROWS)


def test_rows_that_move_keep_all_but_the_file_name():
    before, after = meta(), with_file_name(meta(), "other")
    assert after["_hoodie_file_name"].to_pylist() == ["other", "other"]
    assert after.drop_columns(["_hoodie_file_name"]).equals(before.drop_columns(["_hoodie_file_name"]))
