"""Merging into a table whose files lack the partition columns, which rows to insert must have all the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

ROWS = pa.table({"id": [1, 2], "part": ["a", "b"], "n": [1, 2]})


@pytest.mark.parametrize("values", [None, {"id": "source.id", "part": "upper(source.part)", "n": "7"}], ids=["all", "stated"])
def test_rows_are_inserted_where_their_partition_column_says(tmp_path: Path, values: dict[str, str] | None) -> None:
    dropping = {"hoodie.datasource.write.drop.partition.columns": "true"}
    table = Table.create(tmp_path / "t", ROWS.schema, key="id", partition_by=["part"], options=dropping)
    table.insert(ROWS)
    source = pa.table({"id": [2, 3], "part": ["b", "c"], "n": [20, 30]})
    table.merge(source, on="id").when_matched_update().when_not_matched_insert(values).execute()
    found = Table(tmp_path / "t").scan().to_table().select(["id", "part", "n"]).sort_by("id").to_pylist()
    fresh = {"id": 3, "part": "c", "n": 30} if values is None else {"id": 3, "part": "C", "n": 7}
    assert found == [{"id": 1, "part": "a", "n": 1}, {"id": 2, "part": "b", "n": 20}, fresh]
    check_all(open_storage(str(tmp_path / "t")))
