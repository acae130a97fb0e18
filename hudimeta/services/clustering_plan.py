"""The plan of a clustering as a value: which file slices are taken together, how rows are sorted, and who writes the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudimeta.config import Options
from hudimeta.errors import UnsupportedFeature
from hudimeta.indexes.bucket.ring_changes import RingChange, decode_change, encode_change
from hudimeta.reports import Report
from hudimeta.services.clustering_by_commits import CHECKPOINT
from hudimeta.services.clustering_rows import RowOrder
from hudimeta.services.clustering_strategy import Group
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.table.clustering_plan import PlannedGroup, StoredClustering, decode_clustering_plan, encode_clustering_plan
from hudimeta.table.compaction_plan import PlannedSlice

__all__ = ["COPYING", "COPYING_STREAMS", "ClusteringPlan"]

COPYING_STREAMS = "SparkStreamCopyClusteringExecutionStrategy"
COPYING = ("SparkBinaryCopyClusteringExecutionStrategy", COPYING_STREAMS)
"""What executes a plan without decoding rows, where that can be; Apache Hudi 1.2 has it by both names."""
_MEBIBYTE = 1 << 20
_PACKAGE = "org.apache.hudi.client.clustering.run.strategy."


@dataclass(frozen=True, repr=False)
class ClusteringPlan(Report):
    """What a clustering takes together, and how it sorts; prints as a list.

    Attributes:
        groups: Slices of one partition, and how many file groups come of them.
        order: Of the rows of each group.
        executor: Class name that the plan states for Apache Hudi.
        rings: Of each group what it does to the hash ring of its partition; none of a table that is not in such buckets.
        checkpoint: Of a plan by commits, see `CommitChoice`; else "".
    """

    groups: tuple[Group, ...]
    order: RowOrder
    executor: str
    rings: tuple[RingChange, ...] = ()
    checkpoint: str = ""

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """All of them."""
        return tuple(one for slices, _ in self.groups for one in slices)

    def __str__(self) -> str:
        how = f", rows {self.order}" if self.order.columns else ""
        lines = [f"cluster {len(self.slices)} file slices in {len(self.groups)} groups{how}"]
        for slices, outputs in self.groups:
            size = sum(one.size for one in slices)
            lines.append(
                f"  {slices[0].partition_path or 'the table'}: {len(slices)} slices, {size:,} bytes, to {outputs} files"
            )
        return "\n".join(lines)

    def encode(self, root: str) -> bytes:
        """As the Avro container in the requested file of a table at `root`."""
        extras = [encode_change(ring) for ring in self.rings] or [{}] * len(self.groups)
        groups = tuple(
            PlannedGroup(tuple(map(_stored, slices)), outputs, _metrics(slices), extra)
            for (slices, outputs), extra in zip(self.groups, extras, strict=True)
        )
        extra = {CHECKPOINT: self.checkpoint} if self.checkpoint else {}
        return encode_clustering_plan(StoredClustering(groups, _PACKAGE + self.executor, self.order.parameters(), extra), root)

    @staticmethod
    def of(record: Mapping[str, Any], options: Options) -> ClusteringPlan:
        """From the record in a requested file. What it does not say of the order of rows, the options of the run say."""
        stored = decode_clustering_plan(record)
        groups = tuple((tuple(map(_file_slice, group.slices)), group.outputs) for group in stored.groups)
        rings = tuple(ring for group in stored.groups if (ring := decode_change(group.extra)) is not None)
        if rings and len(rings) != len(groups):
            raise UnsupportedFeature("a clustering plan that splits or merges some buckets, and moves other file groups")
        executor = stored.executor.rpartition(".")[2]
        order = RowOrder.stated(stored.parameters, options, copies=executor in COPYING)
        return ClusteringPlan(groups, order, executor, rings)


def _stored(one: FileSlice) -> PlannedSlice:
    return PlannedSlice(one.partition_path, one.file_id, one.base_instant, one.base_file, one.log_files)


def _file_slice(one: PlannedSlice) -> FileSlice:
    """Without sizes, which no plan tells."""
    sizes = (0,) * len(one.log_files)
    return FileSlice(one.partition_path, one.file_id, one.base_instant, one.base_file, 0, one.log_files, sizes)


def _metrics(slices: Sequence[FileSlice]) -> dict[str, float]:
    logs, bases = float(sum(sum(one.log_sizes) for one in slices)), sum(one.base_size for one in slices)
    return {
        "TOTAL_LOG_FILES": float(sum(len(one.log_files) for one in slices)),
        "TOTAL_LOG_FILES_SIZE": logs,
        "TOTAL_IO_READ_MB": (bases + logs) // _MEBIBYTE,
        "TOTAL_IO_WRITE_MB": float(bases // _MEBIBYTE),
        "TOTAL_IO_MB": (2 * bases + logs) // _MEBIBYTE,
    }
