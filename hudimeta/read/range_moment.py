"""The moment at which an incremental range ends, and whether its files are still there.

A range goes by completion, and files by request: what was requested within a range and completed after it is not of the range,
but cleans take it for a part of every moment since its request, and remove what it replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.read.range_files import written_files
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.types import Instant, Operation, TableType

if TYPE_CHECKING:
    from hudimeta.read.incremental import IncrementalRange
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["misses_files", "moment_of"]


def moment_of(snapshot: Snapshot, found: IncrementalRange) -> Snapshot:
    """The table as of the end of a range; today's for a range that is looked for there.

    What completed later may have begun within the range: the rows that the range's commits left were there all the same.
    Columns are those of today, as in Apache Hudi.
    """
    if found.whole_table or found.newest is None:
        return snapshot
    unseen = (i.time for i in _late(snapshot, found) if not _serves(snapshot, i))
    return snapshot.at(found.newest, check=False, unseen=unseen, as_now=True)


def _late(snapshot: Snapshot, found: IncrementalRange) -> list[Instant]:
    """What was requested by the newest commit of a range, and completed after its end."""
    later = () if found.end is None else snapshot.timeline.writes_between(found.end)
    return [instant for instant in later if instant.time <= (found.newest or "")]


def _serves(snapshot: Snapshot, late: Instant) -> bool:
    """Do files that a compaction or clustering completed late serve in place of those that were there, which may be cleaned?

    They hold the rows as they were when it was planned. Where the files of the range are read by themselves, none of a
    clustering does: it has other file groups.
    """
    operation = snapshot.timeline.metadata(late).get("operationType")
    by_rows = snapshot.properties.type is TableType.COPY_ON_WRITE and snapshot.properties.populate_meta
    return operation == Operation.COMPACT.value or (by_rows and operation == Operation.CLUSTER.value)


def misses_files(snapshot: Snapshot, found: IncrementalRange) -> bool:
    """Whether cleans removed the newest slice of a file group as of the end, though rows of the range are looked for in it.

    In a copy-on-write table they are in slices that commits of the range wrote; in others in every file group to which these
    wrote base or log files.

    Args:
        snapshot: The table of now.
        found: A range that is read as of its end.
    """
    if found.newest is None:
        return False
    from hudimeta.snapshot.cleaned import lost_slices, newest_removed

    if snapshot.properties.type is TableType.COPY_ON_WRITE:
        return not set(found.times).isdisjoint(lost_slices(moment_of(snapshot, found), snapshot).values())
    unseen = frozenset(instant.time for instant in _late(snapshot, found))
    lost = lost_slices(snapshot.at(found.newest, check=False, unseen=unseen, as_now=True), snapshot)
    if not lost:
        return False
    known = set(snapshot.timeline.writes)
    if not known.issuperset(found.instants):
        return True  # slices are read whole then, whatever archived commits wrote to
    # Files that were written to a slice that begins with what is unseen are there, though the slice before is gone.
    removed = newest_removed(snapshot, found.newest, unseen) if unseen else {}
    written = written_files(snapshot, found.instants)
    pairs = zip(written["partition_path"].to_pylist(), written["name"].to_pylist(), strict=True)
    files = ((partition, parse_base_file(name) or parse_log_file(name)) for partition, name in pairs)
    groups = ((file, (partition, file.file_id)) for partition, file in files if file is not None)
    return any(group in lost and (not unseen or file.instant <= removed[group]) for file, group in groups)
