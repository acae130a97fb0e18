"""How a table of Spark's catalog finds its folder again, and when a write may believe it.

After `CREATE TABLE … USING hudimeta`, Spark hands neither path nor options to a data source, only the schema that the source
declared then, with the metadata of its fields. So `schema()` puts the location and the options into the metadata of one
column, and the reader takes them from there.

A *writer* is given the schema of the query, and Spark leaves the query's own columns alone where their names and types equal
the table's: after `INSERT INTO b SELECT * FROM a` the metadata is that of `a`. The marker makes this visible. The carrying
column is a string that is also declared as `varchar(n)`, with an n that depends on the location. A query's column then never
has the table's type, Spark casts it, and the writer sees the table's own metadata *without* the varchar key. Metadata *with*
that key was copied from a source, and says nothing about the target.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from hudimeta.config import OPTIONS, SQL_WORDS
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, TableError
from hudimeta.redaction import redacted
from hudimeta.types import META_COLUMNS

if TYPE_CHECKING:
    from hudimeta.table.properties import TableProperties

__all__ = [
    "DEFAULT_KEY",
    "MARKED_TYPE",
    "Carrier",
    "Registration",
    "carriers",
    "is_registering",
    "kept_options",
    "refuse_contradictions",
    "registered_schema",
    "stated_options",
    "with_default_values",
    "with_options",
    "without_sql_words",
]

CARRIER_KEY = "hudimeta"
"""Key of the field metadata that holds a registration."""

MARKER_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps that a string column was declared as char or varchar."""

DEFAULT_KEY = "CURRENT_DEFAULT"
"""Where Spark keeps the default value of a column, which its INSERT then takes."""

_NARROWEST, _SPREAD = 2_000_000_000, 100_000_000
"""Lengths of the marker: so long that no string is refused."""
MARKED_TYPE = re.compile(r"varchar\(20\d{8}\)")
"""The type that Spark shows for a column with the marker."""

_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_OWN = ("hoodie.", "hudimeta.", "as.of.instant")
_SECRET = re.compile(r"secret|password|token|credential|sas|[_.]key\b|account_key", re.IGNORECASE)


