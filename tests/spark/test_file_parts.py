"""Parquet files that tasks of a routed write read: what becomes of damage."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark_hudimeta.file_parts import FilePart, FileRange, FileReading, Seen

from hudimeta.errors import CorruptFileError


def test_a_damaged_page_is_no_row(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    rows = pa.table({"word": [f"word {number}" for number in range(100)]})
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_page_checksum=True)
    reading = FileReading(["word"], rows.schema, frozenset(), {}, proleptic=True)
    seen = reading.look(str(path))
    assert isinstance(seen, Seen)
    part = FilePart(0, [(FileRange(str(path), 0, seen.size, {}), seen)])
    assert pa.Table.from_batches(reading.rows(part)) == rows

    path.write_bytes(path.read_bytes().replace(b"word 42", b"wOrd 42"))
    damaged = reading.look(str(path))
    assert isinstance(damaged, Seen)
    with pytest.raises(CorruptFileError, match=r"in\.parquet"):
        list(reading.rows(FilePart(0, [(part.ranges[0][0], damaged)])))
