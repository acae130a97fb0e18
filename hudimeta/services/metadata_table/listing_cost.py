"""What listings and views of a table cost with its metadata table and without: the table of the first draft of RFC-15.

Every call is made on a snapshot that has read nothing yet, so that each figure holds all that the call needs. Of several rounds
the quickest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config.options import LISTING_RETURNED, METADATA_ENABLE
from hudimeta.errors import ConfigError
from hudimeta.redaction import hidden
from hudimeta.reports import Report
from hudimeta.snapshot.planned_groups import groups_under_compaction
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.table.slices import build_slices, place_files
from hudimeta.types import FileGroupId

if TYPE_CHECKING:
    from hudimeta.storage import CountingStorage

__all__ = ["LOOKUPS", "VIEWS", "CallCost", "ListingCost", "measure", "uncompacted"]

ROUNDS = 3

_FILES = pa.schema([("partition_path", pa.string()), ("name", pa.string()), ("size", pa.int64())])
_Call: TypeAlias = Callable[[Snapshot, str], pa.Table | pa.Array]


@dataclass(frozen=True)
class CallCost:
    """One call, timed both ways.

    Attributes:
        call: Its name in the draft.
        listing_ms, listing_requests: By listing storage.
        metadata_ms, metadata_requests: By the metadata table; None where the table has none.
    """

    call: str
    listing_ms: float
    listing_requests: int
    metadata_ms: float | None = None
    metadata_requests: int | None = None

    @property
    def difference(self) -> float | None:
        """By how many percent the metadata table changes the time; None without one."""
        if self.metadata_ms is None or not self.listing_ms:
            return None
        return (self.metadata_ms - self.listing_ms) / self.listing_ms * 100

    def __str__(self) -> str:
        if self.metadata_ms is None or self.difference is None:
            return f"{self.call}: {self.listing_ms:,.2f}msec / - / -"
        return f"{self.call}: {self.listing_ms:,.2f}msec / {self.metadata_ms:,.2f}msec / {self.difference:,.2f}%"


@dataclass(frozen=True, repr=False)
class ListingCost(Report):
    """All calls, timed.

    Attributes:
        table: Location.
        partition: On which the calls about one partition were made: that with the most files.
        partitions, files: How many the table has, files of old slices included.
        lookups: Calls about partitions and their files.
        views: Calls about base files, file groups and file slices of that partition.
    """

    table: str
    partition: str
    partitions: int
    files: int
    lookups: tuple[CallCost, ...]
    views: tuple[CallCost, ...]

    def __str__(self) -> str:
        average = self.files / self.partitions if self.partitions else 0.0
        lines = [
            f"File counts: files={self.files:,}, partitions={self.partitions:,}",
            f"Files/partition (avg): files={average:,.2f}",
            "Partition lookup performance: (existing/with metadata table/difference)",
            *(f"  {cost}" for cost in self.lookups),
            f"File system view performance, partition {self.partition!r}: (existing/with metadata table/difference)",
            *(f"  {cost}" for cost in self.views),
        ]
        return "\n".join(lines)


def measure(snapshot: Snapshot, partition: str | None = None, rounds: int = ROUNDS) -> ListingCost:
    """Time the draft's calls on a table.

    Args:
        snapshot: The table; nothing of what it has read is used.
        partition: For calls about one; None for that with the most files.
        rounds: How often each is made; the quickest counts.

    Raises:
        ConfigError: No round, or a partition that the table does not have.
    """
    if rounds < 1:
        raise ConfigError("rounds", rounds, "1 or more")
    by_listing = snapshot.options.having({METADATA_ENABLE.key: "false", LISTING_RETURNED.key: "false"})
    by_metadata = snapshot.options.having({METADATA_ENABLE.key: "true", LISTING_RETURNED.key: "false"})

    def fresh(metadata: bool) -> Snapshot:
        options = by_metadata if metadata else by_listing
        return Snapshot(snapshot.storage, snapshot.properties, snapshot.properties.load_timeline(snapshot.storage), options)

    files = fresh(snapshot.metadata is not None).listing.files()
    counts = pc.value_counts(files["partition_path"]) if len(files) else []
    sizes = {one["values"].as_py(): one["counts"].as_py() for one in counts}
    if partition is not None and partition not in sizes:
        raise ConfigError("partition", partition, "the path of a partition with files", "metadata.list_partitions() has them.")
    chosen = partition if partition is not None else max(sizes, key=lambda path: (sizes[path], path), default="")
    both = snapshot.metadata is not None

    def cost(name: str, call: _Call) -> CallCost:
        took, requests = _timed(lambda: fresh(False), call, chosen, rounds, snapshot.storage)
        if not both:
            return CallCost(name, took, requests)
        return CallCost(name, took, requests, *_timed(lambda: fresh(True), call, chosen, rounds, snapshot.storage))

    lookups = tuple(cost(name, call) for name, call in LOOKUPS.items())
    views = tuple(cost(name, call) for name, call in VIEWS.items())
    return ListingCost(hidden(snapshot.storage.root), chosen, len(sizes), len(files), lookups, views)


def _timed(
    fresh: Callable[[], Snapshot],
    call: _Call,
    partition: str,
    rounds: int,
    storage: CountingStorage,
) -> tuple[float, int]:
    """Milliseconds of the quickest round, and requests of one."""
    best, requests = float("inf"), 0
    for _ in range(max(1, rounds)):
        snapshot, mark = fresh(), len(storage.log)
        begin = time.perf_counter()
        call(snapshot, partition)
        best, requests = min(best, time.perf_counter() - begin), len(storage.log) - mark
    return best * 1000, requests


# The calls, by the names of the draft


def _all_partitions(snapshot: Snapshot, _: str) -> pa.Array:
    return snapshot.listing.partitions()


def _all_files(snapshot: Snapshot, partition: str) -> pa.Table:
    """Without the metadata table that is one listing of the partition's folder, as whoever knows the partition would do."""
    if snapshot.metadata is not None:
        return snapshot.metadata.files([partition])
    found = [entry for entry in snapshot.storage.list(partition) if not entry.is_folder]
    names = [entry.path.rpartition("/")[2] for entry in found]
    columns = {"partition_path": [partition] * len(found), "name": names, "size": [entry.size for entry in found]}
    return pa.table(columns, schema=_FILES)


