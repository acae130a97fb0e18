"""What is asked of a table, and what that means in the table of a moment: columns as it spells them, the predicate bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.config.options import MERGER
from hudimeta.errors import ConfigError, PredicateError
from hudimeta.read.column_names import found_column, known_column
from hudimeta.read.incremental import IncrementalRange, Moment, range_slices, with_commits
from hudimeta.read.range_moment import moment_of
from hudimeta.slices.custom_merger import load_merger
from hudimeta.snapshot.opened_ahead import schema_of_a_plan
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.predicate import ArrowPredicate, Bound, Expr, Where
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["OpenedRequest", "ScanRequest", "limit_note", "opened", "refuse_others", "shown_condition"]


@dataclass(frozen=True)
class ScanRequest:
    """What is asked of a table.

    Attributes:
        where: Predicate in any notation of `hudimeta.predicate.parse`; None for every row.
        columns: What to return, in this order; None for all. Names are matched exactly, else without case; `a.b` is a field of
            the struct `a`.
        kept: Of the option: what rows have to satisfy in any case; None for nothing more.
        among: Of the option: the columns that `columns` are some of, or fields of; None for any.
        query_type: SNAPSHOT, READ_OPTIMIZED or INCREMENTAL; CDC is a `ChangeScan`'s.
        timezone: Zone in which the predicate's texts without a zone are read.
        skip_damage: Leave out file slices with a damaged file instead of failing; see `SliceReader.readable`.
        limit: Rows after which reading stops; None for all.
    """

    where: Where | None = None
    columns: Sequence[str] | None = None
    kept: Expr | None = None
    among: Sequence[str] | None = None
    query_type: QueryType = QueryType.SNAPSHOT
    timezone: str = "UTC"
    skip_damage: bool = False
    limit: int | None = None


@dataclass(frozen=True)
class OpenedRequest:
    """What a request means in the table of its moment.

    Attributes:
        snapshot: What is read.
        columns: What is returned, as the table spells it.
        bound: The predicate; None for every row.
        beside: What PyArrow evaluates beside it.
        changes: The commits of an incremental read.
        range_slices: The slices that these commits make, where ordinary slices do not serve.
        mark: See `Moment`.
    """

    snapshot: Snapshot
    columns: tuple[str, ...]
    bound: Bound | None
    beside: ArrowPredicate | None
    changes: IncrementalRange | None
    range_slices: pa.Table | None
    mark: int


def opened(moment: Moment, request: ScanRequest) -> OpenedRequest:
    """Settle what a request means.

    Args:
        moment: The table at its moment.
        request: What is asked of it.

    Raises:
        ConfigError: Columns that the table does not have, or one of them twice; a merger that is none.
        PredicateError: The predicate does not fit the table.
    """
    snapshot, changes = moment.snapshot, moment.changes
    merger = snapshot.options.get(MERGER)
    if merger is not None:
        load_merger(merger)  # which slices without log files would not need
    mark = snapshot.storage.log.mark() if moment.mark is None else moment.mark
    slices = range_slices(snapshot, changes) if changes is not None else None
    snapshot = moment_of(snapshot, changes) if changes is not None else snapshot
    full = (snapshot.schema if changes is not None else schema_of_a_plan(snapshot)).arrow
    wanted = request.columns
    columns = tuple(full.names) if wanted is None else tuple(known_column(name, full) for name in wanted)
    if request.among is not None:
        refuse_others(columns, tuple(known_column(name, full) for name in request.among))
    if len(set(columns)) < len(columns):
        raise ConfigError("hudimeta.columns", wanted, "each column once")
    asked = changes if snapshot.properties.populate_meta else None
    beside = _evaluated_by_arrow(request.where, full)
    trees = [tree for tree in (request.where if beside is None else beside.tree, request.kept) if tree is not None]
    bound = _bound(trees, full, request.timezone, asked) if trees or asked is not None else None
    return OpenedRequest(snapshot, columns, bound, beside, changes, slices, mark)


def _evaluated_by_arrow(where: Where | None, schema: pa.Schema) -> ArrowPredicate | None:
    """An expression of PyArrow's that PyArrow must evaluate; None for every predicate that is understood wholly."""
    if where is None:
        return None
    from hudimeta.predicate import is_arrow_expression, parse_arrow

    if not is_arrow_expression(where):
        return None
    found = parse_arrow(where)
    for name in found.columns:
        meant, close = found_column(name, schema)
        if meant is None:
            raise PredicateError(name, f"a column of the table: {', '.join(schema.names)}", close)
        if meant != name:
            raise PredicateError(str(where), f"the column as the table spells it: {meant}")
    return found if found.whole is not None else None


def refuse_others(columns: Sequence[str], among: Sequence[str]) -> None:
    """Refuse columns that are none of some, nor fields of them. Raises ConfigError."""
    others = [name for name in columns if name not in among and not any(name.startswith(f"{one}.") for one in among)]
    if others:
        hint = "Ask for some of these, or set the option to what is read at most."
        raise ConfigError("columns", list(columns), f"what the option hudimeta.columns names: {', '.join(among)}", hint)


def shown_condition(opened: OpenedRequest, request: ScanRequest) -> str:
    """The predicate as text, "" without one."""
    if opened.beside is None:
        return str(opened.bound) if opened.bound is not None else ""
    from hudimeta.predicate import to_sql

    whole = str(opened.beside.whole)
    return whole if request.kept is None else f"{whole} AND {to_sql(request.kept)}"


def limit_note(rows: int) -> str:
    """What a report says of a limit."""
    return f"limit: reading stops after {rows:,} rows"


def _bound(parts: Sequence[Where], schema: pa.Schema, timezone: str, changes: IncrementalRange | None) -> Bound:
    from hudimeta.predicate import all_of, bind, parse

    tree = all_of([parse(part) for part in parts]) if parts else None
    if tree is None or changes is not None:
        assert changes is not None
        tree = with_commits(tree, changes)
    return bind(tree, schema, timezone=timezone)
