"""Merging a file slice: the log's records among themselves, then with the rows of the base file, by sort and take.

Records of the log are folded oldest to newest into one version per key; what comes out is laid over the base rows. The later
version wins, or under event time the one with the higher ordering value, of equal ones the later. A delete wins and loses as a
row does, except one without an ordering value: it beats whatever is older, and whatever follows it starts anew. A winner that
holds only some columns (a partial update, or values that a partial update mode passes over) is filled from the loser. A merger
that the user brings (`custom_merger`) makes one row of two instead.

Folding before the base row is seen is Hudi's order of work and shows in the results: a row that is inserted again with a
smaller ordering value after a delete loses against the base row that was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats import plain_arrays
from hudimeta.formats.required_fields import cast_column
from hudimeta.slices.custom_merger import merge_versions
from hudimeta.slices.fold import FoldedLog, fold_log_records, own_cells
from hudimeta.slices.log_parts import LogPart
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules, PartialUpdateMode
from hudimeta.slices.ordering import order_codes, ordering_columns
from hudimeta.types import META_COLUMNS

__all__ = ["MergeCounts", "SliceMerger", "merge_log_records"]

PIECE_ROWS = 1 << 17
"""Base rows per take: keeps text columns of a piece far below the 2 GiB that 32-bit offsets reach."""

_GLANCE = 64
"""Cells that are compared first: where a column changes, most of them show it."""

_BITS = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}

_Mask = npt.NDArray[np.bool_]
_Indices = npt.NDArray[np.int64]


@dataclass(slots=True)
class MergeCounts:
    """What merging did, in rows.

    Attributes:
        updated, deleted: Base rows that were replaced, or filled, and those that were removed.
        outdated: Base rows that stay as they are, because the log's version loses against them.
        inserted: Rows without a base row.
        read, written: Base rows in, and rows out.
        keys: Of the log.
    """

    updated: int = 0
    deleted: int = 0
    outdated: int = 0
    inserted: int = 0
    read: int = 0
    written: int = 0
    keys: int = 0


def merge_log_records(base: pa.Table | None, parts: Sequence[LogPart], schema: pa.Schema, rules: MergeRules) -> pa.Table:
    """The rows of one file slice.

    Args:
        base: Rows of the base file in `schema`; None when the slice has no base file.
        parts: The log's records, oldest first (see `read_log_parts`).
        schema: Columns of the result; the columns that `rules.columns` names must be among them where the table has them.
        rules: How two versions of a row become one.

    Returns:
        Table with `schema`: base rows in their order, those that the log replaced in place, then the rows that only the log
        has in order of first appearance. Meta columns are those of the version that won. Where the base file holds a key more
        than once, the log's version meets the first of these rows and the others stay, as in Hudi.
    """
    merger = SliceMerger(fold_log_records(parts, schema, rules), rules)
    pieces = [] if base is None else [merger.merge(base)]
    return pa.concat_tables([*pieces, merger.remaining()])


@dataclass(slots=True)
class SliceMerger:
    """Lays a folded log over the base rows of its slice, piece by piece, so that the base file may be read in batches.

    Attributes:
        log: The folded log.
        rules: What it was folded by.
        counts: What was done so far.
        every_row: Of a key that the base file holds more than once, lay the log's version over each row and not over the first
            alone: what Hudi does when it writes a base file anew, and not when it reads one together with its log.
        anew: Names of the columns of which a cell may have changed so far; in all others each row that is left has the cell
            that it had.
    """

    log: FoldedLog
    rules: MergeRules
    every_row: bool = False
    counts: MergeCounts = field(default_factory=MergeCounts)
    anew: set[str] = field(default_factory=set)
    _used: _Mask = field(init=False)

    def __post_init__(self) -> None:
        self._used = np.zeros(len(self.log.keys), bool)
        self.counts.keys += len(self.log.keys)

    def merge(self, rows: pa.Table) -> pa.Table:
        """The next base rows, merged: same schema, without rows that the log deletes. Call with each piece, in file order."""
        self.counts.read += rows.num_rows
        found = self._match(rows.column(KEY_COLUMN))
        if not (found >= 0).any():
            self.counts.written += rows.num_rows
            return rows
        merged = pa.concat_tables(self._pieces(rows, found))
        self.counts.written += merged.num_rows
        return merged

    def remaining(self) -> pa.Table:
        """Rows of the log whose key no base row had; call after the last piece."""
        fresh = self.log.row_of[~self._used & ~self.log.deleted]
        self._used[:] = True
        self.counts.inserted += len(fresh)
        self.counts.written += len(fresh)
        return self.log.rows.take(plain_arrays.integers(fresh))

    def _match(self, keys: pa.ChunkedArray) -> _Indices:
        """Per base row the number of its key in the log, -1 for none and (see `every_row`) for all but a key's first row."""
        import pyarrow.compute as pc

        found = pc.index_in(keys, value_set=self.log.keys.cast(keys.type))
        none = plain_arrays.integers(np.array([-1], np.int32))[0]
        numbers: _Indices = plain_arrays.numbers(plain_arrays.single_array(pc.fill_null(found, none)))
        at = np.flatnonzero(numbers >= 0)
        if self.every_row:
            self._used[numbers[at]] = True
            return numbers
        _, first = np.unique(numbers[at], return_index=True)
        again = np.ones(len(at), bool)
        again[first] = False
        again |= self._used[numbers[at]]
        numbers[at[again]] = -1
        self._used[numbers[at[~again]]] = True
        return numbers

    def _pieces(self, rows: pa.Table, found: _Indices) -> Iterator[pa.Table]:
        for start in range(0, rows.num_rows, PIECE_ROWS):
            piece = rows.slice(start, PIECE_ROWS)
            numbers = found[start : start + PIECE_ROWS]
            at = np.flatnonzero(numbers >= 0)
            yield self._lay_over(piece, at, numbers[at]) if len(at) else piece

    def _lay_over(self, rows: pa.Table, at: _Indices, numbers: _Indices) -> pa.Table:
        """Rows with the log's versions `numbers` laid over the rows at `at`."""
        log_wins = self._log_wins(rows, at, numbers)
        if self.rules.merger is not None:
            return self._merged_by(self.rules.merger, rows, at, numbers, log_wins)
        gone = log_wins & self.log.deleted[numbers]
        keep = np.ones(rows.num_rows, bool)
        keep[at[gone]] = False
        self.counts.deleted += int(gone.sum())
        fillable = self.rules.partial_mode is not PartialUpdateMode.NONE
        touched = (log_wins & ~gone) | (~log_wins & ~self.log.deleted[numbers] & fillable)
        self.counts.updated += int(touched.sum())
        self.counts.outdated += int((~touched & ~gone).sum())
        versions = self.log.rows.take(plain_arrays.integers(self.log.row_of[numbers[touched]]))
        target, wins = at[touched], log_wins[touched]
        if self.log.filled is None:
            return self._with_cells(rows, versions, target, [wins] * rows.num_columns, keep)
        filled = self.log.filled[self.log.row_of[numbers[touched]]]
        own = own_cells(rows.take(pa.array(target)), self.rules)
        # The log's cell counts where its version wins and has it, or where the base row wins and has only a default.
        from_log = [np.where(wins, has, has & ~kept) for has, kept in zip(filled.T, own.T, strict=True)]
        if self.rules.last_keeps_meta or self.every_row:
            # A base row that wins counts as written anew where it has a default to fill, also when nothing fills it.
            later = np.ones(len(target), bool) if self.rules.last_keeps_meta else wins | ~own.all(axis=1)
            from_log = [later if name in META_COLUMNS else m for name, m in zip(rows.column_names, from_log, strict=True)]
        return self._with_cells(rows, versions, target, from_log, keep)

    def _merged_by(self, merger: str, rows: pa.Table, at: _Indices, numbers: _Indices, log_wins: _Mask) -> pa.Table:
        """Rows with those at `at` merged with the log's versions `numbers` by a function of the user's."""
        self.anew.update(rows.column_names)
        deleted = self.log.deleted[numbers]
        target = at[~deleted]
        versions = self.log.rows.take(pa.array(self.log.row_of[numbers[~deleted]]))
        merged, gone = merge_versions(merger, rows.take(pa.array(target)), versions) if len(target) else (versions, deleted[:0])
        keep = np.ones(rows.num_rows, bool)
        keep[at[deleted & log_wins]] = False
        keep[target[gone]] = False
        self.counts.deleted += int((~keep).sum())
        self.counts.updated += int((~gone).sum())
        source = _sources(rows.num_rows, target, np.ones(len(target), bool))
        return pa.concat_tables([rows, merged]).take(pa.array(source[keep]))

    def _with_cells(
        self, rows: pa.Table, versions: pa.Table, target: _Indices, from_log: Sequence[_Mask], keep: _Mask
    ) -> pa.Table:
        """Rows with some cells of versions of those at `target`; `from_log` has a mask a column. Rows not to `keep` drop out.

        A column whose cells stay as they are is handed on: few columns change in most updates, and texts are dear to copy.
        """
        whole, sources = bool(keep.all()), dict[int, pa.Array]()
        columns = []
        for name, own, other, mask in zip(rows.column_names, rows.columns, versions.columns, from_log, strict=True):
            if whole and _same_cells(own, other, target, mask):
                columns.append(own)
                continue
            self.anew.add(name)
            if id(mask) not in sources:
                sources[id(mask)] = plain_arrays.integers(_sources(rows.num_rows, target, mask)[keep])
            if pa.types.is_dictionary(own.type):
                other = other.dictionary_encode()
            columns.append(pa.chunked_array([*own.chunks, *other.chunks], own.type).take(sources[id(mask)]))
        return pa.Table.from_arrays(columns, schema=rows.schema)

    def _log_wins(self, rows: pa.Table, at: _Indices, numbers: _Indices) -> _Mask:
        if not self.rules.by_event_time:
            return np.ones(len(at), bool)
        base = ordering_columns(rows.take(plain_arrays.integers(at)), self.rules.ordering_fields)
        log = [column.take(plain_arrays.integers(numbers)) for column in self.log.ordering]
        codes = order_codes([pa.chunked_array(b.chunks + n.chunks) for b, n in zip(base, log, strict=True)])
        wins: _Mask = self.log.natural[numbers] | (codes[len(at) :] >= codes[: len(at)])
        return wins


