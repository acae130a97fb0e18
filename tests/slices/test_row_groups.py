"""Base files: no page is ruled out that has a row which the predicate keeps, and rows come out as from whole files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudimeta
from hudimeta.formats.base_file import open_base_file
from hudimeta.formats.parquet import ParquetSettings, write_base_file
from hudimeta.predicate import bind, evaluate, parse
from hudimeta.slices.row_groups import judged_rows
from hudimeta.storage import open_storage
from tests.formats.parquet_files import with_meta

ROWS = 900
CONDITIONS = [
    "n = {0}",
    "n BETWEEN {0} AND {1}",
    "n < {0} OR word = 'w{1}'",
    "NOT (n > {0})",
    "n IN ({0}, {1}) AND x > {0}.5",
    "word >= 'w{0}' AND word < 'w{1}'",
    "word LIKE 'w{0}%'",
    "n IS NULL",
    "n <=> NULL OR x = {1}.25",
    "price > {0}.50 AND n IS NOT NULL",
    "n + 3 > {0} AND x < {1}",
    "coalesce(n, {0}) = {0}",
    "x / n > 2",
    "sub.k > {0} AND n < {1}",
]


def table(seed: int) -> pa.Table:
    dice = np.random.default_rng(seed)
    numbers = np.sort(dice.integers(-50, 300, ROWS)) + dice.integers(0, 4, ROWS)
    gaps = (np.arange(ROWS) // 60 % 3 == 0) & (dice.random(ROWS) < (1 if seed % 2 else 0.5))
    return pa.table(
        {
            "n": pa.array(numbers, mask=gaps),
            "x": pa.array(np.where(dice.random(ROWS) < 0.001, np.nan, numbers / 4)),
            "word": pa.array([None if n % 11 == 0 else f"w{n}{'é' * (int(n) % 50)}" for n in numbers]),
            "price": pa.array(numbers).cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)),
            "sub": pa.StructArray.from_arrays([pa.array(numbers[::-1].copy())], ["k"]),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    for seed in range(4):
        layout = ParquetSettings(page_rows=32, row_group_rows=400, page_bytes=300)
        with (path / f"{seed}.parquet").open("wb") as sink:
            write_base_file(sink, with_meta(table(seed)), settings=layout, name=f"{seed}.parquet")
    return path


@given(seed=st.integers(0, 3), condition=st.sampled_from(CONDITIONS), low=st.integers(-60, 310), more=st.integers(0, 40))
def test_no_page_with_a_match_is_ruled_out(folder: Path, seed: int, condition: str, low: int, more: int) -> None:
    bound = bind(parse(condition.format(low, low + more)), table(seed).schema)
    with open_base_file(open_storage(str(folder)), f"{seed}.parquet") as file:
        assert file.footer is not None
        assert file.page_index is not None
        judged = judged_rows(file.footer, file.page_index, bound, (), None)
        coarse = judged_rows(file.footer, None, bound, (), None)
        assert not (judged.groups & ~coarse.groups).any()
        for group in range(file.row_groups):
            matches = pc.fill_null(evaluate(bound, file.piece(group, ["n", "x", "word", "price", "sub"])), False).to_numpy()
            maybe = judged.rows.get(group, np.full(len(matches), judged.groups[group]))
            assert not (matches & ~maybe).any()
            assert judged.groups[group] or not matches.any()


def test_one_row_takes_one_page(folder: Path) -> None:
    bound = bind(parse("n = 120"), table(2).schema)
    with open_base_file(open_storage(str(folder)), "2.parquet") as file:
        assert file.footer is not None
        judged = judged_rows(file.footer, file.page_index, bound, (), None)
        assert 0 < sum(mask.sum() for mask in judged.rows.values()) <= 3 * 32
    assert judged_rows(file.footer, None, bind(parse("n = 99999"), table(2).schema), (), None).because == "n = 99999"


@pytest.mark.parametrize(
    "where", ["n BETWEEN 30000 AND 30002", "n >= 20000 AND n < 45000 AND word = 'w41'", "n < 30000 AND n % 2 = 7", "n > 69990"]
)
def test_rows_are_those_of_the_whole_files(tmp_path: Path, where: str) -> None:
    numbers = np.arange(70_000)
    rows = pa.table(
        {
            "id": pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 6, "0"),
            "n": numbers,
            "word": pa.array([f"w{n % 97}" for n in numbers.tolist()]),
            "many": pa.array([[n, n] if n % 5 else None for n in numbers.tolist()]),
        }
    )
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id")
    table.bulk_insert(rows)
    expected = rows.filter(evaluate(bind(parse(where), rows.schema), rows))
    scan = table.scan(where=where)
    assert scan.to_table().select(rows.column_names).sort_by("n").equals(expected)
    assert scan.report.rows_ruled_out > 0
    assert scan.report.rows_read + scan.report.rows_ruled_out == len(rows)
    assert table.scan(where=where, columns=["word"]).to_table()["word"].to_pylist() == expected["word"].to_pylist()
