"""Changes of a table's columns that keep what old files hold: each makes the next version of the schema's history.

Columns keep their ids; a new one takes the next that was never given. Ids of a new history are given level by level, as Hudi
gives them: first the fields of a record, then what is inside each of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hudimeta.errors import ConfigError, UnsupportedEvolution
from hudimeta.schema.hudi_types import vector_of
from hudimeta.schema.internal_schema import InternalSchema, SchemaColumn, SchemaHistory
from hudimeta.schema.names import check_names
from hudimeta.schema.normalise import normalise_type
from hudimeta.schema.promotion import Fit, fit
from hudimeta.types import META_COLUMNS

__all__ = ["Alteration", "altered", "internal_schema", "reconciled", "refuse_former_names", "renamed"]

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.time32("ms"): "time_millis",
    pa.timestamp("us"): "local_timestamp_micros",
    pa.timestamp("ms"): "local_timestamp_millis",
}


@dataclass(frozen=True)
class Alteration:
    """What `Table.alter` does, in this order: drop, rename, retype, nullable, add, move.

    Names may be dotted paths into structs.

    Attributes:
        drop: Columns to drop.
        rename: Old path -> new name (of the last part alone).
        retype: Path -> wider type.
        nullable: Paths that may hold nothing from now on.
        add: New fields, nullable; a dotted name adds to a struct.
        move: Path -> name of the column that it shall follow; "" for none, as the first one.
    """

    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    retype: Mapping[str, pa.DataType] = field(default_factory=dict)
    nullable: tuple[str, ...] = ()
    add: tuple[pa.Field, ...] = ()
    move: Mapping[str, str] = field(default_factory=dict)


class _Ids:
    """Gives ids that were never given."""

    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def internal_schema(schema: pa.Schema, version: int = 0) -> InternalSchema:
    """The first version of a history.

    Args:
        schema: All columns, meta columns first.
        version: 0 for the columns before the first change.
    """
    ids = _Ids(-1)
    columns = _fresh(list(schema), ids)
    return InternalSchema(version, ids.last, columns)


def _fresh(fields: Sequence[pa.Field], ids: _Ids) -> tuple[SchemaColumn, ...]:
    own = [ids.next() for _ in fields]
    return tuple(_column(number, f, ids) for number, f in zip(own, fields, strict=True))


def _column(number: int, f: pa.Field, ids: _Ids) -> SchemaColumn:
    children = _children(f.type, ids)
    doc = "" if f.name in META_COLUMNS else None
    return _rebuilt(SchemaColumn(number, f.name, f.nullable, f.type, children, None, doc))


def _children(kind: pa.DataType, ids: _Ids) -> tuple[SchemaColumn, ...]:
    if pa.types.is_struct(kind):
        return _fresh([kind.field(i) for i in range(kind.num_fields)], ids)
    if pa.types.is_map(kind):
        key, value = ids.next(), ids.next()
        of_key = _column(key, pa.field("key", kind.key_type, nullable=False), ids)
        return of_key, _column(value, kind.item_field.with_name("value"), ids)
    if pa.types.is_list(kind):
        return (_column(ids.next(), kind.value_field.with_name("element"), ids),)
    return ()


def _rebuilt(column: SchemaColumn) -> SchemaColumn:
    """The column with the type and the stored form that its children amount to."""
    kind, children = column.type, column.children
    if pa.types.is_struct(kind):
        members = [_member(child) for child in children]
        return replace(column, type=pa.struct([c.field for c in children]), stored={"type": "record", "fields": members})
    if pa.types.is_map(kind):
        key, value = children
        stored = {
            "type": "map",
            "key_id": key.id,
            "key": key.stored,
            "value_id": value.id,
            "value": value.stored,
            "value_optional": value.optional,
        }
        return replace(column, type=pa.map_(key.type, value.field), stored=stored)
    if pa.types.is_list(kind):
        (element,) = children
        stored = {
            "type": "array",
            "element_id": element.id,
            "element": element.stored,
            "element_optional": element.optional,
        }
        return replace(column, type=pa.list_(element.field), stored=stored)
    return replace(column, stored=_stored_leaf(kind, column.name))


def _member(child: SchemaColumn) -> dict[str, Any]:
    entry = {"id": child.id, "name": child.name, "optional": child.optional, "type": child.stored}
    return entry if child.doc is None else entry | {"doc": child.doc}


def _stored_leaf(kind: pa.DataType, name: str) -> str:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "timestamp" if kind.unit == "us" else "timestamp_millis"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    found = _NAMES.get(kind)
    if found is None:
        raise UnsupportedEvolution(name, f"of type {kind}, which the history of a schema cannot hold")
    return found


# What a write does


def reconciled(latest: InternalSchema, schema: pa.Schema, version: int) -> InternalSchema:
    """The version after a write: columns that it added or widened; `latest` itself when there are none.

    Args:
        latest: So far.
        schema: All columns after the write, meta columns first.
        version: The write's instant as a number.
    """
    ids = _Ids(latest.max_column_id)
    columns = _laid_beside(latest.columns, list(schema), ids)
    return latest if columns == latest.columns else InternalSchema(version, ids.last, columns)


def _laid_beside(known: Sequence[SchemaColumn], fields: Sequence[pa.Field], ids: _Ids) -> tuple[SchemaColumn, ...]:
    by_name = {column.name: column for column in known}
    new = {f.name: ids.next() for f in fields if f.name not in by_name}
    return tuple(_column(new[f.name], f, ids) if f.name in new else _widened(by_name[f.name], f, ids) for f in fields)


def _widened(column: SchemaColumn, f: pa.Field, ids: _Ids) -> SchemaColumn:
    kind = f.type
    if vector_of(f) is not None:
        return column
    if pa.types.is_struct(kind):
        children = _laid_beside(column.children, [kind.field(i) for i in range(kind.num_fields)], ids)
    elif pa.types.is_map(kind):
        children = (column.children[0], _widened(column.children[1], kind.item_field, ids))
    elif pa.types.is_list(kind):
        children = (_widened(column.children[0], kind.value_field, ids),)
    else:
        same = column.type == kind and column.optional == f.nullable
        return column if same else _rebuilt(replace(column, type=kind, optional=f.nullable))
    if children == column.children and column.optional == f.nullable:
        return column
    return _rebuilt(replace(column, children=children, optional=f.nullable))


def refuse_former_names(history: SchemaHistory, new: InternalSchema) -> None:
    """Refuse a column whose name meant another one before: statistics and files of that time bear the same name.

    Raises:
        UnsupportedEvolution: With the name.
    """
    former = {column.name: column.id for version in history.versions for column in version.columns}
    meant = {(column.name, column.id) for version in history.versions for column in version.columns}
    for column in new.columns:
        if column.name in former and (column.name, column.id) not in meant:
            raise UnsupportedEvolution(
                column.name, "an earlier column of the table had this name", "Choose a name that no column ever had."
            )


# What an ALTER does


def renamed(before: InternalSchema, after: InternalSchema) -> frozenset[str]:
    """Columns that older files hold under other names: their dotted names after an ALTER."""
    former = {column.id: path for path, column in before.places()}
    return frozenset(path for path, column in after.places() if former.get(column.id, path) != path)


def altered(latest: InternalSchema, change: Alteration, version: int, fixed: Sequence[str] = ()) -> InternalSchema:
    """The version after an ALTER.

    Args:
        latest: So far.
        change: What to do.
        version: The ALTER's instant as a number.
        fixed: Columns that must stay: of the key, the partition and the ordering.

    Raises:
        ConfigError: Columns that are not there, are there already, or must stay.
        UnsupportedEvolution: A type that does not promote, or a name that only case tells from another.
        SchemaMismatch: A name that columns cannot have.
    """
    ids = _Ids(latest.max_column_id)
    columns = latest.columns
    kept = {*META_COLUMNS, *fixed}
    for path in change.drop:
        _refuse_fixed("drop", path, kept)
        columns = _edited(columns, path, lambda _: None, "drop")
    for path, name in change.rename.items():
        _refuse_fixed("rename", path, kept)
        if "." in name:
            last = name.rpartition(".")[2]
            raise ConfigError("rename", name, f"the new name of the last part of {path} alone", f"Give {{{path!r}: {last!r}}}.")
        check_names(pa.schema([pa.field(name, pa.null())]))
        if name == path.rpartition(".")[2] or name.lower() == path.lower():  # of fields Apache Hudi compares the case, too
            raise ConfigError("rename", name, f"another name than {path} has, not in case alone", "Leave the rename out.")
        columns = _edited(columns, path, lambda found, name=name: replace(found, name=name), "rename")  # type: ignore[misc]
        _refuse_twins(columns, "")  # at once: the next change would find either of the two by that name
    for path, kind in change.retype.items():
        columns = _edited(columns, path, lambda found, kind=kind: _retyped(found, kind), "retype")  # type: ignore[misc]
    for path in change.nullable:
        columns = _edited(columns, path, lambda found: replace(found, optional=True), "nullable")
    for new in change.add:
        columns = _with_added(columns, new.name.split("."), new, ids)
    for path, after in change.move.items():
        columns = _moved(columns, path, path.split("."), after)
    _refuse_twins(columns, "")
    if not any(c.name not in META_COLUMNS for c in columns):
        raise ConfigError("drop", ",".join(change.drop), "fewer columns than the table has", "A table needs a column.")
    new = InternalSchema(version, ids.last, columns)
    empty = next((path for path, column in new.places() if pa.types.is_struct(column.type) and not column.children), None)
    if empty is not None:
        raise UnsupportedEvolution(empty, "it would have no field left", "Drop the whole column, or add another field first.")
    return new


def _refuse_fixed(what: str, path: str, kept: set[str]) -> None:
    if path in kept or path.partition(".")[0] in META_COLUMNS or any(name.startswith(path + ".") for name in kept):
        allowed = "columns that are no part of the key, the partition or the ordering"
        raise ConfigError(what, path, allowed, "Write the rows to a new table instead.")


_Edit = Callable[[SchemaColumn], "SchemaColumn | None"]


def _edited(columns: Sequence[SchemaColumn], path: str, edit: _Edit, what: str) -> tuple[SchemaColumn, ...]:
    head, _, rest = path.partition(".")
    at = next((i for i, column in enumerate(columns) if column.name == head), None)
    if at is None:
        near = difflib.get_close_matches(head, [c.name for c in columns], n=1)
        hint = f"Did you mean {near[0]}?" if near else ""
        raise ConfigError(what, path, f"columns: {', '.join(c.name for c in columns if c.name not in META_COLUMNS)}", hint)
    column = columns[at]
    if rest:
        _check_inside(column, rest if what not in _OF_ELEMENTS else f"{rest}.", what, path)
    new = _rebuilt(replace(column, children=_edited(column.children, rest, edit, what))) if rest else edit(column)
    return (*columns[:at], *(() if new is None else (new,)), *columns[at + 1 :])


_OF_ELEMENTS = ("retype", "nullable")
"""What is also done to the value of a map and the element of a list themselves."""


def _check_inside(column: SchemaColumn, rest: str, what: str, path: str) -> None:
    """Refuse a path that leads on from what has no fields; through `value` of a map and `element` of a list it may."""
    if not (pa.types.is_struct(column.type) or (column.children and "." in rest)):
        raise ConfigError(what, path, "a column, or a field of a struct", f"{column.name} is {column.type}.")


def _retyped(column: SchemaColumn, kind: pa.DataType) -> SchemaColumn:
    wider = normalise_type(kind, column.name)
    narrower = pa.types.is_integer(kind) and kind != wider == column.type  # Hudi keeps no smaller integer
    if column.children or narrower or fit(column.type, wider) is Fit.NO:
        change = f"from {column.type} to {kind if narrower else wider}"
        raise UnsupportedEvolution(column.name, change, "Add a column of the new type and fill it with an update.")
    return _rebuilt(replace(column, type=wider))


def _with_added(columns: Sequence[SchemaColumn], path: Sequence[str], new: pa.Field, ids: _Ids) -> tuple[SchemaColumn, ...]:
    if len(path) > 1:

        def inside(found: SchemaColumn) -> SchemaColumn:
            _check_inside(found, ".".join(path[1:]), "add", new.name)
            return _rebuilt(replace(found, children=_with_added(found.children, path[1:], new, ids)))

        return _edited(columns, path[0], inside, "add")
    if any(column.name == path[0] for column in columns):
        raise ConfigError("add", new.name, "a name that no column has")
    kind = normalise_type(new.type, new.name)
    check_names(pa.schema([pa.field(path[0], kind)]))
    # Rows that are there have nothing in it.
    return (*columns, _column(ids.next(), pa.field(path[0], kind, nullable=True), ids))


def _moved(columns: Sequence[SchemaColumn], path: str, names: Sequence[str], after: str) -> tuple[SchemaColumn, ...]:
    """The columns in another order; meta columns stay in front."""
    if len(names) > 1:

        def inside(found: SchemaColumn) -> SchemaColumn:
            _check_inside(found, ".".join(names[1:]), "move", path)
            return _rebuilt(replace(found, children=_moved(found.children, path, names[1:], after)))

        return _edited(columns, names[0], inside, "move")
    by_name = {column.name: column for column in columns}
    own = [column for column in columns if column.name not in META_COLUMNS]
    if names[0] not in by_name or by_name[names[0]] not in own:
        raise ConfigError("move", path, f"columns: {', '.join(column.name for column in own)}")
    others = [column for column in own if column.name != names[0]]
    before = {column.name: number for number, column in enumerate(others, 1)} | {"": 0}
    if after not in before:
        raise ConfigError("move", after, f"another column beside {path}: {', '.join(column.name for column in others)}")
    meta = [column for column in columns if column.name in META_COLUMNS]
    return (*meta, *others[: before[after]], by_name[names[0]], *others[before[after] :])


def _refuse_twins(columns: Sequence[SchemaColumn], parent: str) -> None:
    for path, siblings in _levels(columns, parent):
        seen: dict[str, str] = {}
        for column in siblings:
            twin = seen.get(column.name.lower())
            if twin is not None:
                other = f"a name that differs from {path + twin} by more than case"
                allowed = other if twin != column.name else "a name that no other column has"
                raise ConfigError("alter", path + column.name, allowed)
            seen[column.name.lower()] = column.name


def _levels(columns: Sequence[SchemaColumn], parent: str) -> Iterator[tuple[str, Sequence[SchemaColumn]]]:
    yield parent, columns
    for column in columns:
        if pa.types.is_struct(column.type):
            yield from _levels(column.children, f"{parent}{column.name}.")
