"""Footers: of recorded tables they agree with the rows; what is decoded is encoded to the same end of a file."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet import read_footer, verify_parquet_file, write_base_file
from hudimeta.formats.parquet.known_keys import FileKeys
from hudimeta.formats.parquet.seal import FILE_KEY, FOOTER_KEY, INDEX_KEY
from hudimeta.formats.parquet.thrift import decode_struct, encode_struct
from hudimeta.formats.parquet.whole_footer import MAGIC, decode_footer, encode_footer
from hudimeta.types import META_COLUMNS
from tests.formats.parquet_files import EVERYTHING, footer_encloses, with_meta, written
from tests.recorded_tables import CONFORMANCE, RICH

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
    data = file.read_bytes()
    before = data[: len(data) - metadata.serialized_size - len(MAGIC) - 4]
    end = encode_footer(decode_footer(data[len(before) :]))
    assert end == data[len(before) :]
    again = pq.read_metadata(pa.BufferReader(MAGIC + end))
    assert again.equals(metadata)
    assert pq.read_table(io.BytesIO(before + end)).equals(ROWS)


def copied_by_java(content: bytes, writer: bytes, entry: bytes) -> bytes:
    """A file as another writer leaves it that takes row groups and entries of one of ours."""
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer, _ = decode_struct(content, start)
    text = 8
    footer[5][1].values.append({1: (text, entry), 2: (text, b"parquet-cpp-arrow version 26.0.1")})
    footer[6] = (text, writer)
    end = encode_struct(footer)
    return content[:start] + end + len(end).to_bytes(4, "little") + MAGIC


def test_our_entries_mean_nothing_in_a_file_that_java_copied() -> None:
    sink = io.BytesIO()
    rows = with_meta(ROWS)
    write_base_file(sink, rows, name="old.parquet")
    copy = copied_by_java(sink.getvalue(), b"parquet-mr version 1.13.1", b"original.created.by")
    assert verify_parquet_file(copy, "old.parquet").num_rows == len(rows)
    footer = read_footer(copy, "new.parquet")
    assert (footer.num_rows, footer.min_key) == (len(rows), min(rows[META_COLUMNS[2]].to_pylist()))
    assert not [key for key in footer.key_value if key.startswith("hudimeta.")]
    assert FileKeys.of(footer) == FileKeys(None, None, len(rows), None), "what it says of the keys was not checked"


@pytest.mark.parametrize(
    ("writer", "entry"),
    [(b"parquet-mr version 1.13.1", b"original.created"), (b"parquet-cpp-arrow version 26.0.1", b"original.created.by")],
)
def test_a_footer_of_ours_is_not_changed_unnoticed(writer: bytes, entry: bytes) -> None:
    sink = io.BytesIO()
    write_base_file(sink, with_meta(ROWS), avro_schema="{}", name="old.parquet")
    with pytest.raises(CorruptFileError, match="a footer with the checksum"):
        read_footer(copied_by_java(sink.getvalue(), writer, entry), "old.parquet")


@pytest.mark.parametrize("key", [FOOTER_KEY, INDEX_KEY, FILE_KEY])
def test_a_text_that_reads_like_a_seal_is_a_text(key: str) -> None:
    text = f"{key}\x18\x0800000000"
    rows = with_meta(pa.table({"id": [text], "x": [text]}))
    sink = io.BytesIO()
    write_base_file(sink, rows, name="new.parquet")
    assert verify_parquet_file(sink.getvalue(), "new.parquet")["x"].to_pylist() == [text]
    assert read_footer(sink.getvalue(), "new.parquet").statistics["max"][-1].as_py() == text


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


@pytest.mark.rotation(3)
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
