"""How many rows a read returns, with as little reading as possible.

A base file without log files has as many rows as the commit says that wrote it, if it is one of ours that was read anyway, or
as its column statistics count values of `_hoodie_commit_time`, which every row has; where neither knows, its footer tells.
That holds for a predicate too if partition paths decide it: each row of a partition matches then, or none. Slices with log
files are merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.engine.machine import pool
from hudimeta.errors import IndexNotReady
from hudimeta.formats.base_file import open_base_file
from hudimeta.formats.plain_arrays import single_array
from hudimeta.slices.bootstrap import METADATA_ONLY_INSTANT
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.table.remembered import REMEMBERED_KEY

if TYPE_CHECKING:
    from hudimeta.predicate import Bound
    from hudimeta.snapshot.file_slice import FileSlice
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["count_rows", "matching_by_paths"]

_COUNTED = "_hoodie_commit_time"
_STATISTICS_FROM = 4
"""Files from which the statistics are asked: a few footers cost less than looking anything up."""
_PARALLEL = 8


def matching_by_paths(snapshot: Snapshot, bound: Bound, slices: pa.Table) -> pa.Table | None:
    """Of some slices those whose rows all match a predicate, the others having no row that does; None where paths do not tell.

    Planning may have kept more: it does not look at what has no column, and keeps what another mode of SQL would compute.

    Args:
        snapshot: The table.
        bound: The predicate.
        slices: Columns of `table.slices.slices_schema()`.
    """
    from hudimeta.keys import PartitionLayout
    from hudimeta.predicate import evaluate
    from hudimeta.snapshot.partition_columns import path_values

    layout = PartitionLayout.from_properties(snapshot.properties)
    names = {column.path[0] for column in bound.columns}
    if not names or not names <= set(layout.fields):
        return None

    def stated(paths: pa.Array) -> pa.Table:
        return path_values(paths, layout, snapshot.schema.arrow, snapshot.properties)

    # One path of the table that does not state a column is enough for readers to leave all paths alone.
    if not names <= set(stated(snapshot.listing.partitions()).column_names):
        return None
    paths = slices["partition_path"].unique()
    matching = paths.filter(single_array(evaluate(bound, stated(paths)).fill_null(False)))
    return slices.filter(pc.is_in(slices["partition_path"], value_set=matching))


def count_rows(snapshot: Snapshot, slices: pa.Table, merged: Callable[[FileSlice], int]) -> int:
    """Rows of file slices.

    Args:
        snapshot: The table.
        slices: Columns of `table.slices.slices_schema()`.
        merged: Counts a slice by reading it.
    """
    total, single = 0, []
    for file_slice in slices_of(slices):
        if file_slice.base_path is None or file_slice.log_files:
            total += merged(file_slice)
        else:
            single.append(file_slice)
    stated = _counts_of_commits(snapshot, single)
    total += sum(stated.values())
    single = [s for s in single if s.base_path not in stated]
    known = _counts_of_statistics(snapshot, single) if len(single) >= _STATISTICS_FROM else {}
    total += sum(known.get(s.base_file or "", 0) for s in single)
    unknown = [s for s in single if (s.base_file or "") not in known]
    if not unknown:
        return total

    def footer(file_slice: FileSlice) -> int:
        with open_base_file(snapshot.storage, file_slice.base_path or "", file_slice.base_size) as file:
            return file.num_rows

    with pool(min(_PARALLEL, len(unknown)), "footers") as threads:
        return total + sum(threads.map(footer, unknown))


def _counts_of_commits(snapshot: Snapshot, slices: list[FileSlice]) -> dict[str, int]:
    """Rows by the path of the base file, of those that a commit of ours wrote that has been read."""
    from hudimeta.indexes.allowed import may_use

    if not may_use(snapshot, "column_stats"):
        return {}
    timeline, found = snapshot.timeline, {}
    for time in {s.base_instant for s in slices}:
        instant = timeline.get(time)
        if instant is None or instant not in timeline.writes or not timeline.is_read(instant):
            continue
        commit = timeline.metadata(instant)
        if REMEMBERED_KEY in (commit["extraMetadata"] or {}):
            stats = (stat for part in commit["partitionToWriteStats"].values() for stat in part)
            found.update({stat["path"]: int(stat["numWrites"]) for stat in stats if stat["numWrites"] is not None})
    return {s.base_path: found[s.base_path] for s in slices if s.base_path is not None and s.base_path in found}


def _counts_of_statistics(snapshot: Snapshot, slices: list[FileSlice]) -> dict[str, int]:
    """Rows by the name of the base file, of those files that column statistics know and no other file is named like."""
    from hudimeta.indexes.allowed import may_use
    from hudimeta.metadata import answers

    if snapshot.metadata is None or not may_use(snapshot, "column_stats") or not snapshot.properties.populate_meta:
        return {}
    try:
        found = answers.column_stats(snapshot.metadata, {_COUNTED: pa.string()}).get(_COUNTED)
    except IndexNotReady:
        return {}
    if found is None or not found.num_rows:
        return {}
    names = Counter(s.base_file or "" for s in slices if s.base_instant != METADATA_ONLY_INSTANT)
    unique = {name for name, times in names.items() if times == 1}
    columns = (found.column(name).to_pylist() for name in ("file_name", "value_count"))
    return {name: count for name, count in zip(*columns, strict=True) if name in unique and count is not None}
