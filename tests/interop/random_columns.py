"""Columns of random tables that change, from seed 900 on: what an ALTER does, said by both sides, and what rows are then.

A column whose name has two underscores was renamed; what stands before them says what it holds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.interop.random_rows import COLUMNS, MORE_COLUMNS, Column, Row

ON_READ = "hoodie.schema.on.read.enable"
"""Without it Apache Hudi only adds columns, and gives comments."""
CHANGES = ("add", "rename", "rename", "drop", "retype", "retype", "move", "comment", "inside", "inside")
KEPT = "s"
"""Updates set it, and indexes are of it."""
TEXT = pa.string()
TYPES: Mapping[str, Sequence[pa.DataType]] = {
    "i": (pa.int64(), pa.float64(), TEXT),
    "f2": (pa.float64(),),
    "f": (pa.float64(),),
    "dec9": (pa.decimal128(12, 3), TEXT),
    "d": (TEXT,),
    "n": (TEXT,),
}
SQL_TYPES = {pa.int64(): "bigint", pa.float64(): "double", TEXT: "string", pa.decimal128(12, 3): "decimal(12,3)"}


@dataclass(frozen=True)
class ColumnChange:
    """An ALTER.

    Attributes:
        statement: Apache Hudi's.
        schema: Of the table then.
        row: Makes a row of before one of then.
        ours: Arguments of `Table.alter`; none where only the other side does it.
    """

    statement: str
    schema: pa.Schema
    row: Callable[[Row], Row] = dict
    ours: Mapping[str, Any] = field(default_factory=dict)


def base(name: str) -> str:
    """What a column was called at first."""
    return name.partition("__")[0]


def column_of(name: str, type: pa.DataType | None = None) -> Column:
    """What a column holds; later ones hold numbers, and those that became text hold any."""
    found = COLUMNS.get(base(name)) or MORE_COLUMNS.get(base(name), COLUMNS["n"])
    return COLUMNS["s"] if type == TEXT and found.type != TEXT else found


def is_data(name: str) -> bool:
    """Whether it is no column of keys, partitions and order."""
    return base(name) in {**COLUMNS, **MORE_COLUMNS} or (name[:1] == "c" and base(name)[1:].isdigit())


def fitted(value: Any, type: pa.DataType) -> Any:
    """A value with the fields that structs have now."""
    if value is not None and pa.types.is_struct(type):
        return {f.name: fitted(value.get(f.name, value.get(base(f.name))), f.type) for f in type}
    if value is not None and pa.types.is_list(type):
        return [fitted(item, type.value_type) for item in value]
    return value


def column_change(
    chance: random.Random, schema: pa.Schema, now: int, on_read: bool, drops: bool = True, kept: str = KEPT
) -> ColumnChange:
    """An ALTER that the table can undergo."""
    what = chance.choice(CHANGES if on_read else ("add", "add", "comment"))
    what = "add" if what == "drop" and not drops else what
    names = [name for name in schema.names if is_data(name) and name not in (KEPT, kept)]
    if what == "retype":
        names = [name for name in names if _wider(schema, name)]
    elif what == "inside":
        names = [name for name in names if pa.types.is_nested(schema.field(name).type) and base(name) in ("st", "ar2")]
    if what == "add" or not names or (what == "drop" and len(names) < 2):
        return _added(chance, schema, f"c{now}", on_read)
    name = chance.choice(names)
    if what == "retype":
        return _retyped(schema, name, chance.choice(_wider(schema, name)))
    if what == "inside":
        return _inside(chance, schema, name, now)
    if what == "move":
        return _moved(schema, name, chance.choice([other for other in schema.names if other != name]))
    if what == "comment":
        return ColumnChange(f"ALTER TABLE {{table}} ALTER COLUMN {name} COMMENT 'it is {now}'", schema)
    if what == "drop":
        rest = pa.schema([column for column in schema if column.name != name])

        def without(row: Row) -> Row:
            return {key: value for key, value in row.items() if key != name}

        return ColumnChange(f"ALTER TABLE {{table}} DROP COLUMN {name}", rest, without, {"drop": name})
    return _renamed(schema, name, f"{base(name)}__{now}")


def _wider(schema: pa.Schema, name: str) -> list[pa.DataType]:
    known, now = TYPES.get(base(name), ()), schema.field(name).type
    if now not in known:
        return list(known) if known and now == COLUMNS[base(name)].type else []
    # As text, files of before say a number as it was, and rewritten ones as it became: `3` or `3.0`.
    return [type for type in known[known.index(now) + 1 :] if type != TEXT or pa.types.is_integer(now)]


def _added(chance: random.Random, schema: pa.Schema, name: str, on_read: bool) -> ColumnChange:
    new = schema.append(pa.field(name, pa.int64()))
    statement, ours = f"ALTER TABLE {{table}} ADD COLUMNS ({name} bigint", {"add": {name: pa.int64()}}

    def filled(row: Row) -> Row:
        return {**row, name: None}

    if not on_read or chance.random() < 0.5:
        return ColumnChange(f"{statement})", new, filled, ours)
    after = chance.choice(schema.names)
    return ColumnChange(f"{statement} AFTER {after})", _placed(new, name, after), filled, {**ours, "move": {name: after}})


def _placed(schema: pa.Schema, name: str, after: str) -> pa.Schema:
    columns = [column for column in schema if column.name != name]
    at = [column.name for column in columns].index(after) + 1
    return pa.schema([*columns[:at], schema.field(name), *columns[at:]])


def _moved(schema: pa.Schema, name: str, after: str) -> ColumnChange:
    statement = f"ALTER TABLE {{table}} ALTER COLUMN {name} AFTER {after}"
    return ColumnChange(statement, _placed(schema, name, after), ours={"move": {name: after}})


def _renamed(schema: pa.Schema, name: str, new: str) -> ColumnChange:
    columns = pa.schema([column.with_name(new) if column.name == name else column for column in schema])

    def row(row: Row) -> Row:
        return {new if key == name else key: value for key, value in row.items()}

    return ColumnChange(f"ALTER TABLE {{table}} RENAME COLUMN {name} TO {new}", columns, row, {"rename": {name: new}})


def _retyped(schema: pa.Schema, name: str, type: pa.DataType) -> ColumnChange:
    def row(row: Row) -> Row:
        value = row[name]
        if value is None or type not in (TEXT, pa.float64()):
            return row
        if type == TEXT and isinstance(value, float):
            value = _java_text(value)
        return {
            **row,
            name: float(value) if type == pa.float64() else f"{value:f}" if hasattr(value, "as_tuple") else str(value),
        }

    new = schema.set(schema.get_field_index(name), pa.field(name, type))
    statement = f"ALTER TABLE {{table}} ALTER COLUMN {name} TYPE {SQL_TYPES[type]}"
    return ColumnChange(statement, new, row, {"retype": {name: type}})


def _java_text(value: float) -> str:
    """Of whole numbers below 2^31, as Java says a double."""
    if abs(value) < 1e7:
        return str(value)
    digits, _, exponent = f"{value:.16e}".partition("e")
    digits = digits.rstrip("0")
    return f"{digits}0E{int(exponent)}" if digits.endswith(".") else f"{digits}E{int(exponent)}"


def _inside(chance: random.Random, schema: pa.Schema, name: str, now: int) -> ColumnChange:
    """Of a struct, or of those in a list."""
    whole = schema.field(name).type
    listed = pa.types.is_list(whole)
    struct = whole.value_type if listed else whole
    fields = [struct.field(i) for i in range(struct.num_fields)]
    path = f"{name}.element" if listed else name
    what, old = chance.choice(("add", "rename", "drop") if len(fields) > 1 else ("add", "rename")), chance.choice(fields)
    names = {one.name: one.name for one in fields}
    ours: dict[str, Any]
    if what == "add":
        new = f"z{now}"
        fields.append(pa.field(new, pa.int64()))
        names[new] = new
        statement, ours = f"ADD COLUMNS ({path}.{new} bigint)", {"add": {f"{path}.{new}": pa.int64()}}
    elif what == "rename":
        new = f"{base(old.name)}__{now}"
        fields = [one.with_name(new) if one is old else one for one in fields]
        names = {new if one == old.name else one: one for one in names}
        statement, ours = f"RENAME COLUMN {path}.{old.name} TO {new}", {"rename": {f"{path}.{old.name}": new}}
    else:
        fields = [one for one in fields if one is not old]
        del names[old.name]
        statement, ours = f"DROP COLUMN {path}.{old.name}", {"drop": f"{path}.{old.name}"}

    def struct_now(value: Any) -> Any:
        return None if value is None else {key: value.get(former) for key, former in names.items()}

    def row(row: Row) -> Row:
        value = row[name]
        return {**row, name: [struct_now(one) for one in value] if listed and value is not None else struct_now(value)}

    type = pa.struct(fields)
    column = pa.field(name, pa.list_(type) if listed else type)
    return ColumnChange(f"ALTER TABLE {{table}} {statement}", schema.set(schema.get_field_index(name), column), row, ours)
