"""Base files: what is written comes back, bounds enclose every value, Apache Hudi's own footers are understood."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import math
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import ConfigError, CorruptFileError, SchemaMismatch
from hudimeta.formats.parquet import (
    BloomSettings,
    BoundsOfColumns,
    ParquetFileWriter,
    ParquetSettings,
    column_bounds,
    leaf_names,
    read_footer,
    read_key_column,
    write_base_file,
)
from hudimeta.formats.parquet.pages import pages_around
from hudimeta.types import META_COLUMNS
from tests.recorded_tables import CONFORMANCE, RICH

UTC = dt.timezone.utc


def with_meta(rows: pa.Table, keys: list[str] | None = None) -> pa.Table:
    """Five meta columns before the rows; keys are k0, k1, … unless given."""
    texts = keys or [f"k{i}" for i in range(rows.num_rows)]
    meta = [pa.array(["x"] * rows.num_rows, pa.string()) for _ in META_COLUMNS]
    meta[2] = pa.array(texts, pa.string())
    return pa.Table.from_arrays([*meta, *rows.columns], names=[*META_COLUMNS, *rows.column_names])


def written(rows: pa.Table, **options):
    sink = io.BytesIO()
    file = ParquetFileWriter(sink, rows.schema, **options)
    file.write(rows)
    return sink, file.close()


EVERYTHING = pa.table(
    {
        "b": [True, None],
        "i": pa.array([1, 2], pa.int32()),
        "l": [3, None],
        "d": [1.5, math.nan],
        "s": ["é" * 100, "z"],
        "y": [b"\x00", b"\xff"],
        "dec": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
        "day": [dt.date(2024, 1, 1), dt.date(1900, 1, 1)],
        "t": pa.array([dt.datetime(2024, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
        "n": pa.array([dt.datetime(2024, 1, 1)] * 2, pa.timestamp("us")),
        "st": pa.array(
            [{"a": 1, "in": {"c": "x"}}, None], pa.struct([("a", pa.int32()), ("in", pa.struct([("c", pa.string())]))])
        ),
        "li": pa.array([["a", None], None], pa.list_(pa.string())),
        "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    }
)


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
    sink = io.BytesIO()
    file = ParquetFileWriter(sink, rows.schema, settings=ParquetSettings(row_group_bytes=rows.nbytes // 2))
    for start in range(0, 1000, 10):
        file.write(rows.slice(start, 10))
    summary = file.close()
    groups = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.num_row_groups
    assert 2 <= groups <= 3
    assert summary.bounds.to_pylist()[-1] == {"column": "v", "min": 0, "max": 999, "null_count": 0, "value_count": 1000}
    big, _ = written(rows, settings=ParquetSettings(row_group_bytes=rows.nbytes // 10))
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


def test_bounds_of_every_type():
    bounds = {r["column"]: r for r in column_bounds(EVERYTHING).to_pylist()}
    assert (
        list(bounds)
        == ["b", "i", "l", "d", "s", "y", "dec", "day", "t", "n", "st.a", "st.in.c"]
        == leaf_names(EVERYTHING.schema)
    )
    assert (bounds["s"]["min"], bounds["s"]["max"]) == ("z", "é" * 100), "texts are not cut"
    assert (bounds["d"]["min"], math.isnan(bounds["d"]["max"])) == (1.5, True)
    assert (bounds["dec"]["max"], bounds["dec"]["null_count"]) == (decimal.Decimal("1.50"), 1)
    assert (bounds["st.in.c"]["min"], bounds["st.in.c"]["null_count"]) == ("x", 1)
    assert bounds["day"]["min"] == dt.date(1900, 1, 1)


def test_bounds_are_typed():
    table = column_bounds(EVERYTHING)
    types = {str(n): table["min"][i].value.type for i, n in enumerate(table["column"])}
    assert types["dec"] == pa.decimal128(10, 2)
    assert types["t"] == pa.timestamp("us", "UTC")
    assert types["i"] == pa.int32()


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.0, 1.0], "-0.0", "1.0"),
        ([-0.0, -1.0], "-1.0", "0.0"),
        ([math.nan], "nan", "nan"),
        ([math.nan, None, -math.inf], "-inf", "nan"),
        ([None, None], "None", "None"),
    ],
)
def test_floats_zero_and_nan(values, low, high):
    found = column_bounds(pa.table({"x": pa.array(values, pa.float64())})).to_pylist()[0]
    assert (repr(found["min"]), repr(found["max"])) == (low, high)


def test_bounds_of_chosen_columns():
    assert column_bounds(EVERYTHING, ["st.a", "nope", "i"])["column"].to_pylist() == ["st.a", "i"]


def total_order(value: object) -> object:
    """NaN above all, both zeros alike."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


values_of = {
    "floats": (pa.float64(), st.floats()),
    "longs": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "texts": (pa.string(), st.text()),
    "bytes": (pa.binary(), st.binary()),
    "decimals": (pa.decimal128(20, 4), st.decimals(-(10**12), 10**12, places=4)),
    "flags": (pa.bool_(), st.booleans()),
    "days": (pa.date32(), st.dates()),
}


