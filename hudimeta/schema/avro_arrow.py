"""Avro schema JSON to Arrow schema and back, with the names that Spark and Hudi give to nested types.

A table's schema travels as Avro JSON (commit metadata, `hoodie.table.create.schema`, Parquet footers, log blocks). Its shape as
Hudi's Spark writer makes it:

* the record is `<table>_record` in namespace `hoodie.<table>`; a nested record is named after its field, its namespace is the
  parent's full name; arrays and maps do not add a level;
* a decimal is a `fixed` named `fixed` whose namespace is the parent's full name plus the field, its size the fewest bytes that
  hold the precision;
* a nullable field is `["null", T]` with default null; `hoodie.table.create.schema` alone uses `[T, "null"]` without a default;
* byte and short are int; the five meta columns have an empty doc.

Avro types that Arrow has no word for (enum, uuid, vectors, BLOBs, decimals in variable bytes) become their nearest Arrow type
and keep their Avro form in the field's metadata under `AVRO_TYPE_KEY`, so that writing the schema back loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from hudimeta.errors import CorruptFileError, SchemaError, SchemaMismatch, UnsupportedFeature
from hudimeta.formats.avro.nodes import LOGICAL_TYPES, MAX_NODES
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.vectors import vector_in
from hudimeta.schema.names import MAX_DEPTH, sanitize_name, strip_meta_columns
from hudimeta.types import META_COLUMNS

__all__ = ["AVRO_TYPE_KEY", "DOC_KEY", "arrow_to_avro", "avro_to_arrow", "decimal_bytes", "table_avro_schema"]

AVRO_TYPE_KEY = b"avro.type"
"""Key of field metadata: the Avro type (JSON) that the Arrow type stands for, where the two do not map one to one."""

DOC_KEY = b"avro.doc"
"""Key of field metadata: the field's Avro doc."""

Json = Any

_PRIMITIVES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}


def avro_to_arrow(schema_json: str, path: str = "") -> pa.Schema:
    """Read an Avro record schema.

    Args:
        schema_json: JSON text of a record; meta columns are kept when they are there.
        path: The table's file that holds the text: what is no schema is damage of it, then.

    Returns:
        Arrow schema: int32, int64, float32, float64, bool, string, binary, fixed-size binary, decimal128, date32, time32[ms],
        time64[us], timestamp[ms|us|ns] with tz UTC (naive for local timestamps), list, map with string keys, struct.

    Raises:
        SchemaError: The text is not an Avro record schema.
        CorruptFileError: The same, of a file.
        UnsupportedFeature: A union of several types, or a recursive record.
    """
    try:
        return _to_arrow(schema_json)
    except SchemaError as error:
        if not path:
            raise
        raise CorruptFileError(path, 0, "an Avro record schema", error.message) from error


def _to_arrow(schema_json: str) -> pa.Schema:
    try:
        parsed = parse_json(schema_json)
    except ValueError as error:
        raise SchemaError(f"the Avro schema is not JSON: {error}", "The commit or file that holds it is damaged.") from error
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise SchemaError("the Avro schema is not a record", "Pass the schema of a table or file.")
    try:
        return pa.schema(_AvroReader().record_fields(parsed, ""))
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise SchemaError(f"the Avro schema is malformed at {error}", "The commit or file that holds it is damaged.") from error


