"""Columns, and fields inside of them, as a table spells them, where a statement names them as the session compares names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, MapType, StructType

from hudimeta.errors import ConfigError
from pyspark_hudimeta.routed.assignment import column_of

if TYPE_CHECKING:
    from hudimeta.sql import ColumnPlace

__all__ = ["neighbour", "spelling", "spelt"]


def spelling(columns: StructType, path: str) -> str | None:
    """A dotted path as the table spells it; None for what is not there.

    Args:
        columns: Of the table.
        path: A column, or a field of a struct, of a map's `value` or of a list's `element`.
    """
    kind: Any = columns
    spelled = []
    for part in path.split("."):
        if isinstance(kind, StructType):
            try:
                name = column_of(kind, part)
            except ConfigError:
                return None
            kind = kind[name].dataType
        else:
            name = part.lower()
            kind = _inside(kind).get(name)
        if kind is None:
            return None
        spelled.append(name)
    return ".".join(spelled)


def _inside(kind: Any) -> dict[str, Any]:
    if isinstance(kind, MapType):
        return {"key": kind.keyType, "value": kind.valueType}
    return {"element": kind.elementType} if isinstance(kind, ArrayType) else {}


def spelt(columns: StructType, path: str, *, new: bool = False) -> str:
    """The same, for whoever says what is wrong with a path whose column is there.

    Args:
        columns: Of the table.
        path: See `spelling`.
        new: It is not there yet, only what it is inside of.

    Raises:
        ConfigError: No such column.
    """
    above, _, last = path.rpartition(".")
    if new:
        return f"{spelt(columns, above)}.{last}" if above else last
    found = spelling(columns, path)
    if found is not None:
        return found
    column, *inside = path.split(".")
    return ".".join((column_of(columns, column), *inside))


def neighbour(columns: StructType, path: str, place: ColumnPlace) -> str | None:
    """The column or field that another one of its level shall follow, as the table spells it; None for the first place.

    Args:
        columns: Of the table.
        path: Of the one that is placed.
        place: Where.
    """
    if place.after is None:
        return None
    above = path.rpartition(".")[0]
    found = spelling(columns, f"{above}.{place.after}" if above else place.after)
    return place.after if found is None else found.rpartition(".")[2]  # another new column is not there yet
