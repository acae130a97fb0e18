"""`insertInto`, `saveAsTable` and `df.writeTo` by a table's name in an attached session: SQL's statements for a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hudimeta import Table
from hudimeta.config import OPTIONS, check_of_a_write
from hudimeta.config.options import OPERATION, PARTITION_PATH, PATH
from hudimeta.errors import ConfigError, TableNotFound, UnsupportedFeature
from hudimeta.sql import CreateTable, Insert, TableName, name_of, quoted
from hudimeta.types import META_COLUMNS
from pyspark_hudimeta.plain.location import resolve
from pyspark_hudimeta.plain.writer import writer_options
from pyspark_hudimeta.routed.assignment import names_as_in
from pyspark_hudimeta.sql.altering import add_columns
from pyspark_hudimeta.sql.definition import create
from pyspark_hudimeta.sql.insertion import checked_rows, insert
from pyspark_hudimeta.sql.session import Entry, SqlSession, opened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "append_to",
    "insert_into",
    "overwrite_partitions",
    "overwrite_where",
    "partitioned",
    "replace_table",
    "save_as_table",
    "table_at",
    "unknown_layout",
]

_OF_STORAGE = "hudimeta.storage."
_MERGE_SCHEMA = "mergeschema"
"""The option of Delta Lake's writers by which rows may bring new columns, and leave out others."""


def insert_into(session: SqlSession, name: str, rows: DataFrame, given: Mapping[str, str], *, overwrite: bool) -> bool:
    """Insert rows by the places of their columns, as INSERT INTO and INSERT OVERWRITE do.

    Args:
        session: Where the table is named.
        name: As Spark takes it.
        rows: Their `_hoodie_*` columns are ignored.
        given: The writer's options.
        overwrite: Which of the two.

    Returns:
        False where it is no table of ours; then nothing was done.

    Raises:
        HudiError, AnalysisException: The write was not published.
    """
    entry = _entry(session, name_of(name))
    if entry is None:
        return False
    _insert(session, entry, rows, given, overwrite=overwrite, by_name=False)
    return True


def append_to(session: SqlSession, name: str, rows: DataFrame, given: Mapping[str, str]) -> bool:
    """Insert rows by the names of their columns. Args, returns, raises: See `insert_into`."""
    entry = _entry(session, name_of(name))
    if entry is None:
        return False
    _insert(session, entry, rows, given, overwrite=False, by_name=True)
    return True


def overwrite_partitions(session: SqlSession, name: str, rows: DataFrame, given: Mapping[str, str]) -> bool:
    """Replace the partitions that rows belong to, by the names of columns. Args, returns, raises: See `insert_into`."""
    entry = _entry(session, name_of(name))
    if entry is None:
        return False
    meant = replace(entry, options={**entry.options, OPERATION.key: "insert_overwrite"})
    _insert(session, meant, rows, given, overwrite=True, by_name=True)
    return True


def overwrite_where(session: SqlSession, name: str, rows: DataFrame, given: Mapping[str, str], condition: Column) -> bool:
    """Replace the rows that a condition is true of, by the names of columns.

    Args:
        session: Where the table is named.
        name: As Spark takes it.
        rows: The condition has to be true of them too; their `_hoodie_*` columns are ignored.
        given: The writer's options.
        condition: Over columns of the table; `lit(True)` replaces all rows.

    Returns:
        False where it is no table of ours; then nothing was done.

    Raises:
        HudiError, AnalysisException: The write was not published.
    """
    entry = _entry(session, name_of(name))
    if entry is None:
        return False
    # Resolved, because only then a condition's text is SQL.
    shown = session.spark.table(name).alias(entry.name.table).where(condition)
    where = str(shown._jdf.queryExecution().analyzed().condition().sql())
    if where == "true":
        meant = replace(entry, options={**entry.options, OPERATION.key: "insert_overwrite_table"})
        _insert(session, meant, rows, given, overwrite=True, by_name=True)
    else:
        _insert(session, entry, rows, given, overwrite=False, by_name=True, where=where)
    return True


def save_as_table(
    session: SqlSession, name: str, rows: DataFrame, given: Mapping[str, str], mode: str, partition_by: Sequence[str]
) -> bool:
    """Write rows to a table by the names of their columns, or create it with them.

    Args:
        session: Where the table is named.
        name: As Spark takes it.
        rows: Their `_hoodie_*` columns are ignored.
        given: The writer's options; of a table that is created those of the table too, its place among them.
        mode: Of saving.
        partition_by: Partition columns of a table that is created; of one that is there the same, or none.

    Returns:
        False where Spark has to answer; then nothing was done.

    Raises:
        HudiError, AnalysisException: The write was not published; a table that was begun is gone, one that was to be replaced
            is as it was.
    """
    target = name_of(name)
    entry = _entry(session, target)
    if target is not None and mode == "overwrite" and entry is None:
        return replace_table(session, name, rows, given, partition_by)
    if target is None or (entry is None and not session.is_free(target)):
        return False
    if entry is not None:
        if mode not in ("append", "overwrite"):
            return False
        _refuse_other_partitions(opened(session, entry).properties.partition_fields, partition_by)
        _insert(session, entry, rows, given, overwrite=mode == "overwrite", by_name=True)
        return True
    with names_as_in(session.spark):
        return create(session, _statement(target, given, partition_by), _data(rows)) is not None


