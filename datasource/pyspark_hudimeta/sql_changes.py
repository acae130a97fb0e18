"""UPDATE, DELETE and MERGE: Spark computes what becomes of which rows, in its own words; the engine writes that in one commit.

Conditions and new values are the user's text, evaluated by Spark over the table's rows as of the moment on which the write
rests. Rows go to the engine with their meta columns, so that nothing has to be looked up again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from hudimeta.config import OPTIONS
from hudimeta.config.options import AS_OF, COLUMNS
from hudimeta.errors import ConfigError
from hudimeta.sql import Delete, Merge, MergeAction, MergeClause, MergeRows, Update, quoted
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import Operation
from hudimeta.write.computed_changes import Changes, write_changes
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.assignment import assigned, column_of
from pyspark_hudimeta.sql_session import Entry, SqlSession, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudimeta.sql.statement import Assignments

__all__ = ["delete", "merge", "update"]

_NUMBER = count()
_META = ("_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
_PRESENT, _CLAUSE = "_hudimeta_present", "_hudimeta_clause"
_JOINS = {(False, False): "INNER", (True, False): "RIGHT", (False, True): "LEFT", (True, True): "FULL"}
"""By whether clauses speak of rows that only the source has, and of rows that only the table has."""


def update(session: SqlSession, entry: Entry, statement: Update) -> DataFrame:
    """Run an UPDATE.

    Raises:
        ConfigError: Columns that are not there or must not change. AnalysisException, of Spark: What does not fit.
    """
    change = _Change(session, entry, statement.alias)
    values = change.values(statement.assignments, keys_may_change=False)

    def compute(moment: str | None, schema: pa.Schema) -> Changes:
        with change.view(moment) as view:
            shown = [values.get(name) or change.own(name) for name in schema.names]
            return Changes(updated=change.rows(f"{change.meta()}, {', '.join(shown)}", view, statement.where, schema))

    change.write(Operation.UPSERT, compute)
    return session.nothing()


def delete(session: SqlSession, entry: Entry, statement: Delete) -> DataFrame:
    """Run a DELETE.

    Raises:
        AnalysisException, of Spark: A condition that does not fit.
    """
    change = _Change(session, entry, statement.alias)

    def compute(moment: str | None, schema: pa.Schema) -> Changes:
        with change.view(moment) as view:
            shown = map(change.own, schema.names)
            return Changes(deleted=change.rows(f"{change.meta()}, {', '.join(shown)}", view, statement.where, schema))

    change.write(Operation.DELETE, compute)
    return session.nothing()


def merge(session: SqlSession, entry: Entry, statement: Merge) -> DataFrame:
    """Run a MERGE.

    Raises:
        ConfigError: Columns that do not fit. CommitError: A row of the table would be changed twice.
        AnalysisException, of Spark: What does not fit.
    """
    merging = _Merging(session, entry, statement)
    merging.write(Operation.UPSERT, merging.compute)
    return session.nothing()


class _Change:
    """Rows of one table, under the name that a statement's expressions give it."""

    def __init__(self, session: SqlSession, entry: Entry, alias: str | None) -> None:
        self.session, self.entry = session, entry
        self.alias = alias or entry.name.table
        self.options = {**session.settings, **entry.options}
        self.storage = CountingStorage(open_storage(entry.location, self.options))
        from pyspark_hudimeta.sql_insertion import opened

        properties = opened(session, entry).properties
        named = (*properties.record_keys, *properties.partition_fields)
        self.fixed = tuple(dict.fromkeys(name.partition(".")[0].partition(":")[0] for name in named))

    def write(self, operation: Operation, compute: object) -> None:
        """Write what `compute` makes."""
        write_changes(self.storage, OPTIONS.read(self.options), operation, compute)  # type: ignore[arg-type]

    def frame(self, moment: str | None) -> DataFrame:
        """The table at a moment, with meta columns."""
        options = {key: value for key, value in self.options.items() if key not in (AS_OF.key, COLUMNS.key)}
        if moment is not None:
            options[AS_OF.key] = moment
        return self.session.spark.read.format("hudimeta").options(**options).load(self.entry.location)

    @contextmanager
    def view(self, moment: str | None) -> Iterator[str]:
        """The same, as a temporary view."""
        with self.named(self.frame(moment)) as name:
            yield name

    @contextmanager
    def named(self, frame: DataFrame) -> Iterator[str]:
        """A DataFrame as a temporary view of a name that nobody else has."""
        name = f"_hudimeta_change_{next(_NUMBER)}"
        frame.createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.session.spark.catalog.dropTempView(name)

    def own(self, name: str) -> str:
        """A column of the table, in SQL."""
        return f"{quoted(self.alias)}.{quoted(name)}"

    def meta(self) -> str:
        """The meta columns that say which row it is, in SQL."""
        return ", ".join(map(self.own, _META))

    def values(self, assignments: Assignments, *, keys_may_change: bool, inserting: bool = False) -> dict[str, str]:
        """New values by column. Raises ConfigError for columns that are not there, come twice or must not change."""
        found: dict[str, str] = {}
        for parts, value in assignments:
            named = parts[1:] if len(parts) == 2 and parts[0].lower() == self.alias.lower() else parts
            if len(named) != 1:
                raise ConfigError("SET", ".".join(parts), "whole columns", "Set the struct as a whole, with named_struct.")
            column = column_of(self.entry.columns, named[0])
            if column in found:
                raise ConfigError("SET", column, "every column once")
            if column in self.fixed and not inserting:
                if not keys_may_change:
                    hint = "Delete the row and insert it anew: its key and its partition say which row it is."
                    raise ConfigError("SET", column, "a column that is neither part of the key nor of the partition", hint)
                value = self.unchanged(column, value)
            found[column] = f"({value})"
        return found

    def unchanged(self, column: str, value: str) -> str:
        """A value that must be what the column has already, in SQL."""
        own = self.own(column)
        text = literal(
            f"HUDIMETA_CONFIG: a MERGE would change column {column}, which is part of the key or of the partition. "
            "Delete the row and insert it anew."
        )
        return f"CASE WHEN {own} <=> ({value}) THEN {own} ELSE raise_error({text}) END"

    def rows(self, select: str, view: str, where: str | None, schema: pa.Schema) -> pa.Table:
        """Rows of a query over a view of the table, in the table's types."""
        condition = f" WHERE {where}" if where is not None else ""
        frame = self.session.query(f"SELECT {select} FROM {view} AS {quoted(self.alias)}{condition}")
        return self.fetched(frame, _META, schema)

    def fetched(self, frame: DataFrame, meta: Sequence[str], schema: pa.Schema) -> pa.Table:
        """Rows in the types of the table's columns, as Spark assigns them."""
        kinds = StructType([*[StructField(name, StringType()) for name in meta], *spark_schema(schema)])
        rows: pa.Table = assigned(self.session.jvm, self.entry.name.sql, kinds, frame).toArrow()
        return rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))


