"""What indexes must know of the rows in a log file, which says nothing of the rows below it.

A record index learns the keys of stored rows and adds those that it does not know; nothing is read for that. Where more is
asked, the rows with these keys are read from the slice: by a secondary index, since the values that rows had must leave it, and
for rows that ask for their deletion under event time, since an older one deletes nothing.

A row that is written again after a delete with a higher ordering value stays deleted, as in Hudi. It is taken for a new row
here: an index may know more than there is, which costs a look at a file, but never less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import array_of, single_array
from hudimeta.indexes.facts import FileFacts, KeyChanges, WantedFacts, row_changes
from hudimeta.schema import conform
from hudimeta.slices.log_parts import DataPart, natural_rows
from hudimeta.slices.merge import merge_log_records
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules
from hudimeta.table.key_file import KeyFile

__all__ = ["LogFacts"]

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LogFacts:
    """Gathers the facts of log files; only for tables with an index of keys.

    Attributes:
        wanted: What the indexes want.
        rules: Which version of a row wins.
        read: Record keys and some columns of all rows of a file slice.
    """

    wanted: WantedFacts
    rules: MergeRules
    read: Callable[[KeyFile, Sequence[str]], pa.Table]

    def of_new_group(self, rows: pa.Table) -> FileFacts:
        """Of the rows of a log file that begins its file group."""
        return row_changes(None, rows, self.wanted)

    def of(self, file: KeyFile, rows: pa.Table, deleted: _Mask, gone: pa.StringArray | None) -> FileFacts:
        """Of what is laid over a slice.

        Args:
            file: The slice.
            rows: Whole rows, meta columns included.
            deleted: Which of them ask for their deletion.
            gone: Keys of further rows, which are deleted whatever their age; the slice need not have them all.
        """
        lost = _none() if gone is None else gone
        if self.wanted.values or (deleted.any() and self._order_decides(rows)):
            return self._compared(file, rows, deleted, lost)
        live, marked = (_keys(rows.filter(array_of(mask))) for mask in (~deleted, deleted))
        return FileFacts(KeyChanges(maybe_added=live, removed=pa.concat_arrays([marked, lost])))

    def _order_decides(self, rows: pa.Table) -> bool:
        """Whether a delete among the rows may delete nothing: under event time, or beside a row of the same key."""
        keys = _keys(rows)
        return self.rules.by_event_time or len(keys.unique()) < len(keys)

    def _compared(self, file: KeyFile, rows: pa.Table, deleted: _Mask, lost: pa.StringArray) -> FileFacts:
        columns = [*self.rules.columns, *(column for _, column, _ in self.wanted.values)]
        there = self.read(file, columns)
        keys = pa.concat_arrays([_keys(rows), lost])
        before = there.filter(pc.is_in(there[KEY_COLUMN], value_set=keys))
        kept = before.filter(pc.invert(pc.is_in(before[KEY_COLUMN], value_set=lost)))
        over = DataPart(conform(rows, before.schema), deleted, natural_rows(rows, deleted, self.rules))
        after = merge_log_records(kept, [over], before.schema, self.rules)
        return row_changes(before, after, self.wanted)


def _none() -> pa.StringArray:
    return array_of([], pa.string())


def _keys(rows: pa.Table) -> pa.StringArray:
    return single_array(rows[KEY_COLUMN])
