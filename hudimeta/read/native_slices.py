"""Which file slices a plain Parquet reader may read, and which only this engine can.

A Parquet reader takes what a base file holds for what the table shows. That is right where nothing has to be merged, every
column of the table reads as itself, and the values of partition columns in the files are those that the partition path states.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.read.native_files import foreign_instants, unlike_column
from hudimeta.slices.bootstrap import BASE_PATH_KEY
from hudimeta.snapshot.partition_columns import path_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["NativeSlices", "native_slices"]

_PARQUET = ".parquet"


@dataclass(frozen=True)
class NativeSlices:
    """Slices of a plan in two parts, with the columns that they had.

    Attributes:
        native: For a Parquet reader.
        others: For this engine.
        reasons: Why those, one line a reason.
    """

    native: pa.Table
    others: pa.Table
    reasons: tuple[str, ...] = ()


def native_slices(snapshot: Snapshot, slices: pa.Table, columns: Sequence[str]) -> NativeSlices:
    """Part the slices of a plan.

    Args:
        snapshot: The table at its moment.
        slices: Columns of `table.slices.slices_schema()`.
        columns: Those that are read.
    """
    import pyarrow.compute as pc

    if not slices.num_rows:
        return NativeSlices(slices, slices)
    unreadable = _unreadable_column(snapshot, columns)
    if unreadable:
        return NativeSlices(slices.slice(0, 0), slices, (unreadable,))
    reasons: list[str] = []
    tests = _tests(snapshot, slices)
    for reason, passes in tests.items():
        if not pc.all(passes).as_py():
            reasons.append(f"{reason}: {pc.sum(pc.invert(passes)).as_py():,} slices")
    keep = functools.reduce(pc.and_, tests.values())
    return NativeSlices(slices.filter(keep), slices.filter(pc.invert(keep)), tuple(reasons))


def _tests(snapshot: Snapshot, slices: pa.Table) -> dict[str, pa.ChunkedArray]:
    """What each slice must pass, by what it is when it does not."""
    import pyarrow.compute as pc

    base, logs = slices.column("base_file"), pc.list_value_length(slices.column("log_files"))
    stated = _stated(snapshot, slices.column("partition_path"))
    foreign = pc.is_in(slices.column("base_instant"), value_set=pa.array(sorted(foreign_instants(snapshot)), pa.string()))
    return {
        "log files to merge": pc.and_(pc.is_valid(base), pc.equal(pc.fill_null(logs, 0), 0)),
        "base files of another format than Parquet": pc.fill_null(pc.ends_with(base, _PARQUET), True),
        "partitions whose path does not state a value": pc.is_in(slices.column("partition_path"), value_set=stated),
        "columns that were renamed or changed their type since": pc.invert(foreign),
    }


def _unreadable_column(snapshot: Snapshot, columns: Sequence[str]) -> str:
    """A reason why no file of the table reads natively; "" without one."""
    if snapshot.properties.get(BASE_PATH_KEY):
        # The source's files lie elsewhere or, where they were copied, hold nothing in the partition columns.
        return "files of a bootstrapped table"
    dropped = [name for name in snapshot.schema.dropped if name in columns]
    if dropped:
        return f"column {dropped[0]} is in no file"
    return unlike_column(snapshot.schema, columns)


def _stated(snapshot: Snapshot, paths: pa.ChunkedArray) -> pa.Array:
    """The partition paths that state a value for each partition column that is taken from paths."""
    import pyarrow.compute as pc

    from hudimeta.keys import PartitionLayout

    found = pc.unique(paths)
    layout = PartitionLayout.from_properties(snapshot.properties)
    values = path_values(found, layout, snapshot.schema.arrow, snapshot.properties)
    for name in values.column_names:
        stated = pc.is_valid(values.column(name))
        found, values = found.filter(stated.combine_chunks()), values.filter(stated)
    return found