class _Merging(_Change):
    """One MERGE: the two sides are joined once; what each clause makes is read from that."""

    def __init__(self, session: SqlSession, entry: Entry, statement: Merge) -> None:
        super().__init__(session, entry, statement.alias)
        self._statement = statement
        self._source = statement.source_alias or "_hudimeta_source"
        if self._source.lower() == self.alias.lower():
            raise ConfigError("MERGE", self._source, "two names for the two sides", "Give the source an alias.")
        for clause in statement.clauses:
            if clause.assignments is not None:
                self.values(clause.assignments, keys_may_change=True, inserting=clause.action is MergeAction.INSERT)

    def compute(self, moment: str | None, schema: pa.Schema) -> Changes:
        """What the clauses make of the table at a moment."""
        with ExitStack() as stack:
            target = stack.enter_context(self.view(moment))
            source = self.session.query(f"SELECT * FROM {self._statement.source} AS {quoted(self._source)}")
            joined = self._joined(target, stack.enter_context(self.named(source)), source.columns, schema).persist()
            stack.callback(joined.unpersist)
            pairs = stack.enter_context(self.named(joined))
            made: dict[MergeAction, list[pa.Table]] = {action: [] for action in MergeAction}
            for number, clause in enumerate(self._statement.clauses):
                made[clause.action].append(self._made(clause, number, pairs, source.columns, schema))
        tables = {action: pa.concat_tables(parts) if parts else None for action, parts in made.items()}
        return Changes(tables[MergeAction.UPDATE], tables[MergeAction.DELETE], tables[MergeAction.INSERT])

    def _joined(self, target: str, source: str, columns: Sequence[str], schema: pa.Schema) -> DataFrame:
        """A struct for each side, the names that only one of them has, and the number of the clause that a row goes to."""
        t, s = quoted(self.alias), quoted(self._source)
        kinds = {clause.rows for clause in self._statement.clauses}
        join = _JOINS[MergeRows.NOT_MATCHED in kinds, MergeRows.NOT_MATCHED_BY_SOURCE in kinds]
        whens = " ".join(
            f"WHEN {self._rows_of(clause.rows)} AND ({clause.condition or 'true'}) THEN {number}"
            for number, clause in enumerate(self._statement.clauses)
        )
        theirs = [name.lower() for name in columns]
        ours = [name.lower() for name in schema.names]
        bare = [f"{t}.{quoted(n)}" for n in schema.names if n.lower() not in theirs]
        bare += [f"{s}.{quoted(n)}" for n in columns if n.lower() not in ours]
        shown = [f"struct({t}.*) AS {t}", f"struct({s}.*) AS {s}", *bare, f"CASE {whens} END AS {_CLAUSE}"]
        return self.session.query(
            f"SELECT * FROM (SELECT {', '.join(shown)} FROM (SELECT *, true AS {_PRESENT} FROM {target}) AS {t} "
            f"{join} JOIN (SELECT *, true AS {_PRESENT} FROM {source}) AS {s} ON {self._statement.on}) "
            f"WHERE {_CLAUSE} IS NOT NULL"
        )

    def _rows_of(self, rows: MergeRows) -> str:
        t, s = (f"{quoted(side)}.{_PRESENT}" for side in (self.alias, self._source))
        if rows is MergeRows.MATCHED:
            return f"{t} IS NOT NULL AND {s} IS NOT NULL"
        return f"{t} IS NULL" if rows is MergeRows.NOT_MATCHED else f"{s} IS NULL"

    def _made(self, clause: MergeClause, number: int, pairs: str, columns: Sequence[str], schema: pa.Schema) -> pa.Table:
        inserting = clause.action is MergeAction.INSERT
        values = self._values(clause, columns)
        if clause.action is MergeAction.UPDATE:
            shown = [values.get(name) or self.own(name) for name in schema.names]
        elif inserting:
            shown = [values.get(name) or "null" for name in schema.names]
        else:
            shown = [self.own(name) for name in schema.names]
        meta = () if inserting else _META
        select = ", ".join([*map(self.own, meta), *shown])
        frame = self.session.query(f"SELECT {select} FROM {pairs} WHERE {_CLAUSE} = {number}")
        return self.fetched(frame, meta, schema)

    def _values(self, clause: MergeClause, columns: Sequence[str]) -> dict[str, str]:
        inserting = clause.action is MergeAction.INSERT
        if clause.action is MergeAction.DELETE:
            return {}
        stated = clause.assignments
        if stated is None:
            theirs = {name.lower(): name for name in columns}
            both = [name for name in self.entry.columns.names if name.lower() in theirs]
            stated = tuple(((name,), f"{quoted(self._source)}.{quoted(theirs[name.lower()])}") for name in both)
        return self.values(stated, keys_may_change=True, inserting=inserting)
