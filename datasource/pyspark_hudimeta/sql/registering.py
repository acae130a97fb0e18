"""Entries of the catalog: made for a table that is there, and put in the place of another entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hudimeta.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from hudimeta.sql import TableName
    from pyspark_hudimeta.sql.catalog import Entry

__all__ = ["comment_columns", "enter", "keep_comment", "literal", "literals", "register", "renamed"]

_OF_SPARK = ("location", "provider", "owner", "path")
"""Properties that Spark gives every entry."""
Plain = Callable[[str], Any]
"""Spark's own `sql`."""


def literal(text: str) -> str:
    """A text as a literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literals(parameters: Mapping[str, Any] | None) -> dict[str, str]:
    """Parameters of statements as literals of Spark's SQL, by name: texts, whole numbers, true, false and null."""
    found = {}
    for name, value in (parameters or {}).items():
        if isinstance(value, str):
            found[name] = literal(value)
        elif value is None or isinstance(value, int):
            found[name] = str(value if value is not None else "null").lower()
    return found


def register(plain: Plain, name: TableName, location: str, properties: Mapping[str, str], comment: str | None) -> None:
    """Enter a table.

    Args:
        plain: The session's own methods.
        name: Of the table.
        location: Its folder.
        properties: Of the entry.
        comment: Of the table.
    """
    stated = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    plain(
        f"CREATE TABLE {name.sql} USING hudimeta LOCATION {literal(location)}"
        + (f" COMMENT {literal(comment)}" if comment is not None else "")
        + (f" TBLPROPERTIES ({stated})" if stated else "")
    )


def comment_columns(plain: Plain, name: TableName, columns: StructType) -> None:
    """Let an entry say of columns what their declaration says."""
    for column in columns:
        if "comment" in (column.metadata or {}):
            comment = literal(column.metadata["comment"])
            plain(f"ALTER TABLE {name.sql} ALTER COLUMN {quoted(column.name)} COMMENT {comment}")


def keep_comment(plain: Plain, entry: Entry) -> None:
    """Let an entry say again what its table is for: Spark forgets it with every ALTER TABLE."""
    if entry.comment is not None:
        plain(f"COMMENT ON TABLE {entry.name.sql} IS {literal(entry.comment)}")


def enter(plain: Plain, name: TableName, entry: Entry, options: Mapping[str, str]) -> None:
    """Enter the table of an entry a second time.

    Args:
        plain: The session's own methods.
        name: Of the new entry.
        entry: Of the table.
        options: Of the new entry's reads and writes.
    """
    stated = {k: v for k, v in entry.properties.items() if k not in _OF_SPARK and k not in entry.options}
    register(plain, name, entry.location, {**stated, **options}, entry.comment)
    comment_columns(plain, name, entry.declared)


def renamed(plain: Plain, name: TableName, entered: TableName, parked: TableName) -> None:
    """Let one entry take the name of another, which gets a third name; as they were when that fails, without the new one."""
    try:
        plain(f"ALTER TABLE {name.sql} RENAME TO {parked.sql}")
        try:
            plain(f"ALTER TABLE {entered.sql} RENAME TO {name.sql}")
        except BaseException:
            plain(f"ALTER TABLE {parked.sql} RENAME TO {name.sql}")
            raise
    except BaseException:
        plain(f"DROP TABLE {entered.sql}")
        raise
