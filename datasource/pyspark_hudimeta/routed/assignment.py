"""Rows brought to a table's columns as an INSERT does it: by place or by name, with its rules of store assignment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import (
    col,
    concat,
    expr,
    lit,
    raise_error,
    struct,
    transform,
    transform_keys,
    transform_values,
    when,
)
from pyspark.sql.types import ArrayType, DataType, MapType, NumericType, StructField, StructType

from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.sql import quoted

if TYPE_CHECKING:
    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["all_of_both", "assigned", "assigned_as_named", "column_of", "filled", "names_as_in", "same_named"]

_POLICY, _ANSI = "spark.sql.storeAssignmentPolicy", "spark.sql.ansi.enabled"
_asking: ContextVar[SparkSession | None] = ContextVar("asking", default=None)
"""The session whose statement runs; Spark's active one is that of a thread: another one, or none in a thread of the user's."""


_NOT_BY_NAMES = ("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA", "INCOMPATIBLE_DATA_FOR_TABLE.AMBIGUOUS_COLUMN_NAME")
"""What Spark says of rows that do not have each of a table's columns, and field of its structs, once by its name."""


def assigned_as_named(jvm: Jvm | None, table: str, columns: StructType, rows: DataFrame) -> DataFrame:
    """Rows with exactly a table's columns and types: by name where each is found by its name, else by place.

    So Apache Hudi takes the rows of an INSERT that names no columns. Args, raises: See `assigned`.
    """
    if jvm is None:
        return _assigned_by_server(table, columns, rows, by_name=_has_names_of(rows.schema, columns, _spelling()))
    try:
        return assigned(jvm, table, columns, rows, by_name=True)
    except AnalysisException as error:
        if error.getCondition() not in _NOT_BY_NAMES:
            raise
    return assigned(jvm, table, columns, rows)


def assigned(jvm: Jvm | None, table: str, columns: StructType, rows: DataFrame, *, by_name: bool = False) -> DataFrame:
    """Rows with exactly a table's columns and types.

    Args:
        jvm: Of the session; None in a session of Spark Connect.
        table: Its name, for errors.
        columns: Of the table.
        rows: As many columns, in the table's order, or with its names.
        by_name: Which of the two.

    Raises:
        AnalysisException: Spark's own: columns that do not fit, or types that Spark does not assign.
        ConfigError, UnsupportedFeature: The same through Connect, where columns are too few, or rules of assignment not ANSI's.
    """
    if jvm is None:
        return _assigned_by_server(table, columns, rows, by_name)
    spark = rows.sparkSession
    expected = spark.createDataFrame([], columns)._jdf.queryExecution().analyzed().output()
    plan = rows._jdf.queryExecution().analyzed()
    resolver = jvm.view.org.apache.spark.sql.catalyst.analysis.TableOutputResolver
    fill = getattr(resolver, "resolveOutputColumns$default$6")()  # its type is another one in each release of Spark
    conf = jvm.session.sessionState().conf()
    resolved = resolver.resolveOutputColumns(table, expected, plan, by_name, conf, fill)
    return DataFrame(jvm.view.org.apache.spark.sql.classic.Dataset.ofRows(jvm.session, resolved), spark)


def _assigned_by_server(table: str, columns: StructType, rows: DataFrame, by_name: bool) -> DataFrame:
    """By `DataFrame.to`, whose casts follow the same rules as INSERT under Spark's own policy.

    It goes by names, those of fields as well, and makes nulls of what it does not find: so all must be there.
    """
    policy = str(rows.sparkSession.conf.get(_POLICY))
    if policy.upper() != "ANSI":
        raise UnsupportedFeature(f"{_POLICY}={policy} through Spark Connect", f"SET {_POLICY} = ANSI, Spark's default.")
    theirs, spelled = rows.columns, _spelling()
    if len(theirs) != len(columns.names) or (by_name and set(map(spelled, theirs)) != set(map(spelled, columns.names))):
        hint = "Give each a value, or say which are given, in their order: INSERT INTO t (a, b) …. The others are null."
        allowed = f"the columns of the table: {', '.join(columns.names)}"
        raise ConfigError(f"columns for {table}", ", ".join(theirs), allowed, hint)
    given = rows if by_name else _named_by_place(rows.toDF(*columns.names), columns)
    if not _has_names_of(given.schema, columns, spelled):
        shown = (given.schema.simpleString(), f"the fields of the table: {columns.simpleString()}")
        raise ConfigError(f"fields for {table}", *shown, "Give structs as many fields, and those of BY NAME the table's names.")
    if str(rows.sparkSession.conf.get(_ANSI)).lower() != "true":
        given = _checked(given, columns, spelled)
    return given.to(StructType([StructField(column.name, column.dataType) for column in columns]))


