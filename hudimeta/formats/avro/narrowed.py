"""Some fields of an Avro record, as a record of their own.

Avro writes the definition of a named type once, where it comes first, and from then on only its name. A record that lacks the
field with the definition has it where the name comes first among the fields that are left.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from hudimeta.formats.json_text import parse_json

__all__ = ["narrowed"]

_NAMED = ("record", "enum", "fixed", "error")
_INNER = ("type", "items", "values")

Json = Any


def narrowed(schema_json: str, names: Collection[str]) -> str:
    """A record's schema with some of its fields, in their order.

    Args:
        schema_json: The whole record; what it names, it defines.
        names: Of the fields that stay.
    """
    record = parse_json(schema_json)
    _, inner = _full_name(record, "")
    known: dict[str, tuple[Json, str]] = {}
    for field in record["fields"]:
        _define(field["type"], inner, known)
    written: set[str] = set()
    kept = [field for field in record["fields"] if field["name"] in names]
    record["fields"] = [{**field, "type": _spelled(field["type"], inner, known, written)} for field in kept]
    return json.dumps(record)


def _full_name(named: Json, namespace: str) -> tuple[str, str]:
    """A named type's full name, and the namespace in which what it holds is named."""
    space, _, simple = named["name"].rpartition(".")
    space = space or named.get("namespace", namespace)
    return (f"{space}.{simple}" if space else simple), space


def _define(node: Json, namespace: str, known: dict[str, tuple[Json, str]]) -> None:
    """Note the named types of a type, with the namespace in which each stands."""
    if isinstance(node, list):
        for branch in node:
            _define(branch, namespace, known)
    if not isinstance(node, dict):
        return
    inner = namespace
    if node["type"] in _NAMED:
        full, inner = _full_name(node, namespace)
        known.setdefault(full, (node, namespace))
    for part in [node.get(key) for key in _INNER] + [field["type"] for field in node.get("fields", ())]:
        _define(part, inner, known)


def _spelled(node: Json, namespace: str, known: dict[str, tuple[Json, str]], written: set[str]) -> Json:
    """A type as it stands where some named types have been written already."""
    if isinstance(node, list):
        return [_spelled(branch, namespace, known, written) for branch in node]
    if isinstance(node, str):
        full = next((name for name in (node, f"{namespace}.{node}") if name in known), None)
        if full is None or full in written:
            return node
        definition, space = known[full]
        return _spelled({**definition, "namespace": _full_name(definition, space)[1]}, space, known, written)
    if node["type"] in _NAMED:
        full, inner = _full_name(node, namespace)
        written.add(full)
        fields = [{**f, "type": _spelled(f["type"], inner, known, written)} for f in node.get("fields", ())]
        return {**node, "fields": fields} if "fields" in node else node
    return {key: _spelled(part, namespace, known, written) if key in _INNER else part for key, part in node.items()}
