"""File groups that were taken out of a table: what is written to one under its old id nobody sees."""

from __future__ import annotations

from collections.abc import Mapping

from hudimeta.timeline import Timeline

__all__ = ["taken_out"]


def taken_out(timeline: Timeline) -> Mapping[tuple[str, str], str]:
    """By (partition, file id) the instant that replaced a file group or deleted its partition, as far as the timeline tells.

    Before a replacement is archived, the files of its groups are cleaned; then an id may be used again.
    """
    gone = timeline.replaced_file_groups()
    partitions, ids, instants = (gone.column(name).to_pylist() for name in ("partition_path", "file_id", "instant"))
    return dict(zip(zip(partitions, ids, strict=True), instants, strict=True))
