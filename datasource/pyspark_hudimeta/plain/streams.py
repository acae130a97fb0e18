"""`readStream` and `writeStream`: refused with what to do instead, in an attached session as soon as they name a table of ours.

In other sessions Spark asks the data source only when the query has started, and hands the refusal to whoever awaits it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.streaming import DataStreamReader, DataStreamWriter

from hudimeta.config.options import INCREMENTAL_BEGIN, QUERY_TYPE
from hudimeta.errors import UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["AttachedStreamReader", "IsOurs", "RefusingStreamWriter", "refuse_read_stream", "refuse_write_stream"]

_FORMAT = "hudimeta"
IsOurs = Callable[[str], bool]
"""Whether a name is that of a hudimeta table of the session's catalog."""


def refuse_read_stream() -> NoReturn:
    """Raise UnsupportedFeature for `readStream`."""
    hint = (
        f"Read what later commits wrote as batches: {QUERY_TYPE.key}=incremental with {INCREMENTAL_BEGIN.key}, "
        "the completion time of the commit up to which you have read."
    )
    raise UnsupportedFeature("readStream of a hudimeta table", hint)


def refuse_write_stream() -> NoReturn:
    """Raise UnsupportedFeature for `writeStream`."""
    hint = (
        "Write each batch of the stream: writeStream.foreachBatch(lambda rows, number: "
        "rows.write.format('hudimeta').mode('append').save(path)); as an upsert, a repeated batch changes nothing."
    )
    raise UnsupportedFeature("writeStream to a hudimeta table", hint)


class AttachedStreamReader(DataStreamReader):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's reader of streams, which refuses tables of ours. Args: spark: The session. is_ours: See `IsOurs`."""

    def __init__(self, spark: SparkSession, is_ours: IsOurs) -> None:
        super().__init__(spark)
        self._is_ours, self._source = is_ours, ""

    def format(self, source: str) -> AttachedStreamReader:
        self._source = source
        super().format(source)
        return self

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        if (format or self._source).lower() == _FORMAT:
            refuse_read_stream()
        return super().load(path, format, schema, **options)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        if self._is_ours(tableName):
            refuse_read_stream()
        return super().table(tableName)


class RefusingStreamWriter(DataStreamWriter):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's writer of streams, which refuses tables of ours. Args: frame: The stream. is_ours: See `IsOurs`."""

    def __init__(self, frame: DataFrame, is_ours: IsOurs) -> None:
        super().__init__(frame)
        self._is_ours, self._sink = is_ours, ""

    def format(self, source: str) -> RefusingStreamWriter:
        self._sink = source
        super().format(source)
        return self

    def start(self, path: Any = None, format: Any = None, *args: Any, **options: Any) -> StreamingQuery:
        if (format or self._sink).lower() == _FORMAT:
            refuse_write_stream()
        return super().start(path, format, *args, **options)

    def toTable(  # noqa: N802 - Spark's name
        self,
        tableName: str,  # noqa: N803 - Spark's name
        format: Any = None,
        *args: Any,
        **options: Any,
    ) -> StreamingQuery:
        if (format or self._sink).lower() == _FORMAT or self._is_ours(tableName):
            refuse_write_stream()
        return super().toTable(tableName, format, *args, **options)
