"""A completed write without content, as a killed Apache Hudi leaves it: what takes it back, and what goes on over it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.errors import CorruptFileError, UndoError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
FORETOLD = pytest.mark.filterwarnings("ignore:.* is empty:hudimeta.config.HudiWarning")
INDEXED = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.secondary.column": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.compact.max.delta.commits": "50",
}


def table_of_three(path: Path, kind: str, operation: Operation) -> tuple[ModelledTable, str]:
    """A table with two writes and another one; the instant of that, whose makers left their markers."""
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **INDEXED, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.UPSERT, simple_rows(range(6), 1))
    table.write(Operation.UPSERT, simple_rows(range(3, 8), 2))
    instant = table.write(operation, simple_rows([1, 3, 20], 3)).instant
    for file in [*path.glob(f"p*/*{instant}.parquet"), *path.glob(f"p*/.*_{instant}.log.*")]:
        marker = path / ".hoodie/.temp" / instant / file.parent.name / f"{file.name}.marker.MERGE"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    return table, instant


def empty(path: Path, instant: str) -> None:
    (completed,) = (path / ".hoodie" / "timeline").glob(f"{instant}_*")
    completed.write_bytes(b"")
    os.utime(completed, (1, 1))  # nobody is filling it any more


def goes_on(table: ModelledTable) -> None:
    table.model.check(table.read())
    table.write(Operation.UPSERT, simple_rows([0, 30], 9))
    table.model.check(table.read())
    Table(table.path).recover()
    Table(table.path).metadata.validate().raise_if_differs()


@FORETOLD
@KINDS
@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT_OVERWRITE])
def test_a_rollback_takes_the_newest_back(tmp_path: Path, kind: str, operation: Operation) -> None:
    table, instant = table_of_three(tmp_path / "t", kind, operation)
    table.model.restore(sorted(table.model.past)[1])
    empty(tmp_path / "t", instant)
    Table(table.path).rollback(instant)
    assert not list((tmp_path / "t").rglob(f"*{instant}*.parquet*"))
    goes_on(table)
    check_all(table.storage)


@FORETOLD
@KINDS
@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT_OVERWRITE])
def test_a_restore_takes_it_back_with_what_came_later(tmp_path: Path, kind: str, operation: Operation) -> None:
    table, instant = table_of_three(tmp_path / "t", kind, operation)
    table.write(Operation.UPSERT, simple_rows([2, 21], 4))
    empty(tmp_path / "t", instant)
    second = sorted(table.model.past)[1]
    with pytest.raises(UndoError, match="came after it"):
        Table(table.path).rollback(instant)
    if operation is Operation.INSERT_OVERWRITE:  # which file groups it replaced nobody knows
        with pytest.raises(CorruptFileError, match=rf"t\.restore\('{second}'\) takes the table back"):
            table.read()
    Table(table.path).restore(second)
    table.model.restore(second)
    goes_on(table)
    check_all(table.storage)


@FORETOLD
@KINDS
def test_who_comes_after_somebody_went_on_over_it_goes_on_too(tmp_path: Path, kind: str) -> None:
    """As Apache Hudi does, which takes it for completed."""
    table, instant = table_of_three(tmp_path / "t", kind, Operation.UPSERT)
    table.write(Operation.UPSERT, simple_rows([2, 21], 4))
    empty(tmp_path / "t", instant)
    goes_on(table)
    table.write(Operation.DELETE, simple_rows([1, 4], 9))
    table.model.check(table.read())
    short = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    opened = Table(table.path, short)
    if kind == "MERGE_ON_READ":
        opened.compact()
    assert opened.clean().deleted
    for number in range(3):
        table.write(Operation.UPSERT, simple_rows([number], 10 + number))
    opened.clean()
    opened.metadata.rebuild()
    assert opened.archive().plan.instants
    table.model.check(table.read())
    Table(table.path).metadata.validate().raise_if_differs()
    changed = Table(table.path).scan(query_type="incremental", begin="0").to_table()
    assert sorted(changed["id"].to_pylist()) == sorted(row["id"] for row in table.model.all_rows())
