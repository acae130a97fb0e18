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
from hudimeta.testing.invariants import check_all

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


@pytest.mark.parametrize("operation", ["insert", "insert_overwrite"])
def test_rows_that_arrive_in_portions_are_counted_too(tmp_path: Path, operation: str) -> None:
    portions = {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "400"}
    table = table_of(tmp_path, **portions, **{"hudimeta.write.portion.bytes": "1"})
    reader = pa.RecordBatchReader.from_batches(rows(0, 1).schema, rows(0, 2000).to_batches(max_chunksize=1000))
    getattr(table, operation)(reader)
    assert [pq.read_metadata(file).num_rows for file in base_files(table)] == [334, 333, 333] * 2


NO_FILTERS = {"hoodie.parquet.bloom.filter.enabled": "false"}


def filters(table: hudimeta.Table) -> list[bool]:
    """Whether each base file has a bloom filter."""
    found = []
    for file in base_files(table):
        with open_base_file(open_storage(str(file.parent)), file.name) as opened:
            found.append(opened.footer.bloom_text is not None)
            assert opened.footer.min_key is not None
    return found


def test_files_have_no_bloom_filter_where_none_is_wanted(tmp_path: Path) -> None:
    table = table_of(tmp_path, **NO_FILTERS)
    table.insert(rows(0, 100))
    assert filters(table) == [False]
    with_filters = hudimeta.Table(table.path)
    with_filters.upsert(rows(50, 100))
    assert filters(table) == [True], "of all keys, though the file before had none"
    table.upsert(rows(140, 100))
    assert filters(table) == [False]
    looking = hudimeta.Table(table.path, {"hoodie.index.type": "BLOOM"})
    assert looking.upsert(rows(0, 10)).updated == 10, "files without a filter are looked into"
    check_all(open_storage(str(table.path)))
    assert table.scan().count() == 240


@pytest.mark.parametrize(
    "more",
    [
        {"hoodie.index.type": "BLOOM"},
        {"hoodie.index.type": "GLOBAL_BLOOM"},
        {"hoodie.metadata.index.bloom.filter.enable": "true"},
    ],
    ids=str,
)
def test_files_have_a_bloom_filter_where_keys_are_looked_for_by_it(tmp_path: Path, more: dict[str, str]) -> None:
    table = table_of(tmp_path, **NO_FILTERS, **more)
    table.insert(rows(0, 100))
    assert filters(table) == [True]


@pytest.mark.parametrize(("limit", "grown"), [("0", 0), ("1", 1), ("2", 2), ("9", 3), (None, 3)])
def test_no_more_small_files_receive_new_rows_than_are_asked_for(tmp_path: Path, limit: str | None, grown: int) -> None:
    """The smallest first; each has room for ten rows."""
    key = "hoodie.merge.small.file.group.candidates.limit"
    options = {} if limit is None else {key: limit}
    for kind in ("MERGE_ON_READ", "COPY_ON_WRITE"):
        table = hudimeta.Table.create(tmp_path / kind, rows(0, 1).schema, key="id", type=kind, options=options)
        apart = hudimeta.Table(table.path, {"hoodie.parquet.small.file.limit": "0"})
        for first, count in ((0, 300), (1000, 200), (2000, 100)):
            apart.insert(rows(first, count))
        before = set(base_files(apart))
        sizes = {file.name.partition("_")[0]: file.stat().st_size for file in before}
        room = max(sizes.values()) + 1000
        tight = {"hoodie.parquet.max.file.size": str(room), "hoodie.copyonwrite.record.size.estimate": "100"}
        filled = hudimeta.Table(table.path, {**options, **tight})
        filled.insert(rows(5000, 500))
        changed = {file.name.partition("_")[0] for file in set(base_files(filled)) - before} & set(sizes)
        wanted = grown if kind == "MERGE_ON_READ" else 3
        assert changed == set(sorted(sizes, key=lambda name: sizes[name])[:wanted]), kind


@pytest.mark.parametrize("size", [1, 6, 64])
def test_rows_of_lists_are_read_back_from_the_smallest_pages(tmp_path: Path, size: int) -> None:
    """Arrow writes an empty page before the first row of a list then, and readers see no row after it."""
    lists = pa.table({"id": ["a"], "seen": [[1, 2]], "by": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64()))})
    table = hudimeta.Table.create(tmp_path / "t", lists.schema, key="id", options={PAGE: size})
    table.insert(lists)
    assert table.scan(columns=lists.column_names).to_table().equals(lists)
