"""`df.mergeInto(table, condition)`: a MERGE whose conditions and values are columns of DataFrames, not text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr, lit, raise_error, struct, when
from pyspark.sql.types import StructType

from hudimeta.config import refuse_on_write
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.sql import MergeAction, MergeRows, name_of, quoted
from hudimeta.types import Operation
from hudimeta.write.routed.computed import ROW_COLUMNS
from pyspark_hudimeta.routed.assignment import all_of_both, names_as_in
from pyspark_hudimeta.sql.assignments import Path, whole_columns
from pyspark_hudimeta.sql.change import Change, key_changed
from pyspark_hudimeta.sql.changes import ACTIONS, CLAUSE, JOINS, widened
from pyspark_hudimeta.sql.session import Entry, SqlSession

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MergeInto"]

_OURS, _THEIRS = "_hudimeta_ours", "_hudimeta_theirs"
"""True in the rows that a side of the join has."""


@dataclass(frozen=True)
class _Clause:
    """One `when…().…()`. condition: None for none. assignments: None for those of all columns."""

    rows: MergeRows
    action: MergeAction
    condition: Column | None
    assignments: Mapping[str, Column] | None = None


class MergeInto:
    """What Spark's `MergeIntoWriter` is, for a table of ours.

    Args:
        session: Where the table is named.
        entry: Of the table.
        rows: To merge.
        condition: What makes a row of them one of the table.
    """

    def __init__(self, session: SqlSession, entry: Entry, rows: DataFrame, condition: Column) -> None:
        self._session, self._entry, self._rows, self._on = session, entry, rows, condition
        self._clauses: tuple[_Clause, ...] = ()
        self._evolves = False

    def whenMatched(self, condition: Column | None = None) -> _When:  # noqa: N802 - Spark's name
        """What becomes of rows of the table that a row matches.

        Args:
            condition: Of both, None for all.
        """
        return _When(self, MergeRows.MATCHED, condition)

    def whenNotMatched(self, condition: Column | None = None) -> _When:  # noqa: N802 - Spark's name
        """What becomes of rows that match none of the table.

        Args:
            condition: Of them, None for all.
        """
        return _When(self, MergeRows.NOT_MATCHED, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> _When:  # noqa: N802 - Spark's name
        """What becomes of rows of the table that no row matches.

        Args:
            condition: Of them, None for all.
        """
        return _When(self, MergeRows.NOT_MATCHED_BY_SOURCE, condition)

    def withSchemaEvolution(self) -> MergeInto:  # noqa: N802 - Spark's name
        """Let columns that only the rows have become the table's, where a clause takes all columns."""
        self._evolves = True
        return self

    def merge(self) -> None:
        """Write, in one commit.

        Raises:
            ConfigError: No clause, or columns that do not fit.
            CommitError: A row of the table would be changed twice.
            AnalysisException, of Spark: What does not fit.
        """
        if not self._clauses:
            raise ConfigError("mergeInto", "no clause", "whenMatched, whenNotMatched or whenNotMatchedBySource before merge")
        refuse_on_write(self._entry.options)
        with names_as_in(self._session.spark):
            self._merge()

    def _merge(self) -> None:
        session, entry = self._session, self._entry
        merging = _FrameMerging(session, entry, self)
        if self._evolves and any(c.assignments is None and c.action is not MergeAction.DELETE for c in self._clauses):
            entry = widened(
                self._session, entry, self._rows, lambda wider, added: _FrameMerging(self._session, wider, self, added)
            )
            merging = _FrameMerging(self._session, entry, self)
        merging.write(Operation.UPSERT, merging.merged)

    def with_clause(self, clause: _Clause) -> MergeInto:
        """One more clause, after those that are there."""
        self._clauses = (*self._clauses, clause)
        return self

    @property
    def clauses(self) -> tuple[_Clause, ...]:
        """In their order: the first whose condition is true has the row."""
        return self._clauses

    @property
    def source(self) -> DataFrame:
        """The rows to merge."""
        return self._rows

    @property
    def on(self) -> Column:
        """What makes a row of them one of the table."""
        return self._on


