"""What the table functions of SQL have in common: how they are called, and how Spark takes their rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from hudimeta import Table
from hudimeta.errors import ConfigError, TableNotFound
from pyspark_hudimeta.arrow_types import arrow_schema, fitted
from pyspark_hudimeta.plain.location import resolve

__all__ = ["ROWS", "BoundCall", "called_as", "constant", "located", "newest_instant", "optional", "spark_rows", "text"]

ROWS = 4096
"""Rows that are handed to Spark at a time."""


@dataclass
class BoundCall(AnalyzeResult):  # type: ignore[misc]  # Spark's own classes are not typed here
    """The columns of a call, and its arguments as constants.

    Attributes:
        path: Where the table is.
        arguments: Whatever else the function was called with, checked.
    """

    path: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


def called_as(usage: str) -> Callable[[Callable[..., BoundCall]], Callable[..., BoundCall]]:
    """Makes an `analyze` refuse calls with other arguments by how the function is called; Spark names its parameters alone."""

    def checking(analyze: Callable[..., BoundCall]) -> Callable[..., BoundCall]:
        signature = inspect.signature(analyze)

        def checked(*arguments: AnalyzeArgument, **named: AnalyzeArgument) -> BoundCall:
            try:
                signature.bind(*arguments, **named)
            except TypeError as error:
                name, given = usage.partition("(")[0], [*("?" for _ in arguments), *(f"{key} => ?" for key in named)]
                raise ConfigError(f"call of {name}", ", ".join(given), usage, f"Call it so ({error}).") from None
            return analyze(*arguments, **named)

        return checked  # not by `functools.wraps`: Spark would look through it, and refuse the call itself

    return checking


# Arguments


def located(argument: AnalyzeArgument, name: str = "path") -> str:
    """Where the table is that an argument names. Raises HudiError: there is none."""
    path = text(name, argument)
    location = resolve(path)
    try:
        Table(location)
    except TableNotFound as error:
        if "/" in path:
            raise
        hint = "Attached sessions and pyspark_hudimeta.sql(spark, …) know names of the catalog, as SHOW TABLES lists them."
        raise ConfigError(name, path, "the path of a table", hint) from error
    return location


def newest_instant(location: str) -> str | None:
    """The moment of now, for a function that reads when the query runs; None of a table without a write."""
    return max((instant.time for instant in Table(location).timeline.writes), default=None)


def constant(name: str, argument: AnalyzeArgument) -> Any:
    """The value of an argument. Raises ConfigError: it is not known before the query runs."""
    if argument.isTable or not argument.isConstantExpression or argument.value is None:
        raise ConfigError(name, "an expression", "a constant that is not null", "A table function is planned once a query.")
    return argument.value


def text(name: str, argument: AnalyzeArgument) -> str:
    """The same as a text, without blanks around it."""
    return str(constant(name, argument)).strip()


def optional(name: str, argument: AnalyzeArgument | None) -> str | None:
    """The same of an argument that may be left out: Spark hands it over as None then, or not at all."""
    if argument is None or (argument.isConstantExpression and argument.value is None):
        return None
    return text(name, argument)


# Rows


def spark_rows(batches: Iterable[pa.RecordBatch], bound: BoundCall) -> Iterator[tuple[Any, ...]]:
    """Rows as Spark takes them from a table function: tuples of Python values."""
    expected = arrow_schema(bound.schema)
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            piece = fitted(batch.slice(start, ROWS), expected)
            yield from zip(*(_values(column) for column in piece.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    convert = _converter(column.type)
    values: list[Any] = column.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Arrow gives maps as lists of pairs, Spark wants dictionaries; None for a type without maps inside."""
    types = pa.types
    if types.is_map(kind):
        item = _converter(kind.item_type) or _same
        return lambda pairs: {key: None if value is None else item(value) for key, value in pairs}
    if types.is_list(kind):
        inner = _converter(kind.value_type)
        return inner and (lambda values: [None if value is None else inner(value) for value in values])
    if types.is_struct(kind):
        inside = {kind.field(n).name: _converter(kind.field(n).type) for n in range(kind.num_fields)}
        changed = {name: convert for name, convert in inside.items() if convert is not None}
        return _struct_converter(changed) if changed else None
    return None


def _struct_converter(changed: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def convert(value: dict[str, Any]) -> dict[str, Any]:
        held = {name: change(value[name]) for name, change in changed.items() if value.get(name) is not None}
        return {**value, **held}

    return convert


def _same(value: Any) -> Any:
    return value
