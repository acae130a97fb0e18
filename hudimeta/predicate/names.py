"""Names to columns: paths found in a schema, and the closest one to a name that is not there."""

from __future__ import annotations

import difflib

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.predicate.tree import Column
from hudimeta.predicate.types import canonical_type

__all__ = ["closest_name", "resolve"]


def resolve(schema: pa.Schema, path: tuple[str, ...]) -> Column | None:
    """The column of a path in the schema's own spelling, None when there is none."""
    names: list[str] = []
    fields: list[pa.Field] = list(schema)
    t: pa.DataType | None = None
    for name in path:
        field = _named(fields, name)
        if field is None:
            return None
        names.append(field.name)
        t = field.type
        fields = [t.field(i) for i in range(t.num_fields)] if pa.types.is_struct(t) else []
    assert t is not None
    return Column(tuple(names), type=canonical_type(t))


def closest_name(schema: pa.Schema, name: str) -> str | None:
    """The dotted name most like one that is not there; None when none is alike."""
    names = _paths(schema)
    closest = difflib.get_close_matches(name.lower(), [each.lower() for each in names], n=1, cutoff=0.5)
    return next((each for each in names if closest and each.lower() == closest[0]), None)


def _named(fields: list[pa.Field], name: str) -> pa.Field | None:
    """The field of a name, exactly if there is one, else regardless of case if only one is alike."""
    exact = [field for field in fields if field.name == name]
    alike = exact or [field for field in fields if field.name.lower() == name.lower()]
    if len(alike) > 1:
        names = ", ".join(field.name for field in alike)
        raise PredicateError(name, "the name of one column", f"It can mean {names}.")
    return alike[0] if alike else None


def _paths(schema: pa.Schema) -> list[str]:
    found: list[str] = []

    def add(prefix: str, field: pa.Field) -> None:
        name = prefix + field.name
        found.append(name)
        if pa.types.is_struct(field.type):
            for i in range(field.type.num_fields):
                add(name + ".", field.type.field(i))

    for field in schema:
        add("", field)
    return found