def replace_table(
    session: SqlSession,
    name: str,
    rows: DataFrame,
    given: Mapping[str, str],
    partition_by: Sequence[str],
    *,
    creates: bool = True,
) -> bool:
    """Make a table of rows that takes the place of the one of its name, whatever its format, when it is whole.

    Args:
        session: Where the table is named.
        name: As Spark takes it.
        rows: Their `_hoodie_*` columns are ignored.
        given: The writer's options, those of the table too, its place among them.
        partition_by: Partition columns.
        creates: It is also made where there is none of this name.

    Returns:
        False where Spark has to answer; then nothing was done.

    Raises:
        HudiError, AnalysisException: The new table cannot be made; the old one is as it was.
    """
    target = name_of(name)
    if target is None:
        return False
    statement = replace(_statement(target, given, partition_by), replaces=True, creates=creates)
    with names_as_in(session.spark):
        return create(session, statement, _data(rows)) is not None


def unknown_layout(method: str) -> UnsupportedFeature:
    """What is said of a method of Spark's writers that lays rows out; Spark would drop the entry of a table that is there."""
    hint = (
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns sorts rows; hoodie.index.type=BUCKET with "
        "hoodie.bucket.index.num.buckets makes buckets by the key."
    )
    return UnsupportedFeature(f"{method} for a hudimeta table", hint)


def _statement(target: TableName, given: Mapping[str, str], partition_by: Sequence[str]) -> CreateTable:
    options = writer_options(given)
    return CreateTable(target, "hudimeta", partition_by=tuple(partition_by), options=options, location=_place(given))


def table_at(location: str, given: Mapping[str, str]) -> Table | None:
    """The table in a folder; None where there is none.

    Args:
        location: The folder.
        given: The writer's options, of which those of storage count.
    """
    try:
        return Table(location, {key: value for key, value in given.items() if key.startswith(_OF_STORAGE)})
    except TableNotFound:
        return None


def partitioned(given: Mapping[str, str], partition_by: Sequence[str], found: Table | None) -> dict[str, str]:
    """The option that `partitionBy` stands for in a write to a folder, as Apache Hudi takes it.

    Args:
        given: The writer's options; where they name partition columns themselves, these count.
        partition_by: What `partitionBy` says.
        found: The table that is there.

    Raises:
        ConfigError: The table has other partition columns.
    """
    if found is not None:
        _refuse_other_partitions(found.properties.partition_fields, partition_by)
        return {}
    return {} if OPTIONS.read(writer_options(given)).is_set(PARTITION_PATH) else {PARTITION_PATH.key: ",".join(partition_by)}


def _refuse_other_partitions(fields: Sequence[str], given: Sequence[str]) -> None:
    """Refuse partition columns that are not those of the table; Spark would drop the entry of what it is to overwrite."""
    if given and [name.lower() for name in given] != [name.lower() for name in fields]:
        have = f"what the table has: {', '.join(fields)}" if fields else "nothing: the table has no partitions"
        raise ConfigError("partitionBy", ", ".join(given), have, "Leave partitionBy out for a table that is there.")


def _insert(
    session: SqlSession,
    entry: Entry,
    rows: DataFrame,
    given: Mapping[str, str],
    *,
    overwrite: bool,
    by_name: bool,
    where: str | None = None,
) -> None:
    place = _place(given)
    if place is not None and resolve(place) != entry.location:
        allowed = f"{entry.location}, where {entry.name.sql} is"
        raise ConfigError(PATH.key, place, allowed, "Leave it out: the table's name says where it is.")
    check_of_a_write(given, rows.columns)
    data, columns = _data(rows), None
    with names_as_in(session.spark):
        if by_name and {key.lower(): value for key, value in given.items()}.get(_MERGE_SCHEMA, "").lower() == "true":
            entry, columns = _widened(session, entry, data), tuple(data.columns)
        meant = replace(entry, options={**writer_options(given), **entry.options})
        insert(session, meant, Insert(entry.name, "", overwrite, columns, by_name, where=where), data)


def _widened(session: SqlSession, entry: Entry, rows: DataFrame) -> Entry:
    """Give the table the columns that only the rows have, if all others of theirs fit."""
    own = {name.lower() for name in entry.columns.names}
    added = [column for column in rows.schema if column.name.lower() not in own]
    if not added:
        return entry
    kept = [column.name for column in rows.schema if column.name.lower() in own]
    checked_rows(session, entry, Insert(entry.name, "", columns=tuple(kept)), rows.select(*map(quoted, kept)))
    return add_columns(session, entry, added)


def _place(given: Mapping[str, str]) -> str | None:
    """What the option `path` says."""
    return next((value for key, value in given.items() if key.lower() == PATH.key), None)


def _entry(session: SqlSession, name: TableName | None) -> Entry | None:
    return session.entry(name) if name is not None else None


def _data(rows: DataFrame) -> DataFrame:
    return rows.drop(*META_COLUMNS)
