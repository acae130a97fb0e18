"""What a global index makes of rows whose key is in another partition than their own.

    the row is a delete            its key is deleted where it is
    moves are off                  the row is an update where the key is; its own partition path does not count
    moves are on                   the key is deleted where it is and the row inserted into its own partition, unless the row
                                   that is there is newer in event time: then nothing happens

A row whose own partition has the key too is an update there, and the others are deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, numpy_of, single_array
from hudimeta.indexes.tagging import Tagging
from hudimeta.slices.merge_rules import MergeRules, PartialUpdateMode
from hudimeta.slices.ordering import order_codes, ordering_columns
from hudimeta.table.key_file import KeyFile
from hudimeta.table.positions import positions_by_number
from hudimeta.write.batch import KeyedBatch

__all__ = ["MovedKeys", "Settled", "settle_partitions"]

OrderingReader = Callable[[KeyFile, pa.StringArray], "tuple[pa.Array, ...]"]

_Ints = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MovedKeys:
    """Keys that leave a file group: positions in the batch, and for each of them the position in `Tagging.files`."""

    row: _Ints
    file: _Ints

    @classmethod
    def none(cls) -> MovedKeys:
        """Nothing leaves."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Settled:
    """A batch after the question of partitions is settled.

    Attributes:
        batch: Its rows, each in the partition that it goes to; a row that updates several file groups stands there for each.
        tagging: Where they are.
        moved_keys: Keys to delete elsewhere.
        outdated: Rows that were left out because the row of their key in another partition is newer.
    """

    batch: KeyedBatch
    tagging: Tagging
    moved_keys: MovedKeys
    outdated: int = 0

    @classmethod
    def as_found(cls, batch: KeyedBatch, tagging: Tagging) -> Settled:
        """Every row goes to its own partition."""
        return cls(batch, tagging, MovedKeys.none())

    @property
    def moved(self) -> int:
        """How many rows change their partition."""
        return len(np.unique(self.moved_keys.row))


def settle_partitions(
    batch: KeyedBatch, tagging: Tagging, ordering_of: OrderingReader, rules: MergeRules, *, moves: bool
) -> Settled:
    """Decide for each row of a batch where it goes.

    Args:
        batch: Rows with their own partitions.
        tagging: Where a global index found their keys.
        ordering_of: Reads ordering values.
        rules: Which version wins.
        moves: See the module's head.

    Raises:
        UnsupportedFeature: A row would move whose versions are merged in a way that needs both of them in one place.
    """
    at = array_of(tagging.row)
    held = array_of([file.partition_path for file in tagging.files], pa.string()).take(array_of(tagging.file))
    own = numpy_of(pc.equal(batch.partitions.take(at), held)).astype(bool)
    if own.all() and len(np.unique(tagging.row)) == len(tagging.row):
        return Settled.as_found(batch, tagging)
    stays = own | batch.deleted[tagging.row] if moves else np.ones(len(own), dtype=bool)
    outdated = np.zeros(len(batch), dtype=bool)
    if not stays.all():
        _check_can_move(rules)
        outdated[_outdated(batch, tagging, np.flatnonzero(~stays), ordering_of, rules)] = True
    # A newer row elsewhere: this one changes nothing, neither there nor in its own partition.
    stays &= ~outdated[tagging.row]
    goes = ~stays & ~outdated[tagging.row]
    return _rebuilt(batch, tagging, stays, goes, outdated, held)


def _check_can_move(rules: MergeRules) -> None:
    if rules.partial_mode is not PartialUpdateMode.NONE or rules.merger is not None:
        raise UnsupportedFeature(
            "moving rows between partitions of a table whose merging fills rows from their older versions",
            "Switch the option …index.update.partition.path of the index off, or delete the rows first.",
        )


def _rebuilt(batch: KeyedBatch, tagging: Tagging, stays: _Ints, goes: _Ints, outdated: _Ints, held: pa.StringArray) -> Settled:
    """The batch with one row for each place that a row goes to, in the order of the rows."""
    staying = tagging.row[stays]
    rest = np.ones(len(batch), dtype=bool)
    rest[staying] = False
    fresh = np.flatnonzero(rest & ~outdated)
    picked = np.concatenate([staying, fresh])
    order = np.argsort(picked, kind="stable")
    place = np.empty(len(picked), dtype=np.int64)
    place[order] = np.arange(len(picked))
    paths = pa.concat_arrays([held.filter(array_of(stays)), batch.partitions.take(array_of(fresh))])
    rows = replace(batch.take(picked[order]), partitions=paths.take(array_of(order)))
    row = place[: len(staying)]
    by_row = np.argsort(row, kind="stable")
    settled = replace(tagging, row=row[by_row], file=tagging.file[stays][by_row])
    # A key that leaves belongs to a row that is inserted, or to one that is an update in its own partition.
    first = np.full(len(batch), -1, dtype=np.int64)
    first[picked[::-1]] = place[::-1]
    return Settled(rows, settled, MovedKeys(first[tagging.row[goes]], tagging.file[goes]), int(outdated.sum()))


def _outdated(batch: KeyedBatch, tagging: Tagging, pairs: _Ints, ordering_of: OrderingReader, rules: MergeRules) -> _Ints:
    """Positions of the rows among some pairs (of row and file) that lose against the row of the file."""
    if not rules.by_event_time or batch.keys is None:
        return np.zeros(0, dtype=np.int64)
    lost = []
    for number, at in positions_by_number(tagging.file[pairs]):
        rows = tagging.row[pairs[at]]
        theirs = ordering_of(tagging.files[number], batch.keys.take(array_of(rows)))
        ours = ordering_columns(batch.rows.take(array_of(rows)), rules.ordering_fields)
        both = [
            pa.chunked_array([single_array(own), other.cast(own.type)], own.type)
            for own, other in zip(ours, theirs, strict=True)
        ]
        codes = order_codes(both)
        alive = numpy_of(pc.is_valid(theirs[0]))
        lost.append(rows[alive & (codes[: len(rows)] < codes[len(rows) :])])
    return np.concatenate([np.zeros(0, dtype=np.int64), *lost])
