"""`df.writeTo(table)` of an attached session: rows go into tables of ours, and make new ones, as SQL's statements do it.

Spark itself finds no table of ours without a string column; and to replace a table it would drop the catalog's entry first, and
then find that it cannot make the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.readwriter import DataFrameWriterV2

from hudimeta.config import OPTIONS
from hudimeta.config.options import ROUTED_WRITES
from pyspark_hudimeta.attached.table_writes import (
    append_to,
    overwrite_partitions,
    overwrite_where,
    replace_table,
    save_as_table,
    unknown_layout,
)
from pyspark_hudimeta.default_format import is_ours
from pyspark_hudimeta.plain.registration import without_sql_words
from pyspark_hudimeta.plain.writer import writer_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["AttachedTableWriter"]


class AttachedTableWriter(DataFrameWriterV2):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's writer, which also remembers what it was given.

    Args:
        frame: The rows.
        table: Its name, as Spark takes it.
        session: The attached one.
    """

    def __init__(self, frame: DataFrame, table: str, session: SqlSession) -> None:
        super().__init__(frame, table)
        self._table, self._session = table, session
        self._provider = ""
        self._given: dict[str, str] = {}
        self._partitions: tuple[str, ...] = ()
        self._clustered = False

    def using(self, provider: str) -> AttachedTableWriter:
        self._provider = provider.lower()
        super().using(provider)
        return self

    def option(self, key: str, value: Any) -> AttachedTableWriter:
        self._remember(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> AttachedTableWriter:
        for key, value in options.items():
            self._remember(key, value)
        super().options(**options)
        return self

    def tableProperty(self, property: str, value: str) -> AttachedTableWriter:  # noqa: N802 - Spark's names
        self._remember(property, value)
        super().tableProperty(property, value)
        return self

    def partitionedBy(self, col: Column | str, *cols: Column | str) -> AttachedTableWriter:  # noqa: N802 - Spark's name
        self._partitions = tuple(c if isinstance(c, str) else str(c._jc.toString()) for c in (col, *cols))
        super().partitionedBy(col, *cols)
        return self

    def clusterBy(self, col: str, *cols: str) -> AttachedTableWriter:  # noqa: N802 - Spark's name
        self._clustered = True
        super().clusterBy(col, *cols)
        return self

    def append(self) -> None:
        """As Spark's; rows for a table of ours are routed."""
        if not (self._is_routed() and append_to(self._session, self._table, self._df, self._given)):
            super().append()

    def overwritePartitions(self) -> None:  # noqa: N802 - Spark's name
        """As Spark's; rows for a table of ours are routed."""
        if not (self._is_routed() and overwrite_partitions(self._session, self._table, self._df, self._given)):
            super().overwritePartitions()

    def overwrite(self, condition: Column) -> None:
        """As Spark's; rows of a table of ours that the condition is true of give way, as by INSERT … REPLACE WHERE."""
        if not (self._is_routed() and overwrite_where(self._session, self._table, self._df, self._given, condition)):
            super().overwrite(condition)

    def create(self) -> None:
        """As Spark's; a table of ours is made as CREATE TABLE … AS SELECT makes it."""
        made = False
        if self._makes_ours():
            made = save_as_table(self._session, self._table, self._df, self._given, "error", self._partitions)
        if not made:
            super().create()

    def replace(self) -> None:
        """As Spark's; a table of ours is made beside the old one, which goes when the new one is whole."""
        if not self._replaced(creates=False):
            super().replace()

    def createOrReplace(self) -> None:  # noqa: N802 - Spark's name
        """As Spark's; see `replace`."""
        if not self._replaced(creates=True):
            super().createOrReplace()

    def _replaced(self, *, creates: bool) -> bool:
        if not self._makes_ours():
            return False
        return replace_table(self._session, self._table, self._df, self._given, self._partitions, creates=creates)

    def _makes_ours(self) -> bool:
        ours = is_ours(self._session.spark, self._provider)
        if ours and self._clustered:
            raise unknown_layout("clusterBy")
        return ours and self._is_routed()

    def _remember(self, key: str, value: Any) -> None:
        if value is not None:
            # As Spark spells them on their way to Java.
            self._given[key] = str(value).lower() if isinstance(value, bool) else str(value)

    def _is_routed(self) -> bool:
        return bool(OPTIONS.read(without_sql_words(writer_options(self._given))).get(ROUTED_WRITES))
