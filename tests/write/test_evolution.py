"""Columns that a write adds or widens: old rows and new ones, in every operation, and in the statistics."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.api.table import Table
from hudimeta.errors import SchemaError, UnsupportedEvolution
from hudimeta.storage import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.write.hudi_rs import read_with_hudi_rs

WIDEN_ANY = {"hudimeta.schema.widen": "any"}


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    options = {**SIMPLE_OPTIONS, **WIDEN_ANY}
    made = ModelledTable(str(tmp_path / "t"), options, schema=rows_with("n", pa.int32(), []).schema)
    made.write(Operation.INSERT, rows_with("n", pa.int32(), range(6)))
    return made


def rows_with(name: str, kind: pa.DataType, ids: object, ts: int = 1) -> pa.Table:
    numbers = list(ids)  # type: ignore[call-overload]
    values = pa.array([n * 3 - 10 for n in numbers], pa.int32())
    if pa.types.is_string(kind):
        values = pa.array([str(n * 3 - 10) for n in numbers])
    return simple_rows(numbers, ts).append_column(name, values.cast(kind))


@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT, Operation.INSERT_OVERWRITE])
def test_an_added_column_is_null_in_older_rows(table: ModelledTable, operation: Operation) -> None:
    wider = rows_with("n", pa.int32(), [2, 50], 2).append_column("note", pa.array(["a", None]))
    table.write(operation, wider)
    table.model.check(table.read())
    check_all(table.storage)
    table.write(Operation.UPSERT, rows_with("n", pa.int32(), [1, 2], 3))
    table.model.check(table.read())
    table.model.check(read_with_hudi_rs(table.path))
    check_all(table.storage)
    assert Table(table.path).scan(where="note is null").to_table().num_rows == sum(
        row.get("note") is None for row in table.model.all_rows()
    )


@pytest.mark.rotation(5)
@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.float64(), pa.string()], ids=str)
@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.BULK_INSERT])
def test_a_widened_column_keeps_its_values(table: ModelledTable, operation: Operation, kind: pa.DataType) -> None:
    """A bulk insert leaves the old files as they are, so that both types lie side by side."""
    table.write(operation, rows_with("n", kind, [2, 4, 60], 2))
    table.model.check(table.read())
    check_all(table.storage)
    for turn in range(2):
        table.write(Operation.BULK_INSERT, rows_with("n", kind, [70 + turn, 80 + turn], 3))
        table.write(Operation.UPSERT, rows_with("n", pa.int32(), [1], 4 + turn))
        table.model.check(table.read())
        check_all(table.storage)
    assert Table(table.path).schema.field("n").type == kind


def test_statistics_that_a_widened_column_lost_do_not_come_back_too_narrow(table: ModelledTable) -> None:
    """Numbers as texts have another order: what was known of the partition bounds nothing, and later files alone neither."""
    table.write(Operation.BULK_INSERT, rows_with("n", pa.string(), [100, 101], 2))
    table.write(Operation.BULK_INSERT, rows_with("n", pa.string(), [102, 103], 2))
    check_all(table.storage)
    for text in ("-10", "5", "290", "299"):
        found = Table(table.path).scan(where=f"n = '{text}'").to_table()
        assert found.num_rows == sum(str(row["n"]) == text for row in table.model.all_rows()), text


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("n", pa.array([Decimal("1.5")])),
        ("n", pa.array([[1]])),
        ("ts", pa.array([None], pa.int64())),
    ],
)
def test_rows_that_do_not_fit_change_nothing(table: ModelledTable, name: str, column: pa.Array) -> None:
    rows = rows_with("n", pa.int32(), [1], 9)
    rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    before = Table(table.path).timeline.writes
    with pytest.raises(SchemaError, match=name):
        table.write(Operation.UPSERT, rows)
    assert (Table(table.path).timeline.writes, Table(table.path).timeline.pending) == (before, ())
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("name", ["id", "part"])
def test_a_column_of_the_key_or_path_is_not_widened_to_other_texts(tmp_path: Path, name: str) -> None:
    """Rows are found by the text of their key: 1 would not be found as 1.0, and each row would be there twice."""
    first = pa.table({"id": pa.array([1, 2], pa.int32()), "part": pa.array([3, 4], pa.int32()), "ts": pa.array([1, 1])})
    table = Table.create(tmp_path / "t", first.schema, key="id", partition_by=["part"], ordering=["ts"], options=WIDEN_ANY)
    table.upsert(first)

    def second(kind: pa.DataType) -> pa.Table:
        at = first.schema.get_field_index(name)
        return first.set_column(at, name, first[name].cast(kind))

    with pytest.raises(UnsupportedEvolution, match=rf"{name}.*from int32 to double.*Cast the column to int32"):
        table.upsert(second(pa.float64()))
    with pytest.raises(UnsupportedEvolution, match=rf"{name}.*from int32 to double"):
        table.alter(retype={name: pa.float64()})
    for kind in (pa.int64(), pa.string()):
        table.upsert(second(kind))
    assert Table(tmp_path / "t").scan().to_table().num_rows == 2
    check_all(open_storage(str(tmp_path / "t")))