class _AvroReader:
    """Remembers named types, because Avro writes a name's definition once and then only the name."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[Json, str]] = {}
        self._open: set[str] = set()
        self._left = MAX_NODES

    def record_fields(self, record: Mapping[str, Json], namespace: str) -> list[pa.Field]:
        full, inner = self._define(record, namespace)
        if full in self._open or len(self._open) > MAX_DEPTH:
            raise UnsupportedFeature(f"the recursive or too deeply nested Avro record {full}")
        self._open.add(full)
        fields = [self._field(f["name"], f["type"], inner, f.get("doc")) for f in record["fields"]]
        self._open.discard(full)
        return fields

    def _define(self, named: Mapping[str, Json], namespace: str) -> tuple[str, str]:
        name = named["name"]
        if "." in name:
            namespace, _, _ = name.rpartition(".")
            full = name
        else:
            namespace = named.get("namespace", namespace)
            full = f"{namespace}.{name}" if namespace else name
        self._named[full] = (named, namespace)
        return full, namespace

    def _field(self, name: str, avro: Json, namespace: str, doc: str | None = None) -> pa.Field:
        kind, nullable, original = self._type(avro, namespace)
        metadata = {}
        if original is not None:
            metadata[AVRO_TYPE_KEY] = json.dumps(original, separators=(",", ":")).encode()
        if doc and name not in META_COLUMNS:
            metadata[DOC_KEY] = doc.encode()
        return pa.field(name, kind, nullable, metadata or None)

    def _type(self, avro: Json, namespace: str) -> tuple[pa.DataType, bool, Json | None]:
        """Arrow type, nullability, and the Avro type where the Arrow type does not tell it."""
        self._left -= 1
        if self._left < 0:
            raise UnsupportedFeature(f"an Avro schema of more than {MAX_NODES} types")
        if isinstance(avro, list):
            return self._union(avro, namespace)
        if isinstance(avro, str):
            if avro in _PRIMITIVES:
                return _PRIMITIVES[avro], avro == "null", None
            known = self._named.get(avro) or self._named.get(f"{namespace}.{avro}")
            if known is None:
                raise SchemaError(f"the Avro type {avro!r} is not defined", "The commit or file that holds it is damaged.")
            return self._type(known[0], known[1])
        kind = avro["type"]
        if isinstance(kind, (dict, list)):
            return self._type(kind, namespace)
        if kind == "record":
            # Of a logical type (a BLOB, a variant) the Avro form is kept: a plain record would lose what it is.
            return pa.struct(self.record_fields(avro, namespace)), False, avro if "logicalType" in avro else None
        if kind == "array":
            return pa.list_(self._field("element", avro["items"], namespace)), False, None
        if kind == "map":
            return pa.map_(pa.string(), self._field("value", avro["values"], namespace)), False, None
        return self._leaf(kind, avro, namespace)

    def _leaf(self, kind: str, avro: Mapping[str, Json], namespace: str) -> tuple[pa.DataType, bool, Json | None]:
        logical = avro.get("logicalType")
        if kind in ("fixed", "enum"):
            _, space = self._define(avro, namespace)
            avro = {**avro, "namespace": space} if space else avro
        if logical == "decimal":
            decimal = pa.decimal128(_length(avro["precision"], 38), avro.get("scale", 0))
            standard = kind == "fixed" and avro["name"] == "fixed" and avro["size"] == decimal_bytes(avro["precision"])
            return decimal, False, None if standard else avro
        vector = vector_in(avro)
        if vector is not None:
            return vector.arrow, False, avro
        if kind == "fixed":
            return pa.binary(_length(avro["size"])), False, avro
        if kind == "enum":
            return pa.string(), False, avro
        if logical is not None and (kind, logical) in LOGICAL_TYPES:
            return LOGICAL_TYPES[kind, logical], False, None
        if kind not in _PRIMITIVES:
            return self._type(kind, namespace)
        return _PRIMITIVES[kind], False, avro if logical == "uuid" else None

    def _union(self, branches: list[Json], namespace: str) -> tuple[pa.DataType, bool, Json | None]:
        types = [b for b in branches if b != "null"]
        nullable = len(types) < len(branches)
        if not types:
            return pa.null(), True, None
        for pair, wide in (({"int", "long"}, "long"), ({"float", "double"}, "double")):
            if len(types) > 1 and all(isinstance(t, str) for t in types) and set(types) == pair:
                return _PRIMITIVES[wide], nullable, None
        if len(types) > 1:
            raise UnsupportedFeature(f"an Avro union of several types ({json.dumps(types)[:200]})")
        kind, _, original = self._type(types[0], namespace)
        return kind, nullable, original


def _length(number: Json, limit: int = 2**31 - 1) -> int:
    """A size or precision that an Avro schema states; refused when it cannot be one."""
    if isinstance(number, int) and 0 < number <= limit:
        return number
    raise SchemaError(f"the Avro schema states the size or precision {number!r}, allowed is 1 to {limit}")


def decimal_bytes(precision: int) -> int:
    """The fewest bytes whose two's complement holds every number of `precision` decimal digits (10 -> 5, 15 -> 7, 38 -> 16)."""
    return (int(10**precision - 1).bit_length() + 8) // 8


def table_avro_schema(schema: pa.Schema, table_name: str, *, meta_columns: bool = False, create_schema: bool = False) -> str:
    """The Avro JSON that Hudi writes for a table.

    Args:
        schema: The table's columns; meta columns among them are ignored.
        table_name: `hoodie.table.name`.
        meta_columns: True puts the five meta columns in front, as Parquet footers and log blocks have them.
        create_schema: True writes unions as `[T, "null"]` without defaults, the form of `hoodie.table.create.schema`.

    Returns:
        JSON text without spaces, fields in the order in which Java prints them.
    """
    name = sanitize_name(table_name)
    data = strip_meta_columns(schema)
    writer = _AvroWriter(null_first=not create_schema)
    record = writer.record(f"{name}_record", f"hoodie.{name}", list(data), 0)
    if meta_columns:
        meta = [{"name": m, "type": ["null", "string"], "doc": "", "default": None} for m in META_COLUMNS]
        record["fields"] = meta + record["fields"]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def arrow_to_avro(schema: pa.Schema, name: str, namespace: str = "") -> str:
    """Any Arrow schema as an Avro record, all columns kept in order.

    Args:
        schema: Arrow types that `avro_to_arrow` gives; normalise a user's schema first (`hudimeta.schema.normalise`).
        name: Record name.
        namespace: Its namespace, "" for none.

    Raises:
        SchemaMismatch: A type that Avro cannot hold.
    """
    record = _AvroWriter(null_first=True).record(name, namespace, list(schema), 0)
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


