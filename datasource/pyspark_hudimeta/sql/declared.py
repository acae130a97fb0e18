"""Columns as CREATE TABLE and ALTER TABLE declare them, as those of a Hudi table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from pyspark.errors import ParseException
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    CharType,
    DataType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from hudimeta.config import HudiWarning
from hudimeta.errors import UnsupportedFeature
from hudimeta.sql import in_types_of_spark
from pyspark_hudimeta.arrow_types import HUDI_TYPE

__all__ = ["as_of_hudi", "declared_fields", "warn_of_narrow"]


def declared_fields(text: str) -> StructType:
    """The columns of a list of declarations, char and varchar as strings.

    Raises:
        UnsupportedFeature: What Spark's types do not know.
    """
    hint = (
        "Give columns as name and type, with NOT NULL, DEFAULT and COMMENT if you like; other clauses Hudi tables do not have."
    )
    text, kinds = in_types_of_spark(text)
    try:
        found = StructType.fromDDL(text)
    except ParseException as error:
        raise UnsupportedFeature(f"the declaration of columns ({text})", hint) from error
    if not isinstance(found, StructType) or not found.names:  # PySpark takes `id int primary key` for something else
        raise UnsupportedFeature(f"the declaration of columns ({text})", hint)
    return _without_lengths(StructType([as_of_hudi(column, kinds.get(column.name)) for column in found]))


def as_of_hudi(column: StructField, kind: str | None) -> StructField:
    """A column that states a type of Apache Hudi's own, if it has one."""
    if kind is None:
        return column
    return StructField(column.name, column.dataType, column.nullable, {**(column.metadata or {}), HUDI_TYPE: kind})


def warn_of_narrow(columns: StructType) -> None:
    """Say which new columns will be wider than declared: but in vectors, a table has no whole numbers of less than 32 bits."""
    plain = [column for column in columns if HUDI_TYPE not in (column.metadata or {})]
    found = [said for column in plain for said in _narrow(column.dataType, column.name)]
    if found:
        warnings.warn(f"a Hudi table has no whole numbers narrower than int: {', '.join(found)} will be int", HudiWarning, 2)


def _narrow(kind: DataType, path: str) -> Iterator[str]:
    if isinstance(kind, (ByteType, ShortType)):
        yield f"{path} {kind.simpleString()}"
    elif isinstance(kind, ArrayType):
        yield from _narrow(kind.elementType, f"{path}.element")
    elif isinstance(kind, MapType):
        yield from _narrow(kind.valueType, f"{path}.value")
    elif isinstance(kind, StructType):
        for column in kind:
            yield from _narrow(column.dataType, f"{path}.{column.name}")


def _without_lengths(columns: StructType) -> StructType:
    """Char and varchar, at every depth, as the strings that Apache Hudi makes of them; it keeps no lengths."""
    found: list[str] = []
    plain = StructType([_with_type(c, _without_length(c.dataType, c.name, found)) for c in columns])
    if found:
        said = f"a Hudi table has strings of any length only: {', '.join(found)} will not be cut, padded or checked"
        warnings.warn(said, HudiWarning, 2)
    return plain


def _without_length(kind: DataType, path: str, found: list[str]) -> DataType:
    if isinstance(kind, (CharType, VarcharType)):
        found.append(f"{path} {kind.simpleString()}")
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_without_length(kind.elementType, f"{path}.element", found), kind.containsNull)
    if isinstance(kind, MapType):
        key, value = (_without_length(part, path, found) for part in (kind.keyType, kind.valueType))
        return MapType(key, value, kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType([_with_type(c, _without_length(c.dataType, f"{path}.{c.name}", found)) for c in kind])
    return kind


def _with_type(column: StructField, kind: DataType) -> StructField:
    return StructField(column.name, kind, column.nullable, column.metadata)
