"""Rows as other libraries hold them. No library is needed to read a table: each is imported when rows are asked for in it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pyarrow as pa

from hudimeta.errors import ConfigError, MissingLibrary

__all__ = ["duckdb_relation", "pandas_frame", "polars_frame"]

Rows = Callable[[], pa.Table]
"""Reads the rows: a library that is missing is an error before anything is read."""


def pandas_frame(rows: Rows) -> Any:
    """A `pandas.DataFrame`, as `pyarrow.Table.to_pandas` makes it."""
    _library("pandas")
    return rows().to_pandas()


def polars_frame(rows: Rows) -> Any:
    """A `polars.DataFrame`."""
    return _library("polars").from_arrow(rows())


def duckdb_relation(rows: Rows, connection: Any) -> Any:
    """A relation of DuckDB over rows in memory, which can be asked any number of times.

    Args:
        rows: Reads the rows.
        connection: Of DuckDB; its default one when None.
    """
    duckdb = _library("duckdb")
    if connection is not None and not isinstance(connection, duckdb.DuckDBPyConnection):
        raise ConfigError("connection", connection, "a connection of DuckDB", "Give duckdb.connect(…), or leave it out.")
    return (duckdb if connection is None else connection).from_arrow(rows())


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingLibrary(name) from error
