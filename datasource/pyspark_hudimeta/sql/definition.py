"""CREATE TABLE and DROP TABLE: the table's own files first, the catalog's entry next."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql.types import StructField, StructType

from hudimeta import Table
from hudimeta.config import HudiWarning
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, HudiError, TableNotFound, UnsupportedFeature
from hudimeta.redaction import redacted
from hudimeta.schema import normalise_schema
from hudimeta.sql import CreateLike, CreateTable, DropTable, TableName, quoted, without_defaults
from hudimeta.storage import open_storage
from hudimeta.table.column_defaults import column_defaults
from hudimeta.types import META_COLUMNS
from pyspark_hudimeta.arrow_types import HUDI_TYPE, declared_schema, nullable, spark_schema
from pyspark_hudimeta.hudi_table import HudiTable
from pyspark_hudimeta.plain.registration import kept_options, refuse_contradictions, stated_options
from pyspark_hudimeta.routed.assignment import column_of
from pyspark_hudimeta.sql.column_defaults import checked_defaults, keep_defaults_at
from pyspark_hudimeta.sql.declared import as_of_hudi, declared_fields, warn_of_narrow
from pyspark_hudimeta.sql.described import declared_column, declared_columns, properties_of
from pyspark_hudimeta.sql.new_place import a_place, place_of, refuse_occupied, taken_back, taken_place
from pyspark_hudimeta.sql.paths import spelt
from pyspark_hudimeta.sql.registering import comment_columns, register, renamed
from pyspark_hudimeta.sql.session import OWNS_FILES, Entry, SqlSession, literal, opened, options_of
from pyspark_hudimeta.sql.traces import without_trace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["create", "create_like", "drop", "replaced"]

_REGISTER = "Leave the list of columns out to register the table as it is."
_NAME = re.compile(r"\w+", re.ASCII)
"""Names that Spark's own catalog takes."""


def create(session: SqlSession, statement: CreateTable, rows: DataFrame | None = None) -> DataFrame | None:
    """Create a table and its entry, with the rows of the query if there is one.

    Args:
        session: Where it is run.
        statement: What is run.
        rows: Take the place of those of the statement's query.

    Returns:
        None where Spark shall run the statement: it registers a table that exists, or the name is taken.

    Raises:
        HudiError: Columns or properties that do not fit; nothing was created.
    """
    if statement.replaces:
        return replaced(session, statement, rows)
    if statement.provider != "hudimeta" or not session.is_free(statement.name):
        return None
    _check_name(session, statement.name)
    if not _makes(statement, rows):
        _check_registered(session, statement)
        return None
    new = _New.of(session, statement, rows)
    with new.taken_back():
        new.make(session, statement.name)
    return session.nothing()


def create_like(session: SqlSession, statement: CreateLike) -> DataFrame | None:
    """Create a table with the columns, the partitions and the properties of another one, and without its rows.

    Returns:
        None where Spark shall run the statement: neither of the two is ours, or the name is taken.

    Raises:
        HudiError: Properties that do not fit; nothing was created.
    """
    source = session.entry(statement.source)
    provider = statement.provider or "hudimeta" if source is not None else statement.provider
    if provider != "hudimeta":
        return _like_elsewhere(session, statement, source) if source is not None else None
    if statement.if_not_exists and session.is_taken(statement.name):
        return session.nothing()
    if source is not None:
        given = {**properties_of(session, source), **statement.options}
        table = opened(session, source)
        columns = declared_columns(source, table)
        fields = table.properties.partition_fields
    else:
        columns, given, fields = session.spark.table(statement.source.sql).schema, dict(statement.options), ()
    text = ", ".join(declared_column(column) for column in columns)
    place, comment = statement.location, statement.comment
    return create(session, CreateTable(statement.name, "hudimeta", False, text, fields, "", given, place, comment))


