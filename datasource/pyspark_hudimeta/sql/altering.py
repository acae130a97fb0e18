"""ALTER TABLE of columns: the table first, the catalog's entry next.

Apache Hudi shows partition columns after all others, and puts new columns before them; so does this, in the table and in its
entry, since an INSERT without names goes by these places.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.types import StringType, StructField, StructType

from hudimeta.config import HudiWarning
from hudimeta.errors import UnsupportedFeature
from hudimeta.schema import HUDI_TYPE_KEY, check_names, normalise_schema
from hudimeta.sql import AlterTable, ColumnPlace, DeclaredColumn, TableName, quoted
from pyspark_hudimeta.arrow_types import declared_schema, nullable, spark_schema
from pyspark_hudimeta.plain.registration import carriers
from pyspark_hudimeta.routed.assignment import column_of
from pyspark_hudimeta.sql.column_defaults import checked_default, defaults_of, keep_defaults, let_spark_alter
from pyspark_hudimeta.sql.declared import declared_fields, warn_of_narrow
from pyspark_hudimeta.sql.described import declared_type
from pyspark_hudimeta.sql.paths import neighbour, spelling, spelt
from pyspark_hudimeta.sql.registering import enter, keep_comment, renamed
from pyspark_hudimeta.sql.session import Entry, SqlSession, literal, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.hudi_table import HudiTable

__all__ = ["add_columns", "alter"]


def alter(session: SqlSession, entry: Entry, statement: AlterTable, text: str = "") -> DataFrame:
    """Change the columns of the table, and then those of its entry.

    Args:
        session: Where it is run.
        entry: Of the table in the catalog.
        statement: What is run.
        text: Of the statement; ADD COLUMNS needs none.

    Raises:
        HudiError: What cannot be done; neither was changed.
    """
    table = opened(session, entry)
    if statement.default is not None:
        return _set_default(session, entry, *statement.default, text)
    if statement.add:
        added = _placed(entry, table, statement.add)
        changes = _additions(entry, added)
        text = f"ALTER TABLE {entry.name.sql} ADD COLUMNS ({', '.join(map(_declaration, added))})"
    else:
        changes = _changes(entry, statement)
    if changes:
        table.alter(**changes)
    elif statement.drop:
        return session.nothing()
    if not _alter_entry(session, entry, text) or (now := session.entry(entry.name)) is None:
        there = table.schema.names
        declared = StructType([column for column in entry.declared if column.name in there])
        _enter_anew(session, replace(entry, declared=declared))
    elif statement.add and _lacks_marker(now.declared):
        _enter_anew(session, now)
    else:
        keep_comment(session.plain, entry)
    return session.nothing()


def _lacks_marker(declared: StructType) -> bool:
    """True where no column of text says where the table is, though there is one now: plain sessions cannot insert then."""
    has_text = any(isinstance(column.dataType, StringType) for column in declared)
    return has_text and not any(found.registration.insertable for found in carriers(declared))


def _alter_entry(session: SqlSession, entry: Entry, text: str) -> bool:
    """Let Spark change the entry; False where it does not take such a change, and the table must be entered anew.

    So it must where the column was dropped that carried the table's place.
    """
    try:
        with let_spark_alter(session, entry):
            session.plain(text)
    except AnalysisException:  # the table has changed, whatever Spark says of it
        return False
    return True


def _enter_anew(session: SqlSession, entry: Entry) -> None:
    """Enter the table as it is now; its name leads to it all the time."""
    _, database, table = session.full_parts(entry.name)
    mark = uuid4().hex[:8]
    entered, parked = (TableName((database, f"_hudimeta_{word}_{mark}")) for word in ("new", "old"))
    enter(session.plain, entered, entry, entry.options)
    renamed(session.plain, TableName((database, table)), entered, parked)
    session.plain(f"DROP TABLE {parked.sql}")


def add_columns(session: SqlSession, entry: Entry, columns: Iterable[StructField]) -> Entry:
    """Give a table columns that rows for it have.

    Args:
        session: Where it is run.
        entry: Of the table in the catalog.
        columns: With their types.

    Returns:
        The entry as it is then.
    """
    added = tuple(DeclaredColumn((column.name,), declared_type(nullable(column.dataType))) for column in columns)
    alter(session, entry, AlterTable(entry.name, added))
    return session.entry(entry.name) or entry


def _changes(entry: Entry, statement: AlterTable) -> dict[str, Any]:
    """The arguments of `HudiTable.alter` for what is done to columns that are there; none where only the entry changes."""
    if statement.rename is not None:
        old, new = statement.rename
        return {"rename": {spelt(entry.columns, old): new}}
    if statement.retype is not None:
        return _retyped(entry, *statement.retype)
    if statement.nullable is not None:
        return {"nullable": spelt(entry.columns, statement.nullable)}
    if statement.change is not None:
        return _changed(entry, statement.change)
    if statement.move:
        return {
            "move": {
                spelt(entry.columns, name): neighbour(entry.columns, name, place) for name, place in statement.move.items()
            }
        }
    names = [name for name in statement.drop if not statement.lenient or spelling(entry.columns, name) is not None]
    return {"drop": [spelt(entry.columns, name) for name in names]} if names else {}


def _changed(entry: Entry, column: DeclaredColumn) -> dict[str, Any]:
    """What CHANGE COLUMN changes: the type where it is another one, and the place where one is given."""
    name = ".".join(column.path)
    found = _retyped(entry, name, column.kind)
    if column.place is not None:
        found["move"] = {spelt(entry.columns, name): neighbour(entry.columns, name, column.place)}
    return found


def _retyped(entry: Entry, name: str, kind: str) -> dict[str, Any]:
    """What gives a column a type; nothing where it has that one."""
    own = spelt(entry.columns, name)
    now: Any = entry.columns
    for part in own.split("."):
        now = now[part].dataType if isinstance(now, StructType) and part in now.names else None
    return {"retype": {own: _arrow_type(kind, name)}} if now != _type(kind, name) else {}


def _additions(entry: Entry, added: list[DeclaredColumn]) -> dict[str, Any]:
    for part in (part for column in added for part in column.path):  # one with a point would be taken for two
        check_names(pa.schema([pa.field(part, pa.null())]))
    names = [spelt(entry.columns, ".".join(column.path), new=True) for column in added]
    for column in added:
        warn_of_narrow(_declared(column.kind, ".".join(column.path)))
    fields = [pa.field(name, _arrow_type(column.kind, column.path[-1])) for name, column in zip(names, added, strict=True)]
    moves = {
        field.name: neighbour(entry.columns, field.name, column.place)
        for field, column in zip(fields, added, strict=True)
        if column.place is not None
    }
    return {"add": pa.schema(fields), **({"move": moves} if moves else {})}


def _placed(entry: Entry, table: HudiTable, added: tuple[DeclaredColumn, ...]) -> list[DeclaredColumn]:
    """New columns with their places: after the last column that is none of the partition, where nothing is said."""
    defaults = [column for column in added if column.default is not None]
    if defaults:
        hint = "Rows that are there would need it: ADD COLUMNS, UPDATE the rows, then ALTER COLUMN … SET DEFAULT."
        raise UnsupportedFeature("ADD COLUMNS with DEFAULT", hint)
    required = [".".join(column.path) for column in added if column.required]
    if required:
        said = f"{', '.join(required)} may be null: NOT NULL of ADD COLUMNS would not be true of the rows that are there"
        warnings.warn(said, HudiWarning, 2)
    last = _last_before_partitions(entry, table)
    found = []
    for column in added:
        if len(column.path) == 1 and column.place is None and last is not None:
            column = replace(column, place=last)
            last = ColumnPlace(column.path[0])
        found.append(column)
    return found


def _last_before_partitions(entry: Entry, table: HudiTable) -> ColumnPlace | None:
    """Where new columns go; None for the end."""
    names, fields = list(entry.columns.names), table.properties.partition_fields
    others = len(names)
    while others and names[others - 1] in fields:
        others -= 1
    if others == len(names):
        return None
    return ColumnPlace(names[others - 1] if others else None)


def _declaration(column: DeclaredColumn) -> str:
    """A new column as Spark adds it to the entry."""
    name = column.path[-1]
    stored = normalise_schema(pa.schema([pa.field(name, _arrow_type(column.kind, name))]))  # a SMALLINT is an INT there
    words = [".".join(map(quoted, column.path)), declared_type(spark_schema(stored)[0].dataType)]
    words += [f"COMMENT {literal(column.comment)}"] if column.comment is not None else []
    if column.place is not None:
        words.append("FIRST" if column.place.after is None else f"AFTER {quoted(column.place.after)}")
    return " ".join(words)


def _type(text: str, name: str) -> Any:
    return _declared(text, name)[0].dataType


def _arrow_type(text: str, name: str) -> pa.DataType:
    field = declared_schema(_declared(text, name)).field(0)
    if HUDI_TYPE_KEY in (field.metadata or {}):
        hint = "Write rows with the column, and its type as hudi_type in the metadata of the DataFrame's column."
        raise UnsupportedFeature(f"ALTER TABLE with a column of type {text}", hint)
    return field.type


def _declared(text: str, name: str) -> StructType:
    """A type as the column that has it, so that errors name the column."""
    return declared_fields(f"{quoted(name)} {text}")


def _set_default(session: SqlSession, entry: Entry, name: str, value: str | None, text: str) -> DataFrame:
    """The table first, then its entry, which may refuse; the table is then as it was."""
    column = column_of(entry.columns, name)
    if value is not None:
        checked_default(session, entry.columns[column], value)
    before = defaults_of(entry, opened(session, entry)).get(column)
    keep_defaults(session, entry, {column: value})
    try:
        with let_spark_alter(session, entry):
            session.plain(text)
    except BaseException:
        keep_defaults(session, entry, {column: before})
        raise
    keep_comment(session.plain, entry)
    return session.nothing()
