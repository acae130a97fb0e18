"""What stands in a base file that an update wrote anew: rows, exact statistics, and the filter that hashing all keys gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CorruptFileError
from hudimeta.formats.bloom import BloomFilter, BloomRow, TypeCode, size_of_filter
from hudimeta.formats.parquet import ParquetFooter, column_bounds, read_footer
from hudimeta.formats.parquet.footer import BLOOM_CHECKSUM_KEY, BLOOM_KEY, MAX_KEY_KEY, MIN_KEY_KEY
from hudimeta.formats.parquet.known_keys import FileKeys, KnownKeys, checksum_of
from hudimeta.formats.parquet.seal import FOOTER_KEY
from hudimeta.metadata import column_stats
from hudimeta.schema import with_meta_columns
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS
from hudimeta.write.table_files import TableFiles
from tests.examples import at_most

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("word", pa.string()),
        ("kind", pa.string()),
        ("x", pa.float64()),
        ("point", pa.struct([("a", pa.float32()), ("b", pa.string())])),
        ("words", pa.list_(pa.string())),
        ("amount", pa.decimal128(9, 2)),
    ]
)
NAN = float("nan")
ONE_FILE = {"hoodie.copyonwrite.record.size.estimate": "50"}
NAMED = ("word", "kind", "ts", "amount")


def row(number: int, ts: int = 1, **cells: Any) -> dict[str, Any]:
    own = {
        "id": f"k{number:05d}",
        "ts": ts,
        "word": f"word {number}",
        "kind": "abc"[number % 3],
        "x": float(number),
        "point": {"a": number / 2, "b": "b"},
        "words": ["w"] * (number % 3),
        "amount": number,
    }
    return own | cells


def rows_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def made(path: Path, rows: list[dict[str, Any]], kind: str = "COPY_ON_WRITE") -> hudimeta.Table:
    indexes = ["column_stats", "bloom_filters", "record_index"]
    table = hudimeta.Table.create(str(path), SCHEMA, "id", ordering=["ts"], type=kind, indexes=indexes)
    table.bulk_insert(rows_of(rows))
    return table


def file_of(path: Path, table: hudimeta.Table) -> Path:
    slices = table.file_slices()
    assert len(slices) == 1
    return path / str(slices["base_file"][0])


def groups_of(file: Path) -> list[int]:
    """The rows of each row group."""
    metadata = pq.read_metadata(file)
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def pages_of(file: Path, group: int) -> dict[str, bytes]:
    """The bytes of each leaf column of a row group."""
    content, found = file.read_bytes(), pq.read_metadata(file).row_group(group)
    chunks = [found.column(at) for at in range(found.num_columns)]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    return {c.path_in_schema: content[at : at + c.total_compressed_size] for at, c in zip(starts, chunks, strict=True)}


def footer_of(file: Path) -> ParquetFooter:
    return read_footer(file.read_bytes(), str(file))


def checked(path: Path, expected: list[dict[str, Any]]) -> ParquetFooter:
    """The table's only file, which must hold these rows, exact statistics and the filter of its keys."""
    table = hudimeta.Table(str(path))
    found = sorted(table.scan(columns=SCHEMA.names).to_table().to_pylist(), key=lambda r: str(r["id"]))
    wanted = rows_of(sorted(expected, key=lambda r: str(r["id"]))).to_pylist()
    assert repr(found) == repr(wanted)  # by text, for which -0.0 is not 0.0 and NaN is NaN
    check_all(open_storage(str(path)))
    file = file_of(path, table)
    stored, footer = pq.ParquetFile(file).read(), footer_of(file)
    assert stored["_hoodie_file_name"].unique().to_pylist() == [file.name]
    keys = stored["_hoodie_record_key"]
    assert_filter_is_of(keys, footer.bloom_text)
    assert (footer.min_key, footer.max_key) == (pc.min(keys).as_py(), pc.max(keys).as_py())
    assert_statistics_are_exact(table, stored, file.name)
    return footer


def assert_filter_is_of(keys: pa.ChunkedArray, text: str | None) -> None:
    """A filter of these keys and no others, with room for no more than as many."""
    assert text is not None
    (row,) = BloomFilter.from_base64(text, "DYNAMIC_V0").rows
    least = size_of_filter(max(len(keys), 1), 1e-9)
    assert least[0] <= row.bit_count <= 2 * least[0]
    none = BloomFilter("SIMPLE", (BloomRow(row.bit_count, row.hash_count, np.zeros_like(row.content)),))
    assert (BloomFilter.united([none], keys).rows[0].content == row.content).all()


