"""Base files: what is written comes back, in the layout that Java reads."""

from __future__ import annotations

import io
import json
import math
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import ConfigError, CorruptFileError, SchemaMismatch
from hudimeta.formats.parquet import (
    BloomSettings,
    ParquetFileWriter,
    ParquetSettings,
    read_footer,
    read_key_column,
    write_base_file,
)
from hudimeta.formats.parquet.pages import pages_around
from hudimeta.types import META_COLUMNS
from tests.formats.parquet_files import EVERYTHING, with_meta, written


def test_rows_and_footer_come_back():
    rows = with_meta(EVERYTHING, ["b", "a"])
    sink, summary = written(rows, avro_schema='{"type":"record"}')
    content = sink.getvalue()
    assert (summary.size, summary.rows, summary.min_key, summary.max_key) == (len(content), 2, "a", "b")
    back = pq.read_table(io.BytesIO(content))
    assert back.schema.equals(rows.schema)
    assert repr(back.to_pylist()) == repr(rows.to_pylist())
    footer = read_footer(content)
    assert (footer.num_rows, footer.min_key, footer.max_key, footer.avro_schema) == (2, "a", "b", '{"type":"record"}')
    assert footer.key_value["writer.model.name"] == "avro"
    assert footer.bloom is not None
    assert footer.bloom.might_contain("a")
    assert not footer.bloom.might_contain("c")
    assert footer.chunk_bytes == summary.column_bytes
    assert footer.chunk_bytes["st.in.c"][0] > 0


def test_the_layout_is_the_one_that_java_reads():
    sink, _ = written(with_meta(EVERYTHING))
    file = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    columns = {file.schema.column(i).path: file.schema.column(i) for i in range(len(file.schema))}
    assert (columns["dec"].physical_type, columns["dec"].length) == ("FIXED_LEN_BYTE_ARRAY", 5)
    assert json.loads(columns["t"].logical_type.to_json())["timeUnit"] == "microseconds"
    assert "li.list.element" in columns
    assert b"ARROW:schema" not in file.metadata.metadata
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_column_with_nan_has_no_statistics_in_the_footer():
    """Pyarrow would leave NaN out of them, and Spark would pass over rows that `x > 5` matches."""
    rows = pa.table({"x": [1.5, math.nan, None], "y": [1.0, 2.0, None], "st": [{"z": math.nan}, {"z": 1.0}, None]})
    sink, _ = written(with_meta(rows))
    assert statistics_of(sink, 0) == {"x": None, "y": (1.0, 2.0), "st.z": None}
    sink = io.BytesIO()
    file = ParquetFileWriter(sink, with_meta(rows).schema, settings=ParquetSettings(row_group_bytes=1))
    file.write(with_meta(rows.slice(2)))
    file.write(with_meta(rows))
    file.close()
    assert statistics_of(sink, 1)["x"] is None


def statistics_of(sink: io.BytesIO, group: int) -> dict[str, object]:
    found = pq.read_metadata(io.BytesIO(sink.getvalue())).row_group(group)
    columns = [found.column(i) for i in range(5, found.num_columns)]
    return {c.path_in_schema: c.statistics and (c.statistics.min, c.statistics.max) for c in columns}


def test_an_empty_file_has_an_empty_filter_and_no_key_range():
    sink, summary = written(with_meta(EVERYTHING).slice(0, 0))
    footer = read_footer(sink.getvalue())
    assert (footer.num_rows, footer.min_key, summary.min_key) == (0, None, None)
    assert footer.bloom is not None
    assert not footer.bloom.might_contain("k0")
    assert summary.bounds.num_rows == 0
    assert footer.statistics.num_rows == 0


def test_virtual_keys_leave_no_keys_in_the_footer():
    rows = with_meta(pa.table({"v": [1]}))
    rows = rows.set_column(2, META_COLUMNS[2], pa.nulls(1, pa.string()))
    sink, summary = written(rows)
    footer = read_footer(sink.getvalue())
    assert (footer.bloom, footer.min_key, summary.max_key) == (None, None, None)


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_both_kinds_of_filter(kind):
    rows = with_meta(pa.table({"v": range(300)}))
    sink, _ = written(rows, settings=ParquetSettings(bloom=BloomSettings(kind)))
    footer = read_footer(sink.getvalue())
    assert footer.key_value["hoodie_bloom_filter_type_code"] == kind
    assert footer.bloom.might_contain_many(rows[META_COLUMNS[2]]).all()
    assert not footer.bloom.might_contain_many(pa.array(["other", "x1"])).any()
    assert (
        "org.apache.hudi.bloomfilter"
        not in read_footer(written(rows, settings=ParquetSettings(bloom=None))[0].getvalue()).key_value
    )


