"""First rows of a table whose columns nothing tells, as a first write of Apache Hudi's leaves one that failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.api.plain_write import PlainWrite
from hudimeta.errors import ConfigError, SchemaUnknown
from hudimeta.testing.builders import simple_rows
from tests.write.unstated import STATED, without_columns


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Of such a table."""
    table = Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", partition_by="part", ordering="ts")
    return without_columns(table.path)


def verb(path: str, rows: pa.Table) -> None:
    assert "nothing told the table's columns: they are those of these rows" in Table(path).upsert(rows).notes


def stream(path: str, rows: pa.Table) -> None:
    batches = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=1))
    Table(path, {"hudimeta.write.portion.bytes": 1}).upsert(batches)


def plain_door(path: str, rows: pa.Table) -> None:
    write = PlainWrite.begin(path, {}, rows.schema, overwrite=False)
    write.commit([write.write(rows.to_batches(), 0, 0)])


@pytest.mark.parametrize("write", [verb, stream, plain_door])
def test_the_columns_are_those_of_the_first_rows(path: str, write: Callable[[str, pa.Table], None]) -> None:
    with pytest.raises(SchemaUnknown, match="Write rows into the table"):
        Table(path).scan().to_table()
    rows = simple_rows([1, 2], 1)
    write(path, rows)
    table = Table(path)
    assert table.scan(columns=rows.column_names).to_table().sort_by("id").equals(rows)
    assert STATED in table.properties
    assert table.metadata.validate().holds
    table.upsert(simple_rows([2, 3], 2))
    assert table.scan().count() == 3


def test_rows_that_do_not_fit_the_table_state_nothing(path: str) -> None:
    with pytest.raises(ConfigError, match=r"'ts'.*columns of the rows: id, part"):
        Table(path).insert(simple_rows([1], 1).select(["id", "part"]))
    with pytest.raises(SchemaUnknown):
        Table(path).delete(simple_rows([1], 1).select(["id", "part"]))
    assert STATED not in Table(path).properties
