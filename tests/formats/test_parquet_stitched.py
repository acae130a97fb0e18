"""Stitched Parquet files: the rows of their sources under a new name, pages and page indexes as they were, damage refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet import ParquetSettings, columns_anew, verify_parquet_file, write_base_file
from hudimeta.formats.parquet.page_index import page_index_of
from hudimeta.formats.parquet.stitched import StitchSource, stitch, why_not_stitched
from hudimeta.formats.parquet.thrift import decode_struct
from hudimeta.formats.parquet.verified import read_end
from hudimeta.slices.copied_files import reader_of
from hudimeta.types import META_COLUMNS

NAME = META_COLUMNS[4]
INNER = pa.struct({"x": pa.int32(), "y": pa.string()})
SETTINGS = ParquetSettings("snappy", row_group_rows=70, page_rows=16)


def rows(first: int, count: int, name: str) -> pa.Table:
    numbers = range(first, first + count)
    texts = pa.array([f"{n:05d}" for n in numbers], pa.string())
    meta = dict.fromkeys(META_COLUMNS, texts) | {NAME: pa.array([name] * count, pa.string())}
    return pa.table(
        {
            **meta,
            "number": pa.array([n if n % 5 else None for n in numbers], pa.int64()),
            "share": pa.array([float("nan") if n == 7 else n / 3 for n in numbers], pa.float64()),
            "price": pa.array([Decimal(n) for n in numbers], pa.decimal128(12, 2)),
            "day": pa.array([date(2020, 1, 1 + n % 28) for n in numbers], pa.date32()),
            "at": pa.array([datetime(2020, 1, 1, n % 24, tzinfo=timezone.utc) for n in numbers], pa.timestamp("us", "UTC")),
            "inner": pa.array([{"x": n, "y": None} if n % 3 else None for n in numbers], INNER),
            "many": pa.array([[str(n)] * (n % 4) for n in numbers], pa.list_(pa.string())),
        }
    )


def file_of(table: pa.Table, name: str, settings: ParquetSettings = SETTINGS) -> bytes:
    sink = io.BytesIO()
    write_base_file(sink, table, avro_schema="{}", settings=settings, name=name)
    return sink.getvalue()


def source_of(content: bytes, name: str) -> StitchSource:
    file = pa.BufferReader(content)
    metadata, end = read_end(file, name)
    return StitchSource(name, metadata, bytes(end.footer), reader_of(file), len(content))


def in_memory(content: pa.Buffer) -> StitchSource:
    return source_of(content.to_pybytes(), "")


def test_rows_pages_and_indexes_are_those_of_the_sources() -> None:
    parts = [rows(0, 200, "a.parquet"), rows(200, 0, "b.parquet"), rows(200, 90, "c.parquet")]
    contents = [file_of(part, f"{letter}.parquet") for part, letter in zip(parts, "abc", strict=True)]
    sources = [source_of(content, f"{letter}.parquet") for content, letter in zip(contents, "abc", strict=True)]
    assert why_not_stitched(sources, parts[0].schema, NAME) is None
    sink = io.BytesIO()
    size, metadata = stitch(sink, sources, NAME, "new.parquet", {"hello": "world"})
    content = sink.getvalue()
    assert size == len(content)
    found = verify_parquet_file(content, "new.parquet")
    whole = pa.concat_tables(parts)
    named = whole.set_column(whole.schema.get_field_index(NAME), NAME, pa.array(["new.parquet"] * 290))
    assert found.drop_columns(["share"]).equals(named.drop_columns(["share"]))
    assert pc.all(pc.equal(found["share"].fill_null(0), named["share"]).filter(pc.invert(pc.is_nan(named["share"])))).as_py()
    assert metadata.metadata[b"hello"] == b"world"
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    assert [g.num_rows for g in groups] == [67, 67, 66, 45, 45]
    lacking = {g.column(n).path_in_schema for g in groups for n in range(g.num_columns) if not g.column(n).has_column_index}
    assert lacking == {"share"}, "pyarrow keeps none where NaN may be"
    assert all(g.column(n).has_offset_index for g in groups for n in range(metadata.num_columns))
    assert {groups[1].column(4).statistics.min, groups[1].column(4).statistics.max} == {"new.parquet"}
    assert (groups[-1].column(5).statistics.max, groups[-1].column(7).statistics.min) == (289, Decimal(245))


def test_pages_of_other_writers_are_those_of_the_sources() -> None:
    """Their headers have other fields than Arrow's usual ones, and checksums whose bytes are signed in Arrow's buffers."""
    table, sink, copied = rows(0, 200, "a.parquet"), io.BytesIO(), io.BytesIO()
    pq.write_table(table, sink, data_page_version="2.0", write_page_checksum=True, data_page_size=64)
    stitch(copied, [source_of(sink.getvalue(), "a.parquet")] * 2, NAME, "new.parquet", {})
    found = pq.read_table(pa.BufferReader(copied.getvalue()), page_checksum_verification=True)
    assert found.drop_columns([NAME, "share"]).equals(pa.concat_tables([table, table]).drop_columns([NAME, "share"]))
    assert found[NAME].unique().to_pylist() == ["new.parquet"]


def test_columns_anew_stand_beside_those_that_stay() -> None:
    old = rows(0, 200, "a.parquet")
    content = file_of(old, "a.parquet")
    changed = pa.table({"inner": old["inner"].take(pa.array(range(199, -1, -1))), "number": pa.array([None] * 200, pa.int64())})
    source, sizes = source_of(content, "a.parquet"), [67, 67, 66]
    some = replace(source, groups=[0, 2], anew=in_memory(columns_anew(changed.slice(0, 133), [67, 66], SETTINGS)))
    sink = io.BytesIO()
    stitch(sink, [some, replace(source, groups=[1])], NAME, "new.parquet", {})
    found = verify_parquet_file(sink.getvalue(), "new.parquet")
    assert found["number"].slice(0, 133).null_count == 133
    assert found["number"].slice(133).to_pylist() == old["number"].slice(67, 67).to_pylist()
    assert found["inner"].slice(0, 133).to_pylist() == changed["inner"].slice(0, 133).to_pylist()
    places = [*range(67), *range(134, 200), *range(67, 134)]
    for name in ("_hoodie_record_key", "price", "many"):
        assert found[name].to_pylist() == old[name].take(pa.array(places)).to_pylist()
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    groups = [metadata.row_group(number) for number in range(3)]
    assert [group.num_rows for group in groups] == [sizes[0], sizes[2], sizes[1]]
    assert [group.column(5).statistics.null_count for group in groups[:2]] == [67, 66]
    index = page_index_of(metadata, read_end(pa.BufferReader(sink.getvalue()), "new.parquet")[1], "new.parquet")
    assert index is not None
    assert index.places(0, [5])[5].borders.tolist() == index.places(0, [7])[7].borders.tolist()


@pytest.mark.parametrize("nullable", [True, False])
def test_pages_of_the_name_have_the_rows_that_other_pages_have(nullable: bool) -> None:
    """So that who reads some pages of all columns need not read all pages of this one."""
    table = rows(0, 200, "a.parquet")
    schema = table.schema.set(4, table.schema.field(NAME).with_nullable(nullable))
    content = file_of(table.cast(schema), "a.parquet")
    sink = io.BytesIO()
    stitch(sink, [source_of(content, "a.parquet")], NAME, "new.parquet", {})
    assert set(verify_parquet_file(sink.getvalue(), "new.parquet")[NAME].to_pylist()) == {"new.parquet"}
    metadata, end = read_end(pa.BufferReader(sink.getvalue()), "new.parquet")
    index = page_index_of(metadata, end)
    assert index is not None
    for group in range(metadata.num_row_groups):
        places = index.places(group, [3, 4])
        assert places is not None
        assert len(places[4].borders) > 3
        assert places[4].borders.tolist() == places[3].borders.tolist()
        bounds = index.bounds(group, 4)
        assert bounds is not None
        assert set(bounds.low + bounds.high) == {b"new.parquet"}
        assert set(bounds.nulls or ()) == {0}


def test_a_file_without_page_indexes_is_stitched() -> None:
    table = rows(0, 30, "a.parquet")
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=20, store_schema=False)
    source, new = source_of(sink.getvalue(), "a.parquet"), io.BytesIO()
    stitch(new, [source], NAME, "new.parquet", {})
    found = verify_parquet_file(new.getvalue(), "new.parquet")
    assert found["number"].equals(table["number"])
    assert set(found[NAME].to_pylist()) == {"new.parquet"}


def test_a_stitched_file_is_stitched_again() -> None:
    first = file_of(rows(0, 100, "a.parquet"), "a.parquet")
    for name in ("b.parquet", "c.parquet"):
        sink = io.BytesIO()
        stitch(sink, [source_of(first, "a.parquet" if name == "b.parquet" else "b.parquet")] * 2, NAME, name, {})
        first = sink.getvalue()
    assert verify_parquet_file(first, "c.parquet").num_rows == 400


def test_some_row_groups_are_copied() -> None:
    content = file_of(rows(0, 200, "a.parquet"), "a.parquet")
    source, sink = source_of(content, "a.parquet"), io.BytesIO()
    parts = [replace(source, groups=[2]), source_of(file_of(rows(500, 5, "b.parquet"), "b.parquet"), "b.parquet")]
    stitch(sink, [*parts, replace(source, groups=[0])], NAME, "new.parquet", {})
    found = verify_parquet_file(sink.getvalue(), "new.parquet")
    all_of_them = rows(0, 200, "a.parquet")["number"].to_pylist()
    assert found["number"].to_pylist() == [*all_of_them[134:], *rows(500, 5, "")["number"].to_pylist(), *all_of_them[:67]]


@pytest.mark.parametrize("far", [3, 60, 200, -5])
def test_damage_of_page_indexes_is_not_copied(far: int) -> None:
    """Readers pass over pages by them: with a checksum of its own in the new file, rows would be missing."""
    content = bytearray(file_of(rows(0, 100, "a.parquet"), "a.parquet"))
    source = source_of(bytes(content), "a.parquet")
    chunks = [source.metadata.row_group(g).column(c) for g in range(2) for c in range(source.metadata.num_columns)]
    begin = max(first(chunk) + chunk.total_compressed_size for chunk in chunks)
    content[begin + far if far > 0 else len(content) - len(source.footer) + far] ^= 1
    with pytest.raises(CorruptFileError, match="page indexes"):
        stitch(io.BytesIO(), [source_of(bytes(content), "a.parquet")], NAME, "b.parquet", {})


def first(chunk: pq.ColumnChunkMetaData) -> int:
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)


def test_damage_is_not_copied() -> None:
    content = bytearray(file_of(rows(0, 100, "a.parquet"), "a.parquet"))
    source = source_of(bytes(content), "a.parquet")
    start = source.metadata.row_group(0).column(5).data_page_offset
    content[start + 40] ^= 1
    with pytest.raises(CorruptFileError, match=r"column number"):
        stitch(io.BytesIO(), [source_of(bytes(content), "a.parquet")], NAME, "b.parquet", {})


@pytest.mark.parametrize("column", ["number", "day", "many.list.element"])
def test_damage_of_headers_of_pages_is_not_copied(column: str) -> None:
    """No checksum covers them: what is copied all the same must be as good as it was."""
    table = rows(0, 40, "a.parquet")
    good = file_of(table, "a.parquet")
    for at in headers_of(good, column):
        for bit in range(8):
            content = bytearray(good)
            content[at] ^= 1 << bit
            sink = io.BytesIO()
            try:
                stitch(sink, [source_of(bytes(content), "a.parquet")], NAME, "b.parquet", {})
            except CorruptFileError:
                continue
            found = verify_parquet_file(sink.getvalue(), "b.parquet")
            assert repr(found.drop_columns([NAME]).to_pylist()) == repr(table.drop_columns([NAME]).to_pylist()), (at, bit)


def headers_of(content: bytes, column: str) -> list[int]:
    """Bytes of the headers of a column's pages, but for the number of values of a dictionary: nothing else tells it."""
    group = pq.read_metadata(pa.BufferReader(content)).row_group(0)
    (chunk,) = (c for at in range(group.num_columns) if (c := group.column(at)).path_in_schema == column)
    found: list[int] = []
    at = first(chunk)
    while at < first(chunk) + chunk.total_compressed_size:
        header, end = decode_struct(content, at)
        found += range(at, end)
        if 7 in header:
            found.remove(content.index(b"\x3c\x15", at) + 2)
        at = end + header[3][1]
    return found


def _of_spark(content: bytes) -> bytes:
    table = pq.read_table(pa.BufferReader(content))
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda: file_of(rows(0, 9, "b").drop_columns(["many"]), "b"), "b has other columns than the table"),
        (lambda: _of_spark(file_of(rows(0, 9, "b"), "b")), "b says otherwise of its calendar than a"),
        (
            lambda: file_of(rows(0, 9, "b").select([*META_COLUMNS, *reversed(rows(0, 9, "b").column_names[5:])]), "b"),
            "other columns",
        ),
    ],
)
def test_files_that_do_not_go_together(other: Callable[[], bytes], why: str) -> None:
    sources = [source_of(file_of(rows(0, 9, "a"), "a"), "a"), source_of(other(), "b")]
    assert why in (why_not_stitched(sources, rows(0, 0, "").schema, NAME) or "")


def test_no_rows_are_no_file() -> None:
    assert why_not_stitched([source_of(file_of(rows(0, 0, "a"), "a"), "a")], rows(0, 0, "").schema, NAME) == "there are no rows"
