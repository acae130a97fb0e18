"""Whether a container's schema is that of the record which its reader goes on with.

A container says itself which fields its records have. Those who read on name fields of Hudi's records, so a schema that lacks
them, or has others under their names, is refused here, once a schema. Older versions of Hudi lack fields that have a default.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from hudimeta.formats.avro import schemas
from hudimeta.formats.json_text import parse_json

__all__ = ["absent_fields", "misfit", "record_name"]

_RECORDS: Mapping[str, dict[str, Any]] = {
    schema["name"]: schema
    for schema in (
        schemas.COMMIT_METADATA,
        schemas.REPLACE_COMMIT_METADATA,
        schemas.CLEANER_PLAN,
        schemas.CLEAN_METADATA,
        schemas.COMPACTION_PLAN,
        schemas.INDEX_PLAN,
        schemas.INDEX_COMMIT_METADATA,
        schemas.REQUESTED_REPLACE_METADATA,
        schemas.RESTORE_PLAN,
        schemas.RESTORE_METADATA,
        schemas.ROLLBACK_PLAN,
        schemas.ROLLBACK_METADATA,
        schemas.SAVEPOINT_METADATA,
    )
}
_ALSO = {"int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",), "enum": ("string",)}
_MOST_DEPTH = 32


@functools.lru_cache(maxsize=64)
def record_name(text: str) -> str:
    """The name of the record that a schema describes, without its namespace."""
    return str(parse_json(text)["name"]).rpartition(".")[2]


@functools.lru_cache(maxsize=64)
def misfit(text: str) -> str | None:
    """What keeps a record of a schema from being Hudi's record of its name; None where it is, or Hudi has none of that name.

    Args:
        text: The schema as JSON, which some reader of Avro has parsed already.
    """
    expected = _RECORDS.get(record_name(text))
    found = parse_json(text)
    return None if expected is None else _compare(found, expected, (_named(found), _named(expected)), expected["name"], 0)


@functools.lru_cache(maxsize=64)
def absent_fields(text: str) -> Mapping[str, Any]:
    """Fields of Hudi's record that a schema lacks, as older versions do, with their defaults."""
    expected, found = _RECORDS.get(record_name(text)), parse_json(text)
    if expected is None:
        return {}
    there = {field["name"] for field in found["fields"]}
    return {field["name"]: field.get("default") for field in expected["fields"] if field["name"] not in there}


_Names = tuple[Mapping[str, Any], Mapping[str, Any]]


def _compare(found: Any, expected: Any, names: _Names, path: str, depth: int) -> str | None:
    if depth > _MOST_DEPTH:
        return f"{path} without an end"
    wanted = dict(_branches(expected, names[1]))
    for kind, schema in _branches(found, names[0]):
        matching = next((k for k in (kind, *_ALSO.get(kind, ())) if k in wanted), None)
        if kind == "null":
            continue
        if matching is None:
            return f"{path} as {kind}"
        other = wanted[matching]
        for name, one, two in _parts(kind, schema, other):
            if one is None and "default" not in two:
                return f"no {path}.{name}"
            fault = one and _compare(one["type"], two["type"], names, f"{path}.{name}", depth + 1)
            if fault:
                return str(fault)
    return None


def _parts(kind: str, found: Any, expected: Any) -> Iterator[tuple[str, dict[str, Any] | None, dict[str, Any]]]:
    """Fields, items or values of both; None where the first lacks a field."""
    if kind == "record":
        theirs = {field["name"]: field for field in found["fields"]}
        for field in expected["fields"]:
            yield field["name"], theirs.get(field["name"]), field
    elif kind in ("array", "map"):
        inner = "items" if kind == "array" else "values"
        yield inner, {"type": found[inner]}, {"type": expected[inner]}


def _branches(schema: Any, named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The types that a schema allows, by their kind."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _branches(branch, named)
    elif isinstance(schema, dict):
        inner = schema["type"]
        if isinstance(inner, str):
            yield inner, schema
        else:
            yield from _branches(inner, named)
    elif schema.rpartition(".")[2] in named:
        yield from _branches(named[schema.rpartition(".")[2]], named)
    else:
        yield schema, schema


def _named(schema: Any) -> dict[str, Any]:
    """The types that a schema defines, by their names without namespace."""
    found: dict[str, Any] = {}
    pending = [schema]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            if "name" in one and one.get("type") in ("record", "enum", "fixed", "error"):
                found[str(one["name"]).rpartition(".")[2]] = one
            pending += [one.get(key) for key in ("type", "items", "values")]
            pending += [field.get("type") for field in one.get("fields") or () if isinstance(field, dict)]
    return found
