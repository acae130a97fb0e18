"""What of a base file stays as it is when the file is written anew.

Row groups stay of which the write touches no row, and of the others those columns of which it changes no cell. Only the other
row groups are decoded. Where their rows keep their places, each of them is copied page by page but for the columns that change
(see `formats.parquet.stitched`): two meta columns, and those that a write sets. Where rows go, all others of these row groups
are written together, with what is appended, and around them lie the ones that stay::

    row groups that stay | changed and appended rows | row groups that stay

Which row groups hold a key the bounds of the record key in the footer tell, and where they leave it open, the keys themselves.
A file to which rows are appended again and again would get a row group each time, so that small ones at its end are decoded
and written together with what is appended: each row of the file is written a few times, until its row group is large enough to
be left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.parquet import (
    BaseFileSummary,
    ParquetFooter,
    ParquetSettings,
    columns_anew,
    footer_entries,
    footer_of,
    write_base_file,
)
from hudimeta.formats.parquet.known_keys import KnownKeys
from hudimeta.formats.parquet.stitched import StitchSource, stitch, why_not_stitched
from hudimeta.formats.parquet.verified import read_end, read_metadata
from hudimeta.formats.plain_arrays import array_of, no_rows
from hudimeta.schema.conform import conform
from hudimeta.slices.copied_files import bounds_told, reader_of
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.storage import Storage
from hudimeta.types import META_COLUMNS

__all__ = ["KeptGroups", "Touched"]

_NAME_COLUMN = META_COLUMNS[4]
_WORTH_BYTES = 1 << 17
"""A smaller file is decoded and written as fast."""
_SMALL_ROWS = 1 << 13
"""Row groups with fewer rows, one page, are never left alone where rows are appended."""
_LARGE_ROWS = 1 << 17
"""Row groups of so many rows are as large as they get."""
_MANY_GROUPS = 4
"""More row groups than these, and two for each that is full: then the file is laid out anew."""
_WORTH_SHARE = 8
"""Columns are copied where they are at least one in so many bytes."""
_MANY_KEYS = 8
"""One in so many rows is touched: then there is hardly a row group without one."""


@dataclass(frozen=True)
class Touched:
    """What a write has for a base file.

    Attributes:
        keys: Of rows that it changes or removes, and of those that it looks for.
        appended: Rows that it appends, at most.
        every: All rows are needed, or any may change: no row group is left out.
    """

    keys: pa.StringArray
    appended: int
    every: bool = False


@dataclass(frozen=True)
class KeptGroups:
    """What stays of a base file.

    Attributes:
        storage: Rooted at the table.
        path: Of the file.
        size: Its bytes.
        schema: Its columns, meta columns first.
        rows: Of each row group.
        numbers: Of the row groups that stay.
        column_bytes: Compressed bytes of each leaf column in the others, by its dotted path. The name of the file is not among
            them: it changes always.
        codecs: How these are packed, in Arrow's names.
        content: The bytes of the file, of a far-away store, where all of them were read; else None.
    """

    storage: Storage
    path: str
    size: int
    schema: pa.Schema
    rows: tuple[int, ...]
    numbers: tuple[int, ...]
    column_bytes: Mapping[str, int]
    codecs: frozenset[str]
    content: pa.Buffer | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        storage: Storage,
        path: str,
        size: int,
        file: Any,
        schema: pa.Schema,
        touched: Touched | None,
        content: pa.Buffer | None = None,
    ) -> KeptGroups | None:
        """What may stay of a file that is about to be written anew; None where nothing can.

        It cannot where files are small, of another writer, or spelled in another way than those that are written now.

        Args:
            storage: Rooted at the table.
            path: Of the file.
            size: Its bytes.
            file: pyarrow's `ParquetFile`.
            schema: Columns that the new file has, meta columns first.
            touched: What the write has for it; None where it may be anything.
            content: See above.

        Raises:
            CorruptFileError: Keys cannot be read.
        """
        if touched is None or size < _WORTH_BYTES or _why_not(file.metadata, schema) is not None:
            return None
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        rows = np.array([group.num_rows for group in groups], np.int64)
        decoded = _decoded(file, rows, touched)
        sizes: Counter[str] = Counter()
        codecs = set()
        for number in np.flatnonzero(decoded).tolist():
            for chunk in map(groups[number].column, range(groups[number].num_columns)):
                if chunk.path_in_schema != _NAME_COLUMN:
                    sizes[chunk.path_in_schema] += chunk.total_compressed_size
                    codecs.add(chunk.compression)
        stay = tuple(np.flatnonzero(~decoded).tolist())
        return cls(storage, path, size, schema, tuple(rows.tolist()), stay, sizes, frozenset(codecs), content)

    @classmethod
    def of_all_rows(cls, storage: Storage, path: str, size: int, schema: pa.Schema) -> tuple[KeptGroups, ParquetFooter] | None:
        """The same of a file whose rows were read; and its footer. Arguments are those of `of`."""
        import pyarrow.parquet as pq

        with storage.open_input(path) as source:
            metadata = read_metadata(source, path, size)
            file, touched = pq.ParquetFile(source, metadata=metadata), Touched(array_of([], pa.string()), 0, every=True)
            kept = cls.of(storage, path, int(source.size()), file, schema, touched)
        return None if kept is None else (kept, footer_of(metadata, path))

    @property
    def decoded(self) -> tuple[int, ...]:
        """The numbers of the other row groups."""
        return tuple(number for number in range(len(self.rows)) if number not in self.numbers)

    def columns_stay(self, anew: Collection[str], settings: ParquetSettings) -> bool:
        """Whether it is worth to copy the columns of which no cell changes; only where rows keep their places.

        It is not where they are few bytes, or where the file is to be laid out in another way, or better than it is.

        Args:
            anew: Columns of which a cell changes.
            settings: How rows are laid out.
        """
        usual = replace(ParquetSettings(), compression=settings.compression, bloom=settings.bloom)
        few_groups = len(self.rows) <= _MANY_GROUPS + 2 * (sum(self.rows) // _LARGE_ROWS)
        stays = sum(size for path, size in self.column_bytes.items() if _top(path) not in anew)
        worth = stays * _WORTH_SHARE >= sum(self.column_bytes.values()) > 0
        return worth and few_groups and settings == usual and self.codecs == {settings.compression.upper()}

    def chunks_that_stay(self, anew: Collection[str], rows: int) -> int:
        """How many column chunks are copied of row groups that are not copied as a whole.

        Args:
            anew: Columns of which a cell changes.
            rows: How many are written.
        """
        groups = sum(number < self._first_together(rows) for number in self.decoded)
        return groups * sum(_top(path) not in anew for path in self.column_bytes)

    def _first_together(self, rows: int) -> int:
        """The first of the row groups that are written together with what is appended; the number after the last for none.

        Args:
            rows: How many are written, appended ones included.
        """
        appended = rows - sum(self.rows[number] for number in self.decoded)
        first, later = len(self.rows), appended
        while appended and first and first - 1 not in self.numbers and _is_small(self.rows[first - 1], later):
            first -= 1
            later += self.rows[first]
        return first

    def write(
        self,
        stream: Any,
        rows: pa.Table,
        name: str,
        avro_schema: str,
        settings: ParquetSettings,
        bounds_of: Sequence[str],
        known: KnownKeys | None,
        anew: Collection[str] | None = None,
    ) -> BaseFileSummary:
        """Write the new file.

        Args:
            stream: Has `write(bytes)`; closing it stays with the caller.
            rows: Those of the row groups that do not stay, then what is appended; meta columns first.
            name: Of the new file.
            avro_schema: For the footer.
            settings: How rows are laid out.
            bounds_of: Columns to keep bounds of.
            known: A filter over all keys, where there is one.
            anew: Columns of which cells changed, of rows that keep their places, so that others are copied; None to write all.

        Raises:
            CorruptFileError: A page that stays is not what its checksum says.
        """
        with self.storage.open_input(self.path) if self.content is None else pa.BufferReader(self.content) as file:
            metadata, end = read_end(file, self.path, self.size)
            stays = StitchSource(self.path, metadata, bytes(end.footer), reader_of(file), int(file.size()))
            if anew is None:
                parts = self._together(stays, rows, settings)
            else:
                parts = self._in_place(stays, rows, settings, anew)

            def columns(names: Sequence[str]) -> pa.Table:
                return self._columns(file, metadata, names, rows)

            entries, low, high = footer_entries(
                cache(lambda: columns([KEY_COLUMN])[KEY_COLUMN]),
                avro_schema,
                settings.bloom,
                known,
                None if known is None else known.told,
            )
            size, made = stitch(stream, list(parts), _NAME_COLUMN, name, entries)
            footer = footer_of(made, name)
            bounds = bounds_told(footer.statistics, bounds_of, columns)
            return BaseFileSummary(size, made.num_rows, footer, bounds, low, high)

    def _together(self, stays: StitchSource, rows: pa.Table, settings: ParquetSettings) -> Iterator[StitchSource]:
        """All rows where the first row group lay that does not stay."""
        first = min(self.decoded, default=len(self.rows))
        before, after = ([n for n in self.numbers if (n < first) is side] for side in (True, False))
        if before:
            yield replace(stays, groups=before)
        if rows.num_rows:
            yield _written(rows, settings)
        if after:
            yield replace(stays, groups=after)

    def _in_place(
        self, stays: StitchSource, rows: pa.Table, settings: ParquetSettings, anew: Collection[str]
    ) -> Iterator[StitchSource]:
        """Each row group where it lay, with some columns anew; what is appended at the end, with small ones before it."""
        end = self._first_together(rows.num_rows)
        written = [name for name in rows.column_names if name in anew and name != _NAME_COLUMN]
        at = 0
        for copied, run in groupby(range(end), lambda number: number in self.numbers):
            numbers = list(run)
            parts, sizes = replace(stays, groups=numbers), [self.rows[number] for number in numbers]
            if not copied and written:
                some = rows.slice(at, sum(sizes)).select(written)
                parts = replace(parts, anew=_in_memory(columns_anew(some, sizes, settings)))
            at += 0 if copied else sum(sizes)
            yield parts
        if at < rows.num_rows:
            yield _written(rows.slice(at), settings)

    def _columns(self, file: Any, metadata: Any, names: Sequence[str], rows: pa.Table) -> pa.Table:
        """Columns, or fields of structs by dotted paths, of all rows of the new file."""
        import pyarrow.parquet as pq

        from hudimeta.formats.base_file import pages_named

        tops = list(dict.fromkeys(name if name in self.schema.names else name.partition(".")[0] for name in names))
        wanted = pa.schema([self.schema.field(name) for name in tops])
        if not names:
            return no_rows(wanted)
        with pages_named(self.path, file, metadata, self.numbers, tops):
            source = pq.ParquetFile(file, metadata=metadata, page_checksum_verification=True)
            stays = conform(source.read_row_groups(list(self.numbers), columns=tops), wanted)
        return pa.concat_tables([stays, conform(rows.select(tops), wanted)])


def _top(path: str) -> str:
    """The column that a leaf belongs to."""
    return path.partition(".")[0]


def _decoded(file: Any, rows: npt.NDArray[np.int64], touched: Touched) -> npt.NDArray[np.bool_]:
    """For each row group, of so many rows, whether it is decoded: all are where it is not worth to leave others alone."""
    everything = np.ones(len(rows), np.bool_)
    if touched.every or len(touched.keys) * _MANY_KEYS > rows.sum():
        return everything
    decoded = _may_hold(file.metadata, touched.keys)
    if 2 * rows[decoded].sum() > rows.sum():
        return everything
    for number in np.flatnonzero(decoded).tolist():
        keys = file.read_row_group(number, columns=[KEY_COLUMN])[KEY_COLUMN]
        decoded[number] = pc.any(pc.is_in(keys, value_set=touched.keys.cast(keys.type))).as_py() or False
    if touched.appended:
        _take_small_ones(decoded, rows, touched.appended)
    return everything if 2 * rows[decoded].sum() > rows.sum() else decoded


def _why_not(metadata: Any, schema: pa.Schema) -> str | None:
    stays = StitchSource("", metadata, b"", lambda _, __: pa.py_buffer(b""), 0)
    return why_not_stitched([stays, _spelled(schema.remove_metadata())], schema.remove_metadata(), _NAME_COLUMN)


@lru_cache(maxsize=32)
def _spelled(schema: pa.Schema) -> StitchSource:
    """A file without rows, as such columns are written now."""
    return _written(no_rows(schema), ParquetSettings())


def _written(rows: pa.Table, settings: ParquetSettings) -> StitchSource:
    """Rows as the row groups of a file in memory."""
    sink = pa.BufferOutputStream()
    write_base_file(sink, rows, settings=replace(settings, bloom=None))
    return _in_memory(sink.getvalue())


def _in_memory(content: pa.Buffer) -> StitchSource:
    """A file that was just made."""
    file = pa.BufferReader(content)
    metadata, end = read_end(file)
    return StitchSource("", metadata, bytes(end.footer), reader_of(file), len(content))


def _may_hold(metadata: Any, keys: pa.StringArray) -> npt.NDArray[np.bool_]:
    """The row groups that may hold any of some keys, by the bounds of their keys."""
    found = np.zeros(metadata.num_row_groups, np.bool_)
    for number in range(len(found) if len(keys) else 0):
        chunk = metadata.row_group(number).column(META_COLUMNS.index(KEY_COLUMN))
        bounds = chunk.statistics if chunk.is_stats_set else None
        if bounds is None or not bounds.has_min_max:
            found[number] = True
            continue
        inside = pc.and_(pc.greater_equal(keys, bounds.min), pc.less_equal(keys, bounds.max))
        found[number] = pc.any(inside).as_py() or False
    return found


def _take_small_ones(decoded: npt.NDArray[np.bool_], rows: npt.NDArray[np.int64], appended: int) -> None:
    """Add small row groups at the end: those less than twice as large as all rows after them."""
    later = appended
    for number in reversed(range(len(rows))):
        if not decoded[number] and not _is_small(int(rows[number]), later):
            return
        decoded[number] = True
        later += int(rows[number])


def _is_small(rows: int, later: int) -> bool:
    """Whether a row group is written together with so many rows after it."""
    return rows < min(max(_SMALL_ROWS, 2 * later), _LARGE_ROWS)
