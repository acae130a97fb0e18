"""Row groups of a base file that stay as they are when the file is written anew, since the write touches none of their rows.

Of such a file only the other row groups are decoded. The new file has their rows, changed, and those that are appended, as row
groups of its own; around them lie the ones that stay, copied page by page (see `formats.parquet.stitched`)::

    row groups that stay | changed and appended rows | row groups that stay

Which row groups hold a key the bounds of the record key in the footer tell, and where they leave it open, the keys themselves.
A file to which rows are appended again and again would get a row group each time, so that small ones at its end are decoded
too: each row of the file is written a few times, until its row group is large enough to be left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.parquet import BaseFileSummary, ParquetSettings, footer_entries, footer_of, write_base_file
from hudimeta.formats.parquet.known_keys import KnownKeys
from hudimeta.formats.parquet.stitched import StitchSource, stitch, why_not_stitched
from hudimeta.formats.parquet.verified import read_end
from hudimeta.formats.plain_arrays import no_rows
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
_MANY_KEYS = 8
"""One in so many rows is touched: then there is hardly a row group without one."""


@dataclass(frozen=True)
class Touched:
    """What a write has for a base file.

    Attributes:
        keys: Of rows that it changes or removes, and of those that it looks for.
        appended: Rows that it appends, at most.
    """

    keys: pa.StringArray
    appended: int


@dataclass(frozen=True)
class KeptGroups:
    """The row groups of a base file that stay.

    Attributes:
        storage: Rooted at the table.
        path: Of the file.
        size: Its bytes.
        schema: Its columns, meta columns first.
        before: Numbers of the row groups that lie before what is written.
        after: Of those after it.
    """

    storage: Storage
    path: str
    size: int
    schema: pa.Schema
    before: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(
        cls, storage: Storage, path: str, size: int, file: Any, schema: pa.Schema, touched: Touched | None
    ) -> KeptGroups | None:
        """Those of a file that is about to be written anew; None where all its rows are to be read.

        Args:
            storage: Rooted at the table.
            path: Of the file.
            size: Its bytes.
            file: pyarrow's `ParquetFile`.
            schema: Columns that the new file has, meta columns first.
            touched: What the write has for it; None where it may be anything.

        Raises:
            CorruptFileError: Keys cannot be read.
        """
        decoded = None if touched is None else _decoded(file, size, schema, touched)
        if decoded is None:
            return None
        first = int(np.argmax(decoded)) if decoded.any() else len(decoded)
        stay = np.flatnonzero(~decoded)
        before, after = (tuple(some.tolist()) for some in (stay[stay < first], stay[stay > first]))
        return cls(storage, path, size, schema, before, after)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of all of them."""
        return (*self.before, *self.after)

    def write(
        self,
        stream: Any,
        rows: pa.Table,
        name: str,
        avro_schema: str,
        settings: ParquetSettings,
        bounds_of: Sequence[str],
        known: KnownKeys | None,
    ) -> BaseFileSummary:
        """Write the new file.

        Args:
            stream: Has `write(bytes)`; closing it stays with the caller.
            rows: What lies between the row groups that stay; meta columns first.
            name: Of the new file.
            avro_schema: For the footer.
            settings: How rows are laid out.
            bounds_of: Columns to keep bounds of.
            known: A filter over all keys, where there is one.

        Raises:
            CorruptFileError: A page that stays is not what its checksum says.
        """
        with self.storage.open_input(self.path) as file:
            metadata, end = read_end(file, self.path, self.size)
            stays = StitchSource(self.path, metadata, bytes(end.footer), reader_of(file), int(file.size()))
            parts = [replace(stays, groups=numbers) for numbers in (self.before, self.after) if numbers]
            if rows.num_rows:
                parts.insert(1 if self.before else 0, _written(rows, settings))

            def columns(names: Sequence[str]) -> pa.Table:
                return self._columns(file, metadata, names, rows)

            entries, low, high = footer_entries(
                cache(lambda: columns([KEY_COLUMN])[KEY_COLUMN]),
                avro_schema,
                settings.bloom,
                known,
                None if known is None else known.told,
            )
            size, made = stitch(stream, parts, _NAME_COLUMN, name, entries)
            footer = footer_of(made, name)
            bounds = bounds_told(footer.statistics, bounds_of, columns)
            return BaseFileSummary(size, made.num_rows, footer, bounds, low, high)

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


def _decoded(file: Any, size: int, schema: pa.Schema, touched: Touched) -> npt.NDArray[np.bool_] | None:
    """For each row group whether it is decoded; None where it is not worth to leave others alone, or cannot be.

    It cannot where they are of another writer, or spelled in another way than those that are written now.
    """
    metadata = file.metadata
    rows = np.array([metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)], np.int64)
    if size < _WORTH_BYTES or len(touched.keys) * _MANY_KEYS > rows.sum() or _why_not(metadata, schema) is not None:
        return None
    decoded = _may_hold(metadata, touched.keys)
    if 2 * rows[decoded].sum() > rows.sum():
        return None
    for number in np.flatnonzero(decoded).tolist():
        keys = file.read_row_group(number, columns=[KEY_COLUMN])[KEY_COLUMN]
        decoded[number] = pc.any(pc.is_in(keys, value_set=touched.keys.cast(keys.type))).as_py() or False
    if touched.appended:
        _take_small_ones(decoded, rows, touched.appended)
    return None if 2 * rows[decoded].sum() > rows.sum() else decoded


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
    content = sink.getvalue()
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
        if not decoded[number] and rows[number] >= min(max(_SMALL_ROWS, 2 * later), _LARGE_ROWS):
            return
        decoded[number] = True
        later += int(rows[number])
