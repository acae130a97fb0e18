"""`df.write` to hudimeta tables in an attached session, by path or by name: routed through Spark's executors.

Spark makes each DataFrame of its own class, whose `write`, `writeStream` and `writeTo` know nothing of sessions. So while any
session is attached, these ask whether the DataFrame's session is one of them; for all others they are what they were. Other
formats, tables that are not ours and what is refused anyway are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.readwriter import DataFrameWriterV2
from pyspark.sql.streaming import DataStreamWriter

from hudimeta.config import OPTIONS
from hudimeta.config.options import OPERATION, ROUTED_WRITES
from hudimeta.errors import TableError, UnsupportedFeature
from pyspark_hudimeta.attached.table_writer import AttachedTableWriter
from pyspark_hudimeta.attached.table_writes import insert_into, partitioned, save_as_table, table_at, unknown_layout
from pyspark_hudimeta.default_format import is_ours
from pyspark_hudimeta.plain.registration import without_sql_words
from pyspark_hudimeta.plain.target import write_target
from pyspark_hudimeta.plain.writer import LOG, writer_options
from pyspark_hudimeta.routed.stream_sink import RoutedStreamWriter
from pyspark_hudimeta.routed.write import save_frame
from pyspark_hudimeta.sql.merge_into import MergeInto
from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["AttachedWriter", "route_writes", "stop_routing"]

_MODES = {"append": False, "overwrite": True}
_ERROR = ("error", "errorifexists", "default")
"""Modes that refuse to write to a table that is there."""
_IGNORE = "ignore"
_TAKEN = ("write", "writeTo", "writeStream", "mergeInto")
_UNROUTED = "delete_partition"
_lock = RLock()
Find = Callable[[SparkSession], SqlSession | None]
"""What statements of a session need; None for a session that is not attached."""
Adopt = Callable[[SparkSession, SparkSession], Callable[[], None] | None]
"""Attaches a session as another one is, and returns what undoes it; None where that other one is not attached."""
_routes: dict[int, Find] = {}
_adopters: dict[int, Adopt] = {}
_original: dict[str, Any] = {}


def route_writes(owner: int, find: Find, adopt: Adopt) -> None:
    """From now on writes of the DataFrames of some sessions are routed.

    Args:
        owner: Who asks, for `stop_routing`.
        find: Knows the sessions.
        adopt: Attaches the session of a batch of a stream.
    """
    with _lock:
        if not _original:
            _original.update({name: ClassicDataFrame.__dict__[name] for name in _TAKEN})
            ClassicDataFrame.write = property(_write, doc=DataFrame.write.__doc__)
            ClassicDataFrame.writeTo = _write_to
            ClassicDataFrame.mergeInto = _merge_into
            ClassicDataFrame.writeStream = property(_write_stream, doc=DataFrame.writeStream.__doc__)
        _routes[owner] = find
        _adopters[owner] = adopt


def stop_routing(owner: int) -> None:
    """Undo `route_writes`; when nobody is left, Spark's class is as it was."""
    with _lock:
        _routes.pop(owner, None)
        _adopters.pop(owner, None)
        if not _routes:
            for name in list(_original):
                setattr(ClassicDataFrame, name, _original.pop(name))


def _session_of(frame: DataFrame) -> SqlSession | None:
    """What statements of a DataFrame's session need; None where that is not attached."""
    sessions = (find(frame.sparkSession) for find in list(_routes.values()))
    return next((session for session in sessions if session is not None), None)


def _write(frame: DataFrame) -> DataFrameWriter:
    session = _session_of(frame)
    return AttachedWriter(frame, session) if session is not None else DataFrameWriter(frame)


def _write_stream(frame: DataFrame) -> DataStreamWriter:
    session = _session_of(frame)
    if session is None:
        return DataStreamWriter(frame)

    def made(name: str, rows: DataFrame, given: Mapping[str, str], partitions: Sequence[str]) -> None:
        if not save_as_table(session, name, rows, given, "error", partitions):
            raise UnsupportedFeature(
                f"toTable({name!r})", "Create the table with CREATE TABLE … USING hudimeta, then write to it."
            )

    return RoutedStreamWriter(frame, partial(_adopted, frame.sparkSession), session.located, made)


def _adopted(spark: SparkSession, batch: SparkSession) -> Callable[[], None]:
    """Attach the session of a batch, unless that of its stream has been detached; returns what undoes it."""
    found = (adopt(spark, batch) for adopt in list(_adopters.values()))
    return next((release for release in found if release is not None), lambda: None)


def _write_to(self: DataFrame, table: str) -> DataFrameWriterV2:
    """As Spark's; see `AttachedTableWriter`."""
    session = _session_of(self)
    return AttachedTableWriter(self, table, session) if session is not None else DataFrameWriterV2(self, table)


