"""The session's own catalog as statements ask it: what a name stands for, what an entry says, where new tables go.

A classic session's is asked through the JVM (`ClassicCatalog`), that of Spark Connect by statements (`connect_catalog`).
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.types import StructField, StructType

from hudimeta.cached import cached_property
from hudimeta.redaction import redacted
from hudimeta.types import META_COLUMNS
from pyspark_hudimeta.plain.location import resolve
from pyspark_hudimeta.plain.registration import carriers, with_options

if TYPE_CHECKING:
    from hudimeta.sql import TableName
    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["SESSION_CATALOG", "Catalog", "ClassicCatalog", "Entry", "Known", "entry_of"]

SESSION_CATALOG = "spark_catalog"


@redacted
@dataclass(frozen=True)
class Entry:
    """A hudimeta table as the catalog knows it.

    Attributes:
        name: As the statement has it.
        location: Its folder.
        options: Given when it was registered.
        columns: Those that the entry shows, without meta columns.
        properties: Of the entry.
        declared: The columns with what the entry says of them: comments, and whether they may be null.
        comment: Of the table; None without.
        created: When the entry was made, in words.
    """

    name: TableName
    location: str
    options: Mapping[str, str]
    columns: StructType
    properties: Mapping[str, str]
    declared: StructType = field(default_factory=StructType)
    comment: str | None = None
    created: str = ""


class Known(enum.Enum):
    """What a name stands for."""

    NOTHING = enum.auto()
    TEMPORARY = enum.auto()  # a temporary view, which hides tables of its name
    VIEW = enum.auto()
    TABLE = enum.auto()
    ELSEWHERE = enum.auto()  # something of another catalog


class Catalog(Protocol):
    """What statements ask of the session's own catalog."""

    def known(self, name: TableName) -> Known:
        """What a name stands for."""

    def entry(self, name: TableName) -> Entry | None:
        """The hudimeta table of a name; None where it is none, or a view, or nothing."""

    def current_database(self) -> str:
        """Where names without a database are looked for."""

    def has_database(self, database: str) -> bool:
        """True when there is one of this name."""

    def default_location(self, name: TableName) -> str:
        """Where the files of a new table of this name go."""

    def keep_options(self, entry: Entry, options: Mapping[str, str]) -> None:
        """Let the reads and writes of an entry's table have these options from now on."""


def entry_of(
    name: TableName, schema: StructType, properties: Mapping[str, str], comment: str | None, created: str
) -> Entry | None:
    """An entry by what the catalog holds of it; None where no column says which table it is.

    Args:
        name: As the statement has it.
        schema: Of the entry.
        properties: Of the entry.
        comment: Of the table.
        created: When the entry was made, in words.
    """
    carrier = next(carriers(schema), None)
    if carrier is None:
        return None
    declared = StructType([c for c in schema if c.name not in META_COLUMNS])
    shown = StructType([StructField(c.name, c.dataType) for c in declared])
    found = carrier.registration
    return Entry(name, found.location, found.options, shown, properties, declared, comment, created)


class ClassicCatalog:
    """The catalog of a session of this process.

    Args:
        jvm: Of the session.
    """

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    @cached_property
    def _catalog(self) -> Any:
        return self._jvm.session.sessionState().catalog()

    def _identifier(self, name: TableName) -> Any | None:
        """As the session's own catalog names it; None for a table of another catalog."""
        parts = name.parts
        if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
            parts = parts[1:]
        elif self._jvm.session.sessionState().catalogManager().currentCatalog().name() != SESSION_CATALOG:
            return None
        if len(parts) > 2:
            return None
        kind = self._jvm.view.org.apache.spark.sql.catalyst.TableIdentifier
        return kind(parts[-1], self._jvm.some(parts[0]) if len(parts) == 2 else self._jvm.none())

    def known(self, name: TableName) -> Known:
        """See `Catalog`."""
        identifier = self._identifier(name)
        if identifier is None:
            return Known.ELSEWHERE
        if self._catalog.isTempView(identifier):
            return Known.TEMPORARY
        if not self._catalog.tableExists(identifier):
            return Known.NOTHING
        kind = str(self._catalog.getTableMetadata(identifier).tableType().name())
        return Known.VIEW if kind == "VIEW" else Known.TABLE

    def entry(self, name: TableName) -> Entry | None:
        """See `Catalog`."""
        identifier = self._identifier(name)
        if identifier is None or self._catalog.isTempView(identifier) or not self._catalog.tableExists(identifier):
            return None
        stored = self._catalog.getTableMetadata(identifier)
        if self._jvm.text_of(stored.provider()) != "hudimeta":
            return None
        schema = StructType.fromJson(json.loads(stored.schema().json()))
        properties = {str(item._1()): str(item._2()) for item in self._jvm.items(stored.properties().toSeq())}
        created = str(self._jvm.view.java.util.Date(stored.createTime()).toString())
        return entry_of(name, schema, properties, self._jvm.text_of(stored.comment()), created)

    def current_database(self) -> str:
        """See `Catalog`."""
        return str(self._catalog.getCurrentDatabase())

    def has_database(self, database: str) -> bool:
        """See `Catalog`."""
        return bool(self._catalog.databaseExists(database))

    def default_location(self, name: TableName) -> str:
        """See `Catalog`."""
        path = self._jvm.view.org.apache.hadoop.fs.Path(self._catalog.defaultTablePath(self._identifier(name)))
        return resolve(str(path.toString()))

    def keep_options(self, entry: Entry, options: Mapping[str, str]) -> None:
        """See `Catalog`."""
        identifier = self._identifier(entry.name)
        stored = StructType.fromJson(json.loads(self._catalog.getTableMetadata(identifier).schema().json()))
        self._catalog.alterTableDataSchema(identifier, self._jvm.schema(with_options(stored, options)))
