"""`attach(spark)`: the plain door's code with Spark's own scans, planned one by one through our indexes.

The session object becomes one of a subclass whose `read`, `sql` and `table` look at each DataFrame that Spark makes, and
exchange in it the scans of the Python source for native ones (see `leaves`); what its DataFrames write is routed (see
`attached_writer`). Nothing else of Spark is touched, no
configuration, no catalog, no view. `detach` gives the object its own class back and deletes the temporary files.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import replace
from functools import cache, partial
from threading import RLock
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming import DataStreamReader
from pyspark.sql.types import StructType

from hudimeta.config import OPTIONS
from hudimeta.config.options import AS_OF, COLUMNS, FILTER, LISTED_SLICES, QUERY_TYPE
from hudimeta.errors import HudiError, UnsupportedFeature
from hudimeta.read.chosen_partitions import chosen_partitions
from hudimeta.read.incremental import refuse_range
from hudimeta.types import QueryType
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.attached.catalog import AttachedCatalog
from pyspark_hudimeta.attached.leaves import Leaf, exchanged
from pyspark_hudimeta.attached.reader import AttachedReader
from pyspark_hudimeta.attached.session_settings import with_settings
from pyspark_hudimeta.attached.writer import route_writes, stop_routing
from pyspark_hudimeta.native.jvm import Jvm
from pyspark_hudimeta.native.native_filter import native_filter
from pyspark_hudimeta.native.native_table import NativeTable
from pyspark_hudimeta.native.report import AttachedScan, ScanLog
from pyspark_hudimeta.native.spark_places import why_spark_cannot_open
from pyspark_hudimeta.native.staging import Staging
from pyspark_hudimeta.plain.given_paths import opened_to_read
from pyspark_hudimeta.plain.source import hides_meta_columns
from pyspark_hudimeta.plain.streams import AttachedStreamReader
from pyspark_hudimeta.plain.target import read_target
from pyspark_hudimeta.sql.session import SqlSession
from pyspark_hudimeta.sql.statements import run_statement
from pyspark_hudimeta.table_functions import register_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hudimeta.config import Options
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["attach", "detach", "last_reports", "let_new_sessions_inherit"]

_TABLES = 32
"""Tables, and moments of them, that a session keeps open."""
_NATIVE = (QueryType.SNAPSHOT, QueryType.READ_OPTIMIZED)
_attachments: weakref.WeakKeyDictionary[SparkSession, Attachment] = weakref.WeakKeyDictionary()
_inheriting: set[str] = set()
"""What of an attached session is attached by itself; nothing, unless a whole program shall be."""


def attach(spark: SparkSession, staging: str | None = None) -> None:
    """Let this session read hudimeta tables with Spark's own reader, through the code that it had before.

    The table functions of SQL are registered as well; see `register_functions`.

    Args:
        spark: A classic session; one that is attached already stays so.
        staging: A folder that all machines of a cluster reach, in which rows of slices with log files are kept while they are
            needed. A session on one machine uses a temporary folder. Without it, a cluster reads such tables through the
            Python source.

    Raises:
        UnsupportedFeature: A session of Spark Connect.
    """
    if getattr(spark, "_jsparkSession", None) is None:
        raise UnsupportedFeature(
            "pyspark_hudimeta.attach with a Spark Connect session", "There, read with format('hudimeta') or HudiTable.scan."
        )
    if spark not in _attachments:
        _attachments[spark] = attachment = Attachment(spark, staging)
        route_writes(id(attachment), _statements, _adopt)
        register_functions(spark)
        kind: Any = type(spark)
        spark.__class__ = _subclass(kind)


def let_new_sessions_inherit() -> None:
    """From now on `newSession()` of an attached session is attached as well."""
    _inheriting.add("newSession")


def detach(spark: SparkSession) -> None:
    """Undo `attach`; a session that is not attached stays as it is.

    DataFrames of the attached session go on working as long as they need no merged rows.
    """
    attachment = _attachments.pop(spark, None)
    if attachment is not None:
        spark.__class__ = attachment.session_class
        stop_routing(id(attachment))
        attachment.close()


def last_reports(spark: SparkSession) -> tuple[AttachedScan, ...]:
    """How the latest scans of an attached session were planned, oldest first; empty for a session that is not attached."""
    attachment = _attachments.get(spark)
    return attachment.log.latest() if attachment is not None else ()


class Attachment:
    """What an attached session has: open tables, staged files, reports."""

    def __init__(self, spark: SparkSession, staging: str | None) -> None:
        self.session_class, self.staging = type(spark), staging
        self.log = ScanLog()
        self._jvm = Jvm(spark)
        self._jvm.allow_callbacks()
        self._session: SparkSession = weakref.proxy(spark)
        self._staging = Staging(self._session, staging)
        self._tables: OrderedDict[Any, Any] = OrderedDict()
        self._lock = RLock()

    def close(self) -> None:
        """Forget everything, and delete what was staged."""
        with self._lock:
            self._tables.clear()
        self._staging.close()

    def attached(self, frame: DataFrame) -> DataFrame:
        """The DataFrame with native scans wherever it reads a hudimeta table; what a command has returned stays as it is."""
        execution = frame._jdf.queryExecution()
        analyzed = execution.analyzed()
        if not execution.commandExecuted().fastEquals(analyzed):
            return frame  # Spark has run it, and would run it again: INSERT INTO another format's table, FROM one of ours
        plan = exchanged(self._jvm, analyzed, self._native)
        if plan is None:
            return frame
        dataset = self._jvm.view.org.apache.spark.sql.classic.Dataset
        return DataFrame(dataset.ofRows(self._jvm.session, plan), frame.sparkSession)

    def opened(self, options: Mapping[str, str]) -> Any | None:
        """A native Dataset of the table that a path among options names; None where Spark has to open it."""
        try:
            leaf = Leaf(read_target(options), None, StructType())
            table, where, _ = self._planned(leaf)
            given = leaf.target.options
            if table is None or OPTIONS.read(given).is_set(COLUMNS) or hides_meta_columns(given):
                return None
            return table.frame(where).drop(self._jvm.array(self._jvm.view.java.lang.String, table.partition_schema.names))
        except HudiError:
            return None  # on Spark's own way the source meets the same, and says it as it does in any session

    def statements(self, spark: SparkSession) -> SqlSession:
        """What running a statement needs that comes without text."""
        return SqlSession(spark, self._jvm, partial(self.session_class.sql, spark), spark.sql, None, {})

    def changed(self, spark: SparkSession, text: Any, args: Any, frames: Mapping[str, Any]) -> DataFrame | None:
        """What a statement returns that changes a hudimeta table; None where it is Spark's. See `run_statement`."""
        return run_statement(self.statements(spark), text, args, frames)

    def _native(self, leaf: Leaf) -> Any | None:
        """A native Dataset for a reference; None where the Python source has to read it."""
        table, where, why = self._planned(leaf)
        return table.frame(where) if table is not None else self._to_python(leaf, why)

    def _planned(self, leaf: Leaf) -> tuple[NativeTable | None, str | None, str]:
        """The table that a reference means, and SQL that drops rows of it; None and why not, where it is not read natively."""
        leaf = replace(leaf, target=replace(leaf.target, options=with_settings(self._session, leaf.target.options)))
        options = OPTIONS.read(leaf.target.options)
        kind = QueryType(options.get(QUERY_TYPE))
        if kind not in _NATIVE:
            return None, None, f"it is a query of type {kind.value}"
        refuse_range(kind, options)
        if options.get(LISTED_SLICES) is not None:
            return None, None, "HudiTable has planned which slices it reads"
        cannot_open = why_spark_cannot_open(self._session, leaf.target.location)
        if cannot_open:
            return None, None, cannot_open
        now, snapshot = self._moment(leaf, options)
        chosen_partitions(snapshot)  # refused here, where Spark hands the error over whole
        why, where, kept = native_filter(options.get(FILTER), snapshot.schema.arrow)
        why = why or _misfit(leaf, snapshot)
        if why:
            return None, None, why
        table: NativeTable = self._kept(
            (leaf.target.location, _frozen(leaf.target.options), snapshot.as_of, now),
            lambda: NativeTable(self._jvm, self._staging, self.log, snapshot, kind, kept),
        )
        return (None, None, table.why_not) if table.why_not else (table, where, "")

    def _to_python(self, leaf: Leaf, why: str) -> Any | None:
        """Leave a reference to the Python source, and say so."""
        self.log.add(AttachedScan(leaf.target.location, why_python=why))
        return None

    def _moment(self, leaf: Leaf, options: Options) -> tuple[Snapshot, Snapshot]:
        """The table as it is now, the same object as long as nothing changes, and as the reference sees it."""
        timeless = {key: value for key, value in leaf.target.options.items() if key.lower() != AS_OF.key}
        with self._lock:
            table = self._kept(
                (leaf.target.location, _frozen(timeless)), lambda: opened_to_read(leaf.target.location, timeless)
            )
            now = table.snapshot()
        moment = leaf.pinned if leaf.pinned is not None else options.get(AS_OF)
        return now, now if moment is None else now.at(moment)

    def _kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What stands under a key; made when it is not there."""
        with self._lock:
            found = self._tables.pop(key, None)
            self._tables[key] = found = make() if found is None else found
            if len(self._tables) > _TABLES:
                self._tables.popitem(last=False)
            return found


def _frozen(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(options.items()))


def _misfit(leaf: Leaf, snapshot: Snapshot) -> str:
    """Why a reference's columns are not simply those of the table; "" when they are."""
    table = {column.name.lower(): column.dataType for column in spark_schema(snapshot.schema.arrow)}
    for column in leaf.schema:
        if table.get(column.name.lower()) != column.dataType:
            return f"column {column.name} is declared as {column.dataType.simpleString()}, which the table's is not"
    return ""