def _same_cells(own: pa.ChunkedArray, other: pa.ChunkedArray, target: _Indices, from_log: _Mask) -> bool:
    """Whether the cells at `target` hold already, to the bit, what `other` would put there."""
    places = np.flatnonzero(from_log)
    for some in (places[:_GLANCE], places[_GLANCE:]):
        theirs = other.take(plain_arrays.integers(some))
        if not _bits(cast_column(own.take(plain_arrays.integers(target[some])), theirs.type)).equals(_bits(theirs)):
            return False
    return True


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floating numbers, in lists and structs as well, as integers of the same bits: 0.0 and -0.0 are equal, NaN is not."""
    bits = _type_of_bits(column.type)
    return column if bits == column.type else pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)


@lru_cache(maxsize=256)
def _type_of_bits(kind: pa.DataType) -> pa.DataType:
    """A type of the same layout that has integers where the other has floating numbers."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_type_of_bits(field.type)) for field in kind])
    if pa.types.is_map(kind):
        fields = (field.with_type(_type_of_bits(field.type)) for field in (kind.key_field, kind.item_field))
        return pa.map_(*fields, keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_type_of_bits(kind.value_type)), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_type_of_bits(kind.value_type)))
    return _BITS.get(kind, kind)


def _sources(rows: int, target: _Indices, from_log: _Mask) -> _Indices:
    """Where each row comes from: itself, or for the rows at `target` where `from_log` says so, the versions that follow."""
    source = np.arange(rows, dtype=np.int64)
    source[target[from_log]] = rows + np.flatnonzero(from_log)
    return source
