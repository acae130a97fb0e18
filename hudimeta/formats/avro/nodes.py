"""Avro schemas as trees that rows can be coded by: named types resolved, each node with its Arrow type.

Arrow types are the ones that `hudimeta.schema.avro_to_arrow` gives to the same schema, so rows from logs and rows from
base files meet without a cast.
"""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.errors import SchemaError, UnsupportedFeature
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.vectors import vector_in

__all__ = ["LOGICAL_TYPES", "MAX_DEPTH", "MAX_NODES", "ValueKind", "SchemaNode", "parse_record"]

MAX_DEPTH = 64
MAX_NODES = 50_000
"""A few named types that mention each other twice could make billions of columns."""
"""Deeper nesting than this is refused; so is a type that contains itself."""
MAX_DECIMAL_PRECISION = 38
MAX_DECIMAL_BYTES = 16


class ValueKind(enum.Enum):
    """How a value is laid out in bytes."""

    NULL = enum.auto()
    BOOLEAN = enum.auto()
    INT = enum.auto()
    LONG = enum.auto()
    FLOAT = enum.auto()
    DOUBLE = enum.auto()
    BYTES = enum.auto()
    STRING = enum.auto()
    FIXED = enum.auto()
    VECTOR = enum.auto()
    ENUM = enum.auto()
    DECIMAL = enum.auto()
    DECIMAL_FIXED = enum.auto()
    RECORD = enum.auto()
    ARRAY = enum.auto()
    MAP = enum.auto()


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """One type of a schema, with the union around it when there is one.

    Attributes:
        kind: Layout of a value that is there.
        arrow: Arrow type of the column.
        path: Dotted name from the record's top, for messages.
        branches: Number of branches of the union around the value: 0 when there is no union, else 1 or 2.
        null_branch: Index of null in that union, -1 without.
        children: Fields of a record; the item of an array; of a map one record of key and value.
        names: Field names of a record, symbols of an enum.
        size: Bytes of a fixed, and of a vector.
        least: Fewest bytes of a datum, union included.
    """

    kind: ValueKind
    arrow: pa.DataType
    path: str
    branches: int = 0
    null_branch: int = -1
    children: tuple[SchemaNode, ...] = ()
    names: tuple[str, ...] = ()
    size: int = 0
    least: int = 1

    @property
    def nullable(self) -> bool:
        """True when null is one of the branches, and for the type null itself."""
        return self.null_branch >= 0 or self.kind is ValueKind.NULL

    @property
    def value_branch(self) -> int:
        """Index of the branch that is not null."""
        return 1 if self.null_branch == 0 else 0

    @property
    def width(self) -> int:
        """Bytes of a value that is there, where all take the same; else -1."""
        return self.size if self.kind in _SIZED else _WIDTHS.get(self.kind, -1)

    @property
    def field(self) -> pa.Field:
        """The Arrow field that this node is, under the last part of its path."""
        return pa.field(self.path.rpartition(".")[2], self.arrow, self.nullable)


_SIZED = (ValueKind.FIXED, ValueKind.VECTOR, ValueKind.DECIMAL_FIXED)
_WIDTHS = {ValueKind.NULL: 0, ValueKind.BOOLEAN: 1, ValueKind.FLOAT: 4, ValueKind.DOUBLE: 8}

_PRIMITIVES: dict[str, tuple[ValueKind, pa.DataType, int]] = {
    "null": (ValueKind.NULL, pa.null(), 0),
    "boolean": (ValueKind.BOOLEAN, pa.bool_(), 1),
    "int": (ValueKind.INT, pa.int32(), 1),
    "long": (ValueKind.LONG, pa.int64(), 1),
    "float": (ValueKind.FLOAT, pa.float32(), 4),
    "double": (ValueKind.DOUBLE, pa.float64(), 8),
    "bytes": (ValueKind.BYTES, pa.binary(), 1),
    "string": (ValueKind.STRING, pa.string(), 1),
}

LOGICAL_TYPES: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
"""Arrow type of an Avro type with a logical type; decimals carry parameters and are not here."""


