"""What the log of a file slice changes about its base file: which of its rows do not count, and which rows come instead.

A reader that can leave out rows by their position may then read the base file as it is, with all that a Parquet reader knows of
pruning, and the rows of the overlay beside it. Of the base file only keys and ordering values are read here; whole rows only
where versions are filled from each other, or merged by a function of the user's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, no_rows
from hudimeta.slices.fold import fold_log_records
from hudimeta.slices.merge import SliceMerger
from hudimeta.slices.merge_rules import KEY_COLUMN, PartialUpdateMode
from hudimeta.slices.reader import OpensBase, SliceReader
from hudimeta.snapshot.partition_columns import path_values

if TYPE_CHECKING:
    from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["OverlayReader", "SliceOverlay"]

_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SliceOverlay:
    """A slice is its base file without the rows at `replaced`, and `rows`.

    Attributes:
        rows: With the output schema of the task.
        replaced: Positions in the base file, int64, each once, ascending.
    """

    rows: pa.Table
    replaced: _Indices


class OverlayReader(SliceReader):
    """Reads the logs of slices of one table, for a task without a predicate. Not for several threads at once."""

    def overlay(self, file_slice: FileSlice) -> SliceOverlay | None:
        """What the log changes about the base file; everything that the slice holds when it has none.

        Returns:
            None when the log is larger than `task.merge_memory` allows; `tables` merges it on disk.

        Raises:
            CorruptFileError, UnsupportedFeature, NotFound, SchemaMismatch: A file cannot be read.
        """
        with self._base_file(file_slice) as base:
            return self._laid_over(file_slice, base)

    def _laid_over(self, file_slice: FileSlice, base: OpensBase) -> SliceOverlay | None:
        blocks = self._blocks(file_slice)
        if not blocks.blocks:
            return SliceOverlay(no_rows(self.task.output_schema), np.zeros(0, np.int64))
        task = self.task
        parts, size = [], 0
        for part in self._log_parts(blocks):
            parts.append(part)
            size += part.nbytes
            if size > task.merge_memory.limit:
                return None
        merger = _OverlayMerger(fold_log_records(parts, task.merged, task.rules), task.rules)
        start, rows, replaced = 0, [], [np.zeros(0, np.int64)]
        for piece in self._base_rows(file_slice, base, task.merged if merger.fills else self._deciding):
            keyed = self.with_keys(piece)
            at, versions = merger.merge_found(keyed) if merger.fills else merger.supersede(keyed)
            rows.append(versions)
            replaced.append(at + start)
            start += piece.num_rows
        rows.append(merger.remaining())
        return SliceOverlay(self._finished(file_slice, pa.concat_tables(rows)), np.concatenate(replaced))

    @property
    def _deciding(self) -> pa.Schema:
        """The columns that say which base row a version belongs to, and which of the two wins."""
        task = self.task
        names = {KEY_COLUMN, *task.rules.columns, *task.key_columns}
        return pa.schema([f for f in task.merged if f.name in names])

    def _finished(self, file_slice: FileSlice, rows: pa.Table) -> pa.Table:
        """Merged rows as they are shown."""
        task, paths = self.task, array_of([file_slice.partition_path], pa.string())
        return self._finish(
            self._without_keys(rows), path_values(paths, task.partition_layout, task.table_schema, task.properties)
        )


class _OverlayMerger(SliceMerger):
    """Says which base rows the log replaces, instead of merging into them."""

    @property
    def fills(self) -> bool:
        """True when what becomes of a version depends on the whole version that it meets."""
        rules = self.rules
        return self.log.filled is not None or rules.partial_mode is not PartialUpdateMode.NONE or rules.merger is not None

    def supersede(self, rows: pa.Table) -> tuple[_Indices, pa.Table]:
        """The next base rows: at which of them the log's version counts instead, and those versions that are no deletes."""
        found = self._match(rows.column(KEY_COLUMN))
        at = np.flatnonzero(found >= 0)
        at = at[self._log_wins(rows, at, found[at])]
        numbers = found[at]
        return at, self.log.rows.take(array_of(self.log.row_of[numbers[~self.log.deleted[numbers]]]))

    def merge_found(self, rows: pa.Table) -> tuple[_Indices, pa.Table]:
        """The next base rows: at which of them the log has a version, and what the two make of each."""
        found = self._match(rows.column(KEY_COLUMN))
        at = np.flatnonzero(found >= 0)
        return at, self._lay_over(rows.take(array_of(at)), np.arange(len(at)), found[at])
