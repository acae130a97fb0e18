"""`spark.catalog` of an attached session: what concerns tables of ours is done as the statements of SQL do it.

Spark's own methods would make entries that nothing can be read by, and leave the files of a table that is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import catalog as of_spark
from pyspark.sql.catalog import Catalog

from hudimeta.sql import CreateTable, name_of, quoted
from pyspark_hudimeta.default_format import is_ours
from pyspark_hudimeta.sql.definition import create
from pyspark_hudimeta.sql.described import declared_column
from pyspark_hudimeta.sql.session import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["AttachedCatalog"]

_FORMAT = "hudimeta"
_PARTITION: Any = getattr(of_spark, "TablePartition", NamedTuple("TablePartition", [("partition", str)]))
"""What `listPartitions` gives, in sessions of Spark too that do not have it."""

_HAS_METHODS = hasattr(Catalog, "listPartitions")
"""Whether this Spark's catalog can do itself what statements do."""


class AttachedCatalog(Catalog):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's catalog, which also knows tables of ours.

    Args:
        spark: The attached session.
        statements: What running a statement there needs; None once it is attached no more.
    """

    def __init__(self, spark: SparkSession, statements: Callable[[], SqlSession | None]) -> None:
        super().__init__(spark)
        self._spark, self._statements = spark, statements

    def createTable(  # noqa: N802 - Spark's names
        self,
        tableName: str,  # noqa: N803
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        description: str | None = None,
        **options: str,
    ) -> DataFrame:
        """As Spark's; a table of ours with columns is made as CREATE TABLE makes it, of which `options` are properties."""
        session, name = self._statements(), name_of(tableName)
        if session is not None and name is not None and schema is not None and is_ours(self._spark, source):
            columns = ", ".join(declared_column(column) for column in schema)
            statement = CreateTable(name, _FORMAT, columns=columns, options=options, location=path, comment=description)
            if create(session, statement) is not None:
                return self._spark.table(tableName)
        return super().createTable(tableName, path, source, schema, description, **options)

    def dropTable(self, tableName: str, ifExists: bool = False, purge: bool = False) -> None:  # noqa: N802, N803
        """As Spark's, of Spark 4.3; a table of ours goes as by DROP TABLE."""
        if self._rows(tableName, "DROP TABLE " + "IF EXISTS " * ifExists + "{}" + " PURGE" * purge) is None:
            super().dropTable(tableName, ifExists, purge)

    def truncateTable(self, tableName: str) -> None:  # noqa: N802, N803
        """As Spark's, of Spark 4.3."""
        if self._rows(tableName, "TRUNCATE TABLE {}") is None:
            super().truncateTable(tableName)

    def analyzeTable(self, tableName: str, noScan: bool = False) -> None:  # noqa: N802, N803
        """As Spark's, of Spark 4.3; statistics of tables of ours are there already."""
        if self._rows(tableName, "ANALYZE TABLE {} COMPUTE STATISTICS" + " NOSCAN" * noScan) is None:
            super().analyzeTable(tableName, noScan)

    def recoverPartitions(self, tableName: str) -> None:  # noqa: N802, N803
        """As Spark's; there are none of a table of ours to look for."""
        if self._rows(tableName, "MSCK REPAIR TABLE {}") is None:
            super().recoverPartitions(tableName)

    def getCreateTableString(self, tableName: str, asSerde: bool = False) -> str:  # noqa: N802, N803
        """As Spark's, of Spark 4.3."""
        found = self._rows(tableName, "SHOW CREATE TABLE {}" + " AS SERDE" * asSerde)
        return str(super().getCreateTableString(tableName, asSerde) if found is None else found[0][0])

    def getTableProperties(self, tableName: str) -> dict[str, str]:  # noqa: N802, N803
        """As Spark's, of Spark 4.3."""
        found = self._rows(tableName, "SHOW TBLPROPERTIES {}")
        return dict(super().getTableProperties(tableName) if found is None else map(tuple, found))

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[of_spark.Column]:  # noqa: N802, N803
        """As Spark's, which does not know which columns of a table of ours are those of the partition."""
        columns, session = super().listColumns(tableName, dbName), self._statements()
        named = tableName if dbName is None else f"{quoted(dbName)}.{quoted(tableName)}"
        entry = session.entry_named(named) if session is not None else None
        if session is None or entry is None:
            return list(columns)
        fields = opened(session, entry).properties.partition_fields
        return [column._replace(isPartition=column.name in fields) for column in columns]

    def listPartitions(self, tableName: str) -> list[Any]:  # noqa: N802, N803
        """As Spark's, of Spark 4.3."""
        found = self._rows(tableName, "SHOW PARTITIONS {}")
        return list(super().listPartitions(tableName) if found is None else [_PARTITION(partition=row[0]) for row in found])

    def _rows(self, name: str, statement: str) -> list[Any] | None:
        """What a statement returns; None where a method of Spark's does the same, which it does for all tables but ours."""
        session = self._statements()
        entry = session.entry_named(name) if session is not None else None
        if session is not None and entry is not None:
            return list(session.own(statement.format(entry.name.sql)).collect())
        return None if _HAS_METHODS else list(self._spark.sql(statement.format(name)).collect())
