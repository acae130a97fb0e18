"""`readStream`: a table's commits, batch by batch, as incremental or CDC queries.

Spark keeps one reader in a process of its own, which says where batches end and cuts them into tasks; the tasks use a copy of
another one that was never asked anything. So a task's share carries all that reading it needs.

An offset is `{"offsetCommitTime": …, "from": …}`: the position that Apache Hudi's own stream keeps, and where the batch that
ends there began. Spark does not keep the offset at which the first batch begins, but asks for it again when a query
starts anew; `latest` would then be later than it was, and what came between would be lost. Of all other batches Spark keeps
where they begin, and that holds: Spark 4.1 may ask for the newest offset before it says how far the stream has read. Where
changes had to be left out, `"lost"` says that the batch begins later than the one before it ended.
"""

from __future__ import annotations

import json
import pickle
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from hudimeta.config import OPTIONS, HudiWarning, Options
from hudimeta.config.options import INCREMENTAL_FALLBACK, MAX_BYTES_PER_TRIGGER, MAX_FILES_PER_TRIGGER
from hudimeta.errors import (
    ConfigError,
    FileRemoved,
    PredicateError,
    RangeLost,
    SchemaError,
    StreamDataLoss,
    TableError,
    UnsupportedFeature,
)
from hudimeta.read.split import read_split
from hudimeta.read.stream_positions import (
    BEFORE_ALL,
    StreamSettings,
    as_of_now,
    doubt_of,
    first_position,
    newest_position,
    next_batch,
)
from hudimeta.types import QueryType
from pyspark_hudimeta.arrow_types import arrow_schema, fitted, spark_schema
from pyspark_hudimeta.plain.given_paths import opened_to_read
from pyspark_hudimeta.plain.reader import MOST_TASKS, refuse_misfits, split_bytes
from pyspark_hudimeta.plain.worker_heap import settle
from pyspark_hudimeta.spark_version import has_read_limits

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from hudimeta.api.table import Table
    from hudimeta.read.scan import Scan
    from hudimeta.read.scan_plan import ScanPlan
    from pyspark_hudimeta.plain.target import Target

__all__ = ["HudiStreamReader", "begin_stream"]

_TIME = re.compile("[0-9]{1,17}")
_OTHER_CHECKPOINT = (
    "Start the query with the checkpointLocation that it began with, or with a new one: "
    "hoodie.datasource.streaming.startOffset says where that begins."
)
_POSITION, _FROM, _LOST = "offsetCommitTime", "from", "lost"
_AGAIN = "Start the query again with the same checkpoint: it then says what of the batch is lost, if anything is."
_RESTART = "Stop the query and start it again with the same checkpoint: it then has the table's columns of now."

if has_read_limits():
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
else:  # Spark 4.1 asks for the newest offset, and takes everything up to it

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for what this Spark has not."""


class _Share(InputPartition):  # type: ignore[misc]  # Spark's own classes are not typed here
    """One task's part of a batch: the pickled way of reading, and the pickled file slices."""

    def __init__(self, task: bytes, split: bytes) -> None:
        super().__init__(0)
        self.task, self.split = task, split


def begin_stream(target: Target, schema: StructType) -> HudiStreamReader:
    """A reader of a stream.

    Args:
        target: The table, with the options of the stream.
        schema: What Spark has; it stays so as long as the query runs.

    Raises:
        ConfigError: Options that belong to no stream.
        UnsupportedFeature: Limits of a batch, in a Spark that knows none.
    """
    options = OPTIONS.read(target.options)
    settings = StreamSettings.of(options)
    if (settings.most_files or settings.most_bytes) and not has_read_limits():
        limits = f"{MAX_FILES_PER_TRIGGER.key}, {MAX_BYTES_PER_TRIGGER.key}"
        raise UnsupportedFeature(f"{limits} in Spark 4.1", "Use Spark 4.2 or later, or leave them out.")
    return HudiStreamReader(target.location, options, settings, schema)


class HudiStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # see above
    """The commits of one table as a stream.

    Args:
        location: The table.
        options: Of the stream.
        settings: The same, read.
        schema: What Spark has.
    """

    def __init__(self, location: str, options: Options, settings: StreamSettings, schema: StructType) -> None:
        self._location, self._options, self._settings, self._schema = location, options, settings, schema
        self._arrow = arrow_schema(schema)
        self._opened: Table | None = None
        self._last: Mapping[str, str] = {}
        self._until: str | None = None
        self._warned: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    # Where batches end

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        """Where the stream begins that has no checkpoint."""
        position = first_position(self._table.snapshot(), self._settings)
        self._last = _offset(position, position)
        settle()
        return dict(self._last)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """What Spark hands back to `latestOffset`, unless a trigger takes everything."""
        if self._settings.most_bytes:
            return ReadMaxBytes(self._settings.most_bytes)
        return ReadMaxFiles(self._settings.most_files) if self._settings.most_files else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """From now on the stream ends where it ends now."""
        self._until = newest_position(self._table.snapshot().timeline) or ""

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: ReadLimit | None = None) -> dict[str, str]:  # noqa: N802 - Spark's name
        """Where the next batch ends; the offset at which it begins where nothing is new."""
        since = _checked(start) if start else self._last or self.initialOffset()
        limited = limit is not None and not isinstance(limit, ReadAllAvailable)
        snapshot = self._table.snapshot()
        position = since[_POSITION] if _is_first(since) else as_of_now(snapshot.timeline, since[_POSITION])
        found = next_batch(snapshot, position, self._settings, self._until, limited=limited)
        doubt = doubt_of(snapshot, position, is_start=_is_first(since))
        if doubt:
            self._warn(doubt, "the stream goes on with what completes later than that", position)
        if found is None:
            return dict(since)
        if found.lost:
            self._warn(found.lost, f"it goes on at {found.end}, as failOnDataLoss=false says", position)
        if found.larger:
            self._warn(found.larger, f"the batch that would end there ends at {found.end}, and has all its rows", position)
        self._last = _offset(found.end, found.begin) | ({_LOST: found.lost} if found.begin > position else {})
        return dict(self._last)

    def _warn(self, fact: str, then: str, position: str) -> None:
        """Say something of a batch once, however often Spark asks for it."""
        text = f"the stream of {self._location} has read up to {position}, and {fact}: {then}"
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, HudiWarning, stacklevel=3)

    def reportLatestOffset(self) -> dict[str, str] | None:  # noqa: N802 - Spark's name
        """Where the table ends, for the progress of the query."""
        newest = newest_position(self._table.snapshot().timeline)
        return None if newest is None else {_POSITION: newest}

    # Rows

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> list[InputPartition]:
        """The tasks of a batch."""
        start, end = _checked(start), _checked(end)
        self._last = end
        if dict(start) == dict(end):
            return []
        begin, until = self._bounds(start, end)
        if until <= begin:
            return []
        plan, task = self._planned(begin, until)
        shares = [_Share(task, pickle.dumps(split)) for split in plan.splits(split_bytes(plan), MOST_TASKS)]
        settle()
        return shares

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, in batches with exactly the declared schema."""
        if isinstance(partition, _Share):
            try:
                for batch in read_split(pickle.loads(partition.task), pickle.loads(partition.split)):
                    yield fitted(batch, self._arrow)
            except (FileRemoved, RangeLost) as error:
                raise TableError(f"a clean came between the plan of a batch and its rows: {error.message}", _AGAIN) from error
        settle()

    def _bounds(self, start: Mapping[str, str], end: Mapping[str, str]) -> tuple[str, str]:
        """The range of a batch, which may have been begun before the table was upgraded: see `as_of_now`."""
        timeline = self._table.snapshot().timeline
        until = as_of_now(timeline, end[_POSITION])
        if _FROM in end and (_is_first(start) or _LOST in end):
            begin, counts_as_end = end[_FROM], until != end[_POSITION]
        else:
            begin, counts_as_end = start[_POSITION], not _is_first(start)
        return (as_of_now(timeline, begin) if counts_as_end else begin), until

    @property
    def _table(self) -> Table:
        if self._opened is None:
            # What is lost is judged here, from the plan.
            self._opened = opened_to_read(self._location, {**self._options.given, INCREMENTAL_FALLBACK.key: "true"})
        return self._opened

    def _planned(self, begin: str, end: str) -> tuple[ScanPlan, bytes]:
        """The files of a batch, and what their readers need.

        A batch that is repeated was planned before, and cleaning may have been there since.
        """
        scan = self._scan(begin, end)
        plan, task = scan.plan(), pickle.dumps(scan.task)
        if plan.lost and self._settings.fails:
            which = f"of the batch up to {end}, which it had begun, not everything is left: {'; '.join(plan.lost)}"
            raise StreamDataLoss(begin, None, which)
        for fact in plan.lost:
            self._warn(fact, f"its batch up to {end} has what is left", begin)
        return plan, task

    def _scan(self, begin: str, end: str) -> Scan:
        """One batch as a query, with the columns with which the stream began."""
        kind = QueryType.CDC if self._settings.changes else QueryType.INCREMENTAL
        scan = self._table.scan(columns=self._schema.names, query_type=kind, begin=begin, end=end)
        try:
            found = scan.schema
        except ConfigError as error:
            gone = error.message if isinstance(error, PredicateError) else f"{error.value!r} is none of its columns"
            raise SchemaError(f"the table has no longer the columns with which the stream began: {gone}", _RESTART) from error
        try:
            refuse_misfits(spark_schema(found), self._schema)
        except SchemaError as error:
            raise SchemaError(f"a column is not what it was when the stream began: {error.message}", _RESTART) from error
        return scan


def _offset(position: str, begin: str) -> dict[str, str]:
    return {_POSITION: position, _FROM: begin}


def _checked(offset: Mapping[str, str]) -> Mapping[str, str]:
    """An offset that Spark kept, which may be one of another source, or damaged. Raises ConfigError."""
    places = [offset.get(_POSITION), offset.get(_FROM, BEFORE_ALL)] if isinstance(offset, Mapping) else [None]
    if not all(isinstance(place, str) and _TIME.fullmatch(place) for place in places):
        allowed = f'{{"{_POSITION}": …}} with a completion time'
        raise ConfigError("an offset of the stream's checkpoint", json.dumps(offset, default=str), allowed, _OTHER_CHECKPOINT)
    return offset


def _is_first(start: Mapping[str, str]) -> bool:
    """Whether a batch begins where the stream does."""
    return start.get(_FROM) == start[_POSITION]
