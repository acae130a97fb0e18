"""Parquet files that tasks of a routed write read themselves: what may be read so, which row groups are whose, and the reading.

A footer is looked at twice: on the driver, before it is decided who reads, and by each task. What pyarrow would read otherwise
than Spark, or might, is refused at the first look; a file that has changed since then is refused by the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hudimeta.errors import CommitError, HudiError, NotFound
from hudimeta.formats.base_file import damage_named
from hudimeta.redaction import redacted
from hudimeta.schema import conform_array
from hudimeta.storage import open_storage
from hudimeta.storage.at_once import at_once
from hudimeta.write.routed.executors import RowTask
from pyspark_hudimeta.arrow_types import fitted
from pyspark_hudimeta.routed.file_times import Calendars, int96_as_times, with_int96_as_times
from pyspark_hudimeta.routed.plain_footer import plain_footer

__all__ = ["FilePart", "FileRange", "FileReading", "PartTask", "Seen", "look_at_all"]

R = TypeVar("R")

_BATCH_ROWS = 1 << 16
_SMALLER = 16
"""By how much, where Arrow cannot have so many rows at once; a root of the number above, to end at one row."""
_TOO_LONG = "chunked array outputs"
"""What Arrow says then; whatever else it does not implement it does not have in smaller batches either."""
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
"""Those of which Spark and pyarrow mean the same; of LZ4 there are two."""


@dataclass(frozen=True)
class Seen:
    """What a file was when it was looked at: its size, time of change, and of its footer rows, row groups and bytes."""

    size: int
    modified_ms: int
    rows: int
    row_groups: int
    footer: int


@redacted
@dataclass(frozen=True)
class FileRange:
    """A piece of a file. Its rows are those of the row groups whose middle is in it.

    Attributes:
        location: Absolute path or URI.
        start, length: Bytes.
        values: Of partition columns, by their name.
    """

    location: str
    start: int
    length: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class FilePart:
    """What one task reads, in this order. Attributes: number: Of the part. ranges: With what each file was."""

    number: int
    ranges: Sequence[tuple[FileRange, Seen]]


@redacted
@dataclass(frozen=True)
class FileReading:
    """How files are read.

    Attributes:
        columns: Name in the files or of a partition column, for each column of `schema`.
        schema: What comes out.
        partitioned: Which of the names are partition columns.
        given: Options, for the storage.
        calendars: Which dates and times are taken as they are.
    """

    columns: Sequence[str]
    schema: pa.Schema
    partitioned: frozenset[str]
    given: Mapping[str, str]
    calendars: Calendars

    def look(self, location: str) -> Seen | str:
        """What a file is now, or why Spark must read it.

        Args:
            location: Absolute path or URI.
        """
        try:
            with _opened(location, self.given) as opened:
                return self._refused(opened) or opened.seen
        except (HudiError, pa.ArrowException, ImportError, OSError) as error:
            return f"cannot be opened by this process ({type(error).__name__}: {str(error).partition(chr(10))[0]})"

    def rows(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """The rows of a part.

        Raises:
            CommitError: A file is gone, or is not what it was.
            CorruptFileError: Its pages are damaged.
        """
        for span, before in part.ranges:
            try:
                with _opened(span.location, self.given) as opened:
                    if opened.seen != before or self._refused(opened):
                        raise _changed(span.location, "was replaced")
                    with damage_named(span.location):
                        yield from self._read(opened.file, span)
            except NotFound as error:
                raise _changed(span.location, "was deleted") from error

    def _read(self, file: Any, span: FileRange) -> Iterator[pa.RecordBatch]:
        footer = file.metadata
        groups = [n for n in range(footer.num_row_groups) if 0 <= _middle(footer.row_group(n)) - span.start < span.length]
        if not groups:
            return
        names = list(dict.fromkeys(name for name in self.columns if name not in self.partitioned))
        for batch in _batches(file, groups, names):
            columns = [self._column(batch, span, at) for at in range(len(self.columns))]
            yield fitted(pa.RecordBatch.from_arrays(columns, names=self.schema.names), self.schema)

    def _column(self, batch: pa.RecordBatch, span: FileRange, at: int) -> pa.Array:
        name, field = self.columns[at], self.schema.field(at)
        if name in self.partitioned:
            return _repeated(span.values[name], field.type, batch.num_rows)
        column = with_int96_as_times(batch.column(name))
        # Arrow takes lists for equal whose elements are called otherwise, and files would keep the name.
        return column if str(column.type) == str(field.type) else conform_array(column, field, name)

    def _refused(self, opened: _Opened) -> str:
        """Why a file must be read by Spark; empty when it need not."""
        found, footer = opened.file.schema_arrow, opened.footer
        folded, kinds = [name.lower() for name in found.names], []
        for name, field in zip(self.columns, self.schema, strict=True):
            if name in self.partitioned:
                continue
            if found.names.count(name) != 1 or folded.count(name.lower()) != 1:
                return f"has not exactly one column {name}, in whatever case"
            stored = found.field(name).type
            kind = int96_as_times(stored) if opened.int96 else stored
            if _nullable(kind) != _nullable(field.type):
                return f"has column {name} as {kind}, which is no {field.type}"
            kinds.append(stored)
        if why := self.calendars.refused(footer.metadata or {}, kinds):
            return why
        if footer.num_row_groups:
            first = footer.row_group(0)
            codecs = {first.column(n).compression for n in range(first.num_columns)} - _CODECS
            if codecs:
                return f"is compressed with {min(codecs)}"
        return ""


@dataclass(frozen=True)
class PartTask(Generic[R]):
    """A task over rows as a task over parts of files. Attributes: reading: How they are read. task: What is done with them."""

    reading: FileReading
    task: RowTask[R]

    def __call__(self, part: FilePart, attempt: int) -> R:
        """Read a part and do the work on it."""
        return self.task(self.reading.rows(part), part.number, attempt)


def look_at_all(reading: FileReading) -> Callable[[Sequence[str]], list[Seen | str]]:
    """Looks at several files at once; see `FileReading.look`."""
    return _LookAtAll(reading)


@dataclass(frozen=True)
class _LookAtAll:
    reading: FileReading

    def __call__(self, locations: Sequence[str]) -> list[Seen | str]:
        return at_once(self.reading.look, locations)


@dataclass(frozen=True)
class _Opened:
    """A file that is open.

    Attributes:
        seen: What it is now.
        footer: Its own.
        file: That reads it as Spark does.
        int96: See `PlainFooter`.
    """

    seen: Seen
    footer: Any
    file: Any
    int96: bool


@contextmanager
def _opened(location: str, given: Mapping[str, str]) -> Iterator[_Opened]:
    """A file for as long as the block takes. Raises NotFound, CorruptFileError."""
    import pyarrow.parquet as pq

    folder, _, name = location.rpartition("/")
    storage = open_storage(folder or "/", given)
    info = storage.stat(name)
    if info is None:
        raise NotFound(location)
    with storage.open_input(name) as source:
        how: dict[str, Any] = {"pre_buffer": not folder.startswith("/"), "page_checksum_verification": True}
        with damage_named(location):
            file = pq.ParquetFile(source, **how)
            footer = file.metadata
            plain = plain_footer(footer)
            if plain.metadata is not footer:
                file = pq.ParquetFile(source, metadata=plain.metadata, **how)
        seen = Seen(info.size, info.modified_ms, footer.num_rows, footer.num_row_groups, footer.serialized_size)
        yield _Opened(seen, footer, file, plain.int96)


def _batches(file: Any, groups: Sequence[int], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of row groups. Arrow has no batch with more than 2 GiB of text below lists or structs: smaller ones it has."""
    size, done = _BATCH_ROWS, 0
    while True:
        skipped = done
        try:
            for batch in file.iter_batches(size, row_groups=groups, columns=names, use_threads=False):
                rest = batch.slice(skipped)
                skipped -= batch.num_rows - rest.num_rows
                done += rest.num_rows
                if rest.num_rows:
                    yield rest
            return
        except pa.ArrowNotImplementedError as error:
            if size == 1 or _TOO_LONG not in str(error):
                raise
            size //= _SMALLER


def _changed(location: str, what: str) -> CommitError:
    return CommitError(f"{location} {what} since its rows were asked for", "Make the DataFrame anew, and write it again.")


def _middle(group: Any) -> int:
    """Where the middle of a row group is, which says whose it is; as parquet-java has it."""
    first = group.column(0)
    start = first.data_page_offset
    # Writers that have no dictionary may say 0.
    if first.has_dictionary_page and first.dictionary_page_offset is not None:
        start = min(start, first.dictionary_page_offset)
    size = sum(group.column(number).total_compressed_size for number in range(group.num_columns))
    return int(start + size // 2)


def _repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    """A partition's value; dates are counted in days."""
    if value is None:
        return pa.nulls(count, kind)
    days = pa.types.is_date(kind)
    found = pa.repeat(pa.scalar(value, pa.int32() if days else kind), count)
    return found.cast(kind) if days else found


def _nullable(kind: pa.DataType) -> pa.DataType:
    """A type all parts of which may be null: Spark knows of a query whether they may."""
    types = pa.types
    if types.is_list(kind):
        return pa.list_(_nullable(kind.value_type))
    if types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(part.name, _nullable(part.type)) for part in kind])
    return kind
