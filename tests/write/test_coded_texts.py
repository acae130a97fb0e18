"""Texts of few values are written as codes from the beginning: nobody who reads the table can tell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hudimeta

ROWS = 60_000


def _rows() -> pa.Table:
    numbers = np.arange(ROWS)
    few = pa.array(["red", "green", None, "é"]).take(pa.array(numbers % 4))
    # Few values at first, many in the end; and the partition, of which each file has one value.
    late = pa.array(["same" if n < ROWS // 2 else f"v{n}" for n in numbers.tolist()])
    part = pa.array(["a", "b"]).take(pa.array(numbers % 2))
    keys = pa.array([f"{n:06d}" for n in numbers.tolist()])
    nothing = pa.nulls(ROWS, pa.string())
    return pa.table({"id": keys, "part": part, "few": few, "late": late, "nothing": nothing, "n": pa.array(numbers)})


def test_texts_of_few_values_read_as_they_were_written(tmp_path):
    rows = _rows()
    indexes = ["column_stats", "record_index", "secondary_index_few"]
    table = hudimeta.Table.create(str(tmp_path / "t"), rows.schema, key="id", partition_by=["part"], indexes=indexes)
    table.bulk_insert(rows)
    read = table.scan(columns=rows.column_names).to_table().sort_by("id")
    assert read.equals(rows.sort_by("id"))
    assert table.metadata.validate().holds
    assert table.scan("few = 'é' and part = 'b'").count() == ROWS // 4
    assert table.scan("late = 'v59999'").count() == 1


def test_files_have_dictionaries_of_their_own_values_and_right_bounds(tmp_path):
    rows = _rows()
    table = hudimeta.Table.create(str(tmp_path / "t"), rows.schema, key="id", partition_by=["part"], indexes=["column_stats"])
    table.bulk_insert(rows)
    files = sorted((tmp_path / "t").glob("*/*.parquet"))
    assert [file.parent.name for file in files] == ["a", "b"]
    for file in files:
        group = pq.read_metadata(file).row_group(0)
        columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
        assert columns["few"].has_dictionary_page
        stated = columns["part"].statistics
        assert (stated.min, stated.max) == (file.parent.name, file.parent.name)
        assert pq.read_schema(file).field("few").type == pa.string(), "codes are not seen from outside"
    bounds = table.metadata.column_stats({"part": pa.string(), "few": pa.string()})
    assert sorted(bounds["part"]["min"].to_pylist()) == ["a", "b"]
    assert sorted(bounds["few"]["max"].to_pylist()) == ["red", "é"]
