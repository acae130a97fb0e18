"""A `FileIndex` of Spark's that Python implements: Spark asks it, once for each scan of each query, which files to read.

Spark hands over the filters of that scan, and of no other, so that files may be left out by them. Whatever it is given, it
applies all filters to the rows by itself, except filters over partition columns alone; there are none here that a query can
name. Calls come on the threads that plan queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hudimeta.redaction import hidden

if TYPE_CHECKING:
    from pyspark_hudimeta.native.native_table import NativeTable

__all__ = ["SparkFileIndex"]


class SparkFileIndex:
    """The files of one table at one moment.

    Args:
        table: Which chooses them.
    """

    def __init__(self, table: NativeTable) -> None:
        self._table = table
        self._roots = table.jvm.seq([table.jvm.path(table.uri)])

    # Names below are those of Spark's interface.

    def rootPaths(self) -> Any:  # noqa: N802
        return self._roots

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802
        return self._table.files(partition_filters, data_filters)

    def inputFiles(self) -> Any:  # noqa: N802
        return self._table.input_files()

    def refresh(self) -> None:
        """A snapshot does not change."""

    def sizeInBytes(self) -> int:  # noqa: N802
        return self._table.size

    def partitionSchema(self) -> Any:  # noqa: N802
        return self._table.java_partition_schema

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802
        return self._table.jvm.none()

    # Those of java.lang.Object, which a proxy has to answer too.

    def hashCode(self) -> int:  # noqa: N802
        return hash(self._table.uri) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        return self is other

    def toString(self) -> str:  # noqa: N802
        return f"hudimeta[{hidden(self._table.uri)}]"

    class Java:
        implements: ClassVar[list[str]] = ["org.apache.spark.sql.execution.datasources.FileIndex"]
