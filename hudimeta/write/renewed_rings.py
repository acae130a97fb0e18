"""New file groups for buckets of consistent hashing whose partition is being deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hudimeta.indexes.bucket.consistent_hashing import HashRings, renewed_ring
from hudimeta.indexes.bucket.ring_changes import put_ring

if TYPE_CHECKING:
    from hudimeta.commit.session import WriteSession
    from hudimeta.write.table_files import TableFiles

__all__ = ["renew_rings"]


def renew_rings(session: WriteSession, table: TableFiles, instant: str, replaced: Mapping[str, Sequence[str]]) -> None:
    """Write the rings down that count once a write is completed, so that rows of later ones are seen, of Apache Hudi's too.

    Args:
        session: The table.
        table: Its files.
        instant: Of the write.
        replaced: File groups that it takes out.
    """
    if not replaced or not table.lookup.fixes_places:
        return
    buckets = table.lookup.choice.buckets
    if buckets is None or not buckets.consistent:
        return
    rings = HashRings(session.storage, table.snapshot.timeline, buckets.count, buckets.fields)
    for partition, gone in replaced.items():
        put_ring(session.storage, renewed_ring(rings.ring(partition), frozenset(gone), instant))