def _like_elsewhere(session: SqlSession, statement: CreateLike, source: Entry) -> DataFrame:
    """Let Spark create a table of another format with the columns and partitions of one of ours: alone it cannot copy it."""
    table = opened(session, source)
    columns = ", ".join(declared_column(column) for column in declared_columns(source, table))
    fields = ", ".join(map(quoted, table.properties.partition_fields))
    stated = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in statement.options.items())
    parts = [
        f"CREATE TABLE {'IF NOT EXISTS ' if statement.if_not_exists else ''}{statement.name.sql} ({columns})",
        f"USING {statement.provider}",
        f"PARTITIONED BY ({fields})" if fields else "",
        f"LOCATION {literal(statement.location)}" if statement.location is not None else "",
        f"COMMENT {literal(statement.comment)}" if statement.comment is not None else "",
        f"TBLPROPERTIES ({stated})" if stated else "",
    ]
    return session.plain(" ".join(part for part in parts if part))


def _makes(statement: CreateTable, rows: DataFrame | None) -> bool:
    """True where a table is made, False where one that is there is registered."""
    made = statement.columns is not None or statement.query is not None or statement.partition_columns or rows is not None
    return bool(made)


def _check_name(session: SqlSession, name: TableName) -> None:
    """Refuse what Spark's catalog would refuse after the files are made."""
    table = session.full_parts(name)[-1]
    if _NAME.fullmatch(table) is None:
        raise ConfigError("CREATE TABLE", table, "a name of letters, digits and underscores", "Give the table such a name.")


def _check_registered(session: SqlSession, statement: CreateTable) -> str:
    """The folder of the table that is registered.

    Raises:
        ConfigError: Nothing says what the table is.
        TableNotFound: No table in that folder.
    """
    place = place_of(statement)
    if place is None:
        hint = "Give columns, AS SELECT, or LOCATION with the folder of a table that is there."
        raise ConfigError("CREATE TABLE", statement.name.sql, "a table with columns, with a query or at a LOCATION", hint)
    location = session.place(place)
    kept_options(statement.options)
    if session.jvm is not None:  # through Connect only the server may reach it
        stated = {k: v for k, v in stated_options(statement.options).items() if k != keys.PATH.key}
        table = Table(location, {**session.settings, **stated})
        refuse_contradictions(table.properties, stated, location, table.schema.names)
    return location


def replaced(session: SqlSession, statement: CreateTable, rows: DataFrame | None = None) -> DataFrame | None:
    """Make a table beside the one of its name, whatever its format, and let it take the name; then the old one is dropped.

    The old table is as it was until the new one is whole.

    Args:
        session: Where it is run.
        statement: What is run.
        rows: Take the place of those of the statement's query.

    Returns:
        None where Spark shall answer: there is none to replace.

    Raises:
        HudiError, AnalysisException: The new table cannot be made, or the name is that of a view; the old one is as it was.
    """
    if statement.provider != "hudimeta":
        return None
    if session.is_free(statement.name):
        return create(session, replace(statement, replaces=False), rows) if statement.creates else None
    if not session.is_taken(statement.name):
        return None
    _, database, table = session.full_parts(statement.name)
    named = TableName((database, table))
    if not session.is_table(named):
        raise ConfigError("REPLACE TABLE", named.sql, "the name of a table", "It is a view: DROP VIEW takes it away.")
    old = session.entry(named)
    mark = uuid4().hex[:8]
    entered, parked = (TableName((database, f"_hudimeta_{word}_{mark}")) for word in ("new", "old"))
    if _makes(statement, rows):
        new = _New.of(session, statement, rows, beside=True)
        _refuse_same(old, new.location)
        with new.taken_back():
            new.make(session, entered)
            renamed(session.plain, named, entered, parked)
    else:
        location = _check_registered(session, statement)
        _refuse_same(old, location)
        _register(session, statement, entered, location)
        renamed(session.plain, named, entered, parked)
    if old is None:
        session.plain(f"DROP TABLE {parked.sql}")
    else:
        drop(session, replace(old, name=parked), DropTable(parked))
    return session.nothing()


def _refuse_same(old: Entry | None, location: str) -> None:
    if old is not None and f"{location.rstrip('/')}/".startswith(f"{old.location.rstrip('/')}/"):
        hint = "INSERT OVERWRITE replaces its rows; give the new table another folder, or leave LOCATION out."
        raise UnsupportedFeature("replacing a table by one in the same folder, or inside of it,", hint)


