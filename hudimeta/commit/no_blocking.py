"""Non-blocking concurrency: which of the file groups that two writers touched are a conflict all the same.

Log files of two writers lie side by side in a file group: each is placed by the completion of its commit, and rows of one key
are merged. That tells the same as one writer after the other, but for these cases, which are settled as in other modes:

    a base file of either, or a group that was replaced     a log may lie on rows that are not there any more
    rows were deleted, in a table with a record index       the index would lose a key that the other one keeps
    rows of the later commit win (commit time), and the     readers, Apache Hudi's too, order logs by requested time: the
    other one has the later instant                         rows that are published last would not be seen
    the table captures changes                              a log's stat names the slice below it, for Hudi's CDC queries
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudimeta.commit.publication import OpenWrite
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.table.file_names import parse_log_file
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline
from hudimeta.types import COPYING_OPERATIONS, FileGroupId, Instant

__all__ = ["NonBlocking"]


@dataclass(frozen=True)
class NonBlocking:
    """What decides in one table.

    Attributes:
        places_keys: An index says in which file group a key lives, so that two writers cannot insert it twice.
        indexes_keys: A record index is kept.
        by_commit_time: The later commit wins, not the greater ordering value.
        captures_changes: See the module.
    """

    places_keys: bool
    indexes_keys: bool
    by_commit_time: bool
    captures_changes: bool

    @classmethod
    def of(cls, properties: TableProperties, rules: MergeRules, *, places_keys: bool) -> NonBlocking:
        """What decides in a table.

        Args:
            properties: Of the table.
            rules: How its rows are merged.
            places_keys: See above.
        """
        indexes_keys = "record_index" in properties.metadata_partitions
        return cls(places_keys, indexes_keys, not rules.by_event_time, properties.cdc_enabled)

    def crossed(
        self, timeline: Timeline, write: OpenWrite, files: Iterable[WrittenFile], others: Iterable[str]
    ) -> set[FileGroupId]:
        """Those file groups of a write's files in which log files would not lie side by side.

        Args:
            timeline: With the other writes.
            write: The write.
            files: That it wrote.
            others: Requested times of the writes that were completed meanwhile.
        """
        mine: dict[FileGroupId, bool] = {}
        for file in files:
            group = FileGroupId(file.partition_path, file.file_id)
            alone = self.captures_changes or file.log_instant is None or (self.indexes_keys and bool(file.deleted))
            mine[group] = mine.get(group, False) or alone
        times = set(others)
        crossed = set()
        for other in (instant for instant in timeline.writes if instant.time in times):
            overtaken = self.by_commit_time and other.time > write.instant
            crossed |= {group for group, alone in self._touched(timeline, other, mine) if alone or overtaken or mine[group]}
        return crossed

    def _touched(self, timeline: Timeline, other: Instant, mine: Iterable[FileGroupId]) -> Iterable[tuple[FileGroupId, bool]]:
        """Those of some file groups that a completed write touched, and whether it has to be alone there."""
        metadata = timeline.metadata(other)
        if metadata["operationType"] in COPYING_OPERATIONS and not metadata["partitionToReplaceFileIds"]:
            return  # what a compaction rewrote, later logs lie on top of
        wanted = set(mine)
        for partition, ids in metadata["partitionToReplaceFileIds"].items():
            yield from ((group, True) for file_id in ids if (group := FileGroupId(partition, file_id)) in wanted)
        for partition, stats in metadata["partitionToWriteStats"].items():
            for stat in stats:
                group = FileGroupId(partition, stat["fileId"])
                if group in wanted:
                    is_log = parse_log_file((stat["path"] or "").rpartition("/")[2]) is not None
                    yield group, not is_log or (self.indexes_keys and bool(stat["numDeletes"]))
