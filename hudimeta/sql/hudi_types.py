"""Types that Apache Hudi adds to Spark's in declarations of columns: VECTOR(dimension[, element]) and BLOB."""

from __future__ import annotations

from collections.abc import Iterator

from hudimeta.formats.vectors import Vector
from hudimeta.schema.hudi_types import BLOB
from hudimeta.sql.columns import skip_type
from hudimeta.sql.cursor import Cursor, Unread

__all__ = ["in_types_of_spark"]

_VECTOR = "VECTOR"
_ELEMENTS = {"FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "INT8": "TINYINT"}
_BLOB_STRUCT = (
    "STRUCT<type: STRING, data: BINARY, "
    "reference: STRUCT<external_path: STRING, offset: BIGINT, length: BIGINT, managed: BOOLEAN>>"
)


def in_types_of_spark(columns: str) -> tuple[str, dict[str, str]]:
    """A list of declared columns in types that Spark has, and by column what Hudi's type is.

    Args:
        columns: Its text.

    Raises:
        SchemaError: A vector that cannot be.
    """
    if _VECTOR not in columns.upper() and BLOB not in columns.upper():
        return columns, {}
    try:
        found = list(_found(Cursor(columns)))
    except Unread:
        return columns, {}
    for _, kind, (begin, end) in reversed(found):
        columns = columns[:begin] + _spelled(kind) + columns[end:]
    return columns, {name: str(kind) for name, kind, _ in found}


def _found(cursor: Cursor) -> Iterator[tuple[str, Vector | str, tuple[int, int]]]:
    """Each column of such a type: its name, the type, and the place of its text."""
    while not cursor.done:
        name, begin = cursor.identifier(), cursor.at
        kind: Vector | str | None = None
        if cursor.accept(BLOB):
            kind = BLOB
        elif cursor.accept(_VECTOR):
            cursor.inside()
            kind = Vector.spelled(cursor.between(begin, cursor.at))
        if kind is not None:
            yield name, kind, (cursor.words[begin].start, cursor.words[cursor.at - 1].end)
        skip_type(cursor, ",")
        cursor.accept(",")


def _spelled(kind: Vector | str) -> str:
    return f"ARRAY<{_ELEMENTS[kind.element]}>" if isinstance(kind, Vector) else _BLOB_STRUCT