@redacted
@dataclass(frozen=True)
class _New:
    """A table that is to be made: where, of what, and with which rows."""

    statement: CreateTable
    columns: StructType
    defaults: Mapping[str, str]
    rows: DataFrame | None
    location: str
    options: dict[str, str]

    @classmethod
    def of(cls, session: SqlSession, statement: CreateTable, rows: DataFrame | None, *, beside: bool = False) -> _New:
        """Check what can be checked.

        Args:
            session: The session's SQL.
            statement: CREATE TABLE.
            rows: Of its query; None without one.
            beside: See `_in_warehouse`.
        """
        if statement.odd is not None:
            hint = "Leave it out. Partitions are columns of the table; hoodie.index.type = 'BUCKET' makes buckets of rows."
            raise UnsupportedFeature(statement.odd, hint)
        _, database, _ = session.full_parts(statement.name)
        if rows is None:  # of a DataFrame's writer they are options like any other
            statement = _without_names(statement, database)
        kept_options(statement.options)  # refused before anything is made: the catalog would show a secret
        rows = session.query(statement.query) if statement.query is not None else rows
        columns, defaults = _columns(session, statement, rows)
        place = place_of(statement)
        location = session.place(place) if place else _in_warehouse(session, statement.name, beside=beside)
        options = {**session.settings, keys.DATABASE_NAME.key: database, **_options(statement, columns)}
        if rows is not None:
            refuse_occupied(location, options)
        return cls(statement, columns, defaults, rows, location, options)

    def taken_back(self) -> AbstractContextManager[None]:
        """Deletes what was created when something fails."""
        return taken_back(self.location, self.options)

    def make(self, session: SqlSession, entered: TableName) -> None:
        """Make the table and write its rows, then enter it into the catalog."""
        new = _make(self.location, self.columns, self.options)
        if not new and (self.rows is not None or place_of(self.statement) is None):
            raise taken_place(self.location)
        if new and self.defaults:
            keep_defaults_at(self.location, self.options, self.defaults)
        elif self.defaults and dict(self.defaults) != column_defaults(Table(self.location).properties):
            hint = "Register the table without DEFAULT, then ALTER COLUMN … SET DEFAULT."
            raise ConfigError("DEFAULT", ", ".join(self.defaults), "the default values of the table that is there", hint)
        if self.rows is not None:
            ordered = self.rows.select(*[self.rows[quoted(name)] for name in self.columns.names])
            alone = {**self.options, keys.INSERT_DUPLICATES.key: "none"}  # what SET says of keys that a table has
            HudiTable(session.spark, self.location, alone).bulk_insert(ordered)
        _register(session, self.statement, entered, self.location)
        try:
            comment_columns(session.plain, entered, self.columns)
        except BaseException:
            session.plain(f"DROP TABLE {entered.sql}")
            raise


def _in_warehouse(session: SqlSession, name: TableName, *, beside: bool) -> str:
    """The folder of a new table: that of its name, unless it is to stand beside it, or a table that was renamed is there."""
    folder = session.catalog.default_location(name)
    if not beside:
        try:
            now = Table(folder, session.settings).properties.name
        except HudiError:  # mostly none is there; what else is there is met when the table is made
            return folder
        _, database, table = session.full_parts(name)
        entry = session.entry(TableName((database, now))) if now.lower() != table.lower() else None
        if entry is None or entry.location.rstrip("/") != folder.rstrip("/"):
            return folder
    return f"{folder}-{uuid4().hex[:8]}"


def _columns(session: SqlSession, statement: CreateTable, rows: DataFrame | None) -> tuple[StructType, dict[str, str]]:
    """The table's columns, those of the partitions last, and default values by column."""
    defaults: dict[str, str] = {}
    if rows is not None and (statement.columns is not None or statement.partition_columns):
        raise UnsupportedFeature("CREATE TABLE … AS SELECT with types of columns", "Cast in the query.")
    if rows is not None:
        found = StructType([_of_query(column) for column in rows.schema if column.name not in META_COLUMNS])
    else:
        listed = ", ".join(text for text in (statement.columns, statement.partition_columns) if text)
        listed, stated = without_defaults(listed)
        found = declared_fields(listed)
        warn_of_narrow(found)
        defaults = checked_defaults(session, found, stated)
    for column in found:
        odd = sorted(set(column.metadata or {}) - {"comment", HUDI_TYPE})
        if odd:
            raise UnsupportedFeature(f"{odd[0]} of column {column.name}", "Give the value in each INSERT.")
    twice = [c.name for n, c in enumerate(found) if c.name.lower() in (other.name.lower() for other in found[:n])]
    if twice and statement.partition_columns:
        raise ConfigError("PARTITIONED BY", twice[0], "a column once", "Name partition columns without types, or only there.")
    last = [column_of(found, name) for name in statement.partition_by]
    by_name = {column.name: column for column in found}
    return StructType([c for c in found if c.name not in last] + [by_name[name] for name in last]), defaults


