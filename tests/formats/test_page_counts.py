"""Headers of pages that count other values than their pages have: every read and every write says so, no value moves."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta import Table
from hudimeta.errors import CorruptFileError, ValidationFailed
from hudimeta.formats.parquet.page_counts import miscounted
from hudimeta.formats.parquet.page_headers import read_strictly
from hudimeta.formats.parquet.pages import chunk_span
from hudimeta.formats.parquet.thrift import integer

ROWS = 20_000
COLUMNS = {
    "i": pa.array([None if n * n % 7 < 4 else n for n in range(ROWS)], pa.int64()),
    "s": pa.array([None if n * n % 7 < 4 else f"t{n % 4}" for n in range(ROWS)]),
    "li": pa.array([None if n % 7 == 0 else [n, None][: n % 3] for n in range(ROWS)], pa.list_(pa.int32())),
    "st": pa.array([{"a": None if n * n % 7 < 4 else n} for n in range(ROWS)], pa.struct([("a", pa.int32())])),
}
"""Columns of several pages, with nulls: of a page without any, Arrow knows how many values it has."""


def counts(content: bytes, column: str) -> Iterator[tuple[int, int]]:
    """The byte where each data page of a column counts its values, and how many it has."""
    metadata, pages = pq.read_metadata(pa.BufferReader(content)), memoryview(content)
    chunk = next(
        c for c in map(metadata.row_group(0).column, range(metadata.num_columns)) if c.path_in_schema.split(".")[0] == column
    )
    at, length = chunk_span(chunk)
    end = at + length
    while at < end:
        header = read_strictly(pages, at)
        if header.values:
            yield content.index(integer(header.values), at), header.values
        at = header.start + header.packed


def harmed(content: bytes, at: int, bit: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1 << bit
    return bytes(changed)


@pytest.fixture
def table(tmp_path: Path) -> tuple[Table, Path]:
    """A table, and its one file."""
    rows = pa.table({"id": [f"k{n:06d}" for n in range(ROWS)], **COLUMNS})
    table = Table.create(tmp_path / "t", rows.schema, key="id")
    table.bulk_insert(rows)
    (file,) = (tmp_path / "t").glob("*.parquet")
    return table, file


@pytest.mark.parametrize("column", COLUMNS)
def test_no_value_moves(table: tuple[Table, Path], column: str) -> None:
    whole = pa.table({column: COLUMNS[column]})
    content = table[1].read_bytes()
    for at, _ in list(counts(content, column))[:2]:
        for bit in (1, 2, 3):
            table[1].write_bytes(harmed(content, at, bit))
            with pytest.raises(CorruptFileError, match=column):
                assert table[0].scan(columns=[column]).to_table().equals(whole)
            try:  # only some pages are read, of which the damaged one may be none
                few = table[0].scan("id BETWEEN 'k009000' AND 'k009009'", [column]).to_table()
            except CorruptFileError:
                continue
            assert few.equals(whole.slice(9_000, 10))


def test_nothing_is_built_on_it(table: tuple[Table, Path]) -> None:
    opened, file = table
    content = file.read_bytes()
    file.write_bytes(harmed(content, next(counts(content, "s"))[0], 1))
    instants = [instant.time for instant in opened.timeline.writes]
    with pytest.raises(CorruptFileError, match="column s"):
        opened.upsert({"id": ["k000001"], **{name: values[1:2] for name, values in COLUMNS.items()}})
    with pytest.raises(CorruptFileError, match="column s"):
        opened.indexes.create("low", "column_stats", "s", expression="lower")
    assert [instant.time for instant in opened.timeline.writes] == instants
    with pytest.raises(ValidationFailed, match="column s"):
        opened.metadata.validate(deep=True).raise_if_differs()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"write_page_checksum": True}, {"compression": "gzip"}])
def test_whoever_wrote_the_pages(version: str, options: dict[str, Any]) -> None:
    sink = io.BytesIO()
    rows = pa.table(
        {**COLUMNS, "none": pa.nulls(ROWS, pa.string()), "n": range(ROWS), "flag": [n % 3 == 0 for n in range(ROWS)]}
    )
    pq.write_table(rows, sink, data_page_version=version, data_page_size=3_000, row_group_size=8_000, **options)
    metadata = pq.read_metadata(sink)
    found = [
        one
        for group in range(metadata.num_row_groups)
        for one in miscounted(memoryview(sink.getvalue()), metadata, group, None)
    ]
    assert found == []
    if version == "1.0":
        at, values = next(counts(sink.getvalue(), "i"))
        changed = harmed(sink.getvalue(), at, 1)
        ((_, expected, actual),) = miscounted(memoryview(changed), metadata, 0, None)
        assert (expected, actual) == (
            "pages with 8000 values (column i)",
            f"headers that count {8_000 + (1 if values % 2 == 0 else -1)}",
        )
