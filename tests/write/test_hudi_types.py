"""Tables with columns of vectors and BLOBs: what is written, by which files, comes back; what does not fit changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import HudiError, SchemaMismatch, UnsupportedEvolution, UnsupportedFeature
from hudimeta.storage import open_storage
from hudimeta.testing.blobs import BLOB_STRUCT, inline, typed
from hudimeta.testing.invariants import check_all

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.int64()),
        typed("emb", pa.list_(pa.float32()), "VECTOR(3)"),
        typed("same", pa.list_(pa.float32()), "VECTOR(3)"),
        typed("wide", pa.list_(pa.float64()), "VECTOR(2, DOUBLE)"),
        typed("small", pa.list_(pa.int8()), "VECTOR(2, INT8)"),
        typed("doc", BLOB_STRUCT, "BLOB"),
        ("note", pa.string()),
    ]
)
COPY, MERGE = "COPY_ON_WRITE", "MERGE_ON_READ"


def create(path: Path, kind: str, **options: str) -> hudimeta.Table:
    own = {"hoodie.datasource.write.table.type": kind, **options}
    indexes = ["column_stats", "record_index"]
    return hudimeta.Table.create(path, SCHEMA, key="id", ordering="ts", indexes=indexes, options=own)


def row(key: int, ts: int = 1, **values: Any) -> dict[str, Any]:
    own = {
        "emb": [key, 0.5, -1],
        "same": [0, 0, key],
        "wide": [key, 1e300],
        "small": [127, -128],
        "doc": inline(b"%d" % key),
        "note": f"n{ts}",
    }
    return {"id": key, "ts": ts, **own, **values}


def rows(*some: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(some), schema=pa.schema([pa.field(f.name, f.type) for f in SCHEMA]))


def held(table: hudimeta.Table, **query: Any) -> list[dict[str, Any]]:
    return table.scan(columns=SCHEMA.names, **query).to_table().sort_by("id").to_pylist()


@pytest.mark.parametrize(("kind", "block"), [(COPY, "parquet"), (MERGE, "parquet"), (MERGE, "avro"), (MERGE, "hfile")])
def test_what_is_written_comes_back(tmp_path: Path, kind: str, block: str) -> None:
    table = create(tmp_path / "t", kind, **{"hoodie.logfile.data.block.format": block})
    table.insert(rows(row(1), row(2, emb=None, doc=None), row(3)))
    table.upsert(rows(row(3, 2), row(4, 2, small=None)))
    table.update({"emb": [9, 8, 7]}, where="id = 1")
    table.update({"same": [1, 2, 3]}, where="id = 4")
    table.delete("id = 2")
    right = [row(1, emb=[9, 8, 7]), row(3, 2), row(4, 2, small=None, same=[1, 2, 3])]
    assert held(table) == right
    assert held(table, query_type="incremental", begin="earliest") == right
    assert [r["id"] for r in held(table, where="emb[0] > 3 AND size(wide) = 2")] == [1, 4]
    service = table.services.compact if kind == MERGE else table.cluster
    service()
    assert held(hudimeta.Table(table.path)) == right
    check_all(open_storage(table.path))
    assert table.metadata.index_definitions["column_stats"].source_fields[-3:] == ("id", "ts", "note"), (
        "of the others no bounds"
    )


def test_files_hold_what_apache_hudi_holds(tmp_path: Path) -> None:
    table = create(tmp_path / "t", COPY)
    table.insert(rows(row(1), row(2, emb=None)))
    (path,) = (tmp_path / "t").glob("*.parquet")
    file = pq.ParquetFile(path)
    assert file.schema_arrow.field("emb").type == pa.binary(12)
    assert (
        file.metadata.metadata[b"hoodie.vector.columns"]
        == b"emb:VECTOR(3),same:VECTOR(3),wide:VECTOR(2, DOUBLE),small:VECTOR(2, INT8)"
    )
    avro = json.loads(file.metadata.metadata[b"parquet.avro.schema"])
    kinds = {field["name"]: field["type"][1] for field in avro["fields"]}
    assert [kinds[name]["logicalType"] for name in ("emb", "wide", "small", "doc")] == ["vector"] * 3 + ["blob"]
    assert kinds["same"] == "vector_float_3"


def test_rows_make_another_table_of_the_same_types(tmp_path: Path) -> None:
    first = create(tmp_path / "one", COPY)
    first.insert(rows(row(1)))
    found = first.scan(columns=SCHEMA.names).to_table()
    assert {f.name: f.metadata[b"hudi_type"] for f in found.schema if f.metadata} == {
        "emb": b"VECTOR(3)",
        "same": b"VECTOR(3)",
        "wide": b"VECTOR(2, DOUBLE)",
        "small": b"VECTOR(2, INT8)",
        "doc": b"BLOB",
    }
    second = hudimeta.Table.create(tmp_path / "two", found.schema, key="id", ordering="ts")
    second.insert(found)
    assert held(second) == [row(1)]
    assert second.schema.equals(first.schema, check_metadata=True)


def test_a_write_adds_a_vector(tmp_path: Path) -> None:
    plain = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
    table = hudimeta.Table.create(tmp_path / "t", plain, key="id", ordering="ts")
    table.insert(pa.table({"id": [1], "ts": [1]}))
    more = pa.schema([*plain, typed("emb", pa.list_(pa.float32()), "VECTOR(2)")])
    table.insert(pa.table([[2], [1], pa.array([[1, 2]], more.field("emb").type)], schema=more))
    assert table.scan(columns=["id", "emb"]).to_table().sort_by("id").to_pylist() == [
        {"id": 1, "emb": None},
        {"id": 2, "emb": [1, 2]},
    ]
    assert table.schema.field("emb").metadata == {b"hudi_type": b"VECTOR(2)"}


WRONG = [
    ({"emb": [1, 2]}, r"'emb' is a list of 2.*needs VECTOR\(3\)"),
    ({"emb": []}, "'emb' is a list of 0"),
    ({"emb": [1, None, 3]}, "'emb.element' is null"),
    ({"doc": {"type": "FILE", "data": b"", "reference": None}}, "'doc.type' is 'FILE'.*INLINE, OUT_OF_LINE"),
    ({"doc": {"type": None, "data": b"", "reference": None}}, "'doc.type' is null"),
]


@pytest.mark.parametrize(("values", "says"), WRONG)
def test_what_is_none_is_refused(tmp_path: Path, values: dict[str, Any], says: str) -> None:
    table = create(tmp_path / "t", MERGE)
    table.insert(rows(row(1)))
    instants = [i.time for i in table.timeline.instants]
    with pytest.raises(SchemaMismatch, match=says):
        table.upsert(rows(row(1, 2), row(2, 2, **values)))
    assert [i.time for i in hudimeta.Table(table.path).timeline.instants] == instants


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path / "t", COPY)
    at = SCHEMA.get_field_index("small")
    with pytest.raises(SchemaMismatch, match=r"'small.element' is int64.*300"):
        table.insert(rows(row(1)).set_column(at, "small", pa.array([[300, 0]])))
    other = typed("emb", pa.list_(pa.float32()), "VECTOR(4)")
    with pytest.raises(UnsupportedEvolution, match=r"from VECTOR\(3\) to VECTOR\(4\)"):
        table.insert(rows(row(1)).set_column(2, other, pa.array([[1, 2, 3, 4]], other.type)))


def test_such_tables_are_not_altered(tmp_path: Path) -> None:
    table = create(tmp_path / "t", COPY)
    table.insert(rows(row(1)))
    with pytest.raises(
        UnsupportedFeature, match=r"altering a table with column emb of type VECTOR\(3\).*Add columns by writing"
    ):
        table.alter(add={"extra": pa.int32()})
    plain = hudimeta.Table.create(tmp_path / "p", pa.schema([("id", pa.int64())]), key="id")
    with pytest.raises(HudiError, match=r"column v of type VECTOR\(2\)"):
        plain.alter(add=[typed("v", pa.list_(pa.float32()), "VECTOR(2)")])
