"""Which write a row says that it comes from when a late row fills its nulls: as Apache Hudi 1.0.2 and 1.2.0 do it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta

PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
SCHEMA = pa.schema(
    [("id", pa.string()), ("a", pa.string()), ("b", pa.int32()), ("c", pa.float64()), ("ts", pa.int64())],
)
FIRST = [("late, nothing to give", "x", 1, None, 15), ("late, fills", "x", None, 1.5, 15), ("late, whole", "x", 1, 1.5, 15)]
SECOND = [("late, nothing to give", "y", 1, None, 10), ("late, fills", "z", 0, 1.5, 5), ("late, whole", "y", 2, 2.5, 5)]
TIMELY = [("in time", "x", 1, None, 5)], [("in time", None, 2, 2.5, 10)]
MERGED = {
    "late, nothing to give": ("x", 1, None, 15),
    "late, fills": ("x", 0, 1.5, 15),
    "late, whole": ("x", 1, 1.5, 15),
    "in time": ("x", 2, 2.5, 10),
}


def rows(values: list[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in values], SCHEMA)


@pytest.mark.parametrize(
    ("version", "kind", "of_second"),
    [
        ("8", "COPY_ON_WRITE", {"late, nothing to give", "late, fills", "late, whole", "in time"}),
        ("8", "MERGE_ON_READ", {"late, nothing to give", "late, fills", "late, whole", "in time"}),
        ("9", "COPY_ON_WRITE", {"late, nothing to give", "late, fills", "in time"}),
        ("9", "MERGE_ON_READ", {"in time"}),
    ],
)
def test_the_meta_columns_of_a_filled_row(tmp_path: Path, version: str, kind: str, of_second: set[str]) -> None:
    options = {"hoodie.write.table.version": version, "hoodie.datasource.write.payload.class": PARTIAL}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, "id", ordering="ts", type=kind, options=options)
    first = table.insert(rows(FIRST + TIMELY[0])).instant
    second = table.upsert(rows(SECOND + TIMELY[1])).instant

    def check() -> None:
        found = {row["id"]: row for row in hudimeta.Table(tmp_path / "t").scan().to_table().to_pylist()}
        assert {key: tuple(row[name] for name in SCHEMA.names[1:]) for key, row in found.items()} == MERGED
        assert {key for key, row in found.items() if row["_hoodie_commit_time"] == second} == of_second
        assert {row["_hoodie_commit_time"] for row in found.values()} <= {first, second}
        assert all(row["_hoodie_commit_seqno"].startswith(row["_hoodie_commit_time"]) for row in found.values())

    check()
    if kind == "MERGE_ON_READ":
        assert hudimeta.Table(tmp_path / "t").compact()
        check()


def test_a_late_row_in_the_log_gives_its_meta_columns_to_an_earlier_one_there(tmp_path: Path) -> None:
    options = {"hoodie.write.table.version": "8", "hoodie.datasource.write.payload.class": PARTIAL}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, "id", ordering="ts", type="MERGE_ON_READ", options=options)
    table.insert(rows([("k", "x", None, None, 1)]))
    table.upsert(rows([("k", None, 1, None, 9)]))
    last = table.upsert(rows([("k", "z", 2, 3.5, 5)])).instant
    (found,) = table.scan().to_table().to_pylist()
    assert (found["a"], found["b"], found["c"], found["ts"]) == ("z", 1, 3.5, 9)
    assert found["_hoodie_commit_time"] == last
