"""The newest row that a merge's source has of each key: found before any clause is looked at, as Apache Hudi finds it.

Apache Hudi takes the source of a MERGE for the rows of an upsert. Of those of one key it leaves the one with the highest value
of the ordering field, of equal ones the last, also in tables where the later write wins; then it asks which clause that row is
for, and nothing is done where none is. So it is here where rows match by the key, and perhaps by partition columns. Where they
match by anything else no row of the source is left out, and several that would change one row of the table are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.predicate import parse_sql
from hudimeta.predicate.tree import Column
from hudimeta.schema.promotion import is_number
from hudimeta.slices.ordering import order_codes
from hudimeta.write.merge_clauses import Clause, ClauseKind, MergeCondition, Sides
from hudimeta.write.merge_keys import KeyPair, key_pairs
from hudimeta.write.table_files import TableFiles

__all__ = ["newest_rows"]


def newest_rows(
    table: TableFiles,
    target: pa.Schema,
    source: pa.Table,
    condition: MergeCondition,
    clauses: Sequence[Clause],
    sides: Sides,
    ordering: Sequence[str],
) -> pa.Table:
    """The rows of a merge's source of which none is older than another one of its key.

    Args:
        table: The table.
        target: Its columns.
        source: Rows to merge, or all of them that some keys have.
        condition: When a row of the source is one of the table.
        clauses: What becomes of them. An update may say which column of the source is the ordering field.
        sides: Names of the two.
        ordering: Ordering fields of the table.

    Returns:
        The rows in their order: all of them where the table has no order, the source no value for it, or where the condition
        is not that keys are equal.
    """
    pairs = key_pairs(condition.pairs, target, source.schema, (sides.target, sides.source))
    if not ordering or not source.num_rows or not _is_of_keys(table, condition, pairs):
        return source
    names = [_ordering_column(name, target, source.schema, clauses, sides) for name in ordering]
    ages = [source[name] for name in names if name is not None]
    if len(ages) < len(ordering):
        return source
    must = [pair.of_source(source) for pair in pairs]
    keys = [pair.of_source(source) for pair in _naming(table, source.schema, pairs)]
    newest = _newest(must, keys, ages)
    return source if len(newest) == source.num_rows else source.take(pa.array(newest))


def _is_of_keys(table: TableFiles, condition: MergeCondition, pairs: Sequence[KeyPair]) -> bool:
    generator = table.generator()
    keys, paths = set(generator.record_fields), {field.name for field in generator.partitions}
    joined = {pair.ours for pair in pairs}
    return condition.rest is None and bool(keys) and keys <= joined <= keys | paths


def _naming(table: TableFiles, source: pa.Schema, pairs: Sequence[KeyPair]) -> tuple[KeyPair, ...]:
    """The columns that tell rows of the source apart: of the key, and of the partition where keys are those of a partition."""
    generator = table.generator()
    if table.lookup.choice.is_global and not table.lookup.choice.finds_anywhere:
        return tuple(pairs)  # of a record window, which holds older keys to be unique in their partition
    if table.lookup.choice.is_global:
        return tuple(pair for pair in pairs if pair.ours in generator.record_fields)
    joined = {pair.ours for pair in pairs}
    own = [_same_named(source, field.name) for field in generator.partitions if field.name not in joined]
    names = [(name, name) for name in own if name is not None]
    return (*pairs, *key_pairs(names, source, source, ("source", "source")))


def _same_named(schema: pa.Schema, name: str) -> str | None:
    same = [n for n in schema.names if n == name] or [n for n in schema.names if n.lower() == name.lower()]
    return same[0] if len(same) == 1 else None


def _ordering_column(name: str, target: pa.Schema, source: pa.Schema, clauses: Sequence[Clause], sides: Sides) -> str | None:
    """The source's column for an ordering field: of its name, else the one that an update gives it; None where neither is."""
    ours = _same_named(target, name)
    theirs = _same_named(source, name) or _assigned_from(name, target, source, clauses, sides)
    if ours is None or theirs is None:
        return None
    kinds = target.field(ours).type, source.field(theirs).type
    return theirs if kinds[0] == kinds[1] or all(map(is_number, kinds)) else None


def _assigned_from(name: str, target: pa.Schema, source: pa.Schema, clauses: Sequence[Clause], sides: Sides) -> str | None:
    updates = [clause.values or {} for clause in clauses if clause.kind is ClauseKind.MATCHED]
    values = [value for update in updates for column, value in update.items() if column.lower() == name.lower()]
    for value in values:
        tree = parse_sql(value) if isinstance(value, str) else None
        column = sides.resolved(tree, target, source) if isinstance(tree, Column) else None
        if isinstance(column, Column) and column.path[0] == sides.source and len(column.path) == 2:
            return _same_named(source, column.path[1])
    return None


def _newest(
    must: Sequence[pa.ChunkedArray], keys: Sequence[pa.ChunkedArray], ages: Sequence[pa.ChunkedArray]
) -> npt.NDArray[np.int64]:
    """Positions of the newest row of each key, and of all that have none, because one of `must` is null; in their order."""
    count = len(keys[0])
    order = np.lexsort((np.arange(count), order_codes(ages)))
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    names = [str(number) for number in range(len(keys))]
    found = pa.table([*keys, pa.array(rank)], [*names, "rank"]).group_by(names).aggregate([("rank", "max")])
    newest = order[found["rank_max"].to_numpy()]
    nameless = np.flatnonzero(np.any([column.is_null().to_numpy() for column in must], axis=0))
    return np.union1d(newest, nameless)
