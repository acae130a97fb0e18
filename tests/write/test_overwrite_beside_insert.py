"""An overwrite of the whole table and rows that another writer adds meanwhile, to a partition that it does not write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.timings import Timings
from hudimeta.errors import CommitConflict
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch


def overwrite_beside(table: ModelledTable, rows: pa.Table, other: Operation, others: pa.Table) -> None:
    """Overwrite the table once, while another writer writes, after the look at the table and before the publication."""
    session, operation = table.session(), Operation.INSERT_OVERWRITE_TABLE
    files = TableFiles.at(session, session.properties.load_timeline(session.storage))
    with session.coordinator.writing(operation, files.snapshot.timeline) as (write, _):
        prepared = prepare(files, session, operation, rows)
        outcome = write_batch(session, files, write, prepared, Timings())
        table.write(other, others)
        publish(session, files, write, prepared.schema, outcome, Timings())


@pytest.mark.parametrize("other", [Operation.INSERT, Operation.UPSERT, Operation.BULK_INSERT])
def test_rows_that_were_there_before_the_overwrite_do_not_outlive_it(tmp_path: Path, other: Operation) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    elsewhere = pa.table({"id": ["z"], "part": ["elsewhere"], "ts": [5], "x": [1.0]})
    with pytest.raises(CommitConflict, match="elsewhere"):
        overwrite_beside(table, simple_rows([100], 9), other, elsewhere)
    table.check()
    # What the verbs do after a conflict.
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows([100], 9))
    assert Table(table.path).scan(columns=["id"]).to_table()["id"].to_pylist() == ["k0100"]
    check_all(table.storage)
