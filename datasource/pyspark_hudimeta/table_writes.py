"""`df.write.insertInto(table)` and `saveAsTable(table)` in an attached session: what SQL does with the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hudimeta.config.options import PATH
from hudimeta.sql import CreateTable, Insert, TableName, target_of
from hudimeta.types import META_COLUMNS
from pyspark_hudimeta.sql_definition import create
from pyspark_hudimeta.sql_insertion import insert
from pyspark_hudimeta.sql_session import Entry, SqlSession
from pyspark_hudimeta.writer import writer_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["insert_into", "save_as_table"]


def insert_into(session: SqlSession, name: str, rows: DataFrame, told: Mapping[str, str], *, overwrite: bool) -> bool:
    """Insert rows by the places of their columns, as INSERT INTO and INSERT OVERWRITE do.

    Args:
        session: Where the table is named. name: As Spark takes it. rows: Their `_hoodie_*` columns are ignored.
        told: The writer's options. overwrite: Which of the two.

    Returns:
        False where it is no table of ours; then nothing was done.

    Raises:
        HudiError, AnalysisException: The write was not published.
    """
    entry = _entry(session, _named(name))
    if entry is None:
        return False
    _insert(session, entry, rows, told, overwrite=overwrite, by_name=False)
    return True


def save_as_table(
    session: SqlSession, name: str, rows: DataFrame, told: Mapping[str, str], mode: str, partition_by: Sequence[str]
) -> bool:
    """Write rows to a table by the names of their columns, or create it with them.

    Args:
        session, name, rows, told: See `insert_into`; the options of a table that is created too, its place among them.
        mode: Of saving. partition_by: Partition columns of a table that is created.

    Returns:
        False where Spark has to answer; then nothing was done.

    Raises:
        HudiError, AnalysisException: The write was not published; a table that was begun is gone.
    """
    target = _named(name)
    entry = _entry(session, target)
    if target is None or (entry is None and not session.is_free(target)):
        return False
    if entry is not None:
        if mode not in ("append", "overwrite") or partition_by:
            return False
        _insert(session, entry, rows, told, overwrite=mode == "overwrite", by_name=True)
        return True
    place = next((value for key, value in told.items() if key.lower() == PATH.key), None)
    statement = CreateTable(target, "hudimeta", partition_by=tuple(partition_by), options=writer_options(told), location=place)
    return create(session, statement, _data(rows)) is not None


def _insert(
    session: SqlSession, entry: Entry, rows: DataFrame, told: Mapping[str, str], *, overwrite: bool, by_name: bool
) -> None:
    meant = replace(entry, options={**writer_options(told), **entry.options})
    insert(session, meant, Insert(entry.name, "", overwrite=overwrite, by_name=by_name), _data(rows))


def _named(name: str) -> TableName | None:
    return target_of(f"INSERT INTO {name} VALUES ()")


def _entry(session: SqlSession, name: TableName | None) -> Entry | None:
    return session.entry(name) if name is not None else None


def _data(rows: DataFrame) -> DataFrame:
    return rows.drop(*META_COLUMNS)
