"""The page index of a file: what it says of pages is what their rows say, and it is not believed where it was changed."""

from __future__ import annotations

import datetime as dt
import decimal
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet import ParquetSettings, write_base_file
from hudimeta.formats.parquet.page_index import PageIndex, page_index_of
from hudimeta.formats.parquet.pages import pages_around
from hudimeta.formats.parquet.verified import FileEnd, read_end
from tests.formats.parquet_files import with_meta

MORNING = dt.datetime(2026, 1, 1, 6, tzinfo=dt.timezone.utc)


def table(rows: int, seed: int) -> pa.Table:
    dice = np.random.default_rng(seed)
    numbers = np.cumsum(dice.integers(-3, 9, rows))
    gaps = dice.random(rows) < 0.3
    gaps[: rows // 5] = True
    price = [None if gap else decimal.Decimal(int(n)) / 100 for n, gap in zip(numbers, gaps, strict=True)]
    return pa.table(
        {
            "n": pa.array(numbers, mask=gaps),
            "small": pa.array(numbers.astype(np.int32)),
            "x": pa.array(numbers / 7),
            "half": pa.array((numbers / 8).astype(np.float32), mask=gaps),
            "text": pa.array(
                [None if gap else f"é{'long ' * (int(n) % 9)}{n}" for n, gap in zip(numbers, gaps, strict=True)], pa.string()
            ),
            "price": pa.array(price, pa.decimal128(20, 2)),
            "day": pa.array(numbers.astype(np.int32)).cast(pa.date32()),
            "at": pa.array([MORNING + dt.timedelta(minutes=int(n)) for n in numbers], pa.timestamp("us", "UTC")),
            "flag": pa.array(numbers % 2 == 0),
        }
    )


def content_of(rows: pa.Table, **settings: Any) -> bytes:
    sink = io.BytesIO()
    layout = ParquetSettings(**{"page_rows": 20, "row_group_rows": 300, **settings})
    write_base_file(sink, with_meta(rows), settings=layout, name="a.parquet")
    return sink.getvalue()


def opened(content: bytes) -> tuple[Any, FileEnd, PageIndex | None]:
    metadata, end = read_end(pa.BufferReader(content), "a.parquet")
    return metadata, end, page_index_of(metadata, end)


@given(
    rows=st.integers(1, 400),
    seed=st.integers(0, 1_000),
    page_rows=st.integers(9, 90),
    page_bytes=st.sampled_from([64, 1 << 20]),
)
def test_pages_lie_and_are_bounded_as_their_rows_say(rows: int, seed: int, page_rows: int, page_bytes: int) -> None:
    content = content_of(table(rows, seed), page_rows=page_rows, page_bytes=page_bytes)
    metadata, _, index = opened(content)
    assert index is not None
    file = pq.ParquetFile(io.BytesIO(content))
    for group in range(metadata.num_row_groups):
        stored = file.read_row_group(group)
        places = index.places(group, range(metadata.num_columns))
        assert places is not None
        for at, name in enumerate(stored.column_names):
            column, borders, bounds = stored[name].combine_chunks(), places[at].borders, index.bounds(group, at)
            assert (borders[0], borders[-1]) == (0, stored.num_rows)
            assert bounds is not None
            sides = bounds.typed(metadata.schema.column(at).physical_type, column.type)
            assert sides is not None
            pages = [column[first:end] for first, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)]
            assert sides[0].to_pylist() == [pc.min(page).as_py() for page in pages]
            assert sides[1].to_pylist() == [pc.max(page).as_py() for page in pages]
            assert bounds.nulls == [page.null_count for page in pages]


@given(rows=st.integers(40, 700), seed=st.integers(0, 1_000), first=st.integers(0, 699), count=st.integers(1, 60))
def test_pages_are_the_same_with_and_without_an_index(rows: int, seed: int, first: int, count: int) -> None:
    content, asked = content_of(table(rows, seed), page_bytes=400), []

    def read(offset: int, length: int) -> bytes:
        asked.append(length)
        return content[offset : offset + length]

    metadata, _, index = opened(content)
    wanted = np.zeros(metadata.row_group(0).num_rows, np.bool_)
    wanted[first % len(wanted) : first % len(wanted) + count] = True
    names = ["n", "text", "price", "flag"]
    plain = pages_around(metadata, 0, names, wanted, read)
    whole, asked[:] = sum(asked), []
    told = pages_around(metadata, 0, names, wanted, read, index, gap=0)
    assert (plain is None) == (told is None)
    if plain is None or told is None:
        return
    assert sum(asked) < whole
    assert (plain.kept == told.kept).all()
    rows_of = [
        pq.ParquetFile(io.BytesIO(found.content), page_checksum_verification=True).read(names) for found in (plain, told)
    ]
    stored = pq.ParquetFile(io.BytesIO(content)).read_row_group(0, columns=names)
    assert rows_of[0].equals(rows_of[1])
    assert rows_of[1].equals(stored.filter(pa.array(told.kept)))


@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_an_index_that_changed_is_not_believed(where: float, bit: int) -> None:
    content = bytearray(CONTENT)
    content[FIRST + int(where * (END - FIRST))] ^= 1 << bit
    with pytest.raises(CorruptFileError, match="page index with the checksum"):
        opened(bytes(content))


CONTENT = content_of(table(500, 1))
END = len(CONTENT) - 8 - int.from_bytes(CONTENT[-8:-4], "little")
_LAST = pq.read_metadata(io.BytesIO(CONTENT)).row_group(1)
FIRST = max(
    _LAST.column(at).total_compressed_size + (_LAST.column(at).dictionary_page_offset or _LAST.column(at).data_page_offset)
    for at in range(_LAST.num_columns)
)


def test_files_of_others_and_files_without_an_index_have_none() -> None:
    assert opened(CONTENT)[2] is not None
    sink = io.BytesIO()
    pq.write_table(table(500, 1), sink, write_page_index=True, max_rows_per_page=20)
    assert opened(sink.getvalue())[2] is None
    assert opened(content_of(table(500, 1).slice(0, 0)))[2] is None


def test_an_index_that_was_not_read_with_the_footer_is_not_asked_for() -> None:
    wide = pa.table({f"column {n}": pa.array(np.arange(3_000)) for n in range(40)})
    content = content_of(wide, page_rows=2, row_group_rows=3_000)
    assert opened(content)[2] is None


@pytest.mark.parametrize("codec", ["zstd", "uncompressed"])
def test_columns_within_structs_are_found(codec: str) -> None:
    numbers = np.arange(500)
    point = pa.StructArray.from_arrays([pa.array(numbers), pa.array(numbers * 2)], ["x", "y"])
    content = content_of(pa.table({"n": pa.array(numbers), "point": point}), compression=codec)
    metadata, _, index = opened(content)
    wanted = np.arange(metadata.row_group(0).num_rows) == 30
    told = pages_around(metadata, 0, ["point.y"], wanted, lambda at, size: content[at : at + size], index)
    assert told is not None
    read = pq.ParquetFile(io.BytesIO(told.content)).read(["point.y"])
    assert read["point"].combine_chunks().field("y").to_pylist() == (numbers[20:40] * 2).tolist()
