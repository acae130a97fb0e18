"""Rows of a table that a statement changes, as a DataFrame of changes: Spark computes it in the statement's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit, monotonically_increasing_id
from pyspark.sql.types import (
    BooleanType,
    DateType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from hudimeta.cached import cached_property
from hudimeta.commit.supported import contradictions
from hudimeta.config import OPTIONS
from hudimeta.config.options import AS_OF, COLUMNS
from hudimeta.errors import ConfigError
from hudimeta.indexes.choice import choose_index
from hudimeta.sql import is_default, quoted
from hudimeta.types import Operation
from hudimeta.write.routed.computed import ACTION, AGE, BEFORE, ROW_COLUMNS, RowAction
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.routed.assignment import assigned, column_of, same_named
from pyspark_hudimeta.routed.write import compute_frame
from pyspark_hudimeta.sql.assignments import Path, set_path, whole_columns
from pyspark_hudimeta.sql.column_defaults import defaults_of
from pyspark_hudimeta.sql.constants import check_constants
from pyspark_hudimeta.sql.session import Entry, SqlSession, literal, opened

if TYPE_CHECKING:
    from hudimeta.commit.report import CommitReport
    from hudimeta.metadata.index_definitions import IndexDefinition
    from hudimeta.sql import Assignments
    from hudimeta.table.properties import TableProperties

__all__ = ["PLACE", "Change", "key_changed"]

_ANSI = "spark.sql.ansi.enabled"
_FROM_TEXT = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)
_GENERATOR = re.compile(r"\b(?:pos)?explode(?:_outer)?\s*\(|\b(?:inline(?:_outer)?|stack|json_tuple)\s*\(", re.IGNORECASE)
_NUMBER = count()
_SEQNO = "_hoodie_commit_seqno"
PLACE = "_hudimeta_place"
"""Where a row stands in its source."""


def options_of_change(entry: Entry, settings: Mapping[str, str], properties: TableProperties) -> dict[str, str]:
    """Options of a statement: as in Apache Hudi, what is SET goes before the entry's, but for what the table was made with.

    Args:
        entry: Of the table.
        settings: What is SET.
        properties: Of the table.
    """
    of_entry = OPTIONS.read(entry.options)

    def goes_first(key: str, text: str) -> bool:
        option = OPTIONS.find(key)
        return option is not None and of_entry.is_set(option) and not contradictions(properties, OPTIONS.read({key: text}))

    first = {key: text for key, text in settings.items() if key.startswith("hoodie.") and goes_first(key, text)}
    return OPTIONS.read(settings).having(of_entry.having(first).given).given


class Change:
    """Rows of one table, under the name that a statement's expressions give it."""

    def __init__(
        self, session: SqlSession, entry: Entry, alias: str | None, added: StructType | None = None, queries: str = ""
    ) -> None:
        self.session, self.entry, self._queries = session, entry, queries
        self._added = added or StructType()
        """Columns that the table shall get."""
        self.alias = alias or entry.name.table
        self.stack = ExitStack()
        self._table = table = opened(session, entry)
        properties = table.properties
        self.options = options_of_change(entry, session.settings, properties)
        self.defaults = defaults_of(entry, table)
        """In SQL, by column."""
        self._ordering, self.keys = properties.ordering_fields, properties.record_keys
        self.key_columns, self._path_columns = _tops(properties.record_keys), _tops(properties.partition_fields)
        self.key_fields = tuple(_path(name) for name in properties.record_keys)
        self._fixed_fields = (*self.key_fields, *(_path(name) for name in properties.partition_fields))
        self.ages = StructType()
        """Columns of the source by which the newest of several changes of one row is found; none where it has none."""
        self.fixed = tuple(dict.fromkeys((*self.key_columns, *self._path_columns)))
        self.before = StructType()
        """Columns of the partition as they were, which changes carry that may give them another value."""

    def write(self, operation: Operation, make: Callable[[str | None, pa.Schema], DataFrame]) -> CommitReport:
        """Write the changes that `make` finds for a moment and columns."""
        with self.stack:
            return compute_frame(self.session.spark, self.entry.location, OPTIONS.read(self.options), operation, make)

    @cached_property
    def keys_are_of_table(self) -> bool:
        """Whether a key is there once in the whole table, as global indexes have it, and not once in each partition."""
        options, properties, table = OPTIONS.read(self.options), self._table.properties, self._table.table

        def definitions() -> Mapping[str, IndexDefinition]:
            metadata = table.snapshot().metadata
            return metadata.index_definitions if metadata is not None else {}

        return choose_index(options, properties, lambda: True, definitions).is_global

    def placed(self, source: DataFrame) -> DataFrame:
        """A source with the places of its rows, of which the last for each of the table's counts where the table has no order.

        As in Apache Hudi, which writes one after the other. Other sources are given back as they are.
        """
        if self._ordering:
            return source
        self.ages = StructType([StructField(PLACE, LongType())])
        return source.withColumn(PLACE, monotonically_increasing_id())

    def see_ages(self, source: StructType) -> None:
        """Find the ordering columns in a source, whose newest row for each of the table's is the one that counts."""
        both = same_named(self.entry.columns, source.names)
        theirs = [source[both[name]] for name in self._ordering if name in both]
        if (
            theirs
            and len(theirs) == len(self._ordering)
            and [c.dataType for c in theirs] == [self.entry.columns[name].dataType for name in self._ordering]
        ):
            self.ages = StructType(theirs)

    def see_moves(self, updates: Iterable[Iterable[Path] | None]) -> None:
        """Find the columns of the partition, if updates may give them other values.

        Args:
            updates: The columns that each of them names; None for all.
        """
        columns = self.entry.columns
        own = {name: column_of(columns, name) for name in self._path_columns}
        if any(named is None or any(self.set_path(path, ())[0] in own.values() for path in named) for named in updates):
            self.before = StructType([StructField(name, columns[spelt].dataType) for name, spelt in own.items()])

    @property
    def beside(self) -> int:
        """How many columns changes carry beside what says which row each is and the columns of the table."""
        return len(self.ages) + len(self.before)

    def rows(self, moment: str | None) -> DataFrame:
        """The table at a moment, with meta columns."""
        options = {key: value for key, value in self.options.items() if key not in (AS_OF.key, COLUMNS.key)}
        if moment is not None:
            options[AS_OF.key] = moment
        rows = self.session.spark.read.format("hudimeta").options(**options).load(self.entry.location)
        return rows.withColumns({c.name: lit(None).cast(c.dataType) for c in self._added}) if self._added else rows

    def named(self, frame: DataFrame) -> str:
        """A DataFrame as a temporary view of a name that nobody else has, while the statement runs."""
        name = f"_hudimeta_change_{next(_NUMBER)}"
        frame.createOrReplaceTempView(name)
        self.stack.callback(self.session.spark.catalog.dropTempView, name)
        return name

    def found(
        self, moment: str | None, schema: pa.Schema, action: RowAction, values: Mapping[str, str], where: str | None
    ) -> DataFrame:
        """Changes of the rows at a moment that a condition is true of."""
        condition = f" WHERE ({where})" if where is not None else ""
        rows = f"FROM {self.named(self.rows(moment))} AS {quoted(self.alias)}{condition}"
        # Rows of one key that were updated together have one sequence number, and each is changed once all the same.
        told_apart = f"concat({self.own(_SEQNO)}, '/', monotonically_increasing_id())"
        return self.changes(f"SELECT {self.shown(schema, values, told_apart)} {rows}", action, schema)

    def own(self, name: str) -> str:
        """A column of the table, in SQL."""
        return f"{quoted(self.alias)}.{quoted(name)}"

    def shown(self, schema: pa.Schema, values: Mapping[str, str], row: str | None = None, ages: Sequence[str] = ()) -> str:
        """What is selected of rows of the table: what says which row it is, and the columns with their new values.

        Args:
            schema: Of the table.
            values: New values by column, in SQL.
            row: What tells rows of one key apart, in SQL; None for their sequence numbers.
            ages: Of the rows of a source that change them, in SQL.
        """
        names = {_SEQNO: row or self.own(_SEQNO)}
        carried = [f"{names.get(name, self.own(name))} AS {quoted(alias)}" for name, alias in ROW_COLUMNS.items()]
        carried += [*ages, *(self.own(name) for name in self.before.names)]
        return ", ".join([*carried, *(values.get(name) or self.own(name) for name in schema.names)])

    def set_path(self, parts: Path, taken: Collection[Path], *, inserting: bool = False) -> Path:
        """What an assignment names. Raises ConfigError for what is not there, comes twice, or is a field in an INSERT."""
        path = set_path(self.entry.columns, self.alias, parts, taken)
        if inserting and len(path) > 1:
            raise ConfigError("INSERT", ".".join(parts), "whole columns", "Give the struct as a whole, with named_struct.")
        return path

    def values(self, assignments: Assignments, *, keys_may_change: bool, inserting: bool = False) -> dict[str, str]:
        """New values by column. Raises ConfigError for columns that are not there, come twice or must not change."""
        stated: dict[Path, str] = {}
        for parts, value in assignments:
            path = self.set_path(parts, stated, inserting=inserting)
            if is_default(value):
                value = self.defaults.get(path[0], "null") if len(path) == 1 else "null"
            # One row would become several: inside of another expression Spark refuses that.
            stated[path] = f"coalesce({value})" if _GENERATOR.search(value) else f"({value})"
        found = whole_columns(self.entry.columns, stated, self.own, _field, _struct)
        for column in found if not inserting else ():
            of_column = [path for path in stated if path[0] == column]
            if not keys_may_change and any(_overlap(path, one) for path in of_column for one in self._fixed_fields):
                hint = "Delete the row and insert it anew: its key and its partition say which row it is."
                raise ConfigError("SET", column, "a column that is neither part of the key nor of the partition", hint)
            if column in self.key_columns:
                found[column] = f"({self.unchanged(column, found[column])})"
        return found

    def check_constants(self, values: Mapping[str, str]) -> None:
        """Raise at once what is wrong with values that name nothing of the table; see `check_constants`."""

        def assign(column: str, one: DataFrame) -> DataFrame:
            return self._as_assigned(StructType([self.entry.columns[column]]), one)

        check_constants(self.session, values, assign)

    def unchanged(self, column: str, value: str) -> str:
        """A value that must be what the column has already, as far as it is part of the key, in SQL."""
        own = self.own(column)
        inside = [path[1:] for path in self.key_fields if path[0] == column]
        same = " AND ".join(f"{reduce(_field, path, own)} <=> {reduce(_field, path, f'({value})')}" for path in inside)
        return f"CASE WHEN {same} THEN {own if () in inside else value} ELSE raise_error({literal(key_changed(column))}) END"

    def changes(self, query: str, action: RowAction, schema: pa.Schema) -> DataFrame:
        """The rows of a query as changes, in the types of the table's columns, as Spark assigns them."""
        return self.typed(self.query(query), action, schema)

    def query(self, text: str) -> DataFrame:
        """The rows of a query that may name those of the statement's WITH clause."""
        return self.session.query(f"{self._queries} {text}")

    def typed(self, rows: DataFrame, action: RowAction, schema: pa.Schema) -> DataFrame:
        """Rows as changes.

        Args:
            rows: What says which row each is, the ages of those that change them, the columns of the partition as they were if
                any may change, and then the columns by their places.
            action: What becomes of the rows.
            schema: Of the changes.
        """
        carried = [StructField(name, StringType()) for name in ROW_COLUMNS.values()]
        carried += [StructField(f"{AGE}{number}", age.dataType) for number, age in enumerate(self.ages)]
        carried += [StructField(f"{BEFORE}{column.name}", column.dataType) for column in self.before]
        kinds = StructType([*carried, *spark_schema(schema)])
        return self._as_assigned(kinds, rows).withColumn(ACTION, lit(int(action)))

    def _as_assigned(self, kinds: StructType, rows: DataFrame) -> DataFrame:
        if str(self.session.spark.conf.get(_ANSI)).lower() == "true":  # otherwise what is no number became null in silence
            rows = _read_texts(rows, kinds)
        return assigned(self.session.jvm, self.entry.name.sql, kinds, rows)