def test_small_batches_become_whole_row_groups():
    rows = with_meta(pa.table({"v": range(1000)}))
    size = rows.select([*META_COLUMNS[1:3], "v"]).nbytes  # the others repeat their values
    sink = io.BytesIO()
    file = ParquetFileWriter(sink, rows.schema, settings=ParquetSettings(row_group_bytes=size // 2))
    for start in range(0, 1000, 10):
        file.write(rows.slice(start, 10))
    summary = file.close()
    groups = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.num_row_groups
    assert 2 <= groups <= 3
    assert summary.bounds.to_pylist()[-1] == {"column": "v", "min": 0, "max": 999, "null_count": 0, "value_count": 1000}
    big, _ = written(rows, settings=ParquetSettings(row_group_bytes=size // 10))
    assert pq.ParquetFile(io.BytesIO(big.getvalue())).metadata.num_row_groups >= 10


def test_many_rows_become_small_row_groups_whose_pages_have_an_index():
    rows = pa.table({"v": range(140_000), "few": [n % 7 for n in range(140_000)], "x": [math.nan, 1.0] * 70_000})
    sink, summary = written(with_meta(rows))
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    assert [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)] == [70_000, 70_000]
    for group in map(metadata.row_group, range(2)):
        by_name = {c.path_in_schema: c for c in map(group.column, range(group.num_columns))}
        assert {name: c.has_column_index for name, c in by_name.items() if name in rows.column_names} == {
            "v": True,
            "few": True,
            "x": False,  # it would leave NaN out
        }
        dictionaries = {name for name, c in by_name.items() if c.has_dictionary_page}
        assert "few" in dictionaries
        assert not dictionaries & {"v", "_hoodie_record_key", "_hoodie_commit_seqno"}, "of values that occur once"
    assert summary.rows == 140_000


def test_columns_have_a_dictionary_where_it_saves_bytes():
    count = 1 << 17
    dice = random.Random(1)
    few, some = [dice.randrange(10_000) for _ in range(count)], [dice.getrandbits(48) for _ in range(count // 5)]
    columns = {
        "few": few,
        "few_texts": [f"supplier {n}" for n in few],
        "anywhere": dice.choices(some, k=count),
        "together": [n // 3 for n in range(count)],
        "together_texts": [f"order {n // 3}" for n in range(count)],
        "once": range(count),
        "one": ["x"] * count,
    }
    sink, _ = written(with_meta(pa.table(columns)))
    group = pq.read_metadata(io.BytesIO(sink.getvalue())).row_group(0)
    found = {c.path_in_schema for c in map(group.column, range(group.num_columns)) if c.has_dictionary_page}
    assert found & set(columns) == {"few", "few_texts", "anywhere", "one"}


def test_pages_are_small():
    content = written(with_meta(pa.table({"v": range(20_000)})))[0].getvalue()
    wanted = np.arange(20_000) == 10_000
    found = pages_around(pq.read_metadata(io.BytesIO(content)), 0, ["v"], wanted, lambda at, count: content[at : at + count])
    assert found is not None
    assert np.flatnonzero(found.kept).tolist() == list(range(8_192, 16_384))


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "uncompressed"])
def test_codecs(codec):
    sink = io.BytesIO()
    summary = write_base_file(sink, with_meta(EVERYTHING), settings=ParquetSettings(codec))
    assert pq.read_table(io.BytesIO(sink.getvalue())).num_rows == 2
    assert summary.bounds.num_rows == 0


def test_what_is_refused():
    with pytest.raises(ConfigError, match="zstd, snappy, gzip, uncompressed"):
        written(with_meta(EVERYTHING), settings=ParquetSettings(compression="lzo"))
    with pytest.raises(SchemaMismatch, match="meta columns first"):
        written(EVERYTHING)
    file = ParquetFileWriter(io.BytesIO(), with_meta(EVERYTHING).schema)
    with pytest.raises(SchemaMismatch, match="Call conform first"):
        file.write(with_meta(EVERYTHING.drop_columns(["i"])))


def test_a_flipped_bit_in_a_page_is_noticed():
    sink, _ = written(with_meta(pa.table({"v": range(500)})))
    content = bytearray(sink.getvalue())
    key = META_COLUMNS[2]
    chunk = read_footer(bytes(content)).metadata.row_group(0).column(2)
    content[chunk.data_page_offset + chunk.total_compressed_size - 9] ^= 1
    with pytest.raises(CorruptFileError, match=r"p/f\.parquet is damaged .* pages of the column"):
        read_key_column(bytes(content), key, path="p/f.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100, b"PAR1" + b"\xff" * 8 + b"PAR1"])
def test_what_is_no_parquet_file_is_refused_with_its_path(content):
    with pytest.raises(CorruptFileError, match=r"p/f\.parquet is damaged"):
        read_footer(content, "p/f.parquet")


def test_key_column_is_read_only_when_a_wanted_key_may_be_there():
    rows = with_meta(pa.table({"v": [1, 2, 3]}), ["b", "d", "f"])
    content = written(rows)[0].getvalue()
    key = META_COLUMNS[2]
    assert read_key_column(content, key).to_pylist() == ["b", "d", "f"]
    assert read_key_column(content, key, pa.array(["a", "d"])).to_pylist() == ["b", "d", "f"]
    assert read_key_column(content, key, pa.array(["a", "z"])) is None, "outside the key range"
    assert read_key_column(content, key, pa.array(["c", "e"])) is None, "not in the bloom filter"
    plain = io.BytesIO()
    pq.write_table(rows, plain)
    assert read_key_column(plain.getvalue(), key, pa.array(["c"])).to_pylist() == ["b", "d", "f"]
    with pytest.raises(CorruptFileError, match="the column nope"):
        read_key_column(content, "nope")
