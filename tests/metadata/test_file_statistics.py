"""Statistics of files that are written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.parquet import column_bounds
from hudimeta.metadata import column_stats
from hudimeta.metadata.indexed_columns import indexed_columns
from hudimeta.metadata.statistics import file_statistics


@given(st.lists(st.none() | st.binary(max_size=100) | st.just(b"\xff" * 70) | st.just(b"a" * 63 + b"\xff\xff"), min_size=1))
def test_bounds_of_bytes_are_short_and_enclose_every_value(values: list[bytes | None]) -> None:
    rows = pa.table({"raw": pa.array(values, pa.binary())})
    found = column_stats.typed(file_statistics(column_bounds(rows), "", "f", "V1", {}), pa.binary()).to_pylist()[0]
    present = [v for v in values if v is not None]
    assert (found["min"] is None) == (not present)
    for value in present:
        assert found["min"] <= value <= found["max"]
        assert len(found["min"]) <= 64
        assert len(found["max"]) <= 64 or found["max"].startswith(b"\xff" * 64)


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_the_columns_are_those_that_hudi_takes(version: str) -> None:
    nested = [("l", pa.list_(pa.int32())), ("s", pa.struct([("a", pa.int32())]))]
    schema = pa.schema([("raw", pa.binary()), *nested, ("big", pa.decimal128(38, 18))])
    assert indexed_columns(schema, (), 32, version)[3:] == (["raw"] if version == "V1" else ["raw", "big"])
