"""Fields of structs as columns: the values that the whole struct has, read without the rest of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.formats.base_file import open_base_file
from hudimeta.slices.projection import leaf_paths, pruned
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.storage import open_storage
from tests.conftest import Unpack

DEEP = pa.struct([("z", pa.float64()), ("w", pa.list_(pa.int32()))])
PLACE = pa.struct([("x", pa.int32()), ("y", pa.string()), ("deep", DEEP)])
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("place", PLACE)])


def rows(numbers: range, ts: int) -> pa.Table:
    places = [{"x": n, "y": f"y{n}", "deep": {"z": n / 2, "w": [n]} if n % 3 else None} if n % 4 else None for n in numbers]
    return pa.table([[f"k{n:02}" for n in numbers], [ts] * len(numbers), places], schema=SCHEMA)


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> hudimeta.Table:
    path: Path = tmp_path_factory.mktemp("nested") / "t"
    made = hudimeta.Table.create(path, SCHEMA, key="id", ordering="ts", type=request.param)
    made.insert(rows(range(20), 1))
    made.upsert(rows(range(5, 12), 2))
    return made


def test_fields_have_the_values_that_the_struct_has(table: hudimeta.Table) -> None:
    whole = {row["id"]: row["place"] for row in table.scan(columns=["id", "place"]).to_table().to_pylist()}
    found = table.scan(columns=["place.deep.z", "id", "place.x"]).to_table()
    assert found.schema == pa.schema([("place.deep.z", pa.float64()), ("id", pa.string()), ("place.x", pa.int32())])
    assert found.num_rows == 20
    for row in found.to_pylist():
        place = whole[row["id"]] or {"x": None, "deep": None}
        assert row["place.x"] == place["x"]
        assert row["place.deep.z"] == (place["deep"] or {"z": None})["z"]


def test_names_are_found_without_case(table: hudimeta.Table) -> None:
    assert table.scan(columns=["PLACE.Deep.w"]).schema.names == ["place.deep.w"]
    with pytest.raises(ConfigError, match=r"place\.nothing"):
        table.scan(columns=["place.nothing"]).plan()
    with pytest.raises(ConfigError, match=r"id\.x"):
        table.scan(columns=["id.x"]).plan()


def test_a_filter_may_look_at_other_fields_than_are_returned(table: hudimeta.Table) -> None:
    for where, expected in (("place.x > 16", [17, 18, 19]), ("place.y = 'y7' AND place.deep IS NOT NULL", [7])):
        scan = table.scan(where=where, columns=["place.x"])
        assert sorted(scan.to_table().column(0).to_pylist()) == expected
        assert scan.count() == len(expected)
    assert table.scan(where="place IS NULL", columns=["place.x"]).to_table().num_rows == 5


def test_only_the_fields_are_read(table: hudimeta.Table) -> None:
    wanted = pruned(table.schema, [("place", "x"), ("place", "deep", "z"), ("id",)])
    assert leaf_paths(wanted) == ["id", "place.x", "place.deep.z"]
    (base, *_) = [s.base_path for s in slices_of(table.file_slices()) if s.base_path]
    with open_base_file(open_storage(table.path), base) as file:
        piece = file.piece(0, leaf_paths(wanted))
        assert piece.schema.field("place").type == pa.struct([("x", pa.int32()), ("deep", pa.struct([("z", pa.float64())]))])
        assert file.piece(0, ["place.unknown"]).num_rows == 20, "of a struct that lacks the field nothing is left but its rows"


def test_nested_fields_of_altered_and_partly_written_tables(rich_table: Unpack) -> None:
    for name in ("alter_rename_mor", "partial_payload_mor9", "all_types_mor", "evolve_write_mor"):
        table = hudimeta.Table(rich_table(name))
        structs = [f for f in table.schema if pa.types.is_struct(f.type)]
        for field in structs:
            whole = table.scan(columns=["_hoodie_record_key", field.name]).to_table().sort_by("_hoodie_record_key")
            for child in field.type:
                part = table.scan(columns=["_hoodie_record_key", f"{field.name}.{child.name}"]).to_table()
                values = [(row or {}).get(child.name) for row in whole[field.name].to_pylist()]
                assert part.sort_by("_hoodie_record_key").column(1).to_pylist() == values, (name, field.name, child.name)
