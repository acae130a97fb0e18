"""Merging the logs of a partition into its base, for every kind of record but `files`: the newest record of a key counts.

Column and partition statistics differ in one point: a record that is not tight is united with the live record before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of, no_rows, numpy_of, table_of
from hudimeta.metadata.payload import column_of, sorted_cells

__all__ = ["LogRows", "Unite", "in_stretches", "merge", "merged_cells"]

_CELLS = pa.schema([("key", pa.string()), ("value", pa.binary())])

Unite: TypeAlias = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class LogRows:
    """Decoded log records and removed keys of one partition.

    Attributes:
        rows: Records, oldest first within a key.
        turn: When each record was written, as ordinal of its block; int64.
        deleted: Removed keys, string.
        deleted_turn: When each was removed; int64.
    """

    rows: pa.Table
    turn: npt.NDArray[np.int64]
    deleted: pa.Array
    deleted_turn: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.turn) + len(self.deleted_turn)

    def in_order_of(self, key: str) -> LogRows:
        """The same in the order of keys; records and removals of one key stay in theirs."""
        rows, deleted = (numpy_of(_order(keys)) for keys in (column_of(self.rows, key), self.deleted))
        return LogRows(
            self.rows.take(array_of(rows)), self.turn[rows], self.deleted.take(array_of(deleted)), self.deleted_turn[deleted]
        )

    def stretch(self, rows: slice, deleted: slice) -> LogRows:
        """Some records and some removals."""
        some = self.rows.slice(rows.start, rows.stop - rows.start)
        return LogRows(some, self.turn[rows], self.deleted[deleted], self.deleted_turn[deleted])


def _order(keys: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.sort_indices(keys)  # which is stable


def in_stretches(
    pieces: Iterable[pa.Table], none: pa.Table, key: str, *logged: pa.Array
) -> Iterator[tuple[pa.Table, tuple[slice, ...]]]:
    """Pieces of a base with what logs say of their keys.

    Args:
        pieces: Consecutive stretches of a base, which is in the order of its keys.
        none: The piece where there is no other.
        key: Name of the key column.
        logged: Keys (string) in logs, each array in order.

    Yields:
        A piece, and of each array the elements after the keys of earlier pieces and not after its own. The last piece gets what
        is left.
    """
    begun, waiting = [0] * len(logged), none
    for piece in pieces:
        if len(waiting) and len(piece):
            last = column_of(waiting, key)[-1].as_py()
            ends = [_first_after(keys, last) for keys in logged]
            yield waiting, tuple(slice(start, end) for start, end in zip(begun, ends, strict=True))
            begun = ends
        waiting = piece if len(piece) else waiting
    yield waiting, tuple(slice(start, len(keys)) for start, keys in zip(begun, logged, strict=True))


def merged_cells(
    pieces: Iterable[KeyValues], logged: Sequence[pa.Array], rewritten: Callable[[KeyValues, Sequence[slice]], KeyValues]
) -> Iterator[KeyValues]:
    """Records of a base file as they are stored, but for those of which logs say something.

    Args:
        pieces: Consecutive stretches of the base file.
        logged: Keys (string) in logs, each array in order.
        rewritten: Makes new records of those whose keys are logged, given the stretch of each array that is about them.
    """
    import pyarrow.compute as pc

    for piece, stretches in in_stretches(map(_as_table, pieces), no_rows(_CELLS), "key", *logged):
        keys, values = column_of(piece, "key"), column_of(piece, "value")
        named = pa.concat_arrays([array[stretch] for array, stretch in zip(logged, stretches, strict=True)])
        if not len(named):
            yield KeyValues(keys.cast(pa.binary()), values)
            continue
        told = pc.is_in(keys, named)
        new = rewritten(KeyValues(keys.filter(told), values.filter(told)), stretches)
        others = pc.invert(told)
        together = KeyValues.concat([KeyValues(keys.filter(others).cast(pa.binary()), values.filter(others)), new])
        yield KeyValues(*sorted_cells(together.keys, together.values))


def _as_table(cells: KeyValues) -> pa.Table:
    return pa.table([cells.keys.cast(pa.string()), cells.values.cast(pa.binary())], schema=_CELLS)


def _first_after(keys: pa.Array, last: str) -> int:
    """How many of some keys in order do not come after one; texts are compared by their bytes."""
    wanted, low, high = last.encode(), 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if keys[middle].as_py().encode() <= wanted else (low, middle)
    return low


def merge(base: pa.Table, logs: LogRows, key: str, unite: Unite | None = None) -> pa.Table:
    """Apply logs to a base.

    Args:
        base: Records of the base files, keys unique.
        logs: Of the same file groups.
        key: Name of the key column.
        unite: Merges an older and a newer record of one key (rows as dictionaries); None where the newer one just wins.

    Returns:
        The live records, same columns; those whose `is_deleted` is true are gone.
    """
    if len(logs):
        base = _apply(base, logs, key, unite)
    if "is_deleted" in base.column_names:
        import pyarrow.compute as pc

        gone = base.column("is_deleted")
        base = base.filter(pc.invert(gone)) if pc.any(gone).as_py() else base
    return base


def _apply(base: pa.Table, logs: LogRows, key: str, unite: Unite | None) -> pa.Table:
    import pyarrow.compute as pc

    keys = pa.concat_arrays([column_of(logs.rows, key), logs.deleted])
    turns = np.concatenate([logs.turn, logs.deleted_turn])
    coded = keys.dictionary_encode()
    codes = numpy_of(coded.indices)
    order = np.argsort(turns, kind="stable")
    last = np.empty(len(coded.dictionary), np.int64)
    last[codes[order]] = order
    winners = np.sort(last[last < len(logs.turn)])
    newest = logs.rows.take(array_of(winners))
    in_logs = pc.is_in(base.column(key), coded.dictionary)
    if unite is not None:
        newest = _unite_all(base.filter(in_logs), logs, key, winners, codes, unite)
    return pa.concat_tables([base.filter(pc.invert(in_logs)), newest])


def _unite_all(
    base: pa.Table, logs: LogRows, key: str, winners: npt.NDArray[np.int64], codes: npt.NDArray[Any], unite: Unite
) -> pa.Table:
    """The winners, those that are not tight united with what the key held before."""
    rows = logs.rows.take(array_of(winners))
    alone = numpy_of(column_of(rows, "is_tight_bound")) | numpy_of(column_of(rows, "is_deleted"))
    seen = np.bincount(codes[: len(logs.turn)], minlength=int(codes.max()) + 1)
    in_base = set(base.column(key).to_pylist())
    names = column_of(rows, key).to_pylist()
    open_rows = [i for i in np.flatnonzero(~alone) if seen[codes[winners[i]]] > 1 or names[i] in in_base]
    if not open_rows:
        return rows
    removed: dict[str, int] = {}
    for name, turn in zip(logs.deleted.to_pylist(), logs.deleted_turn.tolist(), strict=True):
        removed[name] = max(turn, removed.get(name, -1))
    history = {row[key]: [row] for row in base.to_pylist() if row[key] not in removed}
    turns = logs.turn
    wanted = {names[i] for i in open_rows}
    mine = np.flatnonzero(np.isin(codes[: len(turns)], codes[winners[open_rows]]))
    for at in sorted(mine.tolist(), key=lambda i: turns[i]):
        row = logs.rows.slice(at, 1).to_pylist()[0]
        if turns[at] > removed.get(row[key], -1):
            history.setdefault(row[key], []).append(row)
    united = []
    for name in wanted:
        merged = history[name][0]
        for newer in history[name][1:]:
            merged = unite(merged, newer)
        united.append(merged)
    others = np.setdiff1d(np.arange(len(rows)), open_rows)
    return pa.concat_tables([rows.take(array_of(others)), table_of(united, rows.schema)])
