"""A procedure as a value: its name, what it takes, the columns of what it gives, and what runs it or why nothing does.

Parameters and columns are written as text, in Spark's words for types, because that is how people read and compare them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import ConfigError
from hudimeta.procedures.call import ProcedureCall

__all__ = ["Parameter", "RunPlace", "Procedure", "Rows"]

Rows: TypeAlias = Iterable[Sequence[Any]]
"""What a procedure gives: values in the order of its columns."""

_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}
_WORDS = {"true": True, "false": False}


class RunPlace(enum.Enum):
    """Where a procedure runs."""

    ENGINE = "everywhere"
    SPARK = "Spark"
    """It needs a session of Spark: its catalog, or its DataFrames."""
    NOWHERE = "refused"
    """It has no meaning without Apache Hudi's Java."""


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        name: As Hudi spells it; a call may spell it in any case.
        type: Spark's word.
        required: SQL must give it.
        default: Where nothing is given; None for nothing.
        names_table: It says which table is meant: a call on a table object leaves it out.
    """

    name: str
    type: str
    required: bool = False
    default: str | int | bool | None = None
    names_table: bool = False

    @staticmethod
    def of(text: str) -> Parameter:
        """From `name type`, with `@` in front where it names the table, `!` at the end where it is required, or `= default`."""
        what, _, default = text.partition(" = ")
        name, kind = what.rsplit(" ", 1)
        return Parameter(
            name.removeprefix("@"),
            kind.removesuffix("!"),
            kind.endswith("!"),
            Parameter("", kind).read(default.strip("'")) if default else None,
            name.startswith("@"),
        )

    def read(self, value: Any) -> Any:
        """A value as this parameter takes it.

        Raises:
            ConfigError: It is of another type.
        """
        if value is None:
            return None
        if self.type == "boolean":
            found = _WORDS.get(str(value).strip().lower())
            if found is None:
                raise ConfigError(self.name, value, "true or false")
            return found
        if self.type in ("int", "bigint"):
            try:
                return int(str(value).strip())
            except ValueError as error:
                raise ConfigError(self.name, value, "a whole number") from error
        return str(value)

    def __str__(self) -> str:
        if self.required:
            return f"{self.name} {self.type}"
        default = str(self.default).lower() if isinstance(self.default, bool) else repr(self.default)
        return f"{self.name} {self.type}{'' if self.default is None else f' = {default}'}"


@dataclass(frozen=True)
class Procedure:
    """One procedure.

    Attributes:
        name: As Hudi calls it.
        takes: Its parameters in their order, see `Parameter.of`; separated by a comma and a blank.
        gives: Its columns: a name, which may have blanks, and a type; with `!` where it is never null.
        doc: What it does, in one sentence.
        run: Gives the rows; None where the engine does not run it.
        place: Where it runs.
        why: Of one that does not run: why, and what to do instead.
        acts: It may change the table.
        note: What it does otherwise than Apache Hudi; "" for nothing.
        takes_several: A statement may name several tables, separated by commas; nothing is done unless all are there.
    """

    name: str
    takes: str
    gives: str
    doc: str
    run: Callable[[ProcedureCall], Rows] | None = None
    place: RunPlace = RunPlace.ENGINE
    why: str = ""
    acts: bool = False
    note: str = ""
    takes_several: bool = False

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes."""
        return tuple(Parameter.of(text) for text in self.takes.split(", ") if text)

    @property
    def takes_table(self) -> bool:
        """Whether a table can be named, not only a path."""
        return any(p.names_table and p.name == "table" for p in self.parameters)

    @cached_property
    def schema(self) -> pa.Schema:
        """What it gives."""
        fields = []
        for text in self.gives.split(", "):
            name, kind = text.rsplit(" ", 1)
            fields.append(pa.field(name, _TYPES[kind.removesuffix("!")], nullable=not kind.endswith("!")))
        return pa.schema(fields)

    @property
    def signature(self) -> str:
        """How it is called, as text."""
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def table(self, rows: Rows) -> pa.Table:
        """Rows as a table of its columns."""
        columns: list[list[Any]] = [[] for _ in self.schema]
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema)
