"""`Table.merge`: what becomes of rows that two sides share, or that one of them lacks, said clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import checked
from hudimeta.errors import ConfigError
from hudimeta.indexes.expression_index.expressions import Assigned, assigned_fields
from hudimeta.predicate.tree import Column
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.batch import KeyedBatch, check_sound, concatenated, keyed_batch
from hudimeta.write.combining import combining_rules
from hudimeta.write.doubled_keys import combined_where_new
from hudimeta.write.merge_clauses import (
    Clause,
    ClauseKind,
    MergeCondition,
    Positions,
    Sides,
    claimed,
    join,
    merge_condition,
    new_values,
    refuse_several_matches,
    refuse_twins,
    side_by_side,
)
from hudimeta.write.merge_keys import all_looked_for, key_pairs
from hudimeta.write.newest_source import newest_rows
from hudimeta.write.row_changes import changed_batch, known_batch, partial_columns, read_rows, scan_of
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import Prepared, write_prepared

__all__ = ["Merge", "MergeBuilder"]

Run = Callable[[Callable[[WriteSession], CommitReport]], CommitReport]


@checked
@dataclass(frozen=True)
class MergeBuilder:
    """A merge that is being described; nothing happens before `execute`. Every method returns a new builder.

    Clauses are tried in the order in which they were added, those of each kind among themselves: a row goes to the first whose
    condition is true of it, and stays as it is where none is. New values are SQL expressions over `target.x` and `source.x`
    (or the aliases that were given), or constants that are no text.

    Attributes:
        source: Rows to merge.
        on: When two rows are the same, see `Table.merge`.
        target_alias, source_alias: Names in expressions.
        run: Runs the write.
        clauses: What was added so far.
    """

    source: pa.Table
    on: str | Sequence[str] | Mapping[str, str]
    target_alias: str
    source_alias: str
    run: Run
    clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, set: Mapping[str, Assigned] | None = None, *, condition: str | None = None) -> MergeBuilder:
        """Change rows that are in both: columns to new values; None takes every column of the source."""
        return self._with(Clause(ClauseKind.MATCHED, False, condition, set))

    def when_matched_delete(self, *, condition: str | None = None) -> MergeBuilder:
        """Delete rows that are in both."""
        return self._with(Clause(ClauseKind.MATCHED, True, condition))

    def when_not_matched_insert(
        self, values: Mapping[str, Assigned] | None = None, *, condition: str | None = None
    ) -> MergeBuilder:
        """Insert rows that only the source has: columns from expressions; None takes every column of the source.

        A bare name that both sides have is the source's.
        """
        return self._with(Clause(ClauseKind.NOT_MATCHED, False, condition, values))

    def when_not_matched_by_source_update(self, set: Mapping[str, Assigned], *, condition: str | None = None) -> MergeBuilder:
        """Change rows that only the table has; a bare name that both sides have is the table's."""
        return self._with(Clause(ClauseKind.NOT_MATCHED_BY_SOURCE, False, condition, set))

    def when_not_matched_by_source_delete(self, *, condition: str | None = None) -> MergeBuilder:
        """Delete rows that only the table has; a bare name that both sides have is the table's."""
        return self._with(Clause(ClauseKind.NOT_MATCHED_BY_SOURCE, True, condition))

    def _with(self, clause: Clause) -> MergeBuilder:
        return replace(self, clauses=(*self.clauses, clause))

    def execute(self) -> CommitReport:
        """Merge, in one commit.

        Raises:
            ConfigError: No clause, or columns or expressions that do not fit.
            SchemaError: Values that do not fit.
            CommitError: Several rows of the source would change one row of the table, and no order says which is the newest.
            CommitConflict: Other writers were first.
        """
        if not self.clauses:
            hint = "Add when_matched_update() and when_not_matched_insert() for an upsert."
            raise ConfigError("merge", "no clause", "at least one", hint)
        if self.target_alias == self.source_alias:
            raise ConfigError("merge", self.source_alias, "two names for the two sides")
        return self._run()

    def _run(self) -> CommitReport:
        return self.run(lambda session: write_prepared(session, Operation.UPSERT, lambda table: self._rows(session, table)))

    def _of(self, kind: ClauseKind) -> list[Clause]:
        return [clause for clause in self.clauses if clause.kind is kind]

    def _rows(self, session: WriteSession, table: TableFiles) -> Prepared:
        sides = Sides(self.target_alias, self.source_alias)
        condition = merge_condition(self.on, sides)
        check_sound(self.source)
        source = self.source.drop_columns([c for c in META_COLUMNS if c in self.source.column_names])
        everything = bool(self._of(ClauseKind.NOT_MATCHED_BY_SOURCE))
        where = None
        if not everything:
            of_target = scan_of(session, table, None).schema
            pairs = key_pairs(condition.pairs, of_target, source.schema, (sides.target, sides.source))
            where = all_looked_for(pairs, source)
        target = read_rows(session, table, where)
        return Merge(session, table, target, source, sides, condition, self.clauses).prepared()


