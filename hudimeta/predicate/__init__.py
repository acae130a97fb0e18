"""Predicates: one expression tree for every notation, evaluated over rows and over what is known about files.

    >>> import pyarrow as pa
    >>> from hudimeta.predicate import bind, evaluate, parse
    >>> flights = pa.table({"origin": ["JFK", "LGA", None], "dep_delay": [12.0, 75.0, 90.0]})
    >>> late = bind(parse("dep_delay > 60 AND origin = 'LGA'"), flights.schema)
    >>> flights.filter(evaluate(late, flights)).to_pylist()
    [{'origin': 'LGA', 'dep_delay': 75.0}]

Rows are judged exactly as Spark 4's `where` judges them, with one difference: where Spark raises an error for a value (a cast
of malformed text, an overflow, a division by zero), the result here is null, as with Spark's `try_` functions.
"""

from __future__ import annotations

from hudimeta.predicate.arrow_expressions import ArrowPredicate, is_arrow_expression, parse_arrow
from hudimeta.predicate.bind import Bound, bind, bind_value
from hudimeta.predicate.equality import as_joined, joined_type
from hudimeta.predicate.evaluate import evaluate, evaluate_batch
from hudimeta.predicate.evaluate_bounds import Verdict, may_match
from hudimeta.predicate.extract import (
    columns,
    equalities,
    keys_of,
    split_by_columns,
    split_conjuncts,
    to_parquet_filter,
)
from hudimeta.predicate.functions import FUNCTION_NAMES, is_total
from hudimeta.predicate.local_time import check_zone
from hudimeta.predicate.notation import Where, bind_catalyst, parse, parse_json, parse_tuples
from hudimeta.predicate.number_text import text_of_floats
from hudimeta.predicate.quotes import with_escaped_quotes
from hudimeta.predicate.regex_kernels import search as search_regex
from hudimeta.predicate.render import to_sql
from hudimeta.predicate.sql import parse_sql
from hudimeta.predicate.stats import ColumnBounds, FileStats
from hudimeta.predicate.strict import evaluate_strictly
from hudimeta.predicate.tree import Expr, all_of
from hudimeta.predicate.types import is_integer

__all__ = [
    "FUNCTION_NAMES",
    "ArrowPredicate",
    "Bound",
    "ColumnBounds",
    "Expr",
    "FileStats",
    "Verdict",
    "Where",
    "all_of",
    "as_joined",
    "bind",
    "bind_catalyst",
    "bind_value",
    "check_zone",
    "columns",
    "equalities",
    "evaluate",
    "evaluate_batch",
    "evaluate_strictly",
    "is_arrow_expression",
    "is_integer",
    "is_total",
    "joined_type",
    "keys_of",
    "may_match",
    "parse",
    "parse_arrow",
    "parse_json",
    "parse_sql",
    "parse_tuples",
    "search_regex",
    "split_by_columns",
    "split_conjuncts",
    "text_of_floats",
    "to_parquet_filter",
    "to_sql",
    "tree",  # the nodes of the tree
    "with_escaped_quotes",
]
