"""Ranges of commits of which Apache Hudi tells no changes, or wrong ones, whoever made them."""

from __future__ import annotations

from pathlib import Path

import hudimeta
from hudimeta.types import COPYING_OPERATIONS, Action


def names_no_base_file(table: hudimeta.Table, begin: str) -> bool:
    """Whether a commit from an instant on names no base file before a log file of its, as of a slice that a planned compaction
    began: Apache Hudi, which writes that itself, then asks for the file slice before and has none (`Option.get`)."""
    timeline = table.timeline
    writes = [timeline.metadata(i) for i in timeline.writes if i.time >= begin and i.action is Action.DELTA_COMMIT]
    stats = (stat for write in writes for stats in write["partitionToWriteStats"].values() for stat in stats)
    return any(".log." in (stat["path"] or "") and not stat["baseFile"] for stat in stats)


def passes_over_logs(table: hudimeta.Table, begin: str) -> bool:
    """Whether a file of the range is gone, or its beginning is archived: release 1.0.2 scans the whole table then, but of the
    logs of its file slices it reads none, so that rows come back which were deleted, by itself as by others."""
    if not any(one["log_files"] for one in table.file_slices().to_pylist()):
        return False
    timeline, folder = table.timeline, Path(table.path)
    if begin < min(instant.completion or instant.time for instant in timeline.writes):
        return True
    writes = [timeline.metadata(i) for i in timeline.writes if (i.completion or i.time) >= begin]
    stats = (stat for write in writes for stats in write["partitionToWriteStats"].values() for stat in stats)
    return any(stat["path"] and not (folder / stat["path"]).exists() for stat in stats)


def logs_no_changes(table: hudimeta.Table, begin: str) -> bool:
    """Whether a file group was rewritten without a file of changes, as by an INSERT into small files, or an upsert of which
    every row lost: Apache Hudi writes none either, and then cannot tell any ("There should be a cdc log file")."""
    timeline = table.timeline
    writes = [timeline.metadata(i) for i in timeline.writes if (i.completion or i.time) >= begin]
    changing = [write["partitionToWriteStats"] for write in writes if write["operationType"] not in COPYING_OPERATIONS]
    stats = [stat for write in changing for stats in write.values() for stat in stats if ".log." not in (stat["path"] or "")]
    return any(stat["prevCommit"] != "null" and not stat["cdcStats"] and stat["numWrites"] for stat in stats)
