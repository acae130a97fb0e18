"""Rows that wait on the table's storage for the task that needs them: how the tasks of a routed write hand rows to each other.

Each attempt at a task writes one Arrow file into the write's staging folder, under a name of its own, its rows sorted by where
they go. What it hands back says which of them are for whom. A file that is finished never changes,
so a task that runs again reads the same rows, whatever became of the machine that made them; and rows that were placed once
stay where they are, even if their query would give other rows when it ran again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.required_fields import cast_table
from hudimeta.storage import Storage

__all__ = ["Span", "StagedFile", "cut", "read_spans", "rows_of"]

_COMPRESSION = "lz4"
_BATCH_BYTES = 1 << 20
"""Of a record batch, about: whoever needs some of its rows reads all of them."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some rows of a record batch in a staged file.

    Attributes:
        path: Of the file.
        batch: Number of the record batch.
        start, rows: Which of its rows.
        size: Their Arrow bytes, about.
    """

    path: str
    batch: int
    start: int
    rows: int
    size: int


class StagedFile:
    """A staged file that is being written; nothing is created before the first rows come. Close it, or abandon it.

    Args:
        storage: Rooted at the table.
        path: Where.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage, self._path = storage, path
        self._stream: Any = None
        self._writer: Any = None
        self._schema: pa.Schema | None = None
        self._batches = 0

    def __enter__(self) -> StagedFile:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if self._stream is None:
            return
        if kind is None:
            self._writer.close()
        self._stream.__exit__(kind, *rest)

    def add(self, rows: pa.Table) -> list[Span]:
        """Append rows; returns where they are. All rows of a file have the schema of the first."""
        if not rows.num_rows:
            return []
        if self._schema is None:
            self._schema = rows.schema.remove_metadata()
            self._stream = self._storage.open_output(self._path).__enter__()
            options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
            self._writer = pa.ipc.new_file(self._stream, self._schema, options=options)
        spans = []
        fitted = rows.replace_schema_metadata(None)
        if fitted.schema != self._schema:
            fitted = cast_table(fitted, self._schema)
        most = max(1, fitted.num_rows * _BATCH_BYTES // max(1, fitted.nbytes))
        for batch in fitted.combine_chunks().to_batches(max_chunksize=most):
            self._writer.write_batch(batch)
            spans.append(Span(self._path, self._batches, 0, batch.num_rows, batch.nbytes))
            self._batches += 1
        return spans

    def add_by(self, rows: pa.Table, codes: np.ndarray[Any, Any]) -> dict[int, list[Span]]:
        """Append rows sorted by a number that each of them has, equal ones as given; returns where those of each number are."""
        if not rows.num_rows:
            return {}
        order = np.argsort(codes, kind="stable")
        spans = self.add(rows.take(pa.array(order)))
        numbers, starts = np.unique(codes[order], return_index=True)
        ends = [*starts[1:].tolist(), rows.num_rows]
        return {int(n): cut(spans, a, b) for n, a, b in zip(numbers, starts.tolist(), ends, strict=True)}


def read_spans(storage: Storage, spans: Sequence[Span]) -> pa.Table:
    """The rows of some spans, in their order; at least one span."""
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in _batches(storage, spans)])


def _batches(storage: Storage, spans: Sequence[Span]) -> Iterator[pa.RecordBatch]:
    for path, own in groupby(spans, key=lambda span: span.path):
        with storage.open_input(path) as source, pa.ipc.open_file(source) as file:
            held, batch = -1, pa.record_batch([], pa.schema([]))
            for span in _joined(own):
                if span.batch != held:
                    held, batch = span.batch, file.get_batch(span.batch)
                yield batch.slice(span.start, span.rows)


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The same rows of one file in as few spans as possible: a task reads many places or slots that lie side by side."""
    last: Span | None = None
    for span in spans:
        if last is not None and span.batch == last.batch and span.start == last.start + last.rows:
            last = replace(last, rows=last.rows + span.rows, size=last.size + span.size)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def rows_of(spans: Iterable[Span]) -> int:
    """How many rows some spans have."""
    return sum(span.rows for span in spans)


def cut(spans: Sequence[Span], start: int, stop: int) -> list[Span]:
    """The rows from one position up to another of what some spans have together."""
    found, at = [], 0
    for span in spans:
        first, last = max(start - at, 0), min(stop - at, span.rows)
        if first < last:
            size = span.size * (last - first) // span.rows
            found.append(Span(span.path, span.batch, span.start + first, last - first, size))
        at += span.rows
    return found
