"""Parquet files that tasks of a routed write read: what becomes of damage, and of what Arrow cannot have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark_hudimeta.routed.file_parts import FilePart, FileRange, FileReading, Seen
from pyspark_hudimeta.routed.file_times import Calendars

from hudimeta.errors import CorruptFileError

CALENDARS = Calendars(dates=True, int96=True, against_int96="")


def test_a_damaged_page_is_no_row(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    rows = pa.table({"word": [f"word {number}" for number in range(100)]})
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_page_checksum=True)
    reading = FileReading(["word"], rows.schema, frozenset(), {}, CALENDARS)
    seen = reading.look(str(path))
    assert isinstance(seen, Seen)
    part = FilePart(0, [(FileRange(str(path), 0, seen.size, {}), seen)])
    assert pa.Table.from_batches(reading.rows(part)) == rows

    path.write_bytes(path.read_bytes().replace(b"word 42", b"wOrd 42"))
    damaged = reading.look(str(path))
    assert isinstance(damaged, Seen)
    with pytest.raises(CorruptFileError, match=r"in\.parquet"):
        list(reading.rows(FilePart(0, [(part.ranges[0][0], damaged)])))


@pytest.mark.parametrize(("most", "first"), [(1000, 1000), (300, 200), (128, 1000), (1, 0)])
def test_batches_that_arrow_cannot_have_are_asked_for_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, first: int
) -> None:
    # More than 2 GiB of text below structs is what it cannot have; this many rows stand for it, and as many behind the first.
    path = tmp_path / "in.parquet"
    rows = pa.table({"inner": [{"word": f"word {number}"} for number in range(1000)]})
    pq.write_table(rows, path, row_group_size=300)
    read = pq.ParquetFile.iter_batches

    def limited(file: pq.ParquetFile, size: int, **how: Any) -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in read(file, size, **how):
            if batch.num_rows > most or (size > 100 and done >= first):
                raise pa.ArrowNotImplementedError("Nested data conversions not implemented for chunked array outputs")
            done += batch.num_rows
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", limited)
    reading = FileReading(["inner"], rows.schema, frozenset(), {}, CALENDARS)
    seen = reading.look(str(path))
    assert isinstance(seen, Seen)
    assert pa.Table.from_batches(reading.rows(FilePart(0, [(FileRange(str(path), 0, seen.size, {}), seen)]))) == rows


def test_a_row_that_arrow_cannot_have_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.parquet"
    rows = pa.table({"word": ["one", "two"]})
    pq.write_table(rows, path)

    def never(file: pq.ParquetFile, size: int, **how: Any) -> Iterator[pa.RecordBatch]:
        raise pa.ArrowNotImplementedError("Nested data conversions not implemented for chunked array outputs")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", never)
    reading = FileReading(["word"], rows.schema, frozenset(), {}, CALENDARS)
    seen = reading.look(str(path))
    assert isinstance(seen, Seen)
    with pytest.raises(CorruptFileError, match="Nested data conversions"):
        list(reading.rows(FilePart(0, [(FileRange(str(path), 0, seen.size, {}), seen)])))
