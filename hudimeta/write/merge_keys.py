"""The columns by which a merge joins, compared as Spark compares two columns of whatever types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.formats.parquet import extremes
from hudimeta.predicate import Expr, as_joined, joined_type
from hudimeta.predicate.tree import Column, In, Literal, all_of, between

__all__ = ["KeyPair", "all_looked_for", "key_pairs", "widened", "within"]

_LISTED_KEYS = 1000
"""Values of a join column up to here are looked for one by one, more of them by their range."""

Ends = tuple[pa.Scalar, pa.Scalar]
"""The smallest and the greatest value, of which NaN is the greatest."""


@dataclass(frozen=True)
class KeyPair:
    """A column of the table and one of the source that must be equal.

    Attributes:
        ours: Name of the table's.
        theirs: Name of the source's.
        kind: The type in which they are compared.
    """

    ours: str
    theirs: str
    kind: pa.DataType

    def of_target(self, rows: pa.Table) -> pa.ChunkedArray:
        """The table's values, as they are compared. Raises ConfigError where one cannot be."""
        return _as_compared(rows[self.ours], self.kind, self.ours)

    def of_source(self, rows: pa.Table) -> pa.ChunkedArray:
        """The source's values, as they are compared. Raises ConfigError where one cannot be."""
        return _as_compared(rows[self.theirs], self.kind, self.theirs)

    def looked_for(self, source: pa.Table) -> Expr | None:
        """What a row of the table fulfils that equals one of the source; None where the source has no value."""
        values = self.of_source(source).unique().drop_null()
        if not len(values):
            return None
        if len(values) <= _LISTED_KEYS:
            return In(Column((self.ours,)), tuple(Literal(value, type=self.kind) for value in values))
        return within(self.ours, extremes(pa.chunked_array([values])))


def _as_compared(values: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    found = as_joined(values, kind)
    if found.null_count > values.null_count:  # else such a row would pass for one without a match
        odd = values.filter(found.is_null()).drop_null()[0].as_py()
        raise ConfigError("on", name, f"values that are of type {kind} too", f"{odd!r} is not; cast or filter it first.")
    return found


def key_pairs(
    pairs: Sequence[tuple[str, str]], target: pa.Schema, source: pa.Schema, aliases: tuple[str, str]
) -> tuple[KeyPair, ...]:
    """The columns of both sides, by the names that they have: those of `pairs` may be written in another case.

    Args:
        pairs: (column of the table, column of the source).
        target: The table's columns.
        source: Those of the rows that are merged into it.
        aliases: What conditions call the two.

    Raises:
        ConfigError: Columns that are not there or cannot be compared.
    """
    found = []
    for ours, theirs in pairs:
        one, other = _field(target, ours, aliases[0]), _field(source, theirs, aliases[1])
        kind = joined_type(one.type, other.type)
        if kind is None:
            why = f"{aliases[0]}.{one.name} is {one.type} and {aliases[1]}.{other.name} {other.type}; cast one of them."
            raise ConfigError("on", f"{ours} = {theirs}", "columns that Spark compares, and no nested ones", why)
        found.append(KeyPair(one.name, other.name, kind))
    return tuple(found)


def _field(schema: pa.Schema, name: str, alias: str) -> pa.Field:
    same = [field for field in schema if field.name == name] or [f for f in schema if f.name.lower() == name.lower()]
    if len(same) != 1:
        raise ConfigError("on", f"{alias}.{name}", f"columns of the {alias}: {', '.join(schema.names)}")
    return same[0]


def widened(ends: Ends | None, values: pa.ChunkedArray) -> Ends | None:
    """Ends that hold more values as well; None where there is none yet."""
    low, high = extremes(values)
    if not low.is_valid:
        return ends
    return (low, high) if ends is None else extremes(pa.chunked_array([pa.array([*ends, low, high], low.type)]))


def within(name: str, ends: Ends) -> Expr:
    """That a column of the table lies between two values."""
    low, high = (Literal(end, type=end.type) for end in ends)
    return between(Column((name,)), low, high)


def all_looked_for(pairs: Sequence[KeyPair], source: pa.Table) -> Expr | None:
    """What every row of the table that can match fulfils; None where nothing is known."""
    parts = [part for pair in pairs if (part := pair.looked_for(source)) is not None]
    return all_of(parts) if parts else None
