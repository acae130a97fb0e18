"""Whole footers: what is decoded is encoded to the same end of a file."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.formats.parquet.whole_footer import MAGIC, decode_footer, encode_footer

ROWS = pa.table(
    {
        "id": pa.array(range(5000)),
        "text": pa.array([f"text {i % 7}" for i in range(5000)]),
        "inner": pa.array([{"l": [i, None]} for i in range(5000)]),
    }
)


@pytest.mark.parametrize("options", [{}, {"row_group_size": 300}, {"write_page_index": True}, {"write_statistics": False}])
def test_a_footer_is_the_same_after_its_way_through_structures(tmp_path: Path, options: dict[str, object]) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(ROWS, file, **options)
    metadata = pq.read_metadata(file)
    end = encode_footer(decode_footer(metadata))
    again = pq.read_metadata(pa.BufferReader(MAGIC + end))
    assert again.equals(metadata)
    data = file.read_bytes()
    before = data[: len(data) - metadata.serialized_size - len(MAGIC) - 4]
    assert pq.read_table(io.BytesIO(before + end)).equals(ROWS)