_TO_AVRO: dict[pa.DataType, Json] = {kind: name for name, kind in _PRIMITIVES.items()} | {
    kind: {"type": name, "logicalType": logical} for (name, logical), kind in LOGICAL_TYPES.items()
}
_TO_AVRO |= {pa.int8(): "int", pa.int16(): "int", pa.large_string(): "string", pa.large_binary(): "bytes"}


class _AvroWriter:
    def __init__(self, null_first: bool) -> None:
        self._null_first = null_first
        self._named: dict[str, Json] = {}

    def record(self, name: str, namespace: str, fields: list[pa.Field], depth: int) -> dict[str, Json]:
        inner = f"{namespace}.{name}" if namespace else name
        head: dict[str, Json] = {"type": "record", "name": name}
        if namespace:
            head["namespace"] = namespace
        head["fields"] = [self._field(f, inner, depth) for f in fields]
        return head

    def _field(self, field: pa.Field, namespace: str, depth: int) -> dict[str, Json]:
        if field.name in META_COLUMNS and pa.types.is_string(field.type):
            return {"name": field.name, "type": ["null", "string"], "doc": "", "default": None}
        out: dict[str, Json] = {"name": field.name, "type": self._type(field, field.name, namespace, depth)}
        doc = (field.metadata or {}).get(DOC_KEY)
        if doc is not None:
            out["doc"] = doc.decode()
        if field.nullable and self._null_first:
            out["default"] = None
        return out

    def _type(self, field: pa.Field, name: str, namespace: str, depth: int) -> Json:
        kind = self._bare(field, name, namespace, depth)
        if not field.nullable or kind == "null":
            return kind
        return ["null", kind] if self._null_first else [kind, "null"]

    def _bare(self, field: pa.Field, name: str, namespace: str, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise UnsupportedFeature(f"nesting deeper than {MAX_DEPTH} levels (column {name!r})")
        original = (field.metadata or {}).get(AVRO_TYPE_KEY)
        if original is not None:
            return self._original(parse_json(original))
        kind = field.type
        if kind in _TO_AVRO:
            return _TO_AVRO[kind]
        for matches, write in _NESTED:
            if matches(kind):
                return write(self, kind, name, namespace, depth)
        raise SchemaMismatch(name, kind, "a type that Avro can hold", "Cast the column before writing.")

    def _original(self, avro: Json) -> Json:
        """The Avro type that was kept; a named type that is used again is written as its name, as Avro demands."""
        if not isinstance(avro, dict) or "name" not in avro:
            return avro
        full = f"{avro['namespace']}.{avro['name']}" if avro.get("namespace") else avro["name"]
        if self._named.setdefault(full, avro) is not avro:
            return full
        return avro

    def _struct(self, kind: pa.DataType, name: str, namespace: str, depth: int) -> Json:
        return self.record(name, namespace, [kind.field(i) for i in range(kind.num_fields)], depth + 1)

    def _list(self, kind: pa.DataType, name: str, namespace: str, depth: int) -> Json:
        return {"type": "array", "items": self._type(kind.value_field, name, namespace, depth + 1)}

    def _map(self, kind: pa.DataType, name: str, namespace: str, depth: int) -> Json:
        if not (pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)):
            raise SchemaMismatch(name, kind, "a map with string keys", "Cast the keys to string before writing.")
        return {"type": "map", "values": self._type(kind.item_field, name, namespace, depth + 1)}

    def _decimal(self, kind: pa.DataType, name: str, namespace: str, depth: int) -> Json:
        space = f"{namespace}.{name}" if namespace else name
        size = decimal_bytes(kind.precision)
        names = {"type": "fixed", "name": "fixed", "namespace": space, "size": size}
        return names | {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}

    def _fixed(self, kind: pa.DataType, name: str, namespace: str, depth: int) -> Json:
        space = f"{namespace}.{name}" if namespace else name
        return {"type": "fixed", "name": "fixed", "namespace": space, "size": kind.byte_width}

    def _timestamp(self, kind: pa.DataType, name: str, namespace: str, depth: int) -> Json:
        """A zone other than UTC is only how the same moment is shown."""
        return _TO_AVRO[pa.timestamp(kind.unit, "UTC")]


def _is_zoned(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None and kind.unit != "s"


def _is_small_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind)) and kind.precision <= 38 and kind.scale >= 0


_NESTED: list[tuple[Callable[[pa.DataType], bool], Callable[[_AvroWriter, pa.DataType, str, str, int], Json]]] = [
    (pa.types.is_struct, _AvroWriter._struct),
    (pa.types.is_map, _AvroWriter._map),
    (pa.types.is_list, _AvroWriter._list),
    (pa.types.is_large_list, _AvroWriter._list),
    (_is_small_decimal, _AvroWriter._decimal),
    (pa.types.is_fixed_size_binary, _AvroWriter._fixed),
    (_is_zoned, _AvroWriter._timestamp),
]
