"""Mergers as users write them, named by tests as `tests.slices.mergers:<function>`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

not_a_function = 7


def add_quantities(older: pa.Table, newer: pa.Table) -> pa.Table:
    """The newer row, with both quantities."""
    total = pc.add(pc.fill_null(older["qty"], 0), pc.fill_null(newer["qty"], 0))
    return newer.set_column(newer.schema.get_field_index("qty"), "qty", total)


def add_and_drop_zero(older: pa.Table, newer: pa.Table) -> pa.Table:
    """As `add_quantities`; a row whose quantity becomes 0 is gone."""
    merged = add_quantities(older, newer)
    return merged.append_column("_hoodie_is_deleted", pc.equal(merged["qty"], 0))


def keep_older(older: pa.Table, newer: pa.Table) -> pa.Table:
    """First come, first served; columns in another order."""
    return older.select(sorted(older.column_names))


def lose_a_row(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Too few rows."""
    return newer.slice(1)


def turn_around(older: pa.Table, newer: pa.Table) -> pa.Table:
    """The right rows in the wrong order."""
    return newer.take(pa.array(range(newer.num_rows - 1, -1, -1)))


def fail(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Has a bug."""
    raise KeyError("quantity")