class _When:
    """Rows of a MERGE that wait for what is done with them."""

    def __init__(self, merge: MergeInto, rows: MergeRows, condition: Column | None) -> None:
        self._merge, self._rows, self._condition = merge, rows, condition

    def update(self, assignments: Mapping[str, Column]) -> MergeInto:
        """Give columns of the table other values.

        Args:
            assignments: By column.
        """
        self._only(MergeRows.MATCHED, MergeRows.NOT_MATCHED_BY_SOURCE, verb="update")
        return self._done(MergeAction.UPDATE, dict(assignments))

    def updateAll(self) -> MergeInto:  # noqa: N802 - Spark's name
        """Give the columns of the table the values of the row's columns of their names."""
        self._only(MergeRows.MATCHED, verb="updateAll")
        return self._done(MergeAction.UPDATE)

    def insert(self, assignments: Mapping[str, Column]) -> MergeInto:
        """Insert the row.

        Args:
            assignments: Values by column; the others get their default, or null.
        """
        self._only(MergeRows.NOT_MATCHED, verb="insert")
        return self._done(MergeAction.INSERT, dict(assignments))

    def insertAll(self) -> MergeInto:  # noqa: N802 - Spark's name
        """Insert the row, by the names of its columns."""
        self._only(MergeRows.NOT_MATCHED, verb="insertAll")
        return self._done(MergeAction.INSERT)

    def delete(self) -> MergeInto:
        """Delete the row of the table."""
        self._only(MergeRows.MATCHED, MergeRows.NOT_MATCHED_BY_SOURCE, verb="delete")
        return self._done(MergeAction.DELETE)

    def _done(self, action: MergeAction, assignments: Mapping[str, Column] | None = None) -> MergeInto:
        return self._merge.with_clause(_Clause(self._rows, action, self._condition, assignments))

    def _only(self, *rows: MergeRows, verb: str) -> None:
        if self._rows not in rows:
            hint = (
                "Rows that match are updated or deleted, others of the source inserted, others of the table updated or deleted."
            )
            which = self._rows.name.lower().replace("_", " ")
            raise UnsupportedFeature(f"{verb} of rows that are {which}", hint)


