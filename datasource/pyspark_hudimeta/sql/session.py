"""What running a statement of SQL needs: the session, Spark's own `sql`, the statement's parameters, the catalog."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from hudimeta import Table
from hudimeta.redaction import redacted
from hudimeta.sql import TableName, quoted, target_of
from hudimeta.types import META_COLUMNS
from pyspark_hudimeta.arrow_types import arrow_schema, spark_schema
from pyspark_hudimeta.hudi_table import HudiTable
from pyspark_hudimeta.plain.location import resolve
from pyspark_hudimeta.plain.registration import carriers, with_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["OWNS_FILES", "Entry", "SqlSession", "literal", "opened"]

OWNS_FILES = "hudimeta_owns_files"
"""Table property of tables that were created without LOCATION: DROP TABLE deletes their files."""
_SESSION_CATALOG = "spark_catalog"
_OWN = ("hoodie.", "hudimeta.")
_OF_SPARK = "spark."
"""What stands before options of Hudi in the configuration of a session that is started with them."""


def opened(session: SqlSession, entry: Entry) -> HudiTable:
    """The table of an entry, with the options of the session and of the table; the latter go first."""
    return HudiTable(session.spark, entry.location, {**session.settings, **entry.options})


def literal(text: str) -> str:
    """A text as a literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


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


