"""The files that the commits of an incremental range wrote."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of
from hudimeta.types import COPYING_OPERATIONS, Instant, Operation

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["copied_files", "written_files"]


def copied_files(snapshot: Snapshot, instants: Sequence[Instant]) -> frozenset[tuple[str, str]]:
    """Partition path and name of files in which compactions and clusterings put rows that are all older than a range.

    Args:
        snapshot: Of the table.
        instants: The commits of the range, by requested time.
    """
    snapshot.timeline.prefetch(instants)
    fresh: dict[tuple[str, str], str] = {}  # file groups with rows of the range, and since when
    copied = set()
    for instant in instants:
        metadata = snapshot.timeline.metadata(instant)
        copies = metadata["operationType"] in COPYING_OPERATIONS
        replaced = metadata["partitionToReplaceFileIds"]
        for partition, stats in metadata["partitionToWriteStats"].items():
            sources = {(partition, file_id) for file_id in replaced.get(partition, ())}
            for stat in stats:
                group = partition, stat["fileId"]
                if copies and not any(fresh.get(one, instant.time) < instant.time for one in sources | {group}):
                    copied.add((partition, (stat["path"] or "").rpartition("/")[2]))
                else:
                    fresh[group] = min(fresh.get(group, instant.completed_at), instant.completed_at)
    return frozenset(copied)


def written_files(
    snapshot: Snapshot, instants: Sequence[Instant], left_out: Collection[tuple[str, str]] = frozenset()
) -> pa.Table:
    """Files that the write stats of some commits say they wrote, without those left out: partition_path, name, size.

    Of log files a stat may name the others of the slice as well, which earlier commits wrote. Those of a log compaction are
    left out: what they stand for is there still, and would be merged with rows of commits outside the range.
    """
    snapshot.timeline.prefetch(instants)
    rows: dict[tuple[str, str], int] = {}
    for instant in instants:
        metadata = snapshot.timeline.metadata(instant)
        if metadata["operationType"] == Operation.LOG_COMPACT.value:
            continue
        for partition, stats in metadata["partitionToWriteStats"].items():
            for stat in stats:
                name = (stat["path"] or "").rpartition("/")[2]
                if name and (partition, name) not in left_out:
                    rows[partition, name] = max(rows.get((partition, name), 0), stat["fileSizeInBytes"] or 0)
    partitions, names = [p for p, _ in rows], [n for _, n in rows]
    return pa.table(
        [array_of(partitions, pa.string()), array_of(names, pa.string()), array_of(list(rows.values()), pa.int64())],
        names=["partition_path", "name", "size"],
    )
