"""From paths to tables: folders of partitions, patterns within a table and above tables."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.errors import TableNotFound
from hudimeta.table.places import Place, find_places, place_within


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A folder with the tables `trips_a` (partitions x and y) and `trips_b`, and a folder that is none."""
    for name in ("trips_a", "trips_b"):
        rows = pa.table({"id": [1, 2], "part": ["x", "y"]})
        hudimeta.Table.create(tmp_path / name, rows.schema, key="id", partition_by="part").insert(rows)
    (tmp_path / "trips_of_nobody").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["trips_a"], [("trips_a", None)]),
        (["trips_a/x"], [("trips_a", "x")]),
        (["trips_a/x", "trips_a/y"], [("trips_a", "x,y")]),
        (["trips_a/x", "trips_a"], [("trips_a", None)]),
        (["trips_a/{x,y}"], [("trips_a", "{x,y}")]),
        (["trips_a/x/*.parquet"], [("trips_a", "x/*.parquet")]),
        (["trips_?"], [("trips_a", None), ("trips_b", None)]),
        (["trips_?/y"], [("trips_a", "y"), ("trips_b", "y")]),
        (["trips_b", "trips_a/[x]"], [("trips_b", None), ("trips_a", "[x]")]),
    ],
)
def test_paths_lead_to_tables_and_partitions(two: Path, paths: list[str], found: list[tuple[str, str | None]]) -> None:
    expected = [Place(str(two / name), partitions) for name, partitions in found]
    assert find_places([str(two / path) for path in paths], {}) == expected


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nothing", "neither there nor in a folder above it is"),
        ("nothing/*", "no folder fits the pattern"),
        ("[z]*", "no folder fits the pattern"),
        ("trips_of_*", "none of the folders that match it is a table: .*/trips_of_nobody"),
        ("trips_of_*/x", "none of the folders that match it is a table: .*/trips_of_nobody"),
    ],
)
def test_what_leads_to_no_table_is_named(two: Path, path: str, why: str) -> None:
    with pytest.raises(TableNotFound, match=rf"no Hudi table at .*{why}"):
        find_places([str(two / path)], {})


def test_a_folder_that_is_no_table_is_passed_over_with_a_warning(two: Path) -> None:
    (two / "trips_b" / "x" / "made_by_hand").mkdir(parents=True)
    (two / "trips_c" / "deep").mkdir(parents=True)
    (two / "readme.txt").touch()
    with pytest.warns(HudiWarning, match=r"trips_\* also matches .* passed over: \S*/trips_c, \S*/trips_of_nobody$"):
        assert len(find_places([str(two / "trips_*")], {})) == 2
    with pytest.warns(HudiWarning, match=r"passed over: \S*/trips_c/deep, \S*/trips_of_nobody$"):
        assert len(find_places([str(two / "*" / "*")], {})) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(find_places([str(two / "trips_[ab]"), str(two / "trips_b" / "x" / "*")], {})) == 2


def test_many_folders_that_are_no_table_are_counted(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"f{number}").mkdir()
    with pytest.raises(TableNotFound, match=r"/f0, .*/f4 and 3 more"):
        find_places([str(tmp_path / "f*")], {})


def test_a_table_whose_properties_are_being_replaced_is_one(two: Path) -> None:
    metadata = two / "trips_b" / ".hoodie"
    (metadata / "hoodie.properties").rename(metadata / "hoodie.properties.backup")
    assert find_places([str(two / "trips_[ab]")], {}) == [Place(str(two / name), None) for name in ("trips_a", "trips_b")]


def test_signs_in_the_name_of_a_folder_are_no_pattern_where_a_table_lies_there(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    hudimeta.Table.create(tmp_path / "a[1]", rows.schema, key="id")
    assert find_places([str(tmp_path / "a[1]")], {}) == [Place(str(tmp_path / "a[1]"), None)]
    inside = place_within(str(tmp_path / "a[1]" / "p,1"), {})
    assert inside == Place(str(tmp_path / "a[1]"), r"p\,1")


def test_a_folder_of_a_table_is_told_from_no_table(two: Path) -> None:
    with pytest.raises(TableNotFound, match=r"it is in the folder of the table at .*trips_a'.*hudimeta.partitions=x limits"):
        hudimeta.Table(two / "trips_a" / "x")


@pytest.mark.parametrize(
    ("made", "opened", "says"),
    [
        ("a.parquet", "a.parquet", "it is a file. Give the folder"),
        ("a.parquet", "a.parquet/t", r"/a\.parquet is a file\. Give the folder"),
        ("delta/_delta_log/0.json", "delta", "it is a table of Delta Lake. .* such as deltalake"),
        ("ice/metadata/v1.metadata.json", "ice", "it is a table of Apache Iceberg. .* such as pyiceberg"),
        ("plain/metadata/notes.txt", "plain", r"there is no \.hoodie/hoodie\.properties"),
    ],
)
def test_what_else_is_there_is_told(tmp_path: Path, made: str, opened: str, says: str) -> None:
    (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / made).write_text("{}")
    with pytest.raises(TableNotFound, match=rf"no Hudi table at .*{says}"):
        hudimeta.Table(tmp_path / opened)
