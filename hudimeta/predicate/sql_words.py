"""What sqlglot's names of operators, functions and types stand for."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.predicate.tree import ArithmeticOp, CompareOp, MatchKind
from hudimeta.predicate.types import DATE, DOUBLE, INSTANT, LOCAL_TIMESTAMP, LONG, STRING

__all__ = ["ARITHMETIC", "BITS", "COMPARISONS", "MATCHES", "MATCH_FUNCTIONS", "TYPES", "TYPE_FUNCTIONS"]

COMPARISONS = {
    "EQ": CompareOp.EQ,
    "NEQ": CompareOp.NE,
    "LT": CompareOp.LT,
    "LTE": CompareOp.LE,
    "GT": CompareOp.GT,
    "GTE": CompareOp.GE,
    "NullSafeEQ": CompareOp.NULL_SAFE_EQ,
}
ARITHMETIC = {
    "Add": ArithmeticOp.ADD,
    "Sub": ArithmeticOp.SUBTRACT,
    "Mul": ArithmeticOp.MULTIPLY,
    "Div": ArithmeticOp.DIVIDE,
    "Mod": ArithmeticOp.REMAINDER,
    "IntDiv": ArithmeticOp.INTEGER_DIVIDE,
}
BITS = {
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "BitwiseLeftShift": "shiftleft",
    "BitwiseRightShift": "shiftright",
}
MATCHES = {
    "Like": MatchKind.LIKE,
    "ILike": MatchKind.ILIKE,
    "RegexpLike": MatchKind.RLIKE,
}
MATCH_FUNCTIONS = {
    "like": MatchKind.LIKE,
    "ilike": MatchKind.ILIKE,
    "rlike": MatchKind.RLIKE,
    "regexp": MatchKind.RLIKE,
    "regexp_like": MatchKind.RLIKE,
    "startswith": MatchKind.STARTS_WITH,
    "endswith": MatchKind.ENDS_WITH,
    "contains": MatchKind.CONTAINS,
}
TYPE_FUNCTIONS = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": LONG,
    "float": pa.float32(),
    "double": DOUBLE,
    "string": STRING,
    "binary": pa.binary(),
    "date": DATE,
    "timestamp": INSTANT,
}
TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": LONG,
    "FLOAT": pa.float32(),
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": DATE,
    "TIMESTAMP": INSTANT,
    "TIMESTAMPTZ": INSTANT,
    "TIMESTAMPLTZ": INSTANT,
    "TIMESTAMPNTZ": LOCAL_TIMESTAMP,
}
