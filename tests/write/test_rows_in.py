"""What users hand over as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.api.table import Table
from hudimeta.errors import SchemaMismatch
from hudimeta.write.rows_in import as_table


def test_dicts_have_the_columns_of_all_of_them() -> None:
    rows: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "fare": 5.0}, {"note": "x", "id": 3}]
    assert as_table(rows).to_pydict() == {"id": [1, 2, 3], "fare": [None, 5.0, None], "note": [None, None, "x"]}


def test_what_makes_no_columns_is_refused_with_advice() -> None:
    import pandas

    mixed: tuple[Any, ...] = (
        {"id": [1, 2], "fare": [1.0]},
        pandas.DataFrame({"id": [1, "x"]}),
        7,
        [1, 2],
    )
    for data in mixed:
        with pytest.raises(SchemaMismatch, match=r"HUDIMETA_SCHEMA_MISMATCH: column '\*'"):
            as_table(data)


def test_a_number_that_no_column_holds_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column 'id' is of no one type"):
        as_table([{"id": 2**70}, {"id": 10**60}])


def test_a_column_of_no_one_type_is_named_and_a_schema_is_the_way_out(tmp_path: Path) -> None:
    rows = [{"id": 1, "tags": [("a", 1)]}, {"id": 2, "tags": None}]
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.int64(), "tags": pa.map_(pa.string(), pa.int32())}), key="id")
    for data in (rows, {"id": [1, 2], "tags": [row["tags"] for row in rows]}):
        with pytest.raises(SchemaMismatch, match=r"column 'tags' is of no one type .* pyarrow\.Table\.from_pylist"):
            table.upsert(data)
    table.upsert(pa.Table.from_pylist(rows, table.schema))
    assert table.scan(columns=["id", "tags"]).to_table().to_pylist() == rows