def assert_statistics_are_exact(table: hudimeta.Table, stored: pa.Table, name: str, columns: Sequence[str] = NAMED) -> None:
    records = table.metadata.records("column_stats")
    own = records.filter(pc.and_(pc.equal(records["file_name"], name), pc.invert(records["is_deleted"])))
    bounds = {str(r["column"]): r for r in column_bounds(stored).to_pylist()}
    assert own["column_name"].to_pylist(), "no statistics at all"
    for record in own.to_pylist():
        exact = bounds[record["column_name"]]
        assert (record["null_count"], record["value_count"]) == (exact["null_count"], exact["value_count"]), record[
            "column_name"
        ]
    for column in columns:
        typed = column_stats.typed(own.filter(pc.equal(own["column_name"], column)), SCHEMA.field(column).type)
        assert typed["min"].to_pylist() == [bounds[column]["min"]], column
        assert typed["max"].to_pylist() == [bounds[column]["max"]], column


def test_an_update_of_one_column_leaves_the_others_and_the_filter(tmp_path: Path) -> None:
    rows = [row(number) for number in range(3000)]
    path = tmp_path / "t"
    table = made(path, rows)
    before = footer_of(file_of(path, table))
    changes = [row(number, word=f"other {number}") for number in range(0, 3000, 100)]
    for _ in range(2):
        table.upsert(rows_of(changes))
        after = checked(path, list(({r["id"]: r for r in rows} | {r["id"]: r for r in changes}).values()))
        assert after.bloom_text == before.bloom_text
        assert after.key_value[BLOOM_CHECKSUM_KEY] == checksum_of(after.bloom_text or "")


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    "cells",
    [
        {"x": -0.0},
        {"x": NAN},
        {"x": None},
        {"point": {"a": -0.0, "b": "b"}},
        {"point": {"a": 0.0, "b": "c"}},
        {"point": None},
        {"words": None},
        {"words": ["w", None]},
        {"word": None, "kind": "d"},
        {"kind": None},
        {"amount": None},
        {"amount": -7},
        {"ts": 5, "word": "zzz"},
    ],
    ids=repr,
)
def test_every_cell_that_changes_is_stored(tmp_path: Path, cells: dict[str, Any]) -> None:
    # So many that the texts of few values stand in the file as codes.
    rows = [row(number) for number in range(400)]
    table = made(tmp_path / "t", rows)
    changed = row(0) | cells
    table.upsert(rows_of([changed]))
    checked(tmp_path / "t", [changed, *rows[1:]])
    table.upsert(rows_of([row(0, ts=9)]))
    checked(tmp_path / "t", [row(0, ts=9), *rows[1:]])


def test_the_only_value_of_a_bound_goes_with_its_row(tmp_path: Path) -> None:
    rows = [row(number) for number in range(20)]
    table = made(tmp_path / "t", [*rows, row(20, word="zzz", kind="z", amount=999)])
    table.delete(rows_of([row(20)]).select(["id"]))
    checked(tmp_path / "t", rows)
    table.upsert(rows_of([row(5, word="aaa", kind="A", amount=-1)]))
    table.upsert(rows_of([row(5)]))
    checked(tmp_path / "t", rows)


def test_texts_of_few_values_come_as_codes_unless_somebody_looks_at_them(tmp_path: Path) -> None:
    made(tmp_path / "t", [row(number) for number in range(400)])
    stored = read_rows(tmp_path / "t")
    coded = [f.name for f in stored.schema if pa.types.is_dictionary(f.type)]
    assert {"kind", "_hoodie_file_name", "_hoodie_commit_time"} <= set(coded)
    assert not {"_hoodie_record_key", "word"} & set(coded)
    hudimeta.Table(str(tmp_path / "t")).metadata.create_index(type="secondary_index", columns=["kind"], name="by_kind")
    assert stored.schema.field("kind").type == pa.dictionary(pa.int32(), pa.string())
    assert read_rows(tmp_path / "t").schema.field("kind").type == pa.string()


