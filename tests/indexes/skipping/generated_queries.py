"""Random predicates over the rows that a table has, as SQL: keys, ranges, lists, nulls, joined by AND, OR and NOT."""

from __future__ import annotations

import datetime
import decimal
import math
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

__all__ = ["Generator"]


class Generator:
    """Makes predicates, the same ones for the same seed.

    Args:
        rows: The table.
        favoured: Columns, or expressions by name with their values, that indexes are about.
    """

    def __init__(self, rows: pa.Table, favoured: Sequence[str], expressions: dict[str, list[Any]], seed: int) -> None:
        self._random = random.Random(seed)
        self._values: dict[str, list[Any]] = dict(expressions)
        for name in rows.column_names:
            values = [v for v in rows.column(name).to_pylist() if v is not None]
            if values and _sql(values[0]) is not None:
                self._values[name] = values
        self._names = sorted(self._values)
        self._favoured = [name for name in (*favoured, *expressions) if name in self._values]

    def predicate(self) -> str:
        """The next one."""
        draw = self._random
        parts = [self._part() for _ in range(draw.choice((1, 1, 1, 2, 2, 3)))]
        text = " AND ".join(parts)
        if draw.random() < 0.15:
            text = f"({text}) OR ({self._part()})"
        return f"NOT ({text})" if draw.random() < 0.05 else text

    def _part(self) -> str:
        draw = self._random
        name = draw.choice(self._favoured if self._favoured and draw.random() < 0.7 else self._names)
        how = draw.choice(("=", "=", "=", "IN", "IN", "range", "BETWEEN", "<>", "OR", "null"))
        if how == "IN":
            return f"{name} IN ({', '.join(self._value(name) for _ in range(draw.randint(1, 5)))})"
        if how == "OR":
            return f"({name} = {self._value(name)} OR {name} = {self._value(name)})"
        if how == "BETWEEN":
            return f"{name} BETWEEN {self._value(name)} AND {self._value(name)}"
        if how == "range":
            return f"{name} {draw.choice(('<', '<=', '>', '>='))} {self._value(name)}"
        if how == "null":
            return f"{name} IS {draw.choice(('NULL', 'NOT NULL'))}"
        return f"{name} {how} {self._value(name)}"

    def _value(self, name: str) -> str:
        value = self._random.choice(self._values[name])
        if self._random.random() < 0.25:
            value = _near(value, self._random)
        text = _sql(value)
        assert text is not None
        return text


def _near(value: Any, draw: random.Random) -> Any:
    """Another value of the type, most likely one that no row has."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + draw.choice((-1, 1, 1000))
    if isinstance(value, datetime.date):
        return value + datetime.timedelta(days=draw.choice((-1, 1, 400)))
    return value + draw.choice(("0", "x", "~")) if isinstance(value, str) else value


def _sql(value: Any) -> str | None:
    """A literal, None for types that are left out."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, (int, decimal.Decimal)):
        return str(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return f"DATE'{value.isoformat()}'"
    return None
