"""Folding the records of a slice's log into one version per key.

Without partial updates the version that survives is found at once: the last one, or under event time the one that sorts last by
ordering value and age among those after the last delete without an ordering value. With partial updates the cells that survive
depend on the order of arrival, so the records are folded in rounds, the r-th record of every key in round r, all keys at once.
A merger that the user brings is called in such rounds as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, fill_null, integers, no_rows, numbers, numpy_of, scalar_of, single_array
from hudimeta.schema.promotion import is_text
from hudimeta.slices.custom_merger import merge_versions
from hudimeta.slices.log_parts import DataPart, LogPart
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules, PartialUpdateMode
from hudimeta.slices.ordering import Codes, order_codes, ordering_columns, places_beside_barriers, refuse_null_keys
from hudimeta.types import META_COLUMNS

__all__ = ["FoldedLog", "fold_log_records", "own_cells"]

_Mask = npt.NDArray[np.bool_]
_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FoldedLog:
    """One version per key.

    Attributes:
        keys: Record keys, each once, in order of first appearance.
        deleted: bool per key; True where the version is a delete.
        natural: bool per key; True for a delete without an ordering value, which beats every base row.
        ordering: Per field that a delete states (`MergeRules.delete_fields`) one array with the ordering value per key.
        rows: The versions that are rows.
        row_of: int64 per key, its row in `rows`, -1 for deletes.
        filled: bool per row and column of `rows`, the cells that the log has a value for; None when it has all.
    """

    keys: pa.Array
    deleted: _Mask
    natural: _Mask
    ordering: tuple[pa.ChunkedArray, ...]
    rows: pa.Table
    row_of: _Indices
    filled: _Mask | None = None


@dataclass(frozen=True, slots=True)
class _Records:
    """All records of a log, oldest first, as columns; `row` is -1 for delete blocks' records, `key` numbers `keys`."""

    keys: pa.Array
    key: _Indices
    row: _Indices
    deleted: _Mask
    natural: _Mask
    rows: pa.Table
    ordering: tuple[pa.ChunkedArray, ...]
    codes: Codes


def fold_log_records(parts: Sequence[LogPart], schema: pa.Schema, rules: MergeRules) -> FoldedLog:
    """Fold the records of a slice's log, oldest part first.

    Args:
        parts: Data in `schema` and deletes, in the order in which they were written.
        schema: Columns of the rows, also when there is no part.
        rules: Which version wins, and what the loser gives it.

    Raises:
        SchemaMismatch: A record without a key.
        UnsupportedFeature: An ordering field of a type that has no order.
    """
    records = _gather(parts, schema, rules)
    data = [part for part in parts if isinstance(part, DataPart)]
    if rules.merger is not None:
        if any(part.present is not None for part in data):
            what = "hudimeta.merger over rows of which only some columns were written"
            raise UnsupportedFeature(what, "Leave the option out.")
        return _fold_by_merger(records, rules, rules.merger)
    if rules.partial_mode is not PartialUpdateMode.NONE or any(part.present is not None for part in data):
        return _fold_in_rounds(records, *_own_cells_of_parts(data, schema, rules), rules)
    winner = _last_by_event_time(records) if rules.by_event_time else _last(records)
    live = ~records.deleted[winner]
    rows = records.rows.take(integers(records.row[winner[live]]))
    return _folded(records, winner, rows, None)


def own_cells(rows: pa.Table, rules: MergeRules) -> _Mask:
    """Per row and column, whether the row keeps its cell when it wins.

    It is False for defaults under IGNORE_DEFAULTS, and under FILL_UNAVAILABLE for the text of what was not at hand. Ordering
    columns are filled as all others are, though the order of the rows stays that of the values that they had.
    """
    own = np.ones((rows.num_rows, rows.num_columns), bool)
    defaults = dict(rules.column_defaults)
    for number, field in enumerate(rows.schema):
        if field.name in META_COLUMNS or rules.partial_mode is PartialUpdateMode.NONE:
            continue
        if rules.partial_mode is PartialUpdateMode.IGNORE_DEFAULTS:
            own[:, number] = ~_is(rows.column(number), defaults.get(field.name))
        elif rules.unavailable is not None and is_text(field.type):
            own[:, number] = ~_is(rows.column(number), rules.unavailable)
    return own


def _is(column: pa.ChunkedArray, value: object) -> _Mask:
    import pyarrow.compute as pc

    equal = column.is_null() if value is None else fill_null(pc.equal(column, scalar_of(value, column.type)), False)
    mask: _Mask = numpy_of(equal)
    return mask