def _has_names_of(given: DataType, wanted: DataType, spelled: Callable[[str], str]) -> bool:
    """Whether each field of a type, and of the types in it, is found once by its name in another one that has no more."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        theirs = {spelled(field.name): field.dataType for field in given}
        found = [theirs.get(spelled(field.name)) for field in wanted]
        if not len(given) == len(theirs) == len(wanted):
            return False
        return all(
            one is not None and _has_names_of(one, field.dataType, spelled) for one, field in zip(found, wanted, strict=True)
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _has_names_of(given.elementType, wanted.elementType, spelled)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        both = ((given.keyType, wanted.keyType), (given.valueType, wanted.valueType))
        return all(_has_names_of(*pair, spelled) for pair in both)
    return True  # whether the types fit is for Spark to say


def _checked(rows: DataFrame, columns: StructType, spelled: Callable[[str], str]) -> DataFrame:
    """Rows whose numbers are those of a table's columns, or raise an error.

    An INSERT casts as ANSI mode does in any session, while `DataFrame.to` does so in that mode only: in others, a number that
    is too large would become another one, or null.
    """
    kinds = {spelled(column.name): column.dataType for column in columns}
    found: dict[str, Column] = {}
    for field in rows.schema:
        cast = _checked_cast(col(quoted(field.name)), field.dataType, kinds[spelled(field.name)], field.name, spelled)
        found |= {} if cast is None else {field.name: cast}
    return rows.withColumns(found) if found else rows  # Connect takes no empty list


def _checked_cast(value: Column, given: DataType, wanted: DataType, name: str, spelled: Callable[[str], str]) -> Column | None:
    """A value with numbers of the wanted types in the places of its own; None where it has them."""

    def inside(part: Column, given: DataType, wanted: DataType) -> Column:
        cast = _checked_cast(part, given, wanted, name, spelled)
        return part if cast is None else cast

    def differ(*pairs: tuple[DataType, DataType]) -> bool:
        return any(_checked_cast(lit(None), *pair, name, spelled) is not None for pair in pairs)

    if given == wanted:
        return None
    if isinstance(given, NumericType) and isinstance(wanted, NumericType):
        kind = wanted.simpleString()
        said = concat(lit(f"HUDIMETA_SCHEMA_MISMATCH: column {name!r} has a value that is no {kind}: "), value.cast("string"))
        cast = value.try_cast(wanted)
        return when(value.isNotNull() & cast.isNull(), raise_error(said)).otherwise(cast)
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        kinds = {spelled(field.name): field.dataType for field in wanted}
        both = {f.name: (f.dataType, kinds[spelled(f.name)]) for f in given}
        parts = [inside(value[field], *pair).alias(field) for field, pair in both.items()]
        return when(value.isNotNull(), struct(*parts)) if differ(*both.values()) else None
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        pair = (given.elementType, wanted.elementType)
        return transform(value, lambda one: inside(one, *pair)) if differ(pair) else None
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        of_keys, of_values = (given.keyType, wanted.keyType), (given.valueType, wanted.valueType)
        keyed = transform_keys(value, lambda key, _: inside(key, *of_keys))
        return transform_values(keyed, lambda _, one: inside(one, *of_values)) if differ(of_keys, of_values) else None
    return None  # whether the types fit is for Spark to say


def _named_by_place(rows: DataFrame, columns: StructType) -> DataFrame:
    """Rows whose structs have the names of a table's fields, each in the place where it stands; casts go by place."""
    kinds = {c.name: (rows.schema[c.name].dataType, _with_names_of(rows.schema[c.name].dataType, c.dataType)) for c in columns}
    others = {name: rows[quoted(name)].cast(named) for name, (given, named) in kinds.items() if named != given}
    return rows.withColumns(others) if others else rows  # Connect takes no empty list


