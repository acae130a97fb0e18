"""`writeStream` of an attached session to tables of ours: each batch is a routed write of its own.

To Spark it is `foreachBatch`, so a batch is named by its query and its number, and written once: see `stream_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudimeta.config import OPTIONS, check_of_a_write
from hudimeta.config.options import OPERATION, PARTITION_PATH, ROUTED_WRITES
from hudimeta.errors import ConfigError, UnsupportedFeature
from pyspark_hudimeta.default_format import is_ours
from pyspark_hudimeta.plain.stream_writer import stream_options
from pyspark_hudimeta.plain.target import stream_target
from pyspark_hudimeta.plain.writer import LOG, writer_options
from pyspark_hudimeta.routed.stream_batch import AttachedStreamWriter
from pyspark_hudimeta.routed.write import save_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from pyspark_hudimeta.plain.streams import Located

__all__ = ["Made", "RoutedStreamWriter"]

_CHECKPOINT = "checkpointlocation"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_COMPLETE = "complete"
Made = Callable[[str, "DataFrame", Mapping[str, str], Sequence[str]], None]
"""Creates the table of a name with the columns of a DataFrame: name, DataFrame, options, partition columns."""


class RoutedStreamWriter(AttachedStreamWriter):
    """Spark's writer of streams, which also remembers what it was given.

    Args:
        frame: The stream.
        adopt: Attaches the session of a batch, and returns what undoes it.
        located: Where a table of the catalog lies.
        made: Creates one.
    """

    def __init__(
        self, frame: DataFrame, adopt: Callable[[SparkSession], Callable[[], None]], located: Located, made: Made
    ) -> None:
        super().__init__(frame, adopt)
        self._frame, self._located, self._made = frame, located, made
        self._sink, self._mode = "", "append"
        self._given: dict[str, str] = {}
        self._partitions: tuple[str, ...] = ()

    def format(self, source: str) -> RoutedStreamWriter:
        self._sink = source.lower()
        super().format(source)
        return self

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> RoutedStreamWriter:  # noqa: N802 - Spark's name
        self._sink = "foreachbatch"
        super().foreachBatch(func)
        return self

    def foreach(self, f: Any) -> RoutedStreamWriter:
        self._sink = "foreach"
        super().foreach(f)
        return self

    def outputMode(self, outputMode: str) -> RoutedStreamWriter:  # noqa: N802, N803 - Spark's names
        self._mode = str(outputMode).lower()
        super().outputMode(outputMode)
        return self

    def option(self, key: str, value: Any) -> RoutedStreamWriter:
        self._remember(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> RoutedStreamWriter:
        for key, value in options.items():
            self._remember(key, value)
        super().options(**options)
        return self

    def partitionBy(self, *cols: Any) -> RoutedStreamWriter:  # noqa: N802 - Spark's name
        self._partitions = tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
        super().partitionBy(*cols)
        return self

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - Spark's name
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        queryName: str | None = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> StreamingQuery:
        """As Spark's; a stream into a table of ours is routed."""
        self._take(format, outputMode, partitionBy, queryName, options)
        if not self._is_ours() or not self._is_routed():
            return super().start(path)
        given = {key.lower(): value for key, value in self._given.items()}
        given |= {} if path is None else {"path": path}
        if self._partitions:
            hint = f"Name the columns with {PARTITION_PATH.key} where the stream creates the table, and leave partitionBy out."
            raise UnsupportedFeature("partitionBy of a stream into a folder", hint)
        return self._streamed(stream_target(given, self._frame.schema).location, given)

    def toTable(  # noqa: N802 - Spark's name
        self,
        tableName: str,  # noqa: N803 - Spark's name
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - Spark's name
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        queryName: str | None = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> StreamingQuery:
        """As Spark's; a table of ours that is not there yet is created with the columns of the stream."""
        self._take(format, outputMode, partitionBy, queryName, options)
        found = self._located(tableName)
        if (found is None and not self._is_ours()) or not self._is_routed():
            return super().toTable(tableName)
        self._check()
        check_of_a_write(self._given, self._frame.columns)
        if found is None:
            spark = self._frame.sparkSession
            empty = spark.createDataFrame([], self._frame.schema)
            self._made(tableName, empty, stream_options(self._given), self._partitions)
            found = self._located(tableName)
            assert found is not None, "the table was made just now"
        location, kept = found
        return self._streamed(location, {**self._given, **kept})

    def _streamed(self, location: str, given: Mapping[str, str]) -> StreamingQuery:
        self._check()
        options, overwrite = OPTIONS.read(writer_options(stream_options(given))), self._mode == _COMPLETE

        def save(rows: DataFrame, number: int) -> None:
            LOG.info("%s", save_frame(rows.sparkSession, location, options, rows, overwrite=overwrite))

        super().foreachBatch(save)  # which the user did not ask for: the same writer may be started again, for another table
        return super().start()

    def _check(self) -> None:
        """Refuse what Spark would let pass in a `foreachBatch`."""
        kept = {key.lower() for key in self._given}
        if _CHECKPOINT not in kept and not self._frame.sparkSession.conf.get(_CHECKPOINTS, None):
            hint = f"Name a folder that stays, as option or as {_CHECKPOINTS}: it says which batches were written."
            raise ConfigError("checkpointLocation", None, "a folder", hint)
        operation = OPTIONS.read(stream_options(self._given)).get(OPERATION)
        if operation == "delete_partition":
            raise UnsupportedFeature("delete_partition in writeStream", "Call it in foreachBatch.")

    def _take(
        self, format: str | None, mode: str | None, partitions: Any, name: str | None, options: Mapping[str, Any]
    ) -> None:
        self.options(**options)
        if format is not None:
            self.format(format)
        if mode is not None:
            self.outputMode(mode)
        if partitions is not None:
            self.partitionBy(partitions)
        if name is not None:
            self.queryName(name)

    def _is_ours(self) -> bool:
        return is_ours(self._frame.sparkSession, self._sink)

    def _is_routed(self) -> bool:
        return bool(OPTIONS.read(stream_options(self._given)).get(ROUTED_WRITES))

    def _remember(self, key: str, value: Any) -> None:
        if value is not None:
            # As Spark spells them on their way to Java.
            self._given[key] = str(value).lower() if isinstance(value, bool) else str(value)
