"""The slices that a snapshot shows: from a kept plan, from what it told before, or from the files of the listing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hudimeta.snapshot.built_upon import refuse_lost_completions
from hudimeta.snapshot.listing import without_log_files
from hudimeta.table.slices import slices_and_waiting, without_logs
from hudimeta.types import QueryType

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["visible_slices"]

KEPT_SLICES = 1 << 12
"""A snapshot may be open for days: more than some hundred kilobytes are put together for each query."""


def visible_slices(snapshot: Snapshot, partitions: Sequence[str] | None, query_type: QueryType) -> pa.Table:
    """The newest visible slice of every file group; see `Snapshot.slices`."""
    read_optimized, plan = query_type is QueryType.READ_OPTIMIZED, snapshot.kept_plan
    found = plan.slices(partitions) if plan is not None else None
    if found is None and partitions is None:
        found = snapshot.told_slices
    if found is not None:
        return without_logs(found) if read_optimized else found
    pieces = [snapshot.files(partitions)] if partitions is not None else snapshot.listing.file_pieces()
    if read_optimized:
        pieces = map(without_log_files, pieces)
    slices, waiting = slices_and_waiting(pieces, snapshot.visibility)
    refuse_lost_completions(snapshot)
    if read_optimized:
        return slices
    if partitions is None:
        _keep(snapshot, slices, waiting)
    return slices


def _keep(snapshot: Snapshot, slices: pa.Table, waiting: int) -> None:
    """Keep the slices of the whole table for the next query: in a plan where plans are kept, else with the snapshot.

    Not what storage listed: whoever has it listed wants to know what is there now.
    """
    if snapshot.kept_plan is not None:
        snapshot.kept_plan.keep(slices, waiting)
    elif snapshot.metadata is not None and len(slices) <= KEPT_SLICES:
        snapshot.told_slices = slices