@dataclass(frozen=True)
class SqlSession:
    """One statement's view of its session.

    Attributes:
        spark: The attached session.
        jvm: Its Java side.
        plain: Spark's own `sql`.
        parameters: Named parameters of the statement, None for none.
        frames: What `{name}` in its text stands for.
    """

    spark: SparkSession
    jvm: Jvm
    plain: Callable[..., DataFrame]
    parameters: Mapping[str, Any] | None
    frames: Mapping[str, Any]

    def query(self, text: str) -> DataFrame:
        """The rows of a part of the statement."""
        return self.spark.sql(text, self.parameters, **self.frames)

    def nothing(self) -> DataFrame:
        """What a statement without rows returns."""
        return self.spark.range(0).select()

    def rows(self, values: Iterable[tuple[Any, ...]], columns: str) -> DataFrame:
        """Rows that a statement returns. Args: values: Of each. columns: Their names and types, as DDL."""
        kinds = StructType.fromDDL(columns)
        held = [dict(zip(kinds.names, row, strict=True)) for row in values]
        return self.spark.createDataFrame(pa.Table.from_pylist(held, arrow_schema(kinds)), kinds)

    def explained(self, frame: DataFrame, mode: str) -> str:
        """The plans of a DataFrame as EXPLAIN shows them. Args: mode: Its word, lower case; "simple" without one."""
        of_spark = self.jvm.view.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
        return str(frame._jdf.queryExecution().explainString(of_spark))

    def counts(self, **counts: int) -> DataFrame:
        """One row that says how many rows a statement changed."""
        return self.plain(f"SELECT {', '.join(f'{count}L AS {quoted(name)}' for name, count in counts.items())}")

    @cached_property
    def settings(self) -> dict[str, str]:
        """Options that were given with SET, for all tables of the session."""
        known = self.spark.conf.getAll
        of_spark = {k.removeprefix(_OF_SPARK): v for k, v in known.items() if k.startswith(_OF_SPARK + "hoodie.")}
        return of_spark | {k: v for k, v in known.items() if k.startswith(_OWN)}

    # The catalog

    @cached_property
    def _catalog(self) -> Any:
        return self.jvm.session.sessionState().catalog()

    def _identifier(self, name: TableName) -> Any | None:
        """As the session's own catalog names it; None for a table of another catalog."""
        parts = name.parts
        if len(parts) == 3 and parts[0].lower() == _SESSION_CATALOG:
            parts = parts[1:]
        elif self.jvm.session.sessionState().catalogManager().currentCatalog().name() != _SESSION_CATALOG:
            return None
        if len(parts) > 2:
            return None
        kind = self.jvm.view.org.apache.spark.sql.catalyst.TableIdentifier
        return kind(parts[-1], self.jvm.some(parts[0]) if len(parts) == 2 else self.jvm.none())

    def entry(self, name: TableName) -> Entry | None:
        """The hudimeta table of a name or of hudimeta.`/folder`; None where it is none, or a view, or nothing.

        Raises:
            TableNotFound: No table in that folder.
        """
        identifier = self._identifier(name)
        if name.is_folder:
            return self._folder(name)
        if identifier is None or self._catalog.isTempView(identifier) or not self._catalog.tableExists(identifier):
            return None
        stored = self._catalog.getTableMetadata(identifier)
        if self.jvm.text_of(stored.provider()) != "hudimeta":
            return None
        schema = StructType.fromJson(json.loads(stored.schema().json()))
        carrier = next(carriers(schema), None)
        if carrier is None:
            return None
        properties = {str(item._1()): str(item._2()) for item in self.jvm.items(stored.properties().toSeq())}
        declared = StructType([c for c in schema if c.name not in META_COLUMNS])
        shown = StructType([StructField(c.name, c.dataType) for c in declared])
        created = str(self.jvm.view.java.util.Date(stored.createTime()).toString())
        said = self.jvm.text_of(stored.comment())
        found = carrier.registration
        return Entry(name, found.location, found.options, shown, properties, declared, said, created)

    def _folder(self, name: TableName) -> Entry:
        location = resolve(name.table)
        shown = [field for field in Table(location, self.settings).scan().schema if field.name not in META_COLUMNS]
        columns = spark_schema(pa.schema(shown))
        return Entry(name, location, {}, columns, {}, columns)

    def full_parts(self, name: TableName) -> tuple[str, str, str]:
        """Catalog, database and table that a name means."""
        if name.is_folder:
            return _SESSION_CATALOG, name.parts[0], name.table
        identifier = self._identifier(name)
        database = self.jvm.text_of(identifier.database()) if identifier is not None else None
        return _SESSION_CATALOG, database or str(self._catalog.getCurrentDatabase()), name.table

    def full_name(self, name: TableName) -> str:
        """The same as text, with backticks where they are needed."""
        return ".".join(part if part.isidentifier() else quoted(part) for part in self.full_parts(name))

    def keep_options(self, entry: Entry, options: Mapping[str, str]) -> None:
        """Let the reads and writes of an entry's table have these options from now on."""
        identifier = self._identifier(entry.name)
        stored = StructType.fromJson(json.loads(self._catalog.getTableMetadata(identifier).schema().json()))
        self._catalog.alterTableDataSchema(identifier, self.jvm.schema(with_options(stored, options)))

    def is_ours(self, name: str) -> bool:
        """True for the name, as Spark takes it, of a hudimeta table of the session's catalog."""
        named = target_of(f"INSERT INTO {name} VALUES ()")
        return named is not None and self.entry(named) is not None

    def is_taken(self, name: TableName) -> bool:
        """True when the session's catalog has a table or a view of this name that is not temporary."""
        identifier = self._identifier(name)
        return identifier is not None and bool(self._catalog.tableExists(identifier))

    def is_missing(self, name: TableName) -> bool:
        """True when the session's catalog has neither a table nor a view of this name."""
        identifier = self._identifier(name)
        if identifier is None:
            return False
        return not (self._catalog.isTempView(identifier) or self._catalog.tableExists(identifier))

    def is_table(self, name: TableName) -> bool:
        """True when the session's catalog has a table of this name, and no view hides it."""
        identifier = self._identifier(name)
        if identifier is None or self._catalog.isTempView(identifier) or not self._catalog.tableExists(identifier):
            return False
        return str(self._catalog.getTableMetadata(identifier).tableType().name()) != "VIEW"

    def is_free(self, name: TableName) -> bool:
        """True when a table of this name can be created in the session's catalog."""
        identifier = self._identifier(name)
        if identifier is None or self._catalog.isTempView(identifier) or self._catalog.tableExists(identifier):
            return False
        database = self.jvm.text_of(identifier.database())
        return bool(self._catalog.databaseExists(database or self._catalog.getCurrentDatabase()))

    def default_location(self, name: TableName) -> str:
        """Where Spark's catalog keeps the files of a table of this name."""
        path = self.jvm.view.org.apache.hadoop.fs.Path(self._catalog.defaultTablePath(self._identifier(name)))
        return resolve(str(path.toString()))
