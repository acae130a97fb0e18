"""A short way to write Avro schemas, so that a schema reads like the table it describes."""

from __future__ import annotations

from typing import Any

__all__ = ["NAMESPACE", "AvroType", "array_of", "map_of", "optional", "record", "required", "version"]

NAMESPACE = "org.apache.hudi.avro.model"
"""Namespace of every record of Hudi's own; Java resolves records by their full names."""

AvroType = Any
"""An Avro schema as JSON values: the name of a type, a dict, or the list of a union."""


def record(name: str, *fields: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
    """A record schema. Nested records give no namespace: they inherit the outermost one."""
    outer = {} if namespace is None else {"namespace": namespace}
    return {"type": "record", "name": name, **outer, "fields": list(fields)}


def required(name: str, kind: AvroType, **default: Any) -> dict[str, Any]:
    """A field that is never null; `default=...` only where the schema has one."""
    return {"name": name, "type": kind, **default}


def optional(name: str, kind: AvroType) -> dict[str, Any]:
    """A field that may be null and is null by default: the usual kind."""
    return {"name": name, "type": ["null", kind], "default": None}


def version(number: int = 1) -> dict[str, Any]:
    """The `version` field, whose union has int first because its default is a number."""
    return {"name": "version", "type": ["int", "null"], "default": number}


def array_of(items: AvroType, **default: Any) -> dict[str, Any]:
    """An array schema."""
    return {"type": "array", "items": items, **default}


def map_of(values: AvroType, **default: Any) -> dict[str, Any]:
    """A map schema; Avro's keys are strings."""
    return {"type": "map", "values": values, **default}