@redacted
@dataclass(frozen=True)
class Registration:
    """What a table of the catalog stands for.

    Attributes:
        location: The table's folder.
        options: Given when it was registered.
        insertable: False when no column could carry the marker, so that no write can be sure of its target.
    """

    location: str
    options: Mapping[str, str]
    insertable: bool

    def encode(self) -> str:
        """As JSON text."""
        return json.dumps({"path": self.location, "options": dict(self.options), "insert": self.insertable}, sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> Registration:
        """From JSON text. Raises TableError for anything else."""
        try:
            stored = json.loads(text)
            return cls(str(stored["path"]), {str(k): str(v) for k, v in stored["options"].items()}, bool(stored["insert"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TableError(
                f"the catalog's entry holds {text[:80]!r} where hudimeta keeps a table's location",
                "Drop the table from the catalog (its files stay) and create it again with LOCATION.",
            ) from error


@dataclass(frozen=True)
class Carrier:
    """A registration as found in a schema. `marked` is True where the varchar key stands beside it."""

    registration: Registration
    marked: bool


def is_registering(options: Mapping[str, str]) -> bool:
    """True when `schema()` is called for CREATE TABLE: Spark then adds the table's properties to the options."""
    return "provider" in options


def kept_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options of CREATE TABLE that its reads and inserts shall have.

    Raises:
        ConfigError: One that looks like a secret: it would travel with the column into other tables.
    """
    kept = {key: value for key, value in options.items() if key.startswith(_OWN)}
    for key in kept:
        if key.startswith("hudimeta.storage.") and _SECRET.search(key):
            raise ConfigError(
                key,
                "***",
                "an option of a read, write or temporary view",
                "A catalog would keep it in clear text: give credentials through the environment of Spark's processes.",
            )
    return kept


def stated_options(given: Mapping[str, str]) -> dict[str, str]:
    """What OPTIONS and TBLPROPERTIES say of the table, by the names of options; Hudi's short names are known here.

    Raises:
        ConfigError: A slip, or an option with two values.
        UnsupportedFeature: One that is not done.
    """
    found: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        if lower not in SQL_WORDS and not lower.startswith(_OWN):
            OPTIONS.check({name: value})
            continue
        key = SQL_WORDS.get(lower, lower)
        text = _TYPES.get(value.strip().lower(), value) if key == keys.TABLE_TYPE.key else value
        if found.setdefault(key, text) != text:
            raise ConfigError(name, f"{found[key]} and {text}", "one value", f"Give {name} or {key}, not both.")
    OPTIONS.read(found)
    return found


def without_sql_words(given: Mapping[str, str]) -> dict[str, str]:
    """Options without Hudi's short names, which belong to the creation of a table by name."""
    return {key: value for key, value in given.items() if key.lower() not in SQL_WORDS}


def refuse_contradictions(
    properties: TableProperties, stated: Mapping[str, str], location: str, columns: Sequence[str] = ()
) -> None:
    """Refuse a statement whose options say another thing than the table that is there; its name may differ.

    Args:
        properties: Of the table.
        stated: What the statement says.
        location: Of the table.
        columns: Of the table, where the statement may spell them with other capitals.

    Raises:
        ConfigError: What contradicts.
    """
    from hudimeta.commit.supported import contradictions

    fields = (*properties.record_keys, *properties.ordering_fields) if columns else ()  # of structs, too
    spelt = {name.lower(): name for name in (*columns, *fields)}
    mine = {key: value for key, value in stated.items() if key != keys.TABLE_NAME.key}
    for key in (keys.RECORD_KEY.key, keys.ORDERING.key):
        if key in mine:
            mine[key] = ",".join(spelt.get(name.lower(), name) for name in keys.RECORD_KEY.parse(mine[key]))
    for key, (have, given) in contradictions(properties, OPTIONS.read(mine)).items():
        raise ConfigError(key, given, f"{have or 'nothing'}, as the table at {location} has it")


def registered_schema(
    schema: StructType, location: str, options: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> StructType:
    """A schema that carries where the table is, on its first string column if there is one.

    Args:
        schema: Of the table.
        location: Its folder.
        options: Of its reads and writes.
        defaults: Default values by column.
    """
    schema = with_default_values(schema, defaults or {})
    data = [number for number, column in enumerate(schema) if column.name not in META_COLUMNS]
    texts = [number for number in data if isinstance(schema[number].dataType, StringType)]
    at = (texts or data or [0])[0]
    carried = {CARRIER_KEY: Registration(location, options, bool(texts)).encode()}
    if texts:
        carried[MARKER_KEY] = f"varchar({_NARROWEST + zlib.crc32(location.encode()) % _SPREAD})"
    column = schema[at]
    bearer = StructField(column.name, column.dataType, column.nullable, {**(column.metadata or {}), **carried})
    return StructType([bearer if number == at else other for number, other in enumerate(schema)])


def with_default_values(schema: StructType, defaults: Mapping[str, str]) -> StructType:
    """The schema of an entry whose columns have these default values, and no others."""

    def with_default(column: StructField) -> StructField:
        metadata = {key: value for key, value in (column.metadata or {}).items() if key != DEFAULT_KEY}
        if column.name in defaults:
            metadata[DEFAULT_KEY] = defaults[column.name]
        return StructField(column.name, column.dataType, column.nullable, metadata)

    return StructType([with_default(column) for column in schema])


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The schema of an entry that shall have other options."""

    def with_registration(column: StructField) -> StructField:
        metadata = dict(column.metadata or {})
        if CARRIER_KEY not in metadata:
            return column
        metadata[CARRIER_KEY] = replace(Registration.decode(metadata[CARRIER_KEY]), options=options).encode()
        return StructField(column.name, column.dataType, column.nullable, metadata)

    return StructType([with_registration(column) for column in schema])


def carriers(schema: StructType) -> Iterator[Carrier]:
    """Every registration in a schema."""
    for column in schema:
        metadata = column.metadata or {}
        if CARRIER_KEY in metadata:
            yield Carrier(Registration.decode(metadata[CARRIER_KEY]), MARKER_KEY in metadata)
