"""Base files whose row groups become those of a new base file, without being decoded.

What Hudi and the indexes want to know of the new file is put together from what there is: bounds from the footers, where these
tell them. Where files of others tell no range of keys or no filter that can be trusted, their keys are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.formats.base_file import damage_named
from hudimeta.formats.parquet import (
    CALENDAR_KEY,
    BaseFileSummary,
    BloomSettings,
    BoundsOfColumns,
    footer_entries,
    footer_of,
    typed_scalar,
)
from hudimeta.formats.parquet.known_keys import FileKeys, KnownKeys
from hudimeta.formats.parquet.stitched import StitchSource, stitch, why_not_stitched
from hudimeta.formats.parquet.verified import read_end
from hudimeta.formats.plain_arrays import array_of, no_rows
from hudimeta.schema.conform import conform
from hudimeta.storage import Storage
from hudimeta.types import META_COLUMNS

__all__ = ["CopiedFiles", "bounds_told", "reader_of"]

_KEY_COLUMN, _NAME_COLUMN = META_COLUMNS[2], META_COLUMNS[4]


class CopiedFiles:
    """Open base files of one partition; a context manager.

    Args:
        storage: Rooted at the table.
        paths: Of the files, with their sizes.
        schema: Columns that they must have, meta columns first.
    """

    def __init__(self, storage: Storage, paths: Sequence[tuple[str, int]], schema: pa.Schema) -> None:
        self._storage, self._paths, self._schema = storage, paths, schema.remove_metadata()
        self._open = ExitStack()
        self._files: list[Any] = []
        self._sources: list[StitchSource] = []

    def __enter__(self) -> CopiedFiles:
        with self._open:  # closes what is open when one cannot be opened
            for path, size in self._paths:
                file = self._open.enter_context(self._storage.open_input(path))
                self._files.append(file)
                metadata, end = read_end(file, path, size)
                self._sources.append(StitchSource(path, metadata, bytes(end.footer), reader_of(file), int(file.size())))
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def refusal(self) -> str | None:
        """Why the files cannot be copied; None where they can."""
        return why_not_stitched(self._sources, self._schema, _NAME_COLUMN)

    @cached_property
    def keys(self) -> pa.ChunkedArray:
        """The record keys of all rows."""
        return self.columns([_KEY_COLUMN])[_KEY_COLUMN]

    def _keys_of(self, number: int) -> pa.ChunkedArray:
        """The record keys of one file."""
        rows = [source.metadata.num_rows for source in self._sources]
        return self.keys.slice(sum(rows[:number]), rows[number])

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Columns of all rows.

        Args:
            names: Of columns, or of fields of structs, by dotted paths.
        """
        import pyarrow.parquet as pq

        tops = dict.fromkeys(name if name in self._schema.names else name.partition(".")[0] for name in names)
        wanted = pa.schema([self._schema.field(name) for name in tops])
        pieces = []
        for file, source in zip(self._files, self._sources, strict=True) if names else ():
            verified = pq.ParquetFile(file, metadata=source.metadata, page_checksum_verification=True)
            with damage_named(source.path), verified as parquet:
                pieces.append(conform(parquet.read(wanted.names), wanted))
        return pa.concat_tables([no_rows(wanted), *pieces])

    def write(
        self, stream: Any, name: str, avro_schema: str, bloom: BloomSettings | None, bounds_of: Sequence[str]
    ) -> BaseFileSummary:
        """Write the new file.

        Args:
            stream: Has `write(bytes)`; closing it stays with the caller.
            name: Of the file.
            avro_schema: For the footer.
            bloom: Of the filter over record keys; None for none.
            bounds_of: Columns to keep bounds of.
        """
        footers = [footer_of(source.metadata, source.path) for source in self._sources]
        files = [FileKeys.of(footer, partial(self._keys_of, at)) for at, footer in enumerate(footers)]
        known = KnownKeys(files, side_by_side=True)
        entries, low, high = footer_entries(lambda: self.keys, avro_schema, bloom, known, known.told)
        calendar = self._sources[0].entry(CALENDAR_KEY)
        entries.pop(CALENDAR_KEY)
        entries |= {CALENDAR_KEY: calendar.decode()} if calendar is not None else {}
        size, metadata = stitch(stream, self._sources, _NAME_COLUMN, name, entries)
        footer = footer_of(metadata, name)
        bounds = bounds_told(footer.statistics, bounds_of, self.columns)
        return BaseFileSummary(size, metadata.num_rows, footer, bounds, low, high)


def bounds_told(stated: pa.Table, wanted: Sequence[str], read: Callable[[Sequence[str]], pa.Table]) -> pa.Table:
    """Exact bounds of columns, as `column_bounds` gives them.

    Args:
        stated: What the footer tells (`ParquetFooter.statistics`).
        wanted: Columns.
        read: Reads columns of which it tells too little.
    """
    stated = stated.filter(pc.is_in(stated["column"], array_of(wanted, pa.string())))
    rows = {stated["column"][at].as_py(): stated.slice(at, 1) for at in range(stated.num_rows)}
    unknown = [name for name, row in rows.items() if not _is_told(row)]
    found = BoundsOfColumns(unknown)
    for name in rows.keys() - unknown:
        sides = (typed_scalar(rows[name][side], 0) for side in ("min", "max"))
        found.tell(name, *sides, *(rows[name][count][0].as_py() for count in ("null_count", "value_count")))
    found.add(read(unknown))
    return found.table()


def _is_told(row: pa.Table) -> bool:
    """Whether footers tell the exact bounds of a column: not where NaN was left out, or what was too long."""
    low, nulls = typed_scalar(row["min"], 0), row["null_count"][0].as_py()
    kind = low.type
    exact = not (pa.types.is_floating(kind) or pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns"))
    return nulls is not None and exact and (low.is_valid or nulls == row["value_count"][0].as_py())


def reader_of(file: Any) -> Callable[[int, int], pa.Buffer]:
    """Bytes of a file; of one that is mapped into memory they are not copied."""

    def read(offset: int, length: int) -> pa.Buffer:
        file.seek(offset)
        return file.read_buffer(length)

    return read
