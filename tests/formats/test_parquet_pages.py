"""Some pages of a Parquet file, read by Arrow as a file of their own: the rows of the whole file that lie on them."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.parquet.pages import PageFile, pages_around
from hudimeta.formats.parquet.thrift import decode_struct, encode_struct
from hudimeta.formats.parquet.thrift_levels import Parts, decode_level, encode_level

ROWS = 3_000


def table(rows: int = ROWS) -> pa.Table:
    dice = np.random.default_rng(1)
    numbers = np.arange(rows)
    point = pa.StructArray.from_arrays([pa.array(numbers * 2), pa.array(dice.random(rows))], ["x", "y"])
    return pa.table(
        {
            "number": pa.array(numbers),
            "word": pa.array(dice.choice(["red", "green", "blue"], rows)),
            "text": pa.array([None if n % 7 == 0 else f"text {n:07d}" for n in range(rows)]),
            "none": pa.nulls(rows, pa.string()),
            "flag": pa.array(numbers % 3 == 0),
            "point": point,
            "many": pa.array([[n, n + 1] for n in range(rows)]),
        }
    )


def written(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    settings = {"data_page_size": 300, "write_batch_size": 50, "write_page_checksum": True, **options}
    pq.write_table(rows, sink, **settings)  # type: ignore[arg-type]
    return sink.getvalue()


def reader_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, length: data[offset : offset + length]


def taken(rows: pa.Table, found: PageFile) -> pa.Table:
    return rows.filter(pa.array(found.kept))


FLAT = ["number", "word", "text", "none", "flag", "point"]
LAYOUTS = {
    "version 1": {},
    "version 2 of pages": {"data_page_version": "2.0", "compression": "zstd"},
    "plain": {"use_dictionary": False, "compression": "none"},
    "several row groups": {"row_group_size": 1_000},
}
FILES = {name: written(table(), **options) for name, options in LAYOUTS.items()}


@given(
    layout=st.sampled_from(sorted(LAYOUTS)), start=st.integers(0, ROWS - 1), length=st.integers(1, 40), step=st.integers(1, 500)
)
def test_rows_of_some_pages_are_those_of_the_file(layout: str, start: int, length: int, step: int) -> None:
    data = FILES[layout]
    file = pq.ParquetFile(io.BytesIO(data))
    group = start * file.num_row_groups // ROWS
    whole = file.read_row_group(group, columns=FLAT)
    wanted = np.zeros(len(whole), dtype=np.bool_)
    first = start % len(whole)
    wanted[first : first + length * step : step] = True
    found = pages_around(file.metadata, group, FLAT, wanted, reader_of(data))
    if found is None:
        return
    read = pq.ParquetFile(io.BytesIO(found.content), page_checksum_verification=True).read_row_group(0, columns=FLAT)
    assert read.equals(taken(whole, found))
    assert not (wanted & ~found.kept).any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_few_rows_take_few_bytes(layout: str) -> None:
    data = FILES[layout]
    metadata = pq.read_metadata(io.BytesIO(data))
    rows = metadata.row_group(0).num_rows
    wanted = np.arange(rows) == 10
    found = pages_around(metadata, 0, ["text"], wanted, reader_of(data))
    assert found is not None
    assert found.kept[10]
    assert found.kept.sum() < rows / 2


def test_what_saves_nothing_is_read_as_usual() -> None:
    data = FILES["version 1"]
    metadata = pq.read_metadata(io.BytesIO(data))
    one = np.arange(ROWS) == 10
    assert pages_around(metadata, 0, ["number"], np.ones(ROWS, dtype=np.bool_), reader_of(data)) is None
    assert pages_around(metadata, 0, ["number"], np.arange(ROWS) % 40 == 0, reader_of(data)) is None
    assert pages_around(metadata, 0, ["number", "many"], one, reader_of(data)) is None  # lists: pages do not tell their rows
    assert pages_around(metadata, 0, ["absent"], one, reader_of(data)) is None


@given(at=st.integers(4, len(FILES["version 1"]) - 1), bit=st.integers(0, 7))
def test_damaged_pages_are_never_read_wrongly(at: int, bit: int) -> None:
    sound = FILES["version 1"]
    metadata = pq.read_metadata(io.BytesIO(sound))
    data = bytearray(sound)
    data[at] ^= 1 << bit
    found = pages_around(metadata, 0, ["number", "text"], np.arange(ROWS) == 10, reader_of(bytes(data)))
    if found is None:
        return
    try:
        read = pq.ParquetFile(io.BytesIO(found.content), page_checksum_verification=True).read_row_group(0, ["number", "text"])
    except (pa.ArrowException, OSError):
        return
    assert read.equals(taken(table().select(["number", "text"]), found))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_footer_is_encoded_as_it_was(layout: str) -> None:
    data = FILES[layout]
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    fields, end = decode_struct(footer)
    assert (encode_struct(fields), end) == (footer, size)


@pytest.mark.parametrize("inner", [{}, {4: {1: {3: {12: {}}}}}, {2: {}, 4: {}, 5: {}}])
def test_a_footer_is_the_same_after_only_some_of_it_was_decoded(inner: Parts) -> None:
    data = written(table().slice(0, 1_000), row_group_size=60, write_page_index=True)
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    fields, end = decode_level(footer, 0, inner)
    assert (encode_level(fields), end) == (footer, size)
    assert len(fields[4][1].values if 4 in inner else fields[4][1]) >= 17


@pytest.mark.parametrize(
    "data",
    [b"", b"\x15", b"\x18\xff\xff\xff\xff\x0f", b"\x19\xf6\xff\xff\xff\x7f", b"\x1c" * 40, b"\x1d\x00", b"\x15" + b"\xff" * 20],
)
def test_hostile_structures_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"Thrift|bytes|list|varint"):
        decode_struct(data)
    with pytest.raises(ValueError, match=r"Thrift|bytes|list|varint"):
        decode_level(data, 0, {})
