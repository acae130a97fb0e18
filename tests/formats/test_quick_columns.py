"""Columns that are read in a form that Arrow decodes sooner: the values are those that Arrow reads as they stand there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError
from hudimeta.formats.base_file import open_base_file
from hudimeta.formats.parquet import coded_texts, texts_of_codes
from hudimeta.formats.parquet.quick_columns import quick_columns
from hudimeta.formats.parquet.small_file import schema_bytes
from hudimeta.storage import open_storage

ROWS = 20_000
CODECS = ("zstd", "snappy", "gzip", "none", "brotli", "lz4")


def decimals(digits: int, few: bool, nulls: bool, rows: int = ROWS, seed: int = 1) -> pa.Array:
    """Of both signs; the greatest and the smallest ones are among them."""
    dice = np.random.default_rng(seed)
    most = 10**digits - 1
    numbers = dice.integers(-most, most, 40 if few else rows, endpoint=True)
    numbers[:3] = most, -most, 0
    chosen = numbers[dice.integers(0, len(numbers), rows)]
    words = np.stack([chosen, chosen >> 63], axis=1)
    mask = dice.random(rows) < 0.2 if nulls else np.zeros(rows, np.bool_)
    validity = pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(digits, digits // 2), rows, [validity, pa.py_buffer(words)])


def write(folder: Path, rows: pa.Table, **options: object) -> None:
    settings = {"write_page_checksum": True, "max_rows_per_page": 3_000, "store_schema": False, **options}
    pq.write_table(rows, folder / "a.parquet", **settings)  # type: ignore[arg-type]


def read(folder: Path, columns: list[str]) -> pa.Table:
    with open_base_file(open_storage(folder), "a.parquet") as file:
        found = pa.concat_tables(file.pieces(columns))
        if file.row_groups == 1:
            assert pa.concat_tables(file.portions(0, columns)).equals(found)
        return found


def quick_names(folder: Path) -> tuple[str, ...]:
    data = (folder / "a.parquet").read_bytes()
    metadata = pq.read_metadata(folder / "a.parquet")
    kinds = metadata.schema.to_arrow_schema()

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    return quick_columns(metadata, 0, kinds.names, read, kinds, lambda: schema_bytes(metadata)).names


@given(
    digits=st.integers(1, 18), few=st.booleans(), nulls=st.booleans(), codec=st.sampled_from(CODECS), seed=st.integers(0, 99)
)
def test_decimals_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, digits: int, few: bool, nulls: bool, codec: str, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("decimals")
    column = decimals(digits, few, nulls, seed=seed)
    rows = pa.table({"n": pa.array(range(ROWS)), "d": column, "e": column})
    write(folder, rows, compression=codec, use_dictionary=["d"], row_group_size=ROWS if seed % 2 else 12_000)
    whole = pq.read_table(folder / "a.parquet")
    assert read(folder, ["n", "d", "e"]).equals(whole)
    assert read(folder, ["e"]).equals(whole.select(["e"]))


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none"])
def test_which_decimals_have_a_quicker_form(tmp_path: Path, codec: str) -> None:
    columns = {
        "few": decimals(15, True, True),
        "many": decimals(9, False, True),
        "long": decimals(18, True, False).cast(pa.decimal128(38, 9)),
        "mixed": decimals(18, False, False),
        "none": pa.nulls(ROWS, pa.decimal128(7, 2)),
        "inner": pa.StructArray.from_arrays([decimals(15, True, True)], ["few"]),
    }
    coded = ["few", "mixed", "none", "long", "inner.few"]
    write(tmp_path, pa.table(columns), compression=codec, use_dictionary=coded, dictionary_pagesize_limit=2_000)
    names = quick_names(tmp_path)
    assert set(names) >= {"few", "many"}, "of few values, whose dictionary is written again, and without a dictionary"
    assert not {"long", "mixed", "inner", "inner.few"} & set(names), (
        "in 16 bytes, with codes in some pages only, inside another"
    )
    assert read(tmp_path, list(columns)).equals(pq.read_table(tmp_path / "a.parquet").select(list(columns)))


def test_pages_of_the_second_version_are_read_as_they_are(tmp_path: Path) -> None:
    rows = pa.table({"d": decimals(15, True, True), "e": decimals(15, False, True)})
    write(tmp_path, rows, data_page_version="2.0", use_dictionary=["d"])
    assert quick_names(tmp_path) == ("e",)
    assert read(tmp_path, ["d", "e"]).equals(rows)


@pytest.mark.parametrize("place", ["dictionary", "codes", "values"])
def test_damage_is_told_with_its_place(tmp_path: Path, place: str) -> None:
    rows = pa.table({"n": pa.array(range(ROWS)), "d": decimals(15, True, True), "e": decimals(15, False, True)})
    write(tmp_path, rows, use_dictionary=["d"], compression="none")
    group = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    starts = {"dictionary": group.column(1).dictionary_page_offset, "codes": group.column(1).data_page_offset}
    start = starts.get(place, group.column(2).data_page_offset)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[start + 150] ^= 4  # after the header, which has the statistics of the page
    (tmp_path / "a.parquet").write_bytes(data)
    with open_base_file(open_storage(tmp_path), "a.parquet") as file:
        assert file.piece(0, ["n"]).equals(rows.select(["n"]))
        for reading in (lambda: file.piece(0, ["n", "d", "e"]), lambda: list(file.portions(0, ["d", "e"]))):
            with pytest.raises(CorruptFileError, match="checksum") as told:
                reading()
            assert told.value.offset == start


def test_large_row_groups_are_read_in_step(tmp_path: Path) -> None:
    many = 300_000
    few = pa.array(["red", "green", None, "blue"]).take(pa.array(np.arange(many) % 4))
    rows = pa.table(
        {"n": pa.array(range(many)), "d": decimals(15, True, True, many), "t": few, "e": decimals(9, False, True, many)}
    )
    write(tmp_path, rows, row_group_size=many, max_rows_per_page=7_000, use_dictionary=["d", "t"])
    with open_base_file(open_storage(tmp_path), "a.parquet") as file:
        portions = list(file.portions(0, ["e", "t", "n", "d"]))
        assert len(portions) > 1
        assert pa.concat_tables(portions).equals(rows)
        assert pa.concat_tables(file.portions(0, ["d"])).equals(rows.select(["d"]))


def test_texts_of_few_values_are_read_as_codes_and_come_as_texts(tmp_path: Path) -> None:
    numbers = np.arange(ROWS)
    rows = pa.table(
        {
            "word": pa.array(["red", "green", None, "blue"]).take(pa.array(numbers % 4)),
            "text": pa.array([f"text {n}" for n in numbers]),
            "none": pa.nulls(ROWS, pa.string()),
            "bytes": pa.array([b"a", b"b"]).take(pa.array(numbers % 2)),
        }
    )
    write(tmp_path, rows, row_group_size=9_000)
    assert set(coded_texts(pq.read_metadata(tmp_path / "a.parquet"), ["word", "text"])) == {"word"}
    assert read(tmp_path, rows.column_names).equals(rows)
    codes = rows.select(["word"]).set_column(0, "word", rows["word"].dictionary_encode())
    pieces = texts_of_codes(codes, most=5_000)
    assert pieces.equals(rows.select(["word"]))
    assert pieces["word"].num_chunks > 1, "no array has more bytes than Arrow can count"


def test_a_decimal_beside_rows_that_are_chosen_by_pages(tmp_path: Path) -> None:
    rows = pa.table({"n": pa.array(range(ROWS)), "d": decimals(15, True, True), "e": decimals(15, False, True)})
    write(tmp_path, rows, max_rows_per_page=500, use_dictionary=["d"])
    wanted = np.zeros(ROWS, np.bool_)
    wanted[7_000:7_040] = True
    with open_base_file(open_storage(tmp_path), "a.parquet") as file:
        found = file.matching(0, ["n", "d", "e"], wanted)
    assert found is not None
    assert found[0].equals(rows.slice(7_000, 40))
    assert found[0]["e"].type == pa.decimal128(15, 7)
    assert isinstance(found[0]["d"][0].as_py(), Decimal | None)
