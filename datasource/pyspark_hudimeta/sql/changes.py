"""UPDATE, DELETE and MERGE: Spark computes what becomes of which rows, in its own words; its tasks write that in one commit.

Conditions and new values are the user's text, evaluated by Spark over the table's rows as of the moment on which the write
rests. What comes of it is a DataFrame of changes, which is routed like any other (`hudimeta.write.routed.computed`): rows carry
the meta columns of the row that they change, and the driver sees none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql.functions import col, monotonically_increasing_id, row_number
from pyspark.sql.types import StructType

from hudimeta.errors import ConfigError, HudiError
from hudimeta.sql import (
    Delete,
    MergeAction,
    MergeClause,
    MergeRows,
    MergeStatement,
    Update,
    quoted,
)
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.merge_clauses import Sides, merge_condition
from hudimeta.write.routed.computed import ROW_COLUMNS, RowAction
from pyspark_hudimeta.arrow_types import arrow_schema
from pyspark_hudimeta.routed.assignment import all_of_both, same_named
from pyspark_hudimeta.sql.altering import add_columns
from pyspark_hudimeta.sql.change import Change
from pyspark_hudimeta.sql.session import Entry, SqlSession, opened

if TYPE_CHECKING:
    from hudimeta.commit.report import CommitReport

__all__ = ["ACTIONS", "CLAUSE", "JOINS", "delete", "explained", "merge", "update", "widened"]

_PRESENT, CLAUSE = "_hudimeta_present", "_hudimeta_clause"
_OURS, _THEIRS = "_hudimeta_ours", "_hudimeta_theirs"
_AT, _TURN = "_hudimeta_at", "_hudimeta_turn"
_SIDES = {MergeRows.NOT_MATCHED: _THEIRS, MergeRows.NOT_MATCHED_BY_SOURCE: _OURS}
"""The side that rows have which only one side has."""
ACTIONS = {
    MergeAction.UPDATE: RowAction.UPDATE,
    MergeAction.DELETE: RowAction.DELETE,
    MergeAction.INSERT: RowAction.INSERT,
}
JOINS = {(False, False): "INNER", (True, False): "RIGHT", (False, True): "LEFT", (True, True): "FULL"}
"""By whether clauses speak of rows that only the source has, and of rows that only the table has."""


def update(session: SqlSession, entry: Entry, statement: Update) -> DataFrame:
    """Run an UPDATE; says how many rows it changed.

    Raises:
        ConfigError: Columns that are not there or must not change.
        AnalysisException, of Spark: What does not fit.
    """
    report = _planned(session, entry, statement).written()
    return session.counts(num_affected_rows=report.updated)


def delete(session: SqlSession, entry: Entry, statement: Delete) -> DataFrame:
    """Run a DELETE; says how many rows it deleted.

    Raises:
        AnalysisException, of Spark: A condition that does not fit.
    """
    report = _planned(session, entry, statement).written()
    return session.counts(num_affected_rows=report.deleted)


def merge(session: SqlSession, entry: Entry, statement: MergeStatement) -> DataFrame:
    """Run a MERGE; says how many rows it changed, deleted and inserted.

    Raises:
        ConfigError: Columns that do not fit.
        CommitError: A row of the table would be changed twice.
        AnalysisException, of Spark: What does not fit.
    """
    planned = _evolved(session, entry, statement) if statement.evolves else _planned(session, entry, statement)
    report = planned.written()
    return session.counts(
        num_affected_rows=report.updated + report.deleted + report.inserted,
        num_updated_rows=report.updated,
        num_deleted_rows=report.deleted,
        num_inserted_rows=report.inserted,
    )


def _evolved(session: SqlSession, entry: Entry, statement: MergeStatement) -> _Planned:
    """Add the columns that only the source has, if the statement fits the table with them; what to write then."""
    first = _Merging(session, entry, statement)
    with ExitStack() as stack:
        stack.callback(first.stack.close)
        source = first.source()
        if session.jvm is None:  # through Connect a query is analysed anew, when the table has columns that it had not
            source = source.localCheckpoint()
        if any(clause.assignments is None for clause in statement.clauses):
            entry = widened(session, entry, source, lambda wider, added: _Merging(session, wider, statement, added, source))
        merging = _Merging(session, entry, statement, source=source)
        merging.stack.callback(stack.pop_all().close)
    return _Planned(merging, Operation.UPSERT, merging.merged)


class _Merges(Protocol):
    """A MERGE that can be tried."""

    stack: ExitStack

    def merged(self, moment: str | None, schema: pa.Schema) -> DataFrame:
        """What its clauses make of the table at a moment."""


def widened(session: SqlSession, entry: Entry, source: DataFrame, merging: Callable[[Entry, StructType], _Merges]) -> Entry:
    """Add the columns that only the source of a MERGE has, if it fits the table with them.

    Args:
        session: Where it is run.
        entry: Of the table.
        source: The rows to merge.
        merging: The MERGE into a table that shall get columns.

    Returns:
        The entry as it is then.

    Raises:
        AnalysisException, of Spark: What does not fit; nothing was changed.
    """
    own = set(same_named(entry.columns, source.schema.names).values())
    added = StructType([c for c in source.schema if c.name not in own and c.name.lower() not in META_COLUMNS])
    if not added.fields:
        return entry
    wider = replace(entry, columns=StructType([*entry.columns, *added]))
    trial = merging(wider, added)
    with trial.stack:
        _ = trial.merged(None, arrow_schema(wider.columns)).schema  # analysed, through Connect too
    return add_columns(session, entry, added)


def explained(session: SqlSession, entry: Entry, statement: Update | Delete | MergeStatement, mode: str) -> str:
    """How Spark computes the changes of a statement; nothing is written.

    Args:
        session: The session's SQL.
        entry: Of the table.
        statement: UPDATE, DELETE or MERGE.
        mode: Of EXPLAIN.
    """
    planned = _planned(session, entry, statement)
    with planned.change.stack:
        columns = opened(session, entry).schema
        frame = planned.make(None, pa.schema([field for field in columns if field.name not in META_COLUMNS]))
        return session.explained(frame, mode)


@dataclass(frozen=True)
class _Planned:
    """A statement that changes rows: what it writes, and how Spark finds that."""

    change: Change
    operation: Operation
    make: Callable[[str | None, pa.Schema], DataFrame]

    def written(self) -> CommitReport:
        return self.change.write(self.operation, self.make)


def _planned(session: SqlSession, entry: Entry, statement: Update | Delete | MergeStatement) -> _Planned:
    if isinstance(statement, MergeStatement):
        merging = _Merging(session, entry, statement)
        return _Planned(merging, Operation.UPSERT, merging.merged)
    change, where = Change(session, entry, statement.alias, queries=statement.queries), statement.where
    if isinstance(statement, Delete):
        return _Planned(change, Operation.DELETE, partial(change.found, action=RowAction.DELETE, values={}, where=where))
    values = change.values(statement.assignments, keys_may_change=False)
    change.check_constants(values)
    return _Planned(change, Operation.UPSERT, partial(change.found, action=RowAction.UPDATE, values=values, where=where))


class _Merging(Change):
    """One MERGE: the two sides are joined once; what each clause makes is read from that."""

    def __init__(
        self,
        session: SqlSession,
        entry: Entry,
        statement: MergeStatement,
        added: StructType | None = None,
        source: DataFrame | None = None,
    ) -> None:
        super().__init__(session, entry, statement.alias, added, statement.queries)
        self._rows = source
        self._statement = statement
        self._source = statement.source_alias or "_hudimeta_source"
        if self._source.lower() == self.alias.lower():
            raise ConfigError("MERGE", self._source, "two names for the two sides", "Give the source an alias.")
        updates = [clause.assignments for clause in statement.clauses if clause.action is MergeAction.UPDATE]
        self.see_moves(None if given is None else [path for path, _ in given] for given in updates)
        for clause in statement.clauses:
            if clause.assignments is not None:
                inserting = clause.action is MergeAction.INSERT
                self.check_constants(self.values(clause.assignments, keys_may_change=True, inserting=inserting))

    def source(self) -> DataFrame:
        """The rows to merge, as they were before the table got columns of theirs."""
        if self._rows is not None:
            return self._rows
        return self.query(f"SELECT * FROM {self._statement.source} AS {quoted(self._source)}")

    def merged(self, moment: str | None, schema: pa.Schema) -> DataFrame:
        """What the clauses make of the table at a moment."""
        source = self.source()
        columns = source.columns
        self.see_ages(source.schema)
        source = self._newest(self.placed(source))
        ours, theirs = self.named(self.rows(moment)), self.named(source)
        self._check_conditions(ours, theirs)
        joined = self._joined(ours, theirs, columns, schema)
        if len(self._statement.clauses) > 1:
            joined = joined.persist()
            self.stack.callback(joined.unpersist)
        pairs = self.named(joined)
        made = [self._made_by(clause, number, pairs, columns, schema) for number, clause in enumerate(self._statement.clauses)]
        return reduce(DataFrame.unionAll, made)

    def _newest(self, source: DataFrame) -> DataFrame:
        """The newest row of each key, found before any clause is looked at, as Apache Hudi finds it; see `newest_rows`.

        All rows where these match by anything else than the key, or do not say which is newer.
        """
        names = self._naming(source.columns)
        if not names or not self.ages.fields:
            return source
        keys = [col(quoted(name)) for name in names]
        newest_first = [*(col(quoted(name)).desc_nulls_last() for name in self.ages.names), col(_AT).desc()]
        turn = row_number().over(Window.partitionBy(*keys).orderBy(*newest_first))
        numbered = source.withColumn(_AT, monotonically_increasing_id()).withColumn(_TURN, turn)
        nameless = reduce(lambda one, other: one | other, (key.isNull() for key in keys))
        return numbered.where((col(_TURN) == 1) | nameless).drop(_AT, _TURN)

    def _naming(self, columns: Sequence[str]) -> list[str]:
        """The source's columns that say which row of the table one is; none where the condition is not that keys are equal."""
        try:
            condition = merge_condition(self._statement.on, Sides(self.alias, self._source))
        except HudiError:  # what the engine does not read is more than equal columns
            return []
        joined = {ours.lower(): theirs.lower() for ours, theirs in condition.pairs}
        keys, fixed = {name.lower() for name in self.keys}, {name.lower() for name in self.fixed}
        if condition.rest is not None or not keys or not keys <= joined.keys() <= fixed:
            return []
        spelt = [name.lower() for name in columns]
        names = [joined[name] for name in sorted(keys)]
        paths = [*(joined[name] for name in sorted(joined.keys() - keys)), *sorted((fixed - joined.keys()) & set(spelt))]
        if paths and not self.keys_are_of_table:
            names += paths
        return [columns[spelt.index(name)] for name in names] if all(spelt.count(name) == 1 for name in names) else []

    def _check_conditions(self, target: str, source: str) -> None:
        """Let Spark say where the condition of a clause names the side that its rows do not have."""
        for clause in self._statement.clauses:
            if clause.condition is not None and clause.rows is not MergeRows.MATCHED:
                inserting = clause.rows is MergeRows.NOT_MATCHED
                rows, name = (source, self._source) if inserting else (target, self.alias)
                _ = self.query(f"SELECT ({clause.condition}) AS c FROM {rows} AS {quoted(name)}").schema

    def _joined(self, target: str, source: str, columns: Sequence[str], schema: pa.Schema) -> DataFrame:
        """A struct for each side, the names that only one of them has, and the number of the clause that a row goes to."""
        t, s = quoted(self.alias), quoted(self._source)
        kinds = {clause.rows for clause in self._statement.clauses}
        join = JOINS[MergeRows.NOT_MATCHED in kinds, MergeRows.NOT_MATCHED_BY_SOURCE in kinds]
        scoped = [rows for rows in _SIDES if any(c.rows is rows and c.condition is not None for c in self._statement.clauses)]
        hidden = [f"struct({side}.* EXCEPT ({_PRESENT})) AS {struct}" for side, struct in ((t, _OURS), (s, _THEIRS))]
        hidden += [f"{t}.{_PRESENT} AS {_OURS}{_PRESENT}", f"{s}.{_PRESENT} AS {_THEIRS}{_PRESENT}"]
        chosen = self._chosen([rows for rows in MergeRows if rows not in scoped], f"{t}.{_PRESENT}", f"{s}.{_PRESENT}")
        rows = (
            f"SELECT {', '.join(hidden)}, {chosen} AS {CLAUSE} FROM (SELECT *, true AS {_PRESENT} FROM {target}) AS {t} "
            f"{join} JOIN (SELECT *, true AS {_PRESENT} FROM {source}) AS {s} ON ({self._statement.on})"
        )
        for kind in scoped:
            rows = self._scoped(kind, rows, columns if _SIDES[kind] == _THEIRS else self.session.spark.table(target).columns)
        sides = [self.alias.lower(), self._source.lower()]  # which are structs here
        theirs = [*(name.lower() for name in columns), *sides]
        ours = [*(name.lower() for name in schema.names), *sides]
        bare = [f"{_OURS}.{quoted(n)}" for n in schema.names if n.lower() not in theirs]
        bare += [f"{_THEIRS}.{quoted(n)}" for n in columns if n.lower() not in ours]
        shown = ", ".join([f"{_OURS} AS {t}", f"{_THEIRS} AS {s}", *bare, CLAUSE])
        return self.query(f"SELECT {shown} FROM ({rows}) WHERE {CLAUSE} IS NOT NULL")

    def _scoped(self, kind: MergeRows, rows: str, columns: Sequence[str]) -> str:
        """The rows with the clauses of a kind whose conditions see one side alone, under its name and without it."""
        side, struct = (self._source, _THEIRS) if _SIDES[kind] == _THEIRS else (self.alias, _OURS)
        spelt = [name.lower() for name in columns]
        seen = [f"{struct}.{quoted(name)}" for name in columns if spelt.count(name.lower()) == 1]
        carried = [_OURS, _THEIRS, f"{_OURS}{_PRESENT}", f"{_THEIRS}{_PRESENT}"]
        chosen = self._chosen([kind], *carried[2:])
        scope = f"(SELECT {', '.join([*carried, CLAUSE, *seen])} FROM ({rows})) AS {quoted(side)}"
        return f"SELECT {', '.join(carried)}, coalesce({CLAUSE}, {chosen}) AS {CLAUSE} FROM {scope}"

    def _chosen(self, kinds: Sequence[MergeRows], ours: str, theirs: str) -> str:
        """The number of the first clause of some kinds that a row goes to, null for none.

        Args:
            kinds: Of clauses.
            ours: Null in rows that the table has not.
            theirs: Null in rows that the source has not.
        """
        there = {
            MergeRows.MATCHED: f"{ours} IS NOT NULL AND {theirs} IS NOT NULL",
            MergeRows.NOT_MATCHED: f"{ours} IS NULL",
            MergeRows.NOT_MATCHED_BY_SOURCE: f"{theirs} IS NULL",
        }
        whens = [
            f"WHEN {there[clause.rows]} AND ({clause.condition or 'true'}) THEN {number}"
            for number, clause in enumerate(self._statement.clauses)
            if clause.rows in kinds
        ]
        return f"CASE {' '.join(whens)} END" if whens else "CAST(null AS int)"

    def _made_by(self, clause: MergeClause, number: int, pairs: str, columns: Sequence[str], schema: pa.Schema) -> DataFrame:
        values = self._values(clause, columns)
        if clause.action is MergeAction.INSERT:
            nothing = [f"null AS {quoted(alias)}" for alias in ROW_COLUMNS.values()] + ["null"] * self.beside
            shown = ", ".join([*nothing, *(values.get(name) or self.defaults.get(name, "null") for name in schema.names)])
        else:
            matched = clause.rows is MergeRows.MATCHED
            ages = [f"{quoted(self._source)}.{quoted(name)}" if matched else "null" for name in self.ages.names]
            shown = self.shown(schema, values, ages=ages)
        sides = f"(SELECT {self._visible(clause.rows, columns, schema)} FROM {pairs})"
        return self.changes(f"SELECT {shown} FROM {sides} WHERE {CLAUSE} = {number}", ACTIONS[clause.action], schema)

    def _visible(self, rows: MergeRows, columns: Sequence[str], schema: pa.Schema) -> str:
        """What a clause may name: both sides, or the one that its rows have, whose columns are there without it as well."""
        if rows is MergeRows.MATCHED:
            return "*"
        ours = rows is MergeRows.NOT_MATCHED_BY_SOURCE
        side, names = (self.alias, schema.names) if ours else (self._source, columns)
        bare = [name for name in names if name.lower() not in (self.alias.lower(), self._source.lower())]
        return ", ".join([quoted(side), CLAUSE, *(f"{quoted(side)}.{quoted(name)}" for name in bare)])

    def _values(self, clause: MergeClause, columns: Sequence[str]) -> dict[str, str]:
        inserting = clause.action is MergeAction.INSERT
        if clause.action is MergeAction.DELETE:
            return {}
        stated = clause.assignments
        if stated is None:
            both = all_of_both(self.entry.columns, columns)
            stated = tuple(((name,), f"{quoted(self._source)}.{quoted(theirs)}") for name, theirs in both.items())
        return self.values(stated, keys_may_change=True, inserting=inserting)
