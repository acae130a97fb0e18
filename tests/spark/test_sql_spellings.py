"""SQL in all sessions: one script of all kinds of statements, spelt in every way, does the same each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.spellings import COLUMN, SCRIPT, SPELLINGS, said, spelt
from tests.spark.sql_tables import Name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step = tuple[str, list[str], list[str]]
OF_NEW_COLUMNS = ("create table", "alter table {t} add columns ([added]", "alter table {t} drop columns if exists")
"""How statements begin that may name columns that are not there."""
_written: list[list[Step]] = []


@pytest.fixture
def as_written(door: SparkSession, name: Name) -> list[Step]:
    """What each statement of the script answers and leaves, as it is written."""
    if not _written:
        _written.append(_run(door, "as written", name(), name()))
    return _written[0]


@pytest.mark.timeout(900)
@pytest.mark.rotation(8)
@pytest.mark.parametrize("spelling", [name for name in SPELLINGS if name != "as written"])
def test_statements_do_the_same_however_they_are_spelt(
    door: SparkSession, name: Name, as_written: list[Step], spelling: str
) -> None:
    for (statement, answer, left), (_, ours, ours_left) in zip(as_written, _run(door, spelling, name(), name()), strict=True):
        assert ours == answer, (spelling, statement)
        assert ours_left == left, (spelling, statement)


@pytest.mark.timeout(900)
def test_columns_in_the_other_case_are_none_where_the_session_says_so(
    door: SparkSession, name: Name, as_written: list[Step], conf: Callable[[str, str], None], tmp_path: Path
) -> None:
    conf("spark.sql.caseSensitive", "true")
    table, other = name(), name()
    for (statement, answer, left), number in zip(as_written, range(len(SCRIPT)), strict=True):
        if COLUMN.search(statement) and not statement.startswith(OF_NEW_COLUMNS):
            before = _files(door, table), _files(door, other), _left(door, table, other)
            swapped, _ = spelt(COLUMN.sub(lambda found: f"[{found[1].swapcase()}]", statement), "as written", table, other)
            with pytest.raises(Exception, match=r"columns of the table|UNRESOLVED_COLUMN|FIELD_NOT_FOUND|fields of") as caught:
                door.sql(swapped).collect()
            assert type(caught.value).__name__ != "Py4JJavaError", swapped
            assert (_files(door, table), _files(door, other), _left(door, table, other)) == before, swapped
        text, _ = spelt(SCRIPT[number], "as written", table, other)
        assert said(door.sql(text).collect(), table, other) == answer, statement
        assert _left(door, table, other) == left, statement


def _run(session: SparkSession, spelling: str, table: str, other: str) -> list[Step]:
    steps = []
    for statement in SCRIPT:
        text, values = spelt(statement, spelling, table, other)
        try:
            rows = session.sql(text, values).collect()
        except Exception as error:
            raise AssertionError(f"{spelling}: {text} {values}") from error
        steps.append((statement, said(rows, table, other), _left(session, table, other)))
    return steps


def _left(session: SparkSession, *tables: str) -> list[str]:
    """Columns and rows of those of the tables that are there."""
    found: list[str] = []
    for table in tables:
        if session.catalog.tableExists(table):
            frame = session.sql(f"select * from {table}")
            data = frame.select(*[column for column in frame.columns if not column.startswith("_hoodie")])
            found += [data.schema.simpleString(), *sorted(str(tuple(row)) for row in data.collect())]
    return found


def _files(session: SparkSession, table: str) -> list[str]:
    warehouse = Path(str(session.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
    return sorted(str(file) for file in (warehouse / table).rglob("*") if ".aux" not in str(file))