class _FrameMerging(Change):
    """One MERGE of a DataFrame: the two sides are joined once; what each clause makes is read from that."""

    def __init__(self, session: SqlSession, entry: Entry, merge: MergeInto, added: StructType | None = None) -> None:
        super().__init__(session, entry, None, added)
        self._clauses, self._on = merge.clauses, merge.on
        self.see_ages(merge.source.schema)
        self._source = self.placed(merge.source).withColumn(_THEIRS, lit(True))
        updates = [clause for clause in self._clauses if clause.action is MergeAction.UPDATE]
        self.see_moves(None if c.assignments is None else [path for path, _ in self._stated(c)] for c in updates)
        for clause in self._clauses:
            if clause.assignments is not None:
                self._assigned(clause)

    def merged(self, moment: str | None, schema: pa.Schema) -> DataFrame:
        """What the clauses make of the table at a moment."""
        target = self._target(moment)
        kinds = {clause.rows for clause in self._clauses}
        how = JOINS[MergeRows.NOT_MATCHED_BY_SOURCE in kinds, MergeRows.NOT_MATCHED in kinds]
        # The rows to merge stand first: where both sides come of one DataFrame, its columns go on meaning them.
        joined = self._source.join(target, self._on, how.lower())
        if len(self._clauses) > 1:
            joined = joined.persist()
            self.stack.callback(joined.unpersist)
        made = []
        for kind in kinds:
            clauses = [clause for clause in self._clauses if clause.rows is kind]
            of_kind = self._rows_of(kind, joined, target.columns)
            numbered = [(clause.condition if clause.condition is not None else lit(True)) for clause in clauses]
            first = reduce(lambda rest, n: when(numbered[n], n).otherwise(rest), reversed(range(len(clauses))), lit(None))
            chosen = of_kind.withColumn(CLAUSE, first)
            made += [
                self.typed(self._made_by(clause, chosen.where(col(CLAUSE) == number), schema), ACTIONS[clause.action], schema)
                for number, clause in enumerate(clauses)
            ]
        return reduce(DataFrame.unionAll, made)

    def _target(self, moment: str | None) -> DataFrame:
        """The table under its name, by all of its parts where the session is of this process."""
        rows = self.rows(moment).withColumn(_OURS, lit(True))
        jvm = self.session.jvm
        if jvm is None:
            return rows.alias(self.alias)
        catalyst = jvm.view.org.apache.spark.sql.catalyst
        name = catalyst.AliasIdentifier(self.alias, jvm.seq(self.session.full_parts(self.entry.name)[:-1]))
        plan = catalyst.plans.logical.SubqueryAlias(name, rows._jdf.queryExecution().analyzed())
        return DataFrame(jvm.view.org.apache.spark.sql.classic.Dataset.ofRows(jvm.session, plan), rows.sparkSession)

    def _rows_of(self, kind: MergeRows, joined: DataFrame, columns: list[str]) -> DataFrame:
        """Rows of one kind, with the columns of the sides that have them: a bare name means that side's."""
        ours, theirs = col(_OURS), col(_THEIRS)
        if kind is MergeRows.MATCHED:
            return joined.where(ours.isNotNull() & theirs.isNotNull())
        if kind is MergeRows.NOT_MATCHED:
            return joined.where(ours.isNull()).drop(*[self._own(name) for name in columns])
        return joined.where(theirs.isNull()).select(f"{quoted(self.alias)}.*")

    def _own(self, name: str) -> Column:
        return col(self.own(name))

    def _made_by(self, clause: _Clause, rows: DataFrame, schema: pa.Schema) -> DataFrame:
        values = self._assigned(clause)
        if clause.action is MergeAction.INSERT:
            carried = [lit(None).alias(alias) for alias in ROW_COLUMNS.values()] + [lit(None)] * self.beside
            return rows.select(*carried, *[self._inserted(values, name).alias(name) for name in schema.names])
        carried = [self._own(name).alias(alias) for name, alias in ROW_COLUMNS.items()]
        matched = clause.rows is MergeRows.MATCHED
        carried += [self._source[quoted(name)] if matched else lit(None) for name in self.ages.names]
        carried += [self._own(name) for name in self.before.names]
        return rows.select(*carried, *[values.get(name, self._own(name)).alias(name) for name in schema.names])

    def _inserted(self, values: Mapping[str, Column], name: str) -> Column:
        return values[name] if name in values else expr(self.defaults.get(name, "null"))

    def _assigned(self, clause: _Clause) -> dict[str, Column]:
        """New values by column. Raises ConfigError for columns that are not there, come twice or must not change."""
        if clause.action is MergeAction.DELETE:
            return {}
        stated: dict[Path, Column] = {}
        inserting = clause.action is MergeAction.INSERT
        for parts, value in self._stated(clause):
            stated[self.set_path(parts, stated, inserting=inserting)] = value
        found = whole_columns(self.entry.columns, stated, self._own, Column.getField, _struct)
        fixed = [] if inserting else [column for column in found if column in self.key_columns]
        return found | {column: self._unchanged(column, found[column]) for column in fixed}

    def _stated(self, clause: _Clause) -> list[tuple[tuple[str, ...], Column]]:
        if clause.assignments is None:
            both = all_of_both(self.entry.columns, self._source.columns)
            return [((name,), self._source[quoted(theirs)]) for name, theirs in both.items()]
        found = []
        for key, value in clause.assignments.items():
            name = name_of(key)
            if name is None:
                raise ConfigError("mergeInto", key, f"columns of the table: {', '.join(self.entry.columns.names)}")
            found.append((name.parts, value))
        return found

    def _unchanged(self, column: str, value: Column) -> Column:
        """A value that must be what the column has already, as far as it is part of the key."""
        own = self._own(column)
        inside = [path[1:] for path in self.key_fields if path[0] == column]
        same = [reduce(Column.getField, path, own).eqNullSafe(reduce(Column.getField, path, value)) for path in inside]
        kept = own if () in inside else value
        return when(reduce(Column.__and__, same), kept).otherwise(raise_error(lit(key_changed(column))))


def _struct(fields: Sequence[tuple[str, Column]]) -> Column:
    return struct(*(value.alias(name) for name, value in fields))
