"""What running a statement of SQL needs: the session, Spark's own `sql`, the statement's parameters, the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from hudimeta import Table
from hudimeta.cached import cached_property
from hudimeta.config import OPTIONS
from hudimeta.config.options import EXTRA_METADATA_PREFIX
from hudimeta.errors import ConfigError
from hudimeta.sql import TableName, name_of, quoted
from hudimeta.types import META_COLUMNS
from pyspark_hudimeta.arrow_types import arrow_schema, spark_schema
from pyspark_hudimeta.hudi_table import HudiTable
from pyspark_hudimeta.plain.location import resolve
from pyspark_hudimeta.sql.catalog import SESSION_CATALOG, Catalog, ClassicCatalog, Entry, Known
from pyspark_hudimeta.sql.connect_catalog import ConnectCatalog
from pyspark_hudimeta.sql.registering import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["OWNS_FILES", "Entry", "SqlSession", "literal", "opened", "options_of"]

OWNS_FILES = "hudimeta_owns_files"
"""Table property of tables that were created without LOCATION: DROP TABLE deletes their files."""
_OWN = ("hoodie.", "hudimeta.")
_OF_SPARK = "spark."
"""What stands before options of Hudi in the configuration of a session that is started with them."""


def options_of(session: SqlSession, entry: Entry) -> dict[str, str]:
    """The options of the session and of a table's entry; the latter go first, whatever their names."""
    return OPTIONS.read(session.settings).having(entry.options).given


def opened(session: SqlSession, entry: Entry) -> HudiTable:
    """The table of an entry, with the options of both."""
    return HudiTable(session.spark, entry.location, options_of(session, entry))


@dataclass(frozen=True)
class SqlSession:
    """One statement's view of its session.

    Attributes:
        spark: The session.
        jvm: Its Java side; None in a session of Spark Connect, whose Java side is elsewhere.
        plain: Spark's own `sql`.
        own: The `sql` that knows these statements.
        parameters: Named parameters of the statement, None for none.
        frames: What `{name}` in its text stands for.
    """

    spark: SparkSession
    jvm: Jvm | None
    plain: Callable[..., DataFrame]
    own: Callable[..., DataFrame]
    parameters: Mapping[str, Any] | None
    frames: Mapping[str, Any]

    def query(self, text: str) -> DataFrame:
        """The rows of a part of the statement."""
        return self.own(text, self.parameters, **self.frames)

    def nothing(self) -> DataFrame:
        """What a statement without rows returns."""
        return self.spark.range(0).select()

    def rows(self, values: Iterable[tuple[Any, ...]], columns: str) -> DataFrame:
        """Rows that a statement returns.

        Args:
            values: Of each row.
            columns: Their names and types, as DDL.
        """
        kinds = StructType.fromDDL(columns)
        held = [dict(zip(kinds.names, row, strict=True)) for row in values]
        return self.spark.createDataFrame(pa.Table.from_pylist(held, arrow_schema(kinds)), kinds)

    def explained(self, frame: DataFrame, mode: str) -> str:
        """The plans of a DataFrame as EXPLAIN shows them.

        Args:
            frame: Not run.
            mode: EXPLAIN's word, lower case; "simple" without one.
        """
        if self.jvm is None:
            return str(frame._explain_string(mode=mode))
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
        own = of_spark | {k: v for k, v in known.items() if k.startswith(_OWN)}
        stored = own.get(EXTRA_METADATA_PREFIX.key)  # entries for the commits of the session
        return own | {k: v for k, v in known.items() if stored and k.startswith(stored)}

    # The catalog

    @cached_property
    def catalog(self) -> Catalog:
        """The session's own catalog."""
        return ClassicCatalog(self.jvm) if self.jvm is not None else ConnectCatalog(self.spark)

    def entry(self, name: TableName) -> Entry | None:
        """The hudimeta table of a name or of hudimeta.`/folder`; None where it is none, or a view, or nothing.

        Raises:
            TableNotFound: No table in that folder.
        """
        return self._folder(name) if name.is_folder else self.catalog.entry(name)

    def _folder(self, name: TableName) -> Entry:
        location = self.place(name.table)
        shown = [field for field in Table(location, self.settings).scan().schema if field.name not in META_COLUMNS]
        columns = spark_schema(pa.schema(shown))
        return Entry(name, location, {}, columns, {}, columns)

    def place(self, path: str) -> str:
        """A folder that a statement names, in its one spelling.

        Raises:
            ConfigError: A relative path in a Connect session, whose server runs in another folder.
        """
        if self.jvm is None and not path.startswith("/") and ":" not in path.split("/", 1)[0]:
            raise ConfigError("path", path, "an absolute path or a URI", "Through Spark Connect, write the whole path.")
        return resolve(path)

    def full_parts(self, name: TableName) -> tuple[str, str, str]:
        """Catalog, database and table that a name means."""
        if name.is_folder:
            return SESSION_CATALOG, name.parts[0], name.table
        *_, database = ("", *name.parts[:-1])
        return SESSION_CATALOG, database or self.catalog.current_database(), name.table

    def full_name(self, name: TableName) -> str:
        """The same as text, with backticks where they are needed."""
        return ".".join(part if part.isidentifier() else quoted(part) for part in self.full_parts(name))

    def entry_named(self, name: str) -> Entry | None:
        """The hudimeta table of a name as Spark's methods take it; None for any other name."""
        named = name_of(name)
        return self.entry(named) if named is not None else None

    def located(self, name: str) -> tuple[str, Mapping[str, str]] | None:
        """Where the hudimeta table of a name, as Spark takes it, lies, and its options; None for any other name."""
        entry = self.entry_named(name)
        return None if entry is None else (entry.location, entry.options)

    def is_taken(self, name: TableName) -> bool:
        """True when the session's catalog has a table or a view of this name that is not temporary."""
        if self.catalog.known(name) is Known.ELSEWHERE:
            return False
        return self.catalog.known(TableName(self.full_parts(name)[1:])) in (Known.TABLE, Known.VIEW)

    def is_missing(self, name: TableName) -> bool:
        """True when the session's catalog has neither a table nor a view of this name."""
        return self.catalog.known(name) is Known.NOTHING

    def is_table(self, name: TableName) -> bool:
        """True when the session's catalog has a table of this name, and no view hides it."""
        return self.catalog.known(name) is Known.TABLE

    def is_free(self, name: TableName) -> bool:
        """True when a table of this name can be created in the session's catalog; a temporary view does not take its name."""
        if self.catalog.known(name) is Known.ELSEWHERE:
            return False
        _, database, table = self.full_parts(name)
        return self.is_missing(TableName((database, table))) and self.catalog.has_database(database)