def _of_query(column: StructField) -> StructField:
    return as_of_hudi(StructField(column.name, nullable(column.dataType)), (column.metadata or {}).get(HUDI_TYPE))


def _options(statement: CreateTable, columns: StructType) -> dict[str, str]:
    """The engine's options of a CREATE TABLE."""
    found = {keys.HIVE_STYLE.key: "true", keys.TABLE_NAME.key: statement.name.table}
    for key, value in stated_options(statement.options).items():
        if key in (keys.RECORD_KEY.key, keys.ORDERING.key):
            value = ",".join(spelt(columns, part.strip()) for part in value.split(",") if part.strip())
        found[key] = value
    if statement.partition_by:
        found[keys.PARTITION_PATH.key] = ",".join(column_of(columns, name) for name in statement.partition_by)
    return found


def _without_names(statement: CreateTable, database: str) -> CreateTable:
    """A statement that leaves names to the catalog, as Apache Hudi does."""
    names = {keys.TABLE_NAME: statement.name.table, keys.DATABASE_NAME: database}
    found = {key: name for option, name in names.items() for key in (option.key, *option.aliases)}
    for key, value in statement.options.items():
        if found.get(key.lower(), value) != value:
            said = f"{key} = {value} is passed over: the catalog's name counts, {found[key.lower()]}"
            warnings.warn(said, HudiWarning, 2)
    return replace(statement, options={k: v for k, v in statement.options.items() if k.lower() not in found})


def _make(location: str, columns: StructType, options: dict[str, str]) -> bool:
    """Create the table; False where it is there already, with these columns and properties."""
    with a_place(location):
        try:
            table = Table(location)
        except TableNotFound:
            Table.create(location, declared_schema(columns), options=options)
            return True
    stated = {name: value for name, value in options.items() if name != keys.HIVE_STYLE.key}
    refuse_contradictions(table.properties, stated, location)
    theirs = [name for name in table.schema.names if name not in META_COLUMNS]
    if sorted(name.lower() for name in theirs) != sorted(name.lower() for name in columns.names):
        allowed = f"the columns of the table at {location}: {', '.join(theirs)}"
        raise ConfigError("CREATE TABLE", ", ".join(columns.names), allowed, _REGISTER)
    there = {c.name.lower(): c.dataType.simpleString() for c in spark_schema(table.schema)}
    for column in spark_schema(normalise_schema(declared_schema(columns))):
        given, has = column.dataType.simpleString(), there[column.name.lower()]
        if given != has:
            raise ConfigError("CREATE TABLE", f"{column.name} {given}", f"{has}, as the table at {location} has it", _REGISTER)
    return False


def _register(session: SqlSession, statement: CreateTable, entered: TableName, location: str) -> None:
    properties = {key: value for key, value in statement.options.items() if key.lower() != keys.PATH.key}
    if place_of(statement) is None:
        properties[OWNS_FILES] = "true"
    try:
        with without_trace():
            register(session.plain, entered, location, properties, statement.comment)
    except AnalysisException as error:
        if session.jvm is not None or "HUDIMETA_TABLE_NOT_FOUND" not in str(error) or not _is_here(location):
            raise
        hint = "Give it a LOCATION that both reach by the same path, such as a bucket of an object store."
        raise UnsupportedFeature(
            f"a table at {location}, which this client reaches and Spark's server does not", hint
        ) from error


def _is_here(location: str) -> bool:
    """Whether this process reaches a table."""
    try:
        Table(location)
    except TableNotFound:
        return False
    return True


def drop(session: SqlSession, entry: Entry, statement: DropTable) -> DataFrame:
    """Drop the entry, and the files of a table that was created without LOCATION, or with PURGE those of any."""
    session.plain(f"DROP TABLE {entry.name.sql}")
    if statement.purge or entry.properties.get(OWNS_FILES) == "true":
        open_storage(entry.location, options_of(session, entry)).delete_folder("")
    return session.nothing()