def _gather(parts: Sequence[LogPart], schema: pa.Schema, rules: MergeRules) -> _Records:
    """Parts as columns over all records."""
    import pyarrow.compute as pc

    data = [part for part in parts if isinstance(part, DataPart)]
    rows = pa.concat_tables([no_rows(schema), *(part.rows for part in data)])
    texts = [part.rows.column(KEY_COLUMN) if isinstance(part, DataPart) else part.keys for part in parts]
    given = pa.chunked_array([chunk for text in texts for chunk in text.cast(pa.string()).chunks], pa.string())
    refuse_null_keys(given, KEY_COLUMN)
    keys = pc.unique(given)
    key = numbers(single_array(pc.index_in(given, value_set=keys)))
    is_row = np.concatenate([np.full(len(t), isinstance(p, DataPart)) for p, t in zip(parts, texts, strict=True)] or [_none()])
    row = np.where(is_row, np.cumsum(is_row) - 1, -1).astype(np.int64)
    deleted = np.concatenate([_deleted(part) for part in parts] or [_none()])
    natural = np.concatenate([part.natural for part in parts] or [_none()])
    if not rules.delete_fields:
        return _Records(keys, key, row, deleted, natural, rows, (), np.zeros(len(key), np.int64))
    values = [
        ordering_columns(part.rows, rules.delete_fields) if isinstance(part, DataPart) else part.ordering for part in parts
    ]
    types = [column.type for column in ordering_columns(no_rows(schema), rules.delete_fields)]
    ordering = tuple(
        pa.chunked_array([chunk for columns in values for chunk in columns[number].cast(kind).chunks], kind)
        for number, kind in enumerate(types)
    )
    codes = order_codes(ordering) if rules.by_event_time else np.zeros(len(key), np.int64)
    records = _Records(keys, key, row, deleted, natural, rows, ordering, codes)
    return _without_idle_deletes(records) if rules.by_event_time and not rules.deletes_always else records


def _without_idle_deletes(records: _Records) -> _Records:
    """Without deletes of delete blocks that come upon one without an ordering value: that one stands until a row follows it.

    With an ordering value of its own a second delete would lose against a base row that the first has taken away.
    """
    idle = (records.row < 0) & ~records.natural
    if not (idle.any() and records.natural.any()):
        return records
    order = np.argsort(records.key, kind="stable")
    at = np.arange(len(order))
    start = np.maximum.accumulate(np.where(np.diff(records.key[order], prepend=-1) != 0, at, 0))
    natural = np.maximum.accumulate(np.where(records.natural[order], at, -1))
    row = np.maximum.accumulate(np.where((records.row >= 0)[order] & ~records.natural[order], at, -1))
    idle[order] &= (natural >= start) & (natural > row)
    kept = ~idle
    ordering = tuple(column.filter(array_of(kept)) for column in records.ordering)
    return _Records(
        records.keys,
        records.key[kept],
        records.row[kept],
        records.deleted[kept],
        records.natural[kept],
        records.rows,
        ordering,
        records.codes[kept],
    )


def _deleted(part: LogPart) -> _Mask:
    return part.deleted if isinstance(part, DataPart) else np.ones(len(part.keys), bool)


def _none() -> _Mask:
    return np.zeros(0, bool)


def _last(records: _Records) -> _Indices:
    """Per key the number of its last record."""
    winner = np.zeros(len(records.keys), np.int64)
    winner[records.key] = np.arange(len(records.key))
    return winner


def _last_by_event_time(records: _Records) -> _Indices:
    """Per key the number of the record that sorts last by (after the last natural delete, ordering value, age)."""
    number = np.arange(len(records.key))
    order = np.lexsort((number, records.codes, places_beside_barriers(records.key, records.natural), records.key))
    winner = np.zeros(len(records.keys), np.int64)
    winner[records.key[order]] = order
    return winner


def _folded(records: _Records, winner: _Indices, rows: pa.Table, filled: _Mask | None) -> FoldedLog:
    """The result, given per key the record that decides about order and deletion, and the rows of those that live."""
    deleted = records.deleted[winner]
    row_of = np.where(deleted, -1, np.cumsum(~deleted) - 1).astype(np.int64)
    ordering = tuple(column.take(integers(winner)) for column in records.ordering)
    return FoldedLog(records.keys, deleted, records.natural[winner], ordering, rows, row_of, filled)


def _own_cells_of_parts(data: Sequence[DataPart], schema: pa.Schema, rules: MergeRules) -> tuple[_Mask, _Mask]:
    """Over all rows of the log: which cells a row keeps when it wins, and whether it replaces the loser wholly."""
    cells, whole = [np.zeros((0, len(schema)), bool)], [_none()]
    for part in data:
        own = own_cells(part.rows, rules)
        if part.present is not None:
            own[:, [name not in part.present for name in schema.names]] = False
        cells.append(own)
        whole.append(np.full(len(own), part.present is None and rules.partial_mode is PartialUpdateMode.NONE))
    return np.vstack(cells), np.concatenate(whole)


