"""SHOW CREATE TABLE, DESCRIBE TABLE and SHOW TBLPROPERTIES: the entry and the table as they are.

Spark's own answers come from what the Python source declared to it, a varchar of an enormous length among it, and know
neither the partition columns, the place nor the properties of the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from hudimeta.schema import hudi_type_of
from hudimeta.sql import Ask, quoted
from hudimeta.types import TableType
from pyspark_hudimeta.arrow_types import HUDI_TYPE
from pyspark_hudimeta.plain.registration import DEFAULT_KEY, stated_options, with_default_values
from pyspark_hudimeta.sql.column_defaults import defaults_of
from pyspark_hudimeta.sql.session import OWNS_FILES, literal, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.hudi_table import HudiTable
    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = [
    "declared_column",
    "declared_columns",
    "declared_type",
    "described_columns",
    "extended",
    "properties_of",
    "show_create",
    "shown_properties",
]

_OF_SPARK = ("location", "provider", "owner", "path", OWNS_FILES)
"""Properties of every entry, which no statement states."""
_Line: TypeAlias = "tuple[str, str, str | None]"
"""A column, its type and its comment."""
_DESCRIBED = "col_name string, data_type string, comment string"


def show_create(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    """The statement that registers this table again where it lies, or makes one like it when its folder is empty."""
    table = opened(session, entry)
    declared = declared_columns(entry, table)
    columns = ",\n".join(f"  {declared_column(column)}" for column in declared)
    fields = table.properties.partition_fields
    lines = [f"CREATE TABLE {session.full_name(entry.name)} (\n{columns})", "USING hudimeta"]
    if fields:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted, fields))})")
    lines.append(f"LOCATION {literal(entry.location)}")
    if entry.comment is not None:
        lines.append(f"COMMENT {literal(entry.comment)}")
    stated = ",\n".join(f"  {literal(k)} = {literal(v)}" for k, v in sorted(properties_of(session, entry).items()))
    lines.append(f"TBLPROPERTIES (\n{stated})\n")
    return session.rows([("\n".join(lines),)], "createtab_stmt string")


def shown_properties(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    """SHOW TBLPROPERTIES, of one property or of all."""
    found = sorted(properties_of(session, entry).items())
    if ask.key is not None:
        missing = f"Table {session.full_name(entry.name)} does not have property: {ask.key}"
        found = [(ask.key, dict(found).get(ask.key, missing))]
    return session.rows(found, "key string, value string")


def properties_of(session: SqlSession, entry: Entry) -> dict[str, str]:
    """What TBLPROPERTIES says of a table: what the entry states, and beside it what the table itself knows."""
    stated = {key: value for key, value in entry.properties.items() if key not in _OF_SPARK}
    properties = opened(session, entry).properties
    known = {
        "type": "mor" if properties.type is TableType.MERGE_ON_READ else "cow",
        "primaryKey": ",".join(properties.record_keys),
        "orderingFields": ",".join(properties.ordering_fields),
    }
    said = stated_options(stated)
    return stated | {word: value for word, value in known.items() if value and not said.keys() & stated_options({word: value})}


def extended(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    """DESCRIBE EXTENDED, in the sections that Spark has for a table of a file format."""
    rows = _described(entry, opened(session, entry))
    properties = ", ".join(f"{k}={v}" for k, v in sorted(properties_of(session, entry).items()))
    catalog, database, table = session.full_parts(entry.name)
    facts = {
        "Catalog": catalog,
        "Database": database,
        "Table": table,
        "Owner": entry.properties.get("owner", ""),
        "Created Time": entry.created,
        "Type": "MANAGED" if entry.properties.get(OWNS_FILES) == "true" else "EXTERNAL",
        "Provider": "hudimeta",
        "Comment": entry.comment or "",
        "Table Properties": f"[{properties}]",
        "Location": entry.location,
    }
    rows += [("", "", ""), ("# Detailed Table Information", "", "")]
    rows += [(name, value, "") for name, value in facts.items() if value]
    return session.rows(rows, _DESCRIBED)


def described_columns(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    """DESCRIBE TABLE: what Spark says of a table of a file format, of which it knows the partition columns."""
    return session.rows(_described(entry, opened(session, entry)), _DESCRIBED)


def _described(entry: Entry, table: HudiTable) -> list[_Line]:
    by_name = {column.name: column for column in entry.declared}
    fields = [by_name[name] for name in table.properties.partition_fields if name in by_name]
    rows = list(_columns(entry.declared))
    if fields:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), *_columns(fields)]
    defaults = defaults_of(entry, table)
    if defaults:
        rows += [("", "", ""), ("# Column Default Values", "", "")]
        rows += [(name, by_name[name].dataType.simpleString(), value) for name, value in defaults.items() if name in by_name]
    return rows


def _columns(columns: Iterable[StructField]) -> Iterable[_Line]:
    for column in columns:
        yield column.name, column.dataType.simpleString(), (column.metadata or {}).get("comment")


def declared_columns(entry: Entry, table: HudiTable) -> StructType:
    """The columns of a table as statements declare them: with comments, default values and NOT NULL."""
    columns = with_default_values(entry.declared, defaults_of(entry, table))
    found = _as_stored(columns, table.snapshot().file_schema)
    assert isinstance(found, StructType)  # mypy
    return found


def _as_stored(kind: DataType, stored: pa.DataType | pa.Schema) -> DataType:
    """A type that takes null where the stored one does."""
    if isinstance(kind, ArrayType):
        return ArrayType(_as_stored(kind.elementType, stored.value_type))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _as_stored(kind.valueType, stored.item_type))
    if not isinstance(kind, StructType):
        return kind
    names = stored.names

    def column(one: StructField) -> StructField:
        if one.name not in names:
            return one
        field = stored.field(one.name)
        kind = hudi_type_of(field)
        metadata = one.metadata if kind is None else {**(one.metadata or {}), HUDI_TYPE: kind}
        return StructField(one.name, _as_stored(one.dataType, field.type), field.nullable, metadata)

    return StructType([column(one) for one in kind])


def declared_type(kind: DataType) -> str:
    """A type as CREATE TABLE declares it, with the names of fields as they are."""
    if isinstance(kind, ArrayType):
        return f"ARRAY<{declared_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{declared_type(kind.keyType)}, {declared_type(kind.valueType)}>"
    if not isinstance(kind, StructType):
        return str(kind.simpleString().upper())
    fields = []
    for field in kind:
        comment = (field.metadata or {}).get("comment")
        said = "" if field.nullable else " NOT NULL"
        said += f" COMMENT {literal(comment)}" if comment is not None else ""
        fields.append(f"{quoted(field.name)}: {declared_type(field.dataType)}{said}")
    return f"STRUCT<{', '.join(fields)}>"


def declared_column(column: StructField) -> str:
    """A column as CREATE TABLE declares it."""
    comment = (column.metadata or {}).get("comment")
    kind = (column.metadata or {}).get(HUDI_TYPE) or declared_type(column.dataType)
    words = [quoted(column.name), kind, *([] if column.nullable else ["NOT NULL"])]
    default = (column.metadata or {}).get(DEFAULT_KEY)
    words += [f"DEFAULT {default}"] if default is not None else []
    return " ".join([*words, *([f"COMMENT {literal(comment)}"] if comment is not None else [])])