def _with_names_of(given: DataType, wanted: DataType) -> DataType:
    if isinstance(given, StructType) and isinstance(wanted, StructType) and len(given) == len(wanted):
        both = zip(given, wanted, strict=True)
        return StructType([StructField(w.name, _with_names_of(g.dataType, w.dataType), g.nullable) for g, w in both])
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(_with_names_of(given.elementType, wanted.elementType), given.containsNull)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        key, value = _with_names_of(given.keyType, wanted.keyType), _with_names_of(given.valueType, wanted.valueType)
        return MapType(key, value, given.valueContainsNull)
    return given


def filled(columns: StructType, rows: DataFrame, named: Sequence[str], defaults: Mapping[str, str]) -> DataFrame:
    """Rows whose columns are named by a list, in the table's order, with default values where it leaves a column out.

    Args:
        columns: Of the table.
        rows: As many columns as the list.
        named: The list.
        defaults: In SQL, by column; null for all others.

    Raises:
        ConfigError: The list names other columns, or one twice, or not as many as the rows have.
    """
    if len(named) != len(rows.columns):
        raise ConfigError("INSERT", ", ".join(named), f"{len(rows.columns)} columns, as many as the query has")
    wanted = [column_of(columns, name) for name in named]
    if len(set(wanted)) != len(wanted):
        raise ConfigError("INSERT", ", ".join(named), "every column once")
    frame = rows.toDF(*wanted)
    return frame.select(*[frame[quoted(c.name)] if c.name in wanted else _default(c, defaults).alias(c.name) for c in columns])


def _default(column: StructField, defaults: Mapping[str, str]) -> Column:
    return expr(defaults[column.name]) if column.name in defaults else lit(None).cast(column.dataType)


def column_of(columns: StructType, name: str) -> str:
    """A column's own spelling, as the session compares names. Raises ConfigError when there is none of this name."""
    found = [c for c in columns.names if c == name]
    if not found and not _is_case_sensitive():
        found = [c for c in columns.names if c.lower() == name.lower()]
    if not found:
        hint = "Name columns of the table."
        raise ConfigError("column", name, f"columns of the table: {', '.join(columns.names)}", hint)
    return str(found[0])


def same_named(columns: StructType, others: Sequence[str]) -> dict[str, str]:
    """Those of other columns that have the name of a column of a table, by this one, as the session compares names."""
    alike = {} if _is_case_sensitive() else {name.lower(): name for name in others}
    found = {name: name if name in others else alike.get(name.lower()) for name in columns.names}
    return {name: other for name, other in found.items() if other is not None}


def all_of_both(columns: StructType, others: Sequence[str]) -> dict[str, str]:
    """What `UPDATE SET *` and `INSERT *` assign: other columns by those of a table that have their names.

    Args:
        columns: Of the table.
        others: Of the source.

    Raises:
        ConfigError: One of them has the name of a column in another case alone, in a session that tells these apart: the
            column would be null, or would stay as it is, although its values are there. Or none has the name of a column.
    """
    both = same_named(columns, others)
    missed = {name.lower(): name for name in columns.names if name not in both}
    for other in others:
        if other.lower() in missed:
            hint = "Rename the column of the source, or SET spark.sql.caseSensitive = false."
            raise ConfigError("MERGE", other, f"columns of the table: {missed[other.lower()]}, in this case", hint)
    if not both:
        hint = "UPDATE SET * and INSERT * take them by their names: rename those of the source, or name what is assigned."
        raise ConfigError("MERGE", ", ".join(others), f"some columns of the table: {', '.join(columns.names)}", hint)
    return both


@contextmanager
def names_as_in(spark: SparkSession) -> Iterator[None]:
    """Compares names as a session does, while a statement of its own runs."""
    token = _asking.set(spark)
    try:
        yield
    finally:
        _asking.reset(token)


def _spelling() -> Callable[[str], str]:
    """What two names share which are one, as the session compares names."""
    return str if _is_case_sensitive() else str.lower


def _is_case_sensitive() -> bool:
    spark = _asking.get() or SparkSession.getActiveSession()
    return spark is not None and str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
