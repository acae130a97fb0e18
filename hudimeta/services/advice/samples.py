"""What some file slices hold, as far as the noted predicates look at it: bounds, which values are there, and some rows.

Each slice that is drawn is read once, only the columns that predicates look at, and reduced at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.column_stats.skip import statistic_columns
from hudimeta.predicate import Bound, ColumnBounds, Expr, FileStats, equalities, evaluate, may_match
from hudimeta.services.advice.asked import AskedQuery, TableSlices
from hudimeta.slices.read_task import task_at
from hudimeta.slices.reader import SliceReader
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["Samples", "bounds_of", "drawn"]

MOST_SLICES = 128
_LEAST_OF_A_QUERY = 8
_MOST_ROWS = 4_096
"""Rows of a slice that are kept, to try orders on."""
_SEED = 20_240_607

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Samples:
    """What was found in the slices that were drawn.

    Attributes:
        places: Of these slices among all.
        columns: Bounds of columns, one element a slice.
        expressions: Bounds of expressions, likewise.
        matching: By (number of the query, column or expression that it fixes to some values): whether a slice has one of them.
        rows: Some rows of each slice.
        row_counts: Rows of each slice.
        value_bytes: Bytes of one value, on average, by column.
    """

    places: npt.NDArray[np.int64]
    columns: Mapping[str, ColumnBounds]
    expressions: Mapping[Expr, ColumnBounds]
    matching: Mapping[tuple[int, str | Expr], Mask]
    rows: Sequence[pa.Table]
    row_counts: npt.NDArray[np.int64]
    value_bytes: Mapping[str, float]

    def by_bounds(self, bound: Bound, columns: Sequence[str], expressions: Sequence[Expr] = ()) -> Mask:
        """Which of the slices may hold a row that a predicate keeps, by bounds of some columns and expressions."""
        known = {name: self.columns[name] for name in columns if name in self.columns}
        values = {expr: self.expressions[expr] for expr in expressions if expr in self.expressions}
        keep: Mask = may_match(bound, FileStats(len(self.places), known, values)).keep
        return keep


def drawn(queries: Sequence[AskedQuery], slices: TableSlices) -> npt.NDArray[np.int64]:
    """Places of slices by which to judge: all that some query reads, or as many of each query's at random."""
    every = np.unique(np.concatenate([np.zeros(0, np.int64), *(query.kept for query in queries)]))
    if len(every) <= MOST_SLICES:
        return every
    chance = np.random.default_rng(_SEED)
    each = max(_LEAST_OF_A_QUERY, MOST_SLICES // len(queries))
    picked = [chance.permutation(query.kept)[:each] for query in queries]
    return np.unique(np.concatenate(picked))


def sampled(
    snapshot: Snapshot, slices: TableSlices, places: npt.NDArray[np.int64], queries: Sequence[AskedQuery], exprs: Sequence[Expr]
) -> Samples:
    """Read some slices.

    Args:
        snapshot: The table.
        slices: Of the table.
        places: Which of them.
        queries: Say which columns matter, and which values.
        exprs: Bound expressions whose values matter.
    """
    names = list(dict.fromkeys(name for query in queries for name in statistic_columns(snapshot, query.bound)))
    names += [name for name in _of_expressions(exprs) if name not in names]
    reader = SliceReader(task_at(snapshot, tuple(names)), snapshot.storage)
    chance = np.random.default_rng(_SEED)
    found: list[pa.Table] = []
    counts: list[int] = []
    held: dict[str | Expr, list[ColumnBounds]] = {}
    matching: dict[tuple[int, str | Expr], list[bool]] = {}
    value_bytes: dict[str, list[float]] = {name: [] for name in names}
    bound_to = queries[0].bound
    for one in slices_of(slices.rows.take(pa.array(places))):
        rows = pa.concat_tables([reader.task.output_schema.empty_table(), *reader.tables(one)])
        values: dict[str | Expr, pa.Array] = {name: single_array(rows[name]) for name in names}
        for expr in exprs:
            values[expr] = single_array(evaluate(Bound(expr, bound_to.schema, bound_to.timezone), rows))
        for key, array in values.items():
            held.setdefault(key, []).append(bounds_of(array))
        for number, query in enumerate(queries):
            for key, wanted in _fixed(query.bound, exprs).items():
                if key in values:
                    has = len(wanted) and pc.any(pc.is_in(values[key], value_set=wanted.cast(values[key].type))).as_py()
                    matching.setdefault((number, key), []).append(bool(has))
        for name in names:
            value_bytes[name].append(rows[name].nbytes / max(1, rows.num_rows))
        picked = np.sort(chance.permutation(rows.num_rows)[:_MOST_ROWS])
        found.append(rows.take(pa.array(picked)))
        counts.append(rows.num_rows)
    bounds = {key: _together(parts) for key, parts in held.items()}
    return Samples(
        places,
        {key: one for key, one in bounds.items() if isinstance(key, str)},
        {key: one for key, one in bounds.items() if isinstance(key, Expr)},
        {key: np.array(flags, np.bool_) for key, flags in matching.items()},
        found,
        np.array(counts, np.int64),
        {name: sum(each) / max(1, len(each)) for name, each in value_bytes.items()},
    )


def _of_expressions(exprs: Sequence[Expr]) -> list[str]:
    from hudimeta.predicate.tree import Column, walk

    return [node.name for expr in exprs for node in walk(expr) if isinstance(node, Column)]


def _fixed(bound: Bound, exprs: Sequence[Expr]) -> dict[str | Expr, pa.Array]:
    """Columns and expressions that a predicate fixes to some values."""
    from hudimeta.predicate.tree import Compare, CompareOp, InSet, Literal

    found: dict[str | Expr, pa.Array] = {}
    found.update(equalities(bound))
    for part in bound.conjuncts:
        if isinstance(part, InSet) and part.child in exprs:
            found[part.child] = part.values
        elif isinstance(part, Compare) and part.op is CompareOp.EQ and part.left in exprs and isinstance(part.right, Literal):
            found[part.left] = pa.repeat(part.right.scalar, 1)
    return found


def bounds_of(values: pa.Array) -> ColumnBounds:
    """Bounds of some values as one file."""
    least_most = pc.min_max(values)
    low, high = pa.repeat(least_most["min"], 1), pa.repeat(least_most["max"], 1)
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        high = pa.array([math.nan], values.type)
    counts = [pa.array([count], pa.int64()) for count in (values.null_count, len(values))]
    return ColumnBounds(low, high, counts[0], counts[1], nan_aware=True)


def _together(parts: Sequence[ColumnBounds]) -> ColumnBounds:
    low, high = (pa.concat_arrays([getattr(part, name) for part in parts]) for name in ("min", "max"))
    nulls = pa.concat_arrays([part.null_count for part in parts if part.null_count is not None])
    rows = pa.concat_arrays([part.value_count for part in parts if part.value_count is not None])
    return ColumnBounds(low, high, nulls, rows, nan_aware=True)
