"""The few Scala values that the attached door hands to Spark and takes from it, through py4j.

Every call here is a round trip of about a tenth of a millisecond, so that what grows with a table goes over in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudimeta.cached import cached_property

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["FILE_METADATA", "Jvm"]

FILE_METADATA = "_metadata"
"""The hidden column of Spark's file sources: path, name, size and time of the file of a row, and its place in it."""

_BLOCK = 128 << 20


class Jvm:
    """The JVM of a classic session.

    Attributes:
        gateway, view: Of py4j.
        session: The session's Java side.
    """

    def __init__(self, spark: SparkSession) -> None:
        assert spark._jvm is not None
        self.gateway: Any = spark.sparkContext._gateway
        self.view: Any = spark._jvm
        self.session: Any = spark._jsparkSession

    @cached_property
    def _converters(self) -> Any:
        """Between Scala's collections and Java's; each part of such a name is a round trip by itself."""
        return self.view.scala.jdk.javaapi.CollectionConverters

    @property
    def datasources(self) -> Any:
        """Spark's package of file sources."""
        return self.view.org.apache.spark.sql.execution.datasources

    @property
    def expressions(self) -> Any:
        """Catalyst's package of expressions."""
        return self.view.org.apache.spark.sql.catalyst.expressions

    def allow_callbacks(self) -> None:
        """Let the JVM call Python objects; PySpark itself does the same for streaming."""
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(self.gateway)

    # Python to Scala

    def seq(self, items: Iterable[Any]) -> Any:
        """An immutable Seq."""
        found = self.view.java.util.ArrayList()
        for item in items:
            found.add(item)
        return self.seq_of(found)

    def seq_of(self, items: Any) -> Any:
        """A java.util.List as an immutable Seq."""
        return self._converters.asScala(items).toSeq()

    def array(self, kind: Any, items: Sequence[Any]) -> Any:
        """An array of a Java class."""
        found = self.gateway.new_array(kind, len(items))
        for number, item in enumerate(items):
            found[number] = item
        return found

    def none(self) -> Any:
        """Scala's None."""
        return self.view.scala.Option.empty()

    def some(self, value: Any) -> Any:
        """Scala's Some."""
        return self.view.scala.Option.apply(value)

    def map(self, values: Mapping[str, str]) -> Any:
        """An immutable Map."""
        return self.view.PythonUtils.toScalaMap(dict(values))

    def schema(self, schema: StructType) -> Any:
        """A StructType."""
        return self.view.org.apache.spark.sql.types.DataType.fromJson(schema.json())

    def type(self, name: str) -> Any:
        """A type of Spark's by its name in SQL."""
        return self.view.org.apache.spark.sql.types.DataType.fromDDL(name)

    def parsed(self, sql: str) -> Any:
        """An expression of Catalyst's, not resolved yet."""
        return self.session.sessionState().sqlParser().parseExpression(sql)

    def filtered(self, frame: Any, condition: Any) -> Any:
        """A Dataset with the rows for which an expression, resolved or not, is true."""
        plan = self.view.org.apache.spark.sql.catalyst.plans.logical.Filter(condition, frame.queryExecution().analyzed())
        return self.view.org.apache.spark.sql.classic.Dataset.ofRows(self.session, plan)

    def without_file_metadata(self, frame: Any) -> Any:
        """The same Dataset without the hidden column `_metadata` of Spark's file sources."""
        logical, plan = self.view.org.apache.spark.sql.catalyst.plans.logical, frame.queryExecution().analyzed()
        project = logical.Project(plan.output(), plan)
        project.setTagValue(logical.Project.hiddenOutputTag(), self.seq([]))
        return self.view.org.apache.spark.sql.classic.Dataset.ofRows(self.session, project)

    def has_file_metadata(self, frame: Any) -> bool:
        """Whether a Dataset has that column."""
        hidden = self.items(frame.queryExecution().analyzed().metadataOutput())
        return any(column.name() == FILE_METADATA for column in hidden)

    def text(self, value: str) -> Any:
        """A string in Catalyst's own form."""
        return self.view.org.apache.spark.unsafe.types.UTF8String.fromString(value)

    def path(self, uri: str) -> Any:
        """A Hadoop path of a percent-encoded URI."""
        return self.view.org.apache.hadoop.fs.Path(self.view.java.net.URI(uri))

    def file_statuses(self, files: Iterable[tuple[str, int, int]]) -> Any:
        """An array of FileStatus.

        Args:
            files: Percent-encoded URI, bytes, epoch milliseconds.
        """
        kind = self.view.org.apache.hadoop.fs.FileStatus
        return self.array(kind, [kind(size, False, 1, _BLOCK, at, self.path(uri)) for uri, size, at in files])

    # Scala to Python

    def items(self, seq: Any) -> list[Any]:
        """The elements of a Seq."""
        # By number: the end of a Java iterator is an exception, which PySpark compares with its own in a hundred calls.
        found = self._converters.asJava(seq)
        return [found.get(number) for number in range(found.size())]

    def java_map(self, values: Any) -> Any:
        """A Scala map as a Java map."""
        return self._converters.asJava(values)

    def texts(self, values: Any) -> dict[str, str]:
        """A Java map of strings."""
        names = values.keySet().toArray()
        return {str(names[number]): str(values.get(names[number])) for number in range(len(names))}

    def text_of(self, option: Any) -> str | None:
        """What an Option of a string holds."""
        return str(option.get()) if option.isDefined() else None

    def class_name(self, value: Any) -> str:
        """The simple name of a Java object's class."""
        name: str = value.getClass().getSimpleName()
        return name