def _fold_in_rounds(records: _Records, cells: _Mask, whole_rows: _Mask, rules: MergeRules) -> FoldedLog:
    """Fold cell by cell: per key and column, the row that the cell comes from and whether it holds a value of its own.

    Args:
        records: The records.
        cells: Per row and column of `records.rows`, whether the row has a value of its own there.
        whole_rows: Per row, whether it replaces the loser wholly instead of being filled from it.
        rules: Which version wins.
    """
    order = np.argsort(records.key, kind="stable")
    sizes = np.bincount(records.key, minlength=len(records.keys))
    starts = np.cumsum(sizes) - sizes
    winner = order[starts] if len(order) else np.zeros(0, np.int64)
    # A delete's row is -1: what is looked up for it is never used, because a delete neither fills nor is filled.
    source = np.repeat(records.row[winner][:, None], cells.shape[1], axis=1)
    padded_cells = np.vstack([cells, np.zeros((1, cells.shape[1]), bool)])
    padded_whole = np.append(whole_rows, True)
    filled, whole = padded_cells[records.row[winner]], padded_whole[records.row[winner]]
    meta = np.flatnonzero([name in META_COLUMNS for name in records.rows.column_names])
    for turn in range(1, int(sizes.max(initial=0))):
        keys = np.flatnonzero(sizes > turn)
        old, new = winner[keys], order[starts[keys] + turn]
        newer = _newer_wins(records, old, new, rules)
        flip = newer[:, None]
        new_row = records.row[new]
        new_source = np.broadcast_to(new_row[:, None], (len(keys), cells.shape[1]))
        new_filled, new_whole = padded_cells[new_row], padded_whole[new_row]
        high_whole = np.where(newer, new_whole, whole[keys])
        fill = ~(records.deleted[old] | records.deleted[new] | high_whole)
        high_filled = np.where(flip, new_filled, filled[keys])
        from_low = fill[:, None] & ~high_filled & np.where(flip, filled[keys], new_filled)
        from_new = flip ^ from_low
        if rules.last_keeps_meta:
            from_new[np.ix_(fill, meta)] = True
        source[keys] = np.where(from_new, new_source, source[keys])
        filled[keys] = high_filled | from_low
        whole[keys] = high_whole | (fill & np.where(newer, whole[keys], new_whole))
        winner[keys] = np.where(newer, new, old)
    live = ~records.deleted[winner]
    columns = [column.take(array_of(source[live, number])) for number, column in enumerate(records.rows.columns)]
    rows = pa.table(columns, schema=records.rows.schema)
    return _folded(records, winner, rows, filled[live])


def _fold_by_merger(records: _Records, rules: MergeRules, merger: str) -> FoldedLog:
    """Fold with a function of the user's; of a row that it deletes nothing is left that could win or be filled from.

    Args:
        records: The records.
        rules: Which of a row and a delete wins.
        merger: Makes one row of two.
    """
    order = np.argsort(records.key, kind="stable")
    sizes = np.bincount(records.key, minlength=len(records.keys))
    starts = np.cumsum(sizes) - sizes
    winner = order[starts] if len(order) else np.zeros(0, np.int64)
    deleted, natural, row = records.deleted[winner], records.natural[winner], records.row[winner]
    versions = records.rows
    for turn in range(1, int(sizes.max(initial=0))):
        keys = np.flatnonzero(sizes > turn)
        new = order[starts[keys] + turn]
        newer = np.ones(len(keys), bool)
        if rules.by_event_time:
            newer = natural[keys] | records.natural[new] | (records.codes[new] >= records.codes[winner[keys]])
        both = ~deleted[keys] & ~records.deleted[new]
        taken, merged = keys[newer & ~both], keys[both]
        winner[keys[newer]] = new[newer]
        source = winner[taken]
        row[taken], deleted[taken], natural[taken] = records.row[source], records.deleted[source], records.natural[source]
        if len(merged):
            older = versions.take(array_of(row[merged]))
            rows, gone = merge_versions(merger, older, records.rows.take(array_of(records.row[new[both]])))
            row[merged] = versions.num_rows + np.arange(len(merged))
            deleted[merged] = natural[merged] = gone
            versions = pa.concat_tables([versions, rows])
    live = ~deleted
    row_of = np.where(deleted, -1, np.cumsum(live) - 1).astype(np.int64)
    ordering = tuple(column.take(integers(winner)) for column in records.ordering)
    return FoldedLog(records.keys, deleted, natural, ordering, versions.take(array_of(row[live])), row_of)


def _newer_wins(records: _Records, old: _Indices, new: _Indices, rules: MergeRules) -> _Mask:
    if not rules.by_event_time:
        return np.ones(len(old), bool)
    wins: _Mask = records.natural[old] | records.natural[new] | (records.codes[new] >= records.codes[old])
    return wins
