"""How options lay base files out, whoever writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.formats.base_file import open_base_file
from hudimeta.storage import open_storage

ROWS = 30_000
GROUP, PAGE, DICTIONARY = "hoodie.parquet.block.size", "hoodie.parquet.page.size", "hoodie.parquet.dictionary.enabled"


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": [f"{i:08d}" for i in ids], "word": [f"word {i % 7}" for i in ids], "x": [i / 3 for i in ids]})


def table_of(path: Path, **options: Any) -> hudimeta.Table:
    return hudimeta.Table.create(path / "t", rows(0, 1).schema, key="id", options=options)


def base_files(table: hudimeta.Table) -> list[Path]:
    slices = table.file_slices()
    return [Path(str(table.path)) / name for name in slices["base_file"].to_pylist()]


def layout(table: hudimeta.Table) -> list[int]:
    """Rows of each row group of the one base file."""
    (file,) = base_files(table)
    metadata = pq.read_metadata(file)
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def pages_of(table: hudimeta.Table, column: str) -> int:
    (file,) = base_files(table)
    with open_base_file(open_storage(str(file.parent)), file.name) as opened:
        names = [opened.footer.metadata.schema.column(number).path for number in range(opened.footer.metadata.num_columns)]
        at = names.index(column)
        assert opened.page_index is not None
        places = opened.page_index.places(0, [at])
        assert places is not None
        return len(places[at].borders) - 1


def encodings(table: hudimeta.Table, column: str) -> set[str]:
    (file,) = base_files(table)
    group = pq.read_metadata(file).row_group(0)
    (chunk,) = [group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == column]
    return set(chunk.encodings)


def test_row_groups_have_the_bytes_that_are_asked_for(tmp_path: Path) -> None:
    usual = table_of(tmp_path / "usual")
    usual.insert(rows(0, ROWS))
    assert layout(usual) == [ROWS]
    small = table_of(tmp_path / "small", **{GROUP: str(1 << 18)})
    small.insert(rows(0, ROWS))
    found = layout(small)
    assert sum(found) == ROWS
    assert 4 <= len(found) <= 12
    assert max(found) - min(found) <= len(found), "they are alike"
    assert small.scan().count() == ROWS
    small.upsert(rows(0, 10))
    small.cluster(["x"])
    assert abs(len(layout(small)) - len(found)) <= 1, "services write as options of the table say"


def test_more_rows_than_usual_lie_in_one_row_group_where_its_bytes_allow(tmp_path: Path) -> None:
    few = pa.table({"id": pa.array(range(140_000))})
    for option, expected in (({}, 2), ({GROUP: str(120 << 20)}, 1)):
        options = {"hoodie.copyonwrite.record.size.estimate": "10", **option}
        table = hudimeta.Table.create(tmp_path / str(expected), few.schema, key="id", options=options)
        table.bulk_insert(few)
        assert len(layout(table)) == expected


def test_pages_and_dictionaries(tmp_path: Path) -> None:
    usual, other = table_of(tmp_path / "usual"), table_of(tmp_path / "other", **{PAGE: "8000", DICTIONARY: "false"})
    for table in (usual, other):
        table.insert(rows(0, ROWS))
    assert pages_of(usual, "x") == -(-ROWS // 8192)
    assert pages_of(other, "x") > 20
    assert "RLE_DICTIONARY" in encodings(usual, "word")
    assert not {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & encodings(other, "word")
    assert other.scan("x > 9999").count() == usual.scan("x > 9999").count()


@pytest.mark.parametrize("option", [GROUP, PAGE])
def test_no_bytes_are_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(ConfigError, match=rf"{option}.*1 or more"):
        table_of(tmp_path, **{option: "0"})


@pytest.mark.parametrize("operation", ["insert", "upsert", "insert_overwrite"])
def test_new_files_have_the_rows_that_are_asked_for(tmp_path: Path, operation: str) -> None:
    split = {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "400"}
    table = table_of(tmp_path, **split)
    getattr(table, operation)(rows(0, 1000))
    assert [pq.read_metadata(file).num_rows for file in base_files(table)] == [334, 333, 333]
    other = table_of(tmp_path / "other", **{"hoodie.copyonwrite.insert.split.size": "400"})
    getattr(other, operation)(rows(0, 1000))
    assert len(base_files(other)) == 1, "not unless files are split by hand"
