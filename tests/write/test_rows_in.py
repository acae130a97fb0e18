"""What users hand over as rows."""

from __future__ import annotations

from typing import Any

import pytest

from hudimeta.errors import SchemaMismatch
from hudimeta.write.rows_in import as_table


def test_dicts_have_the_columns_of_all_of_them() -> None:
    rows: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "fare": 5.0}, {"note": "x", "id": 3}]
    assert as_table(rows).to_pydict() == {"id": [1, 2, 3], "fare": [None, 5.0, None], "note": [None, None, "x"]}


def test_what_makes_no_columns_is_refused_with_advice() -> None:
    pandas = pytest.importorskip("pandas")
    mixed: tuple[Any, ...] = (
        [{"id": 1}, {"id": "x"}],
        {"id": [1, 2], "fare": [1.0]},
        pandas.DataFrame({"id": [1, "x"]}),
        7,
        [1, 2],
    )
    for data in mixed:
        with pytest.raises(SchemaMismatch, match=r"HUDIMETA_SCHEMA_MISMATCH: column '\*'"):
            as_table(data)
