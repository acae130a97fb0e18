"""The log of a file slice folded into one version a key, for a log compaction: rows and deletes that stand for what they were.

What is folded is the beginning of the log, in the order of its files: a block of a log compaction takes the place of the newest
block that it stands for, so nothing that stays may lie between them. Folding from the oldest on is what a reader does, and goes
on from there with whatever comes later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudimeta.formats.log import LogBlock
from hudimeta.formats.plain_arrays import array_of, no_rows
from hudimeta.formats.required_fields import cast_table
from hudimeta.slices.bounded_merge import folded_parts
from hudimeta.slices.fold import FoldedLog
from hudimeta.slices.log_parts import DataPart, LogPart
from hudimeta.slices.log_records import SliceBlocks, file_order
from hudimeta.slices.reader import SliceReader
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.storage import join

__all__ = ["FoldedRecords", "LogFolder", "LogStretch"]


@dataclass(frozen=True, slots=True)
class FoldedRecords:
    """Records of different keys that can stand in one block.

    Attributes:
        rows: Whole rows of the table's schema, or of partial updates those columns that they set; none for deletes.
        deleted: Keys of deletes.
        ordering: Of deletes the ordering values, one array a field; none where they have none, or where none decide.
    """

    rows: pa.Table
    deleted: pa.StringArray
    ordering: tuple[pa.Array, ...] = ()


@dataclass(frozen=True)
class LogStretch:
    """Blocks of a slice that a log compaction merges into one.

    Attributes:
        blocks: In the order in which they are merged.
    """

    blocks: tuple[LogBlock, ...]

    @property
    def instants(self) -> tuple[str, ...]:
        """Whose blocks they are, the newest first: what the merged block says that it stands for."""
        return tuple(reversed(dict.fromkeys(block.instant for block in self.blocks)))

    def is_worth(self, threshold: int) -> bool:
        """True for so many blocks, of several instants: one instant alone is merged already."""
        return len(self.blocks) >= threshold and len(self.instants) > 1


class LogFolder(SliceReader):
    """Folds the logs of slices of one table. Not for several threads at once."""

    def stretch(self, file_slice: FileSlice, names: Collection[str], before: str) -> LogStretch:
        """What of a slice's log may be merged into one block.

        Args:
            file_slice: The slice as it is, with all its log files.
            names: Those that may be merged.
            before: The oldest instant that may still bring a log file; "" for none. What it brings sorts after what is merged.
        """
        logs = [log for log in self._logs(file_slice) if not log.name.is_cdc]
        taken = set()
        for name in sorted((log.name for log in logs), key=file_order):
            if str(name) not in names or (before and name.instant >= before):
                break
            taken.add(join(file_slice.partition_path, str(name)))
        return LogStretch(tuple(block for block in self._counting(logs).blocks if block.path in taken))

    def folded(self, stretch: LogStretch) -> Iterator[FoldedRecords]:
        """The records of a stretch, one version a key.

        Raises:
            CorruptFileError, UnsupportedFeature, NotFound, SchemaMismatch: A block cannot be read or merged.
        """
        task, seen = self.task, _Partial()
        parts = seen.noting(self._counted(self._log_parts(SliceBlocks(list(stretch.blocks), []))))
        for log in folded_parts(parts, task.merged, task.rules, task.merge_memory, self.counts.add_spilled):
            yield from self._rows(log, by_columns=seen.found)
            yield from self._deletes(log)

    def _rows(self, log: FoldedLog, *, by_columns: bool) -> Iterator[FoldedRecords]:
        if not log.rows.num_rows:
            return
        none = array_of([], pa.string())
        schema = self.task.output_schema
        rows = cast_table(self._without_keys(log.rows).select(schema.names), schema)
        if not by_columns or log.filled is None:
            yield FoldedRecords(rows, none)
            return
        order = [log.rows.schema.get_field_index(name) for name in rows.column_names]
        patterns, which = np.unique(log.filled[:, order], axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            some = rows.filter(array_of(which.reshape(-1) == number))
            yield FoldedRecords(some.select([name for name, own in zip(rows.column_names, pattern, strict=True) if own]), none)

    def _deletes(self, log: FoldedLog) -> Iterator[FoldedRecords]:
        """Those with an ordering value, then those that beat whatever is older."""
        empty = no_rows(self.task.output_schema)
        for natural in (False, True):
            mask = log.deleted & (log.natural == natural)
            if mask.any():
                keys = log.keys.filter(array_of(mask))
                ordering: Sequence[pa.Array] = () if natural else [_single(c.filter(array_of(mask))) for c in log.ordering]
                yield FoldedRecords(empty, keys, tuple(ordering))


class _Partial:
    """Whether a part of a log had only some columns."""

    def __init__(self) -> None:
        self.found = False

    def noting(self, parts: Iterator[LogPart]) -> Iterator[LogPart]:
        for part in parts:
            self.found |= isinstance(part, DataPart) and part.present is not None
            yield part


def _single(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
