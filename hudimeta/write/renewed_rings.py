"""New file groups for buckets of consistent hashing whose file groups a write takes out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hudimeta.indexes.bucket.consistent_hashing import HashRings, renewed_ring
from hudimeta.indexes.bucket.ring_changes import put_ring

if TYPE_CHECKING:
    from hudimeta.commit.coordinator import OpenWrite
    from hudimeta.commit.session import WriteSession
    from hudimeta.write.table_files import TableFiles
    from hudimeta.write.write_result import WriteResult

__all__ = ["bucket_after", "renew_rings", "rings_of", "take_out"]


def renew_rings(session: WriteSession, table: TableFiles, write: OpenWrite, outcome: WriteResult) -> None:
    """Write the rings down that count once a write is completed, so that rows of later ones are seen, of Apache Hudi's too.

    Args:
        session: The table.
        table: Its files.
        write: A write.
        outcome: What it wrote, and took out.
    """
    rings = rings_of(session, table) if write.operation.replaces_groups else None
    if rings is None:
        return
    overwritten: Collection[str] = {file.partition_path for file in outcome.files}
    for partition in sorted(overwritten):
        put_ring(session.storage, rings.overwritten(partition, write.instant))
    take_out(session, rings, write.instant, {p: ids for p, ids in outcome.replaced.items() if p not in overwritten})


def rings_of(session: WriteSession, table: TableFiles) -> HashRings | None:
    """The rings of a table; None where its buckets are others, or none."""
    buckets = table.lookup.choice.buckets if table.lookup.fixes_places else None
    if buckets is None or not buckets.consistent:
        return None
    return HashRings(session.storage, table.snapshot.timeline, buckets.count, buckets.fields)


def take_out(session: WriteSession, rings: HashRings, instant: str, gone: Mapping[str, Collection[str]]) -> None:
    """Write down that buckets have new file groups.

    Args:
        session: The table.
        rings: As they were.
        instant: Of the write that takes file groups out.
        gone: Their ids, by partition.
    """
    for partition, ids in gone.items():
        put_ring(session.storage, renewed_ring(rings.ring(partition), frozenset(ids), instant))


def bucket_after(rings: HashRings, partition: str, file_id: str) -> str | None:
    """The file group that takes the place of one of a ring's, see `take_out`; None for one that the ring does not name."""
    ring = rings.ring(partition)
    pairs = zip(ring.nodes, renewed_ring(ring, [file_id], "").nodes, strict=True)
    return next((f"{new.prefix}-0" for old, new in pairs if f"{old.prefix}-0" == file_id), None)
