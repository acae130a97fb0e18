"""`readStream` of an attached session: it knows the tables of the catalog that Spark's own reader would not find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming import DataStreamReader

from hudimeta import Table
from hudimeta.sql import quoted
from pyspark_hudimeta.plain.source import shown_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["AttachedStreamReader", "Located"]

_FORMAT = "hudimeta"
Located = Callable[[str], tuple[str, Mapping[str, str]] | None]
"""Where the hudimeta table of a name lies, and the options of its entry; None for any other name."""


class AttachedStreamReader(DataStreamReader):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's reader of streams.

    Args:
        spark: The session. located: See `Located`.
    """

    def __init__(self, spark: SparkSession, located: Located) -> None:
        super().__init__(spark)
        self._located = located

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        """As Spark's; a table of ours is read from its folder, with the columns of batches in their order."""
        found = self._located(tableName)
        if found is None:
            return super().table(tableName)
        location, options = found
        frame = super().format(_FORMAT).options(**options).load(location)
        shown = shown_columns(frame.columns, options, Table(location, options).properties.partition_fields)
        return frame if shown is None else frame.select(*map(quoted, shown))
