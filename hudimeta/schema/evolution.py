"""What happens to a table's schema when rows of another schema are written: the rules, before anything is written.

The table's columns keep their place and names; new columns go to the end, nullable. A column becomes wider when the rows' type
is a promotion of its own (`hudimeta.schema.promotion`); narrower rows are widened on the way in. Nothing is ever dropped,
narrowed or renamed by a write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.errors import SchemaMismatch, UnsupportedEvolution
from hudimeta.schema.conform import cast_advice
from hudimeta.schema.hudi_types import has_own_type, hudi_type_of, vector_of
from hudimeta.schema.normalise import normalise_schema
from hudimeta.schema.promotion import Fit, fit, is_bytes, is_list_like, is_text

__all__ = ["SchemaChange", "change_notes", "check_compatible", "check_key_texts", "refuse_texts"]

_SHOWN = 20
"""Names of columns in one line of a report."""


@dataclass(frozen=True)
class SchemaChange:
    """The outcome of laying rows beside a table.

    Attributes:
        schema: The table's schema after the write (data columns only); `conform` brings the rows to it.
        added: Dotted names of columns and fields that the table did not have.
        missing: Dotted names that the rows do not have: they are filled with null.
        widened: Dotted name, old type, new type of columns whose type in the table changes.
    """

    schema: pa.Schema
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    widened: tuple[tuple[str, pa.DataType, pa.DataType], ...] = ()


def check_compatible(
    table_schema: pa.Schema, incoming: pa.Schema, *, allow_missing: bool = True, allow_added: bool = True
) -> SchemaChange:
    """Lay the rows' schema beside the table's.

    Args:
        table_schema: The table's data columns.
        incoming: The rows' schema as given; meta columns are ignored, types are normalised.
        allow_missing: False refuses rows that lack a column of the table (`hoodie.write.set.null.for.missing.columns=false`).
        allow_added: False refuses rows with a column that the table lacks.

    Returns:
        The table's next schema, and what differs.

    Raises:
        SchemaMismatch: Names or types of the rows that do not fit.
        UnsupportedEvolution: A change of the table's schema that Hudi does not allow.
    """
    rows = normalise_schema(incoming, allow_null_type=True)
    side = _SideBySide(allow_missing, allow_added)
    fields = side.fields(list(table_schema), list(rows), "")
    return SchemaChange(
        pa.schema(fields, metadata=table_schema.metadata), tuple(side.added), tuple(side.missing), tuple(side.widened)
    )


def refuse_texts(change: SchemaChange) -> None:
    """Refuse to turn a column into texts: one batch of wrong rows would do it, and nothing turns it back.

    Raises:
        UnsupportedEvolution: With the column and its types.
    """
    for path, old, new in change.widened:
        if is_text(new) and not is_text(old):
            hint = f"Cast the column to {old} before writing; hudimeta.schema.widen=any makes it a column of texts for good."
            raise UnsupportedEvolution(path, f"from {old} to {new}", hint)


def change_notes(change: SchemaChange, with_default: Iterable[str] = ()) -> list[str]:
    """What a report says of a change, a line for each kind.

    Args:
        change: Of the schema.
        with_default: Columns that have a default value.
    """
    lines = [f"column {path} is {new} now, it was {old}" for path, old, new in change.widened]
    if change.added:
        lines.append(f"new columns of the table: {_some(change.added)}")
    given = tuple(name for name in change.missing if name in with_default)
    nulls = tuple(name for name in change.missing if name not in given)
    if given:
        lines.append(f"columns that the rows lack, by default in new rows: {_some(given)}")
    if nulls:
        lines.append(f"columns that the rows lack, filled with null: {_some(nulls)}")
    return lines


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def check_key_texts(change: SchemaChange, names: Iterable[str]) -> None:
    """Refuse to widen a column of the key or of the partition where its values would be spelled anew, `1` as `1.0`.

    Rows are found by that text: those that are there would not be found any more, and each would be there twice.

    Args:
        change: What a write would do.
        names: Dotted names of the columns that keys and partition paths are made of.

    Raises:
        UnsupportedEvolution: With the column and its types.
    """
    fixed = set(names)
    for path, old, new in change.widened:
        if path in fixed and not _spells_alike(old, new):
            why = f"from {old} to {new} spells its values anew, and rows are found by that text"
            raise UnsupportedEvolution(path, why, f"Cast the column to {old} before writing.")


def _spells_alike(old: pa.DataType, new: pa.DataType) -> bool:
    types = pa.types
    if is_bytes(old) != is_bytes(new):
        return False
    if types.is_decimal(new):
        scale = old.scale if types.is_decimal(old) else 0 if types.is_integer(old) else None
        return bool(new.scale == scale)
    return not types.is_floating(new) or old == new


class _SideBySide:
    def __init__(self, allow_missing: bool, allow_added: bool) -> None:
        self._allow_missing, self._allow_added = allow_missing, allow_added
        self.added: list[str] = []
        self.missing: list[str] = []
        self.widened: list[tuple[str, pa.DataType, pa.DataType]] = []

    def fields(self, table: list[pa.Field], rows: list[pa.Field], parent: str) -> list[pa.Field]:
        given = {f.name: f for f in rows}
        out = [self._kept(field, given.pop(field.name, None), parent) for field in table]
        known = {f.name.lower(): f.name for f in table}
        return out + [self._new(field, known, parent) for field in given.values()]

    def _kept(self, field: pa.Field, given: pa.Field | None, parent: str) -> pa.Field:
        path = parent + field.name
        if given is not None:
            return self._field(field, given, path)
        if not field.nullable:
            raise SchemaMismatch(path, "missing", f"{field.type} not null", "Add the column: the table allows no null in it.")
        if not self._allow_missing:
            raise UnsupportedEvolution(
                path,
                "the rows lack it and a write never drops a column",
                "Add the column to the rows, or set hoodie.write.set.null.for.missing.columns=true to fill it with null.",
            )
        self.missing.append(path)
        return field

    def _new(self, field: pa.Field, known: dict[str, str], parent: str) -> pa.Field:
        path = parent + field.name
        twin = known.get(field.name.lower())
        if twin is not None:
            raise SchemaMismatch(
                path, f"told from {parent + twin!r} only by upper and lower case", f"the name {twin!r}", "Rename the column."
            )
        if not self._allow_added:
            raise UnsupportedEvolution(
                path, "the table does not have it", "Drop the column from the rows, or add it to the table first."
            )
        untyped = next(_untyped(field.type, path), None)
        if untyped is not None:
            raise SchemaMismatch(
                untyped, "of type null", "a type", "The column is new and has no value: drop it, or give it a type."
            )
        self.added.append(path)
        return field.with_nullable(True)

    def _field(self, table: pa.Field, given: pa.Field, path: str) -> pa.Field:
        if hudi_type_of(given) not in (None, hudi_type_of(table)):
            hint = "Write the values to a new column."
            raise UnsupportedEvolution(path, f"from {hudi_type_of(table) or table.type} to {hudi_type_of(given)}", hint)
        vector = vector_of(table)
        if vector is not None:
            if not (pa.types.is_null(given.type) or (is_list_like(given.type) and vector.takes(given.type.value_type))):
                raise SchemaMismatch(path, given.type, str(vector), f"Give lists of {vector.dimension} numbers.")
            return table
        kind = self._type(table.type, given.type, path)
        if kind.equals(table.type, check_metadata=True):
            return table
        if has_own_type(table):
            hint = "Write the values to a new column."
            raise UnsupportedEvolution(path, f"{table.type} is a type of its own, to {given.type}", hint)
        return table.with_type(kind)

    def _type(self, table: pa.DataType, given: pa.DataType, path: str) -> pa.DataType:
        if pa.types.is_null(given):
            return table
        for shape in (pa.types.is_struct, pa.types.is_map, is_list_like):
            if shape(table) or shape(given):
                if not (shape(table) and shape(given)):
                    raise UnsupportedEvolution(path, f"from {table} to {given}", "Write the values to a new column.")
                return self._nested(table, given, path)
        return self._leaf(table, given, path)

    def _nested(self, table: pa.DataType, given: pa.DataType, path: str) -> pa.DataType:
        if pa.types.is_struct(table):
            return pa.struct(self.fields(_children(table), _children(given), path + "."))
        if pa.types.is_map(table):
            return pa.map_(pa.string(), self._field(table.item_field, given.item_field, f"{path}.value"))
        return pa.list_(self._field(table.value_field, given.value_field, f"{path}.element"))

    def _leaf(self, table: pa.DataType, given: pa.DataType, path: str) -> pa.DataType:
        if fit(given, table) in (Fit.SAME, Fit.PROMOTED):
            return table
        if fit(table, given) is Fit.PROMOTED and not (is_text(given) and is_bytes(table)):
            self.widened.append((path, table, given))
            return given
        if pa.types.is_decimal(table) and pa.types.is_decimal(given):
            raise UnsupportedEvolution(
                path, f"from {table} to {given} would lose digits", f"Cast the column to {_both(table, given)} before writing."
            )
        raise SchemaMismatch(path, given, table, cast_advice(given, table))


def _untyped(kind: pa.DataType, path: str) -> Iterator[str]:
    """Where a type has the type null in it, as a list that is empty in all rows has: no reader could open such a column."""
    if pa.types.is_null(kind):
        yield path
    elif pa.types.is_map(kind):
        yield from _untyped(kind.item_type, f"{path}.value")
    elif is_list_like(kind):
        yield from _untyped(kind.value_type, f"{path}.element")
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _untyped(field.type, f"{path}.{field.name}")


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]


def _both(one: pa.DataType, other: pa.DataType) -> str:
    """A decimal that holds the values of both, or the wider of the two when none does."""
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return f"decimal128({min(precision, 38)}, {scale})"