def read_rows(path: Path) -> pa.Table:
    """The rows of a table's only file, as they come to be written anew."""
    session = WriteSession(open_storage(str(path)), OPTIONS.read({}))
    files = TableFiles.at(session, session.properties.load_timeline(session.storage))
    name = str(hudimeta.Table(str(path)).file_slices()["base_file"][0])
    return files.read_base(with_meta_columns(files.snapshot.file_schema))("", name, 0).rows


def test_row_groups_with_dictionaries_of_their_own(tmp_path: Path) -> None:
    count = (1 << 17) + 5000
    names = [f"k{number:06d}" for number in range(count)]
    kinds = [f"early {n % 5}" if n < count // 2 else f"late {n % 7}" for n in range(count)]
    rows = pa.table({"id": names, "ts": [1] * count, "kind": kinds})
    path = tmp_path / "t"
    table = hudimeta.Table.create(str(path), rows.schema, "id", ordering=["ts"], indexes=["column_stats"], options=ONE_FILE)
    table.bulk_insert(rows)
    assert pq.read_metadata(file_of(path, table)).num_row_groups > 1
    at = [3, count // 2, count - 1]
    changed = pa.table({"id": [names[n] for n in at], "ts": [2, 2, 2], "kind": ["early 0", "new", None]}, schema=rows.schema)
    table.upsert(changed)
    expected = dict(zip(names, kinds, strict=True)) | dict(
        zip(changed["id"].to_pylist(), changed["kind"].to_pylist(), strict=True)
    )
    assert found_in(table) == expected
    fresh = pa.table({"id": ["z1", "z2"], "ts": [1, 1], "kind": ["late 1", "newest"]}, schema=rows.schema)
    table.insert(fresh)
    table.delete(rows.slice(0, count // 2).select(["id"]))
    expected = {name: kind for name, kind in expected.items() if name >= names[count // 2]} | {"z1": "late 1", "z2": "newest"}
    assert found_in(table) == expected
    file = file_of(path, table)
    assert_statistics_are_exact(table, pq.ParquetFile(file).read(), file.name, ("kind", "ts"))
    chunk = pq.read_metadata(file).row_group(0).column(7)
    assert chunk.path_in_schema == "kind"
    assert chunk.total_uncompressed_size < chunk.num_values
    check_all(open_storage(str(path)))


def found_in(table: hudimeta.Table) -> dict[str, Any]:
    rows = table.scan(columns=["id", "kind"]).to_table()
    return dict(zip(rows["id"].to_pylist(), rows["kind"].to_pylist(), strict=True))


def test_new_and_deleted_keys_have_a_filter_of_their_own_size(tmp_path: Path) -> None:
    rows = [row(number) for number in range(500)]
    table = made(tmp_path / "t", rows)
    table.insert(rows_of([row(1000)]))
    checked(tmp_path / "t", [*rows, row(1000)])
    table.upsert(rows_of([row(1, ts=2), row(1001)]))
    checked(tmp_path / "t", [rows[0], row(1, ts=2), *rows[2:], row(1000), row(1001)])
    table.delete(rows_of(rows[3:7]).select(["id"]))
    checked(tmp_path / "t", [rows[0], row(1, ts=2), rows[2], *rows[7:], row(1000), row(1001)])


def test_a_column_that_the_file_lacks_is_added(tmp_path: Path) -> None:
    path, rows = tmp_path / "t", [row(number) for number in range(50)]
    table = made(path, rows)
    before = footer_of(file_of(path, table)).bloom_text
    wider = rows_of([row(7, ts=2)]).append_column("more", pa.array(["new"]))
    table.upsert(wider)
    table = hudimeta.Table(str(path))
    found = {r["id"]: r["more"] for r in table.scan(columns=["id", "more"]).to_table().to_pylist()}
    assert found == {r["id"]: "new" if r["id"] == "k00007" else None for r in rows}
    check_all(open_storage(str(path)))
    assert footer_of(file_of(path, table)).bloom_text == before


def test_a_damaged_page_is_not_written_anew_with_a_right_checksum(tmp_path: Path) -> None:
    path, plain = tmp_path / "t", {"hoodie.parquet.compression.codec": "uncompressed"}
    table = hudimeta.Table.create(str(path), SCHEMA, "id", ordering=["ts"], indexes=["record_index"], options=plain)
    table.bulk_insert(rows_of([row(number) for number in range(100)]))
    file, instants = file_of(path, table), table.timeline.writes
    file.write_bytes(file.read_bytes().replace(b"word 42", b"wOrd 42"))
    with pytest.raises(CorruptFileError, match=file.name):
        hudimeta.Table(str(path)).upsert(rows_of([row(7, ts=2)]))
    after = hudimeta.Table(str(path))
    assert after.timeline.writes == instants
    assert file_of(path, after) == file


def test_statistics_are_not_made_of_a_damaged_page(tmp_path: Path) -> None:
    path, plain = tmp_path / "t", {"hoodie.parquet.compression.codec": "uncompressed"}
    table = hudimeta.Table.create(str(path), SCHEMA, "id", ordering=["ts"], indexes=[], options=plain)
    table.bulk_insert(rows_of([row(number) for number in range(100)]))
    file = file_of(path, table)
    file.write_bytes(file.read_bytes().replace(b"word 42", b"wOrd 42"))
    with pytest.raises(CorruptFileError, match=file.name):
        hudimeta.Table(str(path)).metadata.create_index(type="column_stats")
    assert "column_stats" not in set(hudimeta.Table(str(path)).properties.metadata_partitions)


@pytest.mark.parametrize("damage", ["text", "checksum", "neither"])
def test_a_filter_that_was_not_written_so_is_not_taken_over(damage: str) -> None:
    keys = pa.chunked_array([pa.array([f"k{n}" for n in range(100)])])
    text = BloomFilter.create_simple(keys).to_base64()
    entries = {BLOOM_KEY: text, "hoodie_bloom_filter_type_code": "SIMPLE", BLOOM_CHECKSUM_KEY: checksum_of(text)}
    if damage == "text":
        entries[BLOOM_KEY] = text[:50] + ("A" if text[50] != "A" else "B") + text[51:]
    if damage == "checksum":
        del entries[BLOOM_CHECKSUM_KEY]
    known = KnownKeys([FileKeys.of(ParquetFooter(100, entries, None))], keys[:0])
    assert (known.filter_text("SIMPLE", 100, 1e-9, 100) is not None) == (damage == "neither")


@given(st.lists(st.text(max_size=12), unique=True, max_size=40), st.integers(0, 40))
@settings(max_examples=at_most(60), deadline=None)
def test_a_filter_with_more_keys_is_that_of_all_keys(keys: list[str], first: int) -> None:
    some, more = (pa.chunked_array([pa.array(part, pa.string())]) for part in (keys[:first], keys[first:]))
    size = 25
    text = BloomFilter.create_simple(some, 1e-9, size).to_base64()
    for kind in ("SIMPLE", "DYNAMIC_V0"):
        whole = BloomFilter.create_sized(pa.array(keys, pa.string()), kind, 1e-9, size).to_base64()
        assert KnownKeys([FileKeys(text)], more).filter_text(kind, size, 1e-9, len(keys)) == whole
        assert KnownKeys([FileKeys(whole)], more[:0]).filter_text(kind, size, 1e-9, len(keys)) == whole
        assert KnownKeys([FileKeys(text)], more).filter_text(kind, size + 1, 1e-9, len(keys)) is None


@given(st.lists(st.text(max_size=12), unique=True, max_size=40), st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=at_most(60), deadline=None)
def test_a_filter_of_several_files_is_that_of_all_keys(keys: list[str], first: int, second: int) -> None:
    """Of files with a filter of that size it is taken over, of others the keys are."""
    cuts = sorted((first, second))
    parts = [pa.chunked_array([pa.array(p, pa.string())]) for p in (keys[: cuts[0]], keys[cuts[0] : cuts[1]], keys[cuts[1] :])]
    size = 25
    one, two = (BloomFilter.create_simple(part, 1e-9, size).to_base64() for part in parts[:2])
    other = BloomFilter.create_simple(parts[2], 1e-9, size + 9).to_base64()
    for kind in ("SIMPLE", "DYNAMIC_V0"):
        whole = BloomFilter.create_sized(pa.array(keys, pa.string()), kind, 1e-9, size).to_base64()
        files = [FileKeys(one), FileKeys(two, lambda: parts[1]), FileKeys(other, lambda: parts[2])]
        assert KnownKeys(files, parts[0][:0]).filter_text(kind, size, 1e-9, len(keys)) == whole
        assert KnownKeys([*files[:2], FileKeys(other)], parts[0][:0]).filter_text(kind, size, 1e-9, len(keys)) is None


@given(
    st.lists(st.lists(st.text(max_size=12), max_size=20), min_size=1, max_size=4), st.lists(st.text(max_size=12), max_size=20)
)
@settings(max_examples=at_most(60), deadline=None)
def test_filters_of_files_that_are_put_together_are_rows_of_one(groups: list[list[str]], strangers: list[str]) -> None:
    filters = [BloomFilter.create_sized(pa.array(keys, pa.string()), "DYNAMIC_V0", 0.1, max(len(keys), 1)) for keys in groups]
    files = [FileKeys(one.to_base64(), count=len(keys)) for one, keys in zip(filters, groups, strict=True)]
    count = sum(map(len, groups))
    text = KnownKeys(files, side_by_side=True).filter_text("DYNAMIC_V0", 100, 0.1, count)
    assert text is not None
    asked = pa.array([*strangers, *(key for keys in groups for key in keys)], pa.string())
    found = BloomFilter.from_base64(text).might_contain_many(asked)
    assert found[len(strangers) :].all()
    assert found.tolist() == [any(one.might_contain_many(asked)[at] for one in filters) for at in range(len(asked))]


def test_filters_are_not_put_side_by_side_where_that_grows_or_one_is_unknown() -> None:
    keys = [pa.chunked_array([pa.array([f"{at} {n}" for n in range(50)])]) for at in range(17)]
    whole = pa.chunked_array([chunk for one in keys for chunk in one.chunks])
    texts = [BloomFilter.create_dynamic(one).to_base64() for one in keys]
    files = [FileKeys(text, partial(keys.__getitem__, at), 50) for at, text in enumerate(texts)]

    def rows_of(some: list[FileKeys], kind: TypeCode = "DYNAMIC_V0", capacity: int = 850) -> int | None:
        text = KnownKeys(some, side_by_side=True).filter_text(kind, capacity, 1e-9, 50 * len(some))
        return None if text is None else len(BloomFilter.from_base64(text).rows)

    assert rows_of(files[:16]) == 16
    assert rows_of(files) is None, "more rows than a key is looked for in"
    assert rows_of(files[:16], capacity=190) is None, "more than four times the size of a new one"
    assert rows_of(files[:16], capacity=250) == 16
    assert rows_of(files[:2], "SIMPLE") is None
    assert rows_of([*files[:2], FileKeys(None, lambda: keys[2], 50)]) is None
    assert rows_of([FileKeys(BloomFilter.create_dynamic(whole, keys_per_row=50).to_base64(), None, 850)]) is None
    assert KnownKeys(files[:2]).filter_text("DYNAMIC_V0", 850, 1e-9, 100) is None, "of rows that are written again"


@pytest.mark.parametrize("sealed", [True, False])
def test_footers_tell_the_range_of_the_keys_of_several_files(sealed: bool) -> None:
    """Those with a seal only: the others are of writers that may order texts otherwise."""
    seal = {FOOTER_KEY: "0"} if sealed else {}
    ranges = [("b", "é"), ("a", "b")]
    footers = [ParquetFooter(2, {MIN_KEY_KEY: low, MAX_KEY_KEY: high, **seal}, None) for low, high in ranges] + [
        ParquetFooter(0, dict(seal), None)
    ]
    known = KnownKeys([FileKeys.of(footer) for footer in footers])
    assert known.told == ((4, "a", "é") if sealed else None)
    silent = ParquetFooter(1, dict(seal), None)
    assert KnownKeys([*known.files, FileKeys.of(silent)]).told is None


def test_bounds_count_nan_after_a_rewrite(tmp_path: Path) -> None:
    table = made(tmp_path / "t", [row(number) for number in range(4)])
    table.upsert(rows_of([row(2, x=NAN)]))
    stored = pq.ParquetFile(file_of(tmp_path / "t", table)).read()
    assert stored.column_names[:5] == list(META_COLUMNS)
    assert math.isnan(column_bounds(stored, ["x"]).to_pylist()[0]["max"])
    assert table.scan(where="x > 100", columns=["id"]).to_table()["id"].to_pylist() == ["k00002"]