def _merge_into(self: DataFrame, table: str, condition: Column) -> Any:
    """As Spark's, which has no MERGE for tables of ours; see `MergeInto`."""
    session = _session_of(self)
    entry = session.entry_named(table) if session is not None else None
    if session is not None and entry is not None:
        return MergeInto(session, entry, self, condition)
    return _original["mergeInto"](self, table, condition)


class AttachedWriter(DataFrameWriter):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's writer, which also remembers what it was given."""

    def __init__(self, frame: DataFrame, session: SqlSession) -> None:
        super().__init__(frame)
        self._session = session
        self._format: str | None = None
        self._mode: str | None = None
        self._given: dict[str, str] = {}
        self._partitions: tuple[str, ...] = ()
        self._layout = ""
        """The method that was to lay rows out in a way that is not Hudi's; "" without one."""

    def mode(self, saveMode: str | None) -> AttachedWriter:  # noqa: N803 - Spark's name
        self._mode = saveMode.lower() if saveMode is not None else self._mode
        super().mode(saveMode)
        return self

    def format(self, source: str) -> AttachedWriter:
        self._format = source
        super().format(source)
        return self

    def option(self, key: str, value: Any) -> AttachedWriter:
        self._remember(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> AttachedWriter:
        for key, value in options.items():
            self._remember(key, value)
        super().options(**options)
        return self

    def partitionBy(self, *cols: Any) -> AttachedWriter:  # noqa: N802 - Spark's name
        listed = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
        self._partitions = tuple(listed)
        super().partitionBy(*cols)
        return self

    def bucketBy(self, *args: Any, **kwargs: Any) -> AttachedWriter:  # noqa: N802 - Spark's name
        self._layout = "bucketBy"
        super().bucketBy(*args, **kwargs)
        return self

    def sortBy(self, *args: Any, **kwargs: Any) -> AttachedWriter:  # noqa: N802 - Spark's name
        self._layout = self._layout or "sortBy"
        super().sortBy(*args, **kwargs)
        return self

    def clusterBy(self, *cols: Any) -> AttachedWriter:  # noqa: N802 - Spark's name
        self._layout = "clusterBy"
        super().clusterBy(*cols)
        return self

    def _remember(self, key: str, value: Any) -> None:
        if value is not None:
            # As Spark spells them on their way to Java.
            self._given[key] = str(value).lower() if isinstance(value, bool) else str(value)

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> None:
        """As Spark's; a write to a table of ours is routed."""
        self.mode(mode).options(**options)
        if format is not None:
            self.format(format)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if not self._saved(path):
            super().save(path)

    def _saved(self, path: str | None) -> bool:
        """Route the write, if it is one that is routed."""
        given = self._given if path is None else {**self._given, "path": path}
        mode = self._mode or _ERROR[0]
        if not is_ours(self._session.spark, self._format) or mode not in (*_MODES, *_ERROR, _IGNORE) or self._layout:
            return False
        lower = {key.lower(): value for key, value in given.items()}
        if not self._is_routed():
            return False
        location = write_target(lower, self._df.schema).location
        found = table_at(location, lower) if self._partitions or mode not in _MODES else None
        if found is not None and mode == _IGNORE:
            LOG.info("nothing was written: mode('ignore'), and there is a table at %s", location)
            return True
        if found is not None and mode in _ERROR:
            hint = "mode('append') writes to it, mode('overwrite') replaces its rows, mode('ignore') lets it be."
            raise TableError(f"there is a table at {location!r} already", hint)
        if self._partitions:
            lower |= partitioned(lower, self._partitions, found)
        options = OPTIONS.read(writer_options(lower))
        report = save_frame(self._df.sparkSession, location, options, self._df, overwrite=_MODES.get(mode, False))
        LOG.info("%s", report)
        return report is not None

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N802, N803 - Spark's names
        """As Spark's; rows for a table of ours are routed."""
        replaces = overwrite if overwrite is not None else self._mode == "overwrite"
        if self._layout or self._partitions or not self._is_routed():
            done = False
        else:
            done = insert_into(self._session, tableName, self._df, self._given, overwrite=replaces)
        if not done:
            super().insertInto(tableName, overwrite)

    def saveAsTable(  # noqa: N802 - Spark's name
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> None:
        """As Spark's; a table of ours is written to, or created, by routed writes."""
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if format is not None:
            self.format(format)
        done = False
        ours = is_ours(self._session.spark, self._format)
        if ours and self._layout:
            raise unknown_layout(self._layout)
        if ours and self._is_routed():
            given, how = self._given, self._mode or "error"
            done = save_as_table(self._session, name, self._df, given, how, self._partitions)
        if not done:
            super().saveAsTable(name)

    def _is_routed(self) -> bool:
        options = OPTIONS.read(without_sql_words(writer_options(self._given)))
        return bool(options.get(ROUTED_WRITES)) and options.get(OPERATION) != _UNROUTED
