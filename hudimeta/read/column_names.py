"""Which column a name means: as the table spells it, else without case, else a field of a struct by its dotted name.

Between backticks a part of a name is what it is, as in Spark: `` `a.b` `` is no field of `a`.
"""

from __future__ import annotations

import difflib

import pyarrow as pa

from hudimeta.config import name_parts
from hudimeta.errors import ConfigError

__all__ = ["cheapest_column", "found_column", "known_column"]


def known_column(name: str, schema: pa.Schema) -> str:
    """The column, or field of a struct, that a name means.

    Raises:
        ConfigError: There is none; it names the closest column.
    """
    meant, hint = found_column(name, schema)
    if meant is None:
        raise ConfigError("hudimeta.columns", name, f"columns of the table: {', '.join(schema.names)}", hint)
    return meant


def found_column(name: str, schema: pa.Schema) -> tuple[str | None, str]:
    """The column, or field of a struct, that a name means; None when there is none, with a hint at the closest."""
    if name in schema.names:
        return name, ""
    same = [known for known in schema.names if known.lower() == name.lower()]
    if len(same) == 1:
        return str(same[0]), ""
    parts = name_parts(name) if "`" in name else tuple(name.split("."))
    if parts is None:
        return None, "Backticks stand in pairs around whole parts of a name: `a.b`.`c`; one in a name is written twice."
    spelled = _spelled(parts, schema)
    if spelled is not None:
        return ".".join(spelled), ""
    close = difflib.get_close_matches(name, schema.names, n=1)
    return None, f"Did you mean {close[0]}?" if close else ""


def _spelled(parts: tuple[str, ...], schema: pa.Schema) -> tuple[str, ...] | None:
    """The path of a column, or a field of a struct, as the table spells it; None when there is none."""
    spelled: list[str] = []
    fields = list(schema)
    for part in parts:
        found = [f for f in fields if f.name == part] or [f for f in fields if f.name.lower() == part.lower()]
        if len(found) != 1:
            return None
        spelled.append(found[0].name)
        fields = list(found[0].type) if pa.types.is_struct(found[0].type) else []
    return tuple(spelled)


def cheapest_column(schema: pa.Schema) -> str:
    """A column of fixed width where there is one: it is read for the number of its rows only."""
    fixed = [f.name for f in schema if not pa.types.is_nested(f.type) and _is_fixed(f.type)]
    return str(fixed[0] if fixed else schema.names[0])


def _is_fixed(kind: pa.DataType) -> bool:
    try:
        return bool(kind.bit_width)
    except ValueError:
        return False
