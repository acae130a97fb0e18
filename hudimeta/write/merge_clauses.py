"""The clauses of a merge and the rows that they make: join once, then each row goes to the first clause that fits it.

An expression reads columns as `target.x` and `source.x`; a bare name means whichever side has it. Where both do, it is that of
the only side that has a row, and refused in clauses about rows that match.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import CommitError, ConfigError, SchemaMismatch
from hudimeta.indexes.expression_index.expressions import Assigned, assigned_column
from hudimeta.predicate import Expr, bind, evaluate, parse_sql
from hudimeta.predicate.tree import And, Column, Compare, CompareOp
from hudimeta.write.merge_keys import key_pairs

__all__ = ["Clause", "ClauseKind", "Joined", "MergeCondition", "Sides", "claimed", "join", "merge_condition", "new_values"]

Positions = npt.NDArray[np.int64]


class ClauseKind(enum.Enum):
    """Which rows a clause is about."""

    MATCHED = "when_matched"
    NOT_MATCHED = "when_not_matched"
    NOT_MATCHED_BY_SOURCE = "when_not_matched_by_source"


@dataclass(frozen=True)
class Clause:
    """One clause.

    Attributes:
        kind: Which rows.
        deletes: True to delete them.
        condition: Further condition, None for all.
        values: New values by column; None for the columns of the source.
    """

    kind: ClauseKind
    deletes: bool = False
    condition: str | None = None
    values: Mapping[str, Assigned] | None = None


@dataclass(frozen=True)
class Sides:
    """How expressions call the table and the rows that are merged into it.

    Attributes:
        target, source: Names of the two.
        alone: Of the only one that has rows; None where both have.
    """

    target: str = "target"
    source: str = "source"
    alone: str | None = None

    def where(self, kind: ClauseKind) -> Sides:
        """The same for clauses of a kind."""
        alone = {ClauseKind.NOT_MATCHED: self.source, ClauseKind.NOT_MATCHED_BY_SOURCE: self.target}
        return replace(self, alone=alone.get(kind))

    def resolved(self, expr: Expr, target: pa.Schema, source: pa.Schema) -> Expr:
        """The expression with every column below its side.

        Raises:
            ConfigError: A bare name that both sides have, where both have rows, or that none has.
        """
        if not isinstance(expr, Column):
            return _rebuilt(expr, lambda child: self.resolved(child, target, source))
        if expr.path[0] in (self.target, self.source) and len(expr.path) > 1:
            return expr
        top = expr.path[0].lower()
        holders = [
            alias
            for alias, schema in ((self.target, target), (self.source, source))
            if top in [n.lower() for n in schema.names]
        ]
        if self.alone in holders:
            holders = [self.alone]
        if len(holders) != 1:
            why = "Both sides have it" if holders else "Neither side has it"
            raise ConfigError("merge", expr.name, f"{self.target}.{top} or {self.source}.{top}", f"{why}.")
        return replace(expr, path=(holders[0], *expr.path))


def _rebuilt(expr: Expr, change: Any) -> Expr:
    import dataclasses

    changes: dict[str, Any] = {}
    for spec in dataclasses.fields(expr):
        value = getattr(expr, spec.name)
        if isinstance(value, Expr):
            changes[spec.name] = change(value)
        elif isinstance(value, tuple) and any(isinstance(item, Expr) for item in value):
            changes[spec.name] = tuple(change(item) if isinstance(item, Expr) else item for item in value)
    return replace(expr, **changes) if changes else expr


@dataclass(frozen=True)
class MergeCondition:
    """When a row of the source and one of the table are the same: equal columns, and perhaps a condition over both.

    Attributes:
        pairs: (column of the table, column of the source).
        rest: Further condition with `Sides`' names; None for none.
    """

    pairs: tuple[tuple[str, str], ...]
    rest: Expr | None = None


def merge_condition(on: str | Sequence[str] | Mapping[str, str], sides: Sides) -> MergeCondition:
    """What `on` means.

    Args:
        on: A column, several, a mapping from the table's columns to the source's, or SQL such as `target.id = source.id`.
        sides: The names of the two.

    Raises:
        ConfigError: It makes no column of one side equal to one of the other.
    """
    if isinstance(on, Mapping):
        return MergeCondition(_some(tuple(on.items()), on))
    if not isinstance(on, str):
        return MergeCondition(_some(tuple((name, name) for name in on), on))
    tree = parse_sql(on)
    if isinstance(tree, Column):
        return MergeCondition(((tree.name, tree.name),))
    pairs, rest = [], []
    for part in tree.children if isinstance(tree, And) else (tree,):
        pair = _equal_columns(part, sides)
        pairs += [pair] if pair else []
        rest += [] if pair else [part]
    condition = None if not rest else rest[0] if len(rest) == 1 else And(tuple(rest), type=pa.bool_())
    return MergeCondition(_some(tuple(pairs), on), condition)


def _some(pairs: tuple[tuple[str, str], ...], on: object) -> tuple[tuple[str, str], ...]:
    if not pairs:
        raise ConfigError("on", on, "columns that are equal, such as 'id' or 'target.id = source.id'")
    return pairs


def _equal_columns(part: Expr, sides: Sides) -> tuple[str, str] | None:
    if not (isinstance(part, Compare) and part.op is CompareOp.EQ):
        return None
    left, right = part.left, part.right
    if not (isinstance(left, Column) and isinstance(right, Column) and len(left.path) == len(right.path) == 2):
        return None
    by_side = {column.path[0]: column.path[1] for column in (left, right)}
    if by_side.keys() != {sides.target, sides.source}:
        return None
    return by_side[sides.target], by_side[sides.source]


@dataclass(frozen=True)
class Joined:
    """Rows of both sides, matched.

    Attributes:
        target, source: int64 positions of pairs that match.
        only_target, only_source: Positions of rows without a match.
    """

    target: Positions
    source: Positions
    only_target: Positions
    only_source: Positions


def join(target: pa.Table, source: pa.Table, condition: MergeCondition, sides: Sides) -> Joined:
    """Match rows as Spark joins them: nulls match nothing, NaN equals NaN, and the two zeros are equal.

    Raises:
        ConfigError: Columns that are not there or cannot be compared.
    """
    pairs = key_pairs(condition.pairs, target.schema, source.schema, (sides.target, sides.source))
    left = {f"k{number}": pair.of_target(target) for number, pair in enumerate(pairs)}
    right = {f"k{number}": pair.of_source(source) for number, pair in enumerate(pairs)}
    at = pa.table({**left, "t": pa.array(np.arange(target.num_rows))})
    there = pa.table({**right, "s": pa.array(np.arange(source.num_rows))})
    met = at.join(there, list(left), join_type="inner")
    t, s = (met[name].to_numpy().astype(np.int64) for name in ("t", "s"))
    if condition.rest is not None and len(t):
        both = side_by_side(target, source, t, s, sides)
        tree = sides.resolved(condition.rest, target.schema, source.schema)
        kept = evaluate(bind(tree, both.schema), both).fill_null(False).to_numpy()
        t, s = t[kept], s[kept]
    order = np.lexsort((s, t))
    t, s = t[order], s[order]
    return Joined(t, s, _others(t, target.num_rows), _others(s, source.num_rows))


def _others(taken: Positions, count: int) -> Positions:
    free = np.ones(count, bool)
    free[taken] = False
    found: Positions = np.flatnonzero(free)
    return found


def side_by_side(target: pa.Table, source: pa.Table, t: Positions | None, s: Positions | None, sides: Sides) -> pa.Table:
    """One struct column a side; a side without positions is null."""
    count = len(t) if t is not None else len(s) if s is not None else 0
    columns = {}
    for alias, table, at in ((sides.target, target, t), (sides.source, source, s)):
        rows = table.take(pa.array(at)) if at is not None else pa.table({f.name: pa.nulls(count, f.type) for f in table.schema})
        arrays = [column.combine_chunks() for column in rows.columns]
        columns[alias] = pa.StructArray.from_arrays(arrays, fields=[f.with_nullable(True) for f in table.schema])
    return pa.table(columns)


def claimed(rows: pa.Table, clauses: Sequence[Clause], sides: Sides, schemas: tuple[pa.Schema, pa.Schema]) -> list[Positions]:
    """For each clause the positions of the rows that it is the first to fit."""
    free = np.ones(rows.num_rows, bool)
    found: list[Positions] = []
    for clause in clauses:
        fits = free.copy()
        if clause.condition is not None and rows.num_rows:
            tree = sides.resolved(parse_sql(clause.condition), *schemas)
            fits &= evaluate(bind(tree, rows.schema), rows).fill_null(False).to_numpy()
        free &= ~fits
        found.append(np.flatnonzero(fits))
    return found


def refuse_twins(source: pa.Schema) -> None:
    """Raise SchemaMismatch where the source has two columns that only case tells apart: expressions would mean either."""
    seen: dict[str, str] = {}
    for name in source.names:
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            how = f"told from {twin!r} only by upper and lower case"
            raise SchemaMismatch(name, how, "a name of its own", "Rename or drop one of the two columns of the source.")


def refuse_several_matches(target: Positions) -> None:
    """Raise CommitError when a row of the table would be changed by several rows of the source."""
    if len(np.unique(target)) < len(target):
        again = len(target) - len(np.unique(target))
        raise CommitError(
            f"rows of the table match more than one row of the source, {again:,} times",
            "No row was changed; keep one row a key in the source, or narrow the condition.",
        )


def new_values(
    rows: pa.Table,
    fields: Sequence[tuple[pa.Field, Assigned]],
    base: pa.Table,
    sides: Sides,
    schemas: tuple[pa.Schema, pa.Schema],
) -> pa.Table:
    """`base` with the columns that a clause assigns.

    Args:
        rows: Both sides (`side_by_side`).
        fields: Columns and their new values.
        base: Rows of the table.
        sides: Names of the two.
        schemas: Of the two.
    """
    for field, value in fields:
        tree = sides.resolved(parse_sql(value), *schemas) if isinstance(value, str) else value
        at = base.schema.get_field_index(field.name)
        base = base.set_column(at, field, assigned_column(tree, field, rows))
    return base