class Merge:
    """One merge at one state of the table, of all rows or of those of both sides that can match each other.

    Args:
        session: The table.
        table: Its files, as the write sees them.
        target: Its rows, meta columns included.
        source: Rows to merge.
        sides: Names of the two.
        condition: When two rows are the same.
        clauses: What becomes of them.
    """

    def __init__(
        self,
        session: WriteSession,
        table: TableFiles,
        target: pa.Table,
        source: pa.Table,
        sides: Sides,
        condition: MergeCondition,
        clauses: Sequence[Clause],
    ) -> None:
        self._session, self._table, self._sides, self._clauses = session, table, sides, clauses
        refuse_twins(source.schema)
        newest = newest_rows(table, target.schema, source, condition, clauses, sides, session.rules.ordering_fields)
        self._target, self._source = target, newest
        self._schemas = (target.schema, source.schema)
        self._may_move, generator = table.lookup.choice.finds_anywhere, table.generator()
        self._paths = {field.name.partition(".")[0] for field in generator.partitions}
        self._fixed = generator.key_columns if self._may_move else generator.fixed_columns
        self._joined = join(target, newest, condition, sides)
        self._batches: list[KeyedBatch] = [known_batch(target.slice(0, 0), table.snapshot.file_schema, deleted=False)]

    def prepared(self) -> Prepared:
        """The rows to write. See `MergeBuilder.execute` for what may be raised."""
        joined = self._joined
        matched = self._apply(ClauseKind.MATCHED, joined.target, joined.source)
        refuse_several_matches(matched)
        self._apply(ClauseKind.NOT_MATCHED_BY_SOURCE, joined.only_target, None)
        self._apply(ClauseKind.NOT_MATCHED, None, joined.only_source)
        rules = combining_rules(self._session.properties, self._session.rules)
        batch = combined_where_new(concatenated(self._batches), partial(self._table.lookup.one_a_key, rules=rules))
        return Prepared(batch, self._table.snapshot.file_schema, self._changed_columns(), rests_on_rows=True)

    def _changed_columns(self) -> frozenset[str] | None:
        """Columns that any clause sets; None where rows are inserted, which must be whole."""
        if any(clause.kind is ClauseKind.NOT_MATCHED for clause in self._clauses):
            return None
        updates = [clause for clause in self._clauses if not clause.deletes]
        names = {field.name for clause in updates for field, _ in self._assigned(clause)}
        return partial_columns(self._session, self._table, names)

    def _apply(self, kind: ClauseKind, t: Positions | None, s: Positions | None) -> Positions:
        """Add the rows that the clauses of a kind make; returns the table's positions that they change."""
        clauses = [clause for clause in self._clauses if clause.kind is kind]
        changed: list[Positions] = [np.zeros(0, np.int64)]
        if not clauses:
            return changed[0]
        sides = self._sides.where(kind)
        rows = side_by_side(self._target, self._source, t, s, sides)
        for clause, at in zip(clauses, claimed(rows, clauses, sides, self._schemas), strict=True):
            part = rows.take(pa.array(at))
            if t is None:
                self._batches.append(self._inserted(clause, part, sides))
                continue
            self._batches.append(self._changed(clause, self._target.take(pa.array(t[at])), part, sides))
            changed.append(t[at])
        return np.concatenate(changed)

    def _changed(self, clause: Clause, own: pa.Table, part: pa.Table, sides: Sides) -> KeyedBatch:
        if clause.deletes:
            return known_batch(own, self._table.snapshot.file_schema, deleted=True)
        fields = self._assigned(clause)
        moving = any(field.name in self._paths for field, _ in fields)
        before = own.select([name for name in own.column_names if name in self._paths]) if moving else None
        return changed_batch(self._session, self._table, new_values(part, fields, own, sides, self._schemas), before)

    def _inserted(self, clause: Clause, part: pa.Table, sides: Sides) -> KeyedBatch:
        schema, wider = self._table.snapshot.file_schema, self._insertable
        empty = pa.table([pa.nulls(part.num_rows, f.type) for f in wider], schema=wider)
        fields = self._assigned(clause, inserting=True)
        rows = new_values(part, fields, empty, sides, self._schemas)
        # Columns that nobody fills are left out, so that a required one is missed by its name.
        rows = rows.select([f.name for f, _ in fields])
        generator, rules = self._table.generator(), self._session.rules
        made = keyed_batch(rows, schema, generator, rules)
        if made.keys is None:
            raise ConfigError(
                "merge", "insert", "a table with key columns", "Insert the rows of a keyless table with insert()."
            )
        return made

    @property
    def _insertable(self) -> pa.Schema:
        """Columns that rows to insert, or to move, have: those of the files, and those that only the partition path states."""
        schema = self._table.snapshot.file_schema
        return pa.schema([*schema, *(f for f in self._target.schema if f.name in self._paths - set(schema.names))])

    def _assigned(self, clause: Clause, *, inserting: bool = False) -> list[tuple[pa.Field, Assigned]]:
        schema = self._insertable if inserting or self._may_move else self._table.snapshot.file_schema
        if clause.values is not None:
            fixed = () if inserting else self._fixed
            return assigned_fields(schema, clause.values, fixed)
        own = {name.lower(): name for name in self._source.column_names}
        fields = [f for f in schema if f.name.lower() in own and (inserting or f.name not in self._fixed)]
        return [(f, Column((self._sides.source, own[f.name.lower()]))) for f in fields]