@given(st.data())
def test_bounds_enclose_every_value_however_the_rows_are_cut(data):
    kind, strategy = values_of[data.draw(st.sampled_from(sorted(values_of)))]
    values = data.draw(st.lists(st.none() | strategy, max_size=12))
    cut = data.draw(st.integers(0, len(values)))
    bounds = BoundsOfColumns()
    bounds.add(pa.table({"x": pa.array(values[:cut], kind)}))
    bounds.add(pa.table({"x": pa.array(values[cut:], kind)}))
    found = bounds.table().to_pylist()[0]
    real = [v for v in values if v is not None]
    assert (found["null_count"], found["value_count"]) == (len(values) - len(real), len(values))
    if not real:
        assert (found["min"], found["max"]) == (None, None)
        return
    assert total_order(found["min"]) == min(map(total_order, real))
    assert total_order(found["max"]) == max(map(total_order, real))


def footer_encloses(content: bytes, name: str) -> None:
    footer = read_footer(content, name)
    rows = pq.ParquetFile(io.BytesIO(content)).read()
    said = {r["column"]: r for r in footer.statistics.to_pylist()}
    assert bool(said) == bool(footer.num_rows)
    for found in column_bounds(rows).to_pylist() if said else ():
        entry = said[found["column"]]
        assert not entry["repeated"]
        assert (entry["null_count"], entry["value_count"]) == (found["null_count"], found["value_count"])
        if found["min"] is not None and entry["min"] is not None:
            assert total_order(entry["min"]) <= total_order(found["min"])
            assert total_order(found["max"]) <= total_order(entry["max"])


@given(
    st.lists(st.none() | st.floats(), min_size=1, max_size=8),
    st.lists(st.none() | st.text(max_size=80), min_size=1, max_size=8),
)
def test_statistics_of_our_footers_enclose_every_value(floats, texts):
    count = min(len(floats), len(texts))
    rows = pa.table({"x": pa.array(floats[:count], pa.float64()), "s": pa.array(texts[:count], pa.string())})
    footer_encloses(written(with_meta(rows))[0].getvalue(), "ours")


def base_files(base):
    return [f for f in sorted(base.rglob("*.parquet")) if ".hoodie" not in f.relative_to(base).parts]


def check_recorded(base):
    """Row count, key range, filter and schema of each footer agree with the rows of the file."""
    for path in base_files(base):
        content = path.read_bytes()
        footer = read_footer(content, path.name)
        rows = pq.ParquetFile(io.BytesIO(content)).read()
        assert footer.num_rows == rows.num_rows
        assert footer.arrow_schema.names == rows.column_names
        keys = rows[META_COLUMNS[2]]
        if footer.min_key is not None:
            assert (footer.min_key, footer.max_key) == (min(keys.to_pylist()), max(keys.to_pylist()))
        if footer.bloom is not None:
            assert footer.bloom.might_contain_many(keys.combine_chunks()).all()
        if footer.avro_schema is not None:
            assert [f["name"] for f in json.loads(footer.avro_schema)["fields"]] == rows.column_names
        footer_encloses(content, path.name)


@pytest.mark.parametrize("name", CONFORMANCE.names())
def test_footers_of_conformance_tables(name, conformance_table):
    check_recorded(conformance_table(name))


@pytest.mark.parametrize("name", RICH.names())
def test_footers_of_rich_tables(name, rich_table):
    check_recorded(rich_table(name))


def test_list_layouts_of_apache_hudi_are_read(rich_table):
    """Avro's `array` and Spark's `list.element`: the leaf's path differs, the column does not."""
    layouts = set()
    for table in ("all_types_cow8", "evolve_write_mor"):
        for path in base_files(rich_table(table)):
            footer = read_footer(path.read_bytes())
            layouts |= {p.split(".", 1)[1] for p in footer.chunk_bytes if p.startswith(("ar.", "l."))}
            column = "ar" if table == "all_types_cow8" else "l"
            assert pa.types.is_list(footer.arrow_schema.field(column).type)
    assert {"array", "list.element"} <= layouts


def test_sparks_older_list_layout_is_read():
    """`bag.array`: names of Spark's row writer, put here into a footer of ours that differs in nothing else."""
    rows = with_meta(EVERYTHING.select(["li"]))
    content = written(rows)[0].getvalue()
    length = int.from_bytes(content[-8:-4], "little")
    pages, footer = content[: -8 - length], content[-8 - length : -8]
    footer = footer.replace(b"\x04list", b"\x03bag").replace(b"\x07element", b"\x05array")
    footer = footer.replace(b"hudimeta.", b"somebody.")  # who seals nothing
    older = pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert "li.bag.array" in read_footer(older).chunk_bytes
    assert pq.ParquetFile(io.BytesIO(older)).read()["li"].to_pylist() == [["a", None], None]