def _placed(snapshot: Snapshot, partition: str) -> pa.Table:
    return place_files(_all_files(snapshot, partition), snapshot.visibility)


def _base_files(snapshot: Snapshot, partition: str) -> pa.Table:
    placed = _placed(snapshot, partition)
    return placed.filter(pc.invert(pc.starts_with(placed["name"], ".")))


def _file_groups(snapshot: Snapshot, partition: str) -> pa.Table:
    return _distinct(_placed(snapshot, partition), ["file_id"])


def _file_slices(snapshot: Snapshot, partition: str) -> pa.Table:
    return _distinct(_placed(snapshot, partition), ["file_id", "slice"])


def _distinct(placed: pa.Table, columns: Sequence[str]) -> pa.Table:
    return placed.group_by(columns).aggregate([])


def _latest_slices(snapshot: Snapshot, partition: str) -> pa.Table:
    return build_slices(_all_files(snapshot, partition), snapshot.visibility)


def _latest_base_files(snapshot: Snapshot, partition: str) -> pa.Table:
    slices = _latest_slices(snapshot, partition)
    return slices.filter(slices["base_file"].is_valid())


def uncompacted(slices: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Slices of file groups that no planned compaction is going to rewrite: what Hudi's view gives by that name."""
    taken = groups_under_compaction(snapshot.timeline)
    if not taken:
        return slices
    groups = zip(slices["partition_path"].to_pylist(), slices["file_id"].to_pylist(), strict=True)
    return slices.filter(pa.array([FileGroupId(*group) not in taken for group in groups], pa.bool_()))


def _latest_uncompacted(snapshot: Snapshot, partition: str) -> pa.Table:
    return uncompacted(_latest_slices(snapshot, partition), snapshot)


LOOKUPS: Mapping[str, _Call] = {
    "getAllPartitions": _all_partitions,
    "getAllFilesInPartition": _all_files,
}
VIEWS: Mapping[str, _Call] = {
    "getAllBaseFiles": _base_files,
    "getAllFileGroups": _file_groups,
    "getAllFileSlices": _file_slices,
    "getLatestBaseFiles": _latest_base_files,
    "getLatestFileSlices": _latest_slices,
    "getLatestUnCompactedFileSlices": _latest_uncompacted,
}
"""Each takes a snapshot and a partition path, and gives an item for each that it finds."""
