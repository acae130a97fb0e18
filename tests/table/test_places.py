"""From paths to tables: folders of partitions, patterns within a table and above tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
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
        (["trips_*"], [("trips_a", None), ("trips_b", None)]),
        (["trips_*/y"], [("trips_a", "y"), ("trips_b", "y")]),
        (["trips_b", "trips_a/[x]"], [("trips_b", None), ("trips_a", "[x]")]),
    ],
)
def test_paths_lead_to_tables_and_partitions(two: Path, paths: list[str], found: list[tuple[str, str | None]]) -> None:
    expected = [Place(str(two / name), partitions) for name, partitions in found]
    assert find_places([str(two / path) for path in paths], {}) == expected


@pytest.mark.parametrize("path", ["nothing", "nothing/*", "trips_of_*", "[z]*"])
def test_what_leads_to_no_table_is_named(two: Path, path: str) -> None:
    with pytest.raises(TableNotFound, match=r"no Hudi table at .*neither there nor in a folder above"):
        find_places([str(two / path)], {})


def test_signs_in_the_name_of_a_folder_are_no_pattern_where_a_table_lies_there(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    hudimeta.Table.create(tmp_path / "a[1]", rows.schema, key="id")
    assert find_places([str(tmp_path / "a[1]")], {}) == [Place(str(tmp_path / "a[1]"), None)]
    inside = place_within(str(tmp_path / "a[1]" / "p,1"), {})
    assert inside == Place(str(tmp_path / "a[1]"), r"p\,1")


def test_a_folder_of_a_table_is_told_from_no_table(two: Path) -> None:
    with pytest.raises(TableNotFound, match=r"it is in the folder of the table at .*trips_a'.*hudimeta.partitions=x limits"):
        hudimeta.Table(two / "trips_a" / "x")