def _read_texts(rows: DataFrame, kinds: StructType) -> DataFrame:
    """Rows whose texts are cast where columns are numbers, dates or times: `SET ts = '17'`, as Apache Hudi takes it."""
    given = rows.schema.fields
    if len(given) != len(kinds):
        return rows
    texts = [
        isinstance(field.dataType, StringType) and isinstance(kind.dataType, _FROM_TEXT)
        for field, kind in zip(given, kinds, strict=True)
    ]
    if not any(texts):
        return rows
    placed = rows.toDF(*(str(number) for number in range(len(given))))
    columns = [placed[str(number)] for number in range(len(given))]
    cast = [c.cast(kind.dataType) if text else c for c, kind, text in zip(columns, kinds, texts, strict=True)]
    return placed.select(*[column.alias(field.name) for column, field in zip(cast, given, strict=True)])


def _path(field: str) -> Path:
    """The column of a field, and what it is inside of that."""
    return tuple(field.partition(":")[0].split("."))


def _overlap(one: Path, other: Path) -> bool:
    return all(a == b for a, b in zip(one, other, strict=False))


def _tops(fields: Sequence[str]) -> tuple[str, ...]:
    """The columns of some fields, which a kind of key may follow."""
    return tuple(dict.fromkeys(_path(name)[0] for name in fields))


def _field(value: str, name: str) -> str:
    return f"{value}.{quoted(name)}"


def _struct(fields: Sequence[tuple[str, str]]) -> str:
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in fields)})"


def key_changed(column: str) -> str:
    """What is said of a MERGE that would change a column of the key."""
    return (
        f"HUDIMETA_CONFIG: a MERGE would change column {column}, which is part of the key. Delete the row and insert it anew."
    )
