"""Statements that in Spark change the catalog's entry of a table alone: done in both, or refused.

What is only of the entry passes: comments, and properties that are nobody's but the user's.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from hudimeta.api.verbs import rename
from hudimeta.config import OPTIONS, SQL_WORDS, HudiWarning
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.redaction import hidden
from hudimeta.sql import BETWEEN_WORDS
from hudimeta.storage import open_storage
from pyspark_hudimeta.plain.registration import kept_options, refuse_contradictions, stated_options
from pyspark_hudimeta.sql.registering import keep_comment
from pyspark_hudimeta.sql.session import opened, options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudimeta.sql import AlterEntry, SetOption, SetTableProperties
    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["alter_entry", "check_setting", "set_properties"]

_COLUMNS = "ADD COLUMNS, RENAME COLUMN, DROP COLUMNS and ALTER COLUMN … TYPE change the table and its entry."
_SERDE = re.compile(rf"\bSET{BETWEEN_WORDS}+SERDEPROPERTIES\b", re.IGNORECASE)
"""What Apache Hudi calls the options of a table's writes."""
_PROPERTIES = "What a table was created with stays."
_PARTITIONS = "Partitions come with their rows and go with them: INSERT INTO, ALTER TABLE … DROP PARTITION."
_HINTS = {
    "REPLACE COLUMNS": _COLUMNS,
    "ADD COLUMNS": "Give each column as name and type, then NOT NULL, COMMENT, and FIRST or AFTER another column, as you like.",
    "SET NOT NULL": "Rows that are there may have no value: only CREATE TABLE declares NOT NULL.",
    "ALTER COLUMN": _COLUMNS,
    "CONSTRAINT": "A Hudi table keeps primaryKey and NOT NULL, both of CREATE TABLE; check other rules where rows are written.",
    "SET LOCATION": "DROP TABLE keeps the files of a table with LOCATION; CREATE TABLE … LOCATION registers another folder.",
    "… LOCATION": "A partition lies in the table's folder: leave LOCATION out.",
    "PURGE": "Leave PURGE out: cleaning deletes the files when no query needs them any more, and VACUUM does so now.",
    "PARTITION": _PARTITIONS,
    "COLLATION": "Texts of a Hudi table are compared by their bytes; say COLLATE in the query that shall compare otherwise.",
    "CLUSTER BY": "hoodie.bulkinsert.user.defined.partitioner.sort.columns sorts the rows of a bulk insert.",
}


def alter_entry(session: SqlSession, entry: Entry, statement: AlterEntry, text: str) -> DataFrame | None:
    """Rename a table here and in the catalog, or refuse what would change the catalog alone.

    Args:
        session: Where it is run.
        entry: Of the table in the catalog.
        statement: What is run.
        text: Of the statement.

    Returns:
        None where the statement is Spark's alone.

    Raises:
        UnsupportedFeature: Anything else; nothing was changed.
    """
    if statement.new_name is not None:
        return _renamed(session, entry, statement, text)
    said = statement.what.upper()
    hint = next((hint for words, hint in _HINTS.items() if words in said), "Spark would change its catalog alone.")
    raise UnsupportedFeature(f"{statement.what} for a hudimeta table", hint)


def set_properties(session: SqlSession, entry: Entry, statement: SetTableProperties, text: str) -> DataFrame:
    """Set or unset properties: those of ours are options of all reads and writes from now on, as with CREATE TABLE.

    Raises:
        ConfigError: A slip, or what the table was created with otherwise; nothing was changed.
        UnsupportedFeature: What the table was created with is to be unset, or an option that is not done.
    """
    given = {key: value for key, value in statement.changes.items() if value is not None}
    stated = stated_options(given)
    table = opened(session, entry)
    refuse_contradictions(table.properties, stated, entry.location, table.schema.names)
    own = table.properties.name
    if stated.get(keys.TABLE_NAME.key, own) != own:  # every write would be refused
        hint = "ALTER TABLE … RENAME TO gives a table another name."
        raise ConfigError(keys.TABLE_NAME.key, stated[keys.TABLE_NAME.key], f"{own}, as the table has it", hint)
    gone = [key for key, value in statement.changes.items() if value is None]
    fixed = [key for key in gone if key.lower() in SQL_WORDS]
    if fixed:
        raise UnsupportedFeature(f"UNSET TBLPROPERTIES ({', '.join(fixed)}) for a hudimeta table", _PROPERTIES)
    options = {**entry.options, **kept_options(given)}
    for key in gone:
        options.pop(key, None)
    OPTIONS.read(options)
    changed = options != dict(entry.options)
    text = _SERDE.sub("SET TBLPROPERTIES", text, count=1)
    if changed:
        session.catalog.keep_options(entry, options)
    try:
        session.plain(text)
    except BaseException:
        if changed:
            session.catalog.keep_options(entry, entry.options)
        raise
    if "comment" not in map(str.lower, statement.changes):
        keep_comment(session.plain, entry)
    return session.nothing()


def _renamed(session: SqlSession, entry: Entry, statement: AlterEntry, text: str) -> DataFrame:
    """The entry first, because Spark knows whether the name is free; back again when the table cannot be renamed."""
    new = statement.new_name
    assert new is not None  # mypy
    if not {keys.TABLE_NAME.key, *keys.TABLE_NAME.aliases}.isdisjoint(entry.options):
        hint = "Register it again without that option: DROP TABLE keeps the files of a table with LOCATION."
        raise UnsupportedFeature(f"renaming a table that was registered with {keys.TABLE_NAME.key}", hint)
    options = OPTIONS.read(options_of(session, entry))
    session.plain(text)
    try:
        rename(open_storage(entry.location, options.texts), options, new.table)
    except BaseException:
        try:
            session.plain(f"ALTER TABLE {new.sql} RENAME TO {entry.name.sql}")
        except Exception as error:  # whatever Spark's catalog says; the error that is raised says what went wrong first
            warnings.warn(
                f"the catalog goes on calling the table {new.sql}, unlike the table itself: {hidden(str(error))}",
                HudiWarning,
                2,
            )
        raise
    return session.nothing()


def check_setting(statement: SetOption) -> None:
    """Judge what SET gives; Spark then sets it.

    Raises:
        ConfigError: A slip, a value that is not allowed, or an option of reads, which SELECT would not look at.
        UnsupportedFeature: An option that is not done.
    """
    key = statement.key.removeprefix("spark.")
    option = OPTIONS.find(key)
    if option in keys.OF_READS and statement.value.strip("'\"").lower() != str(option.default).lower():
        hint = "Give it to the read: spark.read.option(…), the table functions, or OPTIONS of a view."
        raise ConfigError(statement.key, statement.value, "an option of writes: SELECT does not read what SET sets", hint)
    OPTIONS.read({key: statement.value.strip("'\"")})
