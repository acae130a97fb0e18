"""What rows of another schema do to a table: the report says it, and nothing becomes text by accident."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import UnsupportedEvolution
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("n", pa.int32()), ("s", pa.struct([("y", pa.date32())]))])


def rows(number: int, **columns: pa.Array) -> pa.Table:
    plain = {"x": pa.array([0.5]), "n": pa.array([number], pa.int32()), "s": pa.array([{"y": None}], SCHEMA.field("s").type)}
    return pa.table({"id": [number], **plain, **columns})


@pytest.fixture
def table(tmp_path: Path) -> hudimeta.Table:
    made = hudimeta.Table.create(tmp_path, SCHEMA, key="id")
    made.insert(rows(1))
    return made


@pytest.mark.parametrize("verb", ["upsert", "insert", "bulk_insert", "insert_overwrite_table"])
def test_a_column_of_texts_is_refused_where_the_table_has_another_type(table: hudimeta.Table, verb: str) -> None:
    nested = pa.array([{"y": "2026-01-01"}], pa.struct([("y", pa.string())]))
    for column, values in (("x", pa.array(["a"])), ("s", nested), ("n", pa.array([b"a"], pa.large_string()))):
        with pytest.raises(UnsupportedEvolution, match=r"hudimeta\.schema\.widen=any") as caught:
            getattr(table, verb)(rows(2, **{column: values}))
        assert column in str(caught.value)
    assert table.scan().to_table().num_rows == 1
    assert table.schema.field("x").type == pa.float64()
    assert len(table.timeline.writes) == 1
    assert list(table.services.recover()) == [], "no write was begun"


@pytest.mark.parametrize("option", ["hudimeta.schema.widen=any", "hoodie.schema.on.read.enable=true"])
def test_options_ask_for_texts(table: hudimeta.Table, option: str) -> None:
    key, _, value = option.partition("=")
    report = hudimeta.Table(table.path, {key: value}).upsert(rows(2, x=pa.array(["a"])))
    assert report.notes == ("column x is string now, it was double",)
    assert table.scan(columns=["id", "x"]).to_table().sort_by("id")["x"].to_pylist() == ["0.5", "a"]
    check_all(open_storage(table.path))


def test_the_report_tells_what_is_wider_new_and_missing(table: hudimeta.Table) -> None:
    given = rows(2, n=pa.array([2**40]), extra=pa.array([True])).drop_columns(["x"])
    assert table.upsert(given).notes == (
        "column n is int64 now, it was int32",
        "new columns of the table: extra",
        "columns that the rows lack, filled with null: x",
    )
    assert table.report().notes == table.report(table.timeline.writes[-1].time).notes
    assert table.upsert(rows(3)).notes == ("columns that the rows lack, filled with null: extra",)
    strict = hudimeta.Table(table.path, {"hoodie.write.set.null.for.missing.columns": "false"})
    with pytest.raises(UnsupportedEvolution, match="extra"):
        strict.upsert(rows(4))
    assert table.scan().count() == 3