@cache
def _subclass(kind: type[SparkSession]) -> type[SparkSession]:
    """A session class whose DataFrames read hudimeta tables natively."""

    # Spark's own classes are not typed here. A method may be kept from before `detach`, when `super()` no longer fits.
    class AttachedSession(kind):  # type: ignore[misc]
        is_attached = True

        @property
        def read(self) -> DataFrameReader:
            return AttachedReader(self, partial(_opened, self), partial(_attached, self))

        @property
        def catalog(self) -> AttachedCatalog:
            return AttachedCatalog(self, partial(_statements, self))

        @property
        def readStream(self) -> DataStreamReader:  # noqa: N802 - Spark's name
            return AttachedStreamReader(self, partial(_located, self))

        def sql(self, sqlQuery: Any, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's name
            attachment = _attachments.get(self)
            if attachment is not None:
                done = attachment.changed(self, sqlQuery, args, kwargs)
                if done is not None:
                    return done
            return _attached(self, kind.sql(self, sqlQuery, args, **kwargs))

        def table(self, *args: Any, **kwargs: Any) -> DataFrame:
            return _attached(self, kind.table(self, *args, **kwargs))

        def newSession(self) -> SparkSession:  # noqa: N802 - Spark's name
            made: SparkSession = kind(self._sc, self._jsparkSession.newSession())
            attachment = _attachments.get(self)
            if _inheriting and attachment is not None:
                attach(made, attachment.staging)
            return made

        def stop(self) -> None:
            detach(self)
            self.stop()

    return AttachedSession


def _statements(spark: SparkSession) -> SqlSession | None:
    attachment = _attachments.get(spark)
    return attachment.statements(spark) if attachment is not None else None


def _adopt(spark: SparkSession, batch: SparkSession) -> Callable[[], None] | None:
    """Attach the session object of a batch as that of its stream is; returns what detaches it."""
    if spark not in _attachments:
        return None
    attach(batch, _attachments[spark].staging)
    return partial(detach, batch)


def _located(spark: SparkSession, name: str) -> tuple[str, Mapping[str, str]] | None:
    session = _statements(spark)
    return session.located(name) if session is not None else None


def _opened(spark: SparkSession, options: Mapping[str, str]) -> Any | None:
    attachment = _attachments.get(spark)
    return attachment.opened(options) if attachment is not None else None


def _attached(spark: SparkSession, frame: DataFrame) -> DataFrame:
    attachment = _attachments.get(spark)
    return attachment.attached(frame) if attachment is not None else frame
