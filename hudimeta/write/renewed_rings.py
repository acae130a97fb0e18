"""New file groups for buckets of consistent hashing whose partition is deleted or overwritten."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hudimeta.indexes.bucket.consistent_hashing import HashRings, renewed_ring
from hudimeta.indexes.bucket.ring_changes import put_ring

if TYPE_CHECKING:
    from hudimeta.commit.coordinator import OpenWrite
    from hudimeta.commit.session import WriteSession
    from hudimeta.write.table_files import TableFiles
    from hudimeta.write.write_result import WriteResult

__all__ = ["renew_rings"]


def renew_rings(session: WriteSession, table: TableFiles, write: OpenWrite, outcome: WriteResult) -> None:
    """Write the rings down that count once a write is completed, so that rows of later ones are seen, of Apache Hudi's too.

    Args:
        session: The table.
        table: Its files.
        write: A write.
        outcome: What it wrote, and took out.
    """
    if not write.operation.replaces_groups or not table.lookup.fixes_places:
        return
    buckets = table.lookup.choice.buckets
    if buckets is None or not buckets.consistent:
        return
    rings = HashRings(session.storage, table.snapshot.timeline, buckets.count, buckets.fields)
    overwritten: Collection[str] = {file.partition_path for file in outcome.files}
    for partition in sorted(overwritten):
        put_ring(session.storage, rings.overwritten(partition, write.instant))
    for partition, gone in outcome.replaced.items():
        if partition not in overwritten:
            put_ring(session.storage, renewed_ring(rings.ring(partition), frozenset(gone), write.instant))
