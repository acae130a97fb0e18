"""A model of columns that are altered: each field keeps a number for life, and values are kept by numbers, not by names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

__all__ = [
    "WIDER",
    "Column",
    "Listed",
    "Mapped",
    "Struct",
    "arrow_type",
    "below",
    "changed",
    "new_column",
    "shown",
    "some_value",
]

LEAVES: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "decimal": pa.decimal128(9, 2),
    "large decimal": pa.decimal128(14, 4),
    "date": pa.date32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
WIDER: dict[str, dict[str, Callable[[Any], Any]]] = {
    "int": {"long": int, "float": float, "double": float, "string": str},
    "long": {"double": float, "string": str},
    "float": {"double": float},
    "decimal": {"large decimal": Decimal},
    "date": {"string": date.isoformat},
}
"""What a leaf may become, and its value then. Numbers that were widened before are not made texts: a file may have 1 or 1.0."""


@dataclass
class Struct:
    """Fields, in order."""

    fields: list[Column]


@dataclass
class Listed:
    """A list of values of one kind."""

    element: Kind


@dataclass
class Mapped:
    """A map from texts."""

    value: Kind


Kind = str | Struct | Listed | Mapped
_numbers = itertools.count(1)


@dataclass
class Column:
    """A column, or a field of a struct.

    Attributes:
        name: Of today.
        kind: Name of a leaf type, or what is nested.
        number: Never given again.
        is_widened: Its type is not the first one.
    """

    name: str
    kind: Kind
    number: int = field(default_factory=lambda: next(_numbers))
    is_widened: bool = False


def new_column(name: str, dice: Random, depth: int) -> Column:
    """A column of a random type, nested as deep as is said."""
    return Column(name, _new_kind(name, dice, depth))


def _new_kind(name: str, dice: Random, depth: int) -> Kind:
    how = dice.random() if depth else 1
    if how < 0.2:
        return Struct([new_column(f"{name}_{n}", dice, depth - 1) for n in range(dice.randrange(1, 4))])
    if how < 0.3:
        return Listed(_new_kind(name, dice, depth - 1))
    return Mapped(_new_kind(name, dice, depth - 1)) if how < 0.4 else dice.choice(list(LEAVES))


def arrow_type(kind: Kind) -> pa.DataType:
    """As Arrow has it, with the names of today."""
    if isinstance(kind, Struct):
        return pa.struct([(column.name, arrow_type(column.kind)) for column in kind.fields])
    if isinstance(kind, Listed):
        return pa.list_(arrow_type(kind.element))
    return pa.map_(pa.string(), arrow_type(kind.value)) if isinstance(kind, Mapped) else LEAVES[kind]


def some_value(kind: Kind, dice: Random) -> Any:
    """A random value, null now and then; a struct as a dict by the numbers of its fields."""
    if dice.random() < 0.2:
        return None
    if isinstance(kind, Struct):
        return {column.number: some_value(column.kind, dice) for column in kind.fields}
    if isinstance(kind, Listed):
        return [some_value(kind.element, dice) for _ in range(dice.randrange(3))]
    if isinstance(kind, Mapped):
        return [(f"k{n}", some_value(kind.value, dice)) for n in range(dice.randrange(3))]
    number = dice.randrange(-900, 900)
    makers: dict[str, Callable[[], Any]] = {
        "float": lambda: number / 4,
        "double": lambda: number / 4,
        "string": lambda: dice.choice(["", "a", "é", f"s{number}"]),
        "decimal": lambda: Decimal(number) / 100,
        "large decimal": lambda: Decimal(number) / 10_000,
        "date": lambda: date(2020, 1, 1) + timedelta(days=number),
        "boolean": lambda: number > 0,
        "binary": lambda: bytes([number % 256]),
    }
    return makers.get(kind, lambda: number)()


def shown(value: Any, kind: Kind) -> Any:
    """A value as a reader shows it: by the names of today, without fields that are gone, null in those that came later."""
    if value is None:
        return None
    if isinstance(kind, Struct):
        return {column.name: shown(value.get(column.number), column.kind) for column in kind.fields}
    if isinstance(kind, Listed):
        return [shown(one, kind.element) for one in value]
    return [(key, shown(one, kind.value)) for key, one in value] if isinstance(kind, Mapped) else value


def changed(value: Any, kind: Kind, number: int, become: Callable[[Any], Any]) -> Any:
    """A value in which those of one leaf, at any depth, have become others."""
    if value is None or isinstance(kind, str):
        return value
    if isinstance(kind, Listed):
        return [changed(one, kind.element, number, become) for one in value]
    if isinstance(kind, Mapped):
        return [(key, changed(one, kind.value, number, become)) for key, one in value]
    found = dict(value)
    for column in kind.fields:
        held = value.get(column.number)
        if column.number == number:
            found[number] = None if held is None else become(held)
        elif held is not None:
            found[column.number] = changed(held, column.kind, number, become)
    return found


def below(columns: list[Column], above: str = "") -> Iterator[tuple[str, Column, list[Column]]]:
    """Every column and field by the path that an ALTER takes, with those beside it."""
    for column in columns:
        path = f"{above}{column.name}"
        yield path, column, columns
        kind: Kind | Sequence[Column] = column.kind
        while isinstance(kind, Listed | Mapped):
            path, kind = (f"{path}.element", kind.element) if isinstance(kind, Listed) else (f"{path}.value", kind.value)
        if isinstance(kind, Struct):
            yield from below(kind.fields, f"{path}.")