@functools.lru_cache(maxsize=64)
def parse_record(schema_json: str) -> SchemaNode:
    """The tree of a record schema. All blocks of a file carry the same text, so trees are kept.

    Raises:
        SchemaError: No Avro record schema.
        UnsupportedFeature: A union of several types that are not null, a type that contains itself, a decimal of more than 38
            digits, or an array whose items take no bytes.
    """
    try:
        schema = parse_json(schema_json)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise SchemaError("the Avro schema is not a record", "Pass the schema of a table or file.")
        return _Parser().node(schema, "", "", 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SchemaError(f"the Avro schema is malformed: {error!r}", "The file that holds it is damaged.") from error


class _Parser:
    """Remembers named types: Avro defines a name once, and from then on only mentions it."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[dict[str, Any], str]] = {}
        self._left = MAX_NODES

    def node(self, schema: Any, path: str, namespace: str, depth: int) -> SchemaNode:
        self._left -= 1
        if self._left < 0:
            raise UnsupportedFeature(f"an Avro schema of more than {MAX_NODES} types")
        if depth > MAX_DEPTH:
            raise UnsupportedFeature(f"column {path[:200]!r}: an Avro type that contains itself or is nested too deeply")
        if isinstance(schema, list):
            return self._union(schema, path, namespace, depth)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                kind, arrow, least = _PRIMITIVES[schema]
                return SchemaNode(kind, arrow, path, least=least)
            known = self._named.get(schema) or self._named.get(f"{namespace}.{schema}")
            if known is None:
                raise SchemaError(f"the Avro type {schema!r} is not defined", "The file that holds it is damaged.")
            return self.node(known[0], path, known[1], depth + 1)
        kind_name = schema["type"]
        if not isinstance(kind_name, str):
            return self.node(kind_name, path, namespace, depth + 1)
        return self._complex(kind_name, schema, path, namespace, depth)

    def _union(self, branches: list[Any], path: str, namespace: str, depth: int) -> SchemaNode:
        others = [branch for branch in branches if branch != "null"]
        if len(others) != 1 or len(branches) > 2:
            raise UnsupportedFeature(f"column {path!r}: the Avro union {json.dumps(branches)[:200]}")
        inner = self.node(others[0], path, namespace, depth + 1)
        if inner.branches:
            raise SchemaError(f"column {path!r}: a union directly within a union", "The file that holds it is damaged.")
        null_branch = branches.index("null") if len(branches) == 2 else -1
        least = 1 if null_branch >= 0 else 1 + inner.least
        details = (inner.children, inner.names, inner.size, least)
        return SchemaNode(inner.kind, inner.arrow, path, len(branches), null_branch, *details)

    def _complex(self, kind: str, schema: dict[str, Any], path: str, namespace: str, depth: int) -> SchemaNode:
        if kind == "record":
            return self._record(schema, path, namespace, depth)
        if kind == "array":
            item = self.node(schema["items"], f"{path}.element", namespace, depth + 1)
            if item.least == 0:
                raise UnsupportedFeature(f"column {path!r}: an Avro array whose items take no bytes")
            return SchemaNode(ValueKind.ARRAY, pa.list_(item.field), path, children=(item,))
        if kind == "map":
            key = SchemaNode(ValueKind.STRING, pa.string(), f"{path}.key")
            value = self.node(schema["values"], f"{path}.value", namespace, depth + 1)
            entry_type = pa.struct([key.field, value.field])
            least = key.least + value.least
            entry = SchemaNode(ValueKind.RECORD, entry_type, path, children=(key, value), names=("key", "value"), least=least)
            return SchemaNode(ValueKind.MAP, pa.map_(key.arrow, value.field), path, children=(entry,))
        return self._leaf(kind, schema, path, namespace, depth)

    def _record(self, schema: dict[str, Any], path: str, namespace: str, depth: int) -> SchemaNode:
        inner = self._define(schema, namespace)
        prefix = f"{path}." if path else ""
        children = tuple(self.node(f["type"], prefix + f["name"], inner, depth + 1) for f in schema["fields"])
        names = tuple(f["name"] for f in schema["fields"])
        if len(set(names)) != len(names):
            raise SchemaError(f"the Avro record {schema['name']!r} has two fields of one name", "The file is damaged.")
        arrow = pa.struct([pa.field(n, c.arrow, c.nullable) for n, c in zip(names, children, strict=True)])
        least = sum(child.least for child in children)
        return SchemaNode(ValueKind.RECORD, arrow, path, children=children, names=names, least=least)

    def _leaf(self, kind: str, schema: dict[str, Any], path: str, namespace: str, depth: int) -> SchemaNode:
        logical = schema.get("logicalType")
        if kind in ("fixed", "enum"):
            self._define(schema, namespace)
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return _decimal(schema, kind, path)
        vector = vector_in(schema)
        if vector is not None:
            return SchemaNode(ValueKind.VECTOR, vector.arrow, path, size=vector.size, least=vector.size)
        if kind == "fixed":
            size = _positive(schema["size"])
            return SchemaNode(ValueKind.FIXED, pa.binary(size), path, size=size, least=size)
        if kind == "enum":
            return SchemaNode(ValueKind.ENUM, pa.string(), path, names=tuple(schema["symbols"]))
        plain = self.node(kind, path, namespace, depth + 1)
        arrow = LOGICAL_TYPES.get((kind, logical), plain.arrow) if isinstance(logical, str) else plain.arrow
        return SchemaNode(plain.kind, arrow, path, 0, -1, plain.children, plain.names, plain.size, plain.least)

    def _define(self, schema: dict[str, Any], namespace: str) -> str:
        """Note a named type, and give the namespace in which its own fields stand."""
        name = schema["name"]
        inner = name.rpartition(".")[0] if "." in name else schema.get("namespace", namespace)
        simple = name.rpartition(".")[2]
        self._named[f"{inner}.{simple}" if inner else simple] = (schema, inner)
        return str(inner)


def _decimal(schema: dict[str, Any], kind: str, path: str) -> SchemaNode:
    precision, scale = _positive(schema["precision"]), schema.get("scale", 0)
    size = _positive(schema["size"]) if kind == "fixed" else 0
    if precision > MAX_DECIMAL_PRECISION or size > MAX_DECIMAL_BYTES or not 0 <= scale <= precision:
        raise UnsupportedFeature(f"column {path!r}: a decimal of precision {precision}, scale {scale} in {size} bytes")
    arrow = pa.decimal128(precision, scale)
    if kind == "fixed":
        return SchemaNode(ValueKind.DECIMAL_FIXED, arrow, path, size=size, least=size)
    return SchemaNode(ValueKind.DECIMAL, arrow, path, least=2)


def _positive(number: Any) -> int:
    if isinstance(number, int) and 0 < number < 2**31:
        return number
    raise SchemaError(f"the Avro schema states the size or precision {number!r}", "The file that holds it is damaged.")
