"""The latest file slices as the look-up of keys sees them, with the key ranges that column statistics state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hudimeta.metadata import answers, column_stats
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.table.key_file import KeyFile
from hudimeta.types import FileGroupId

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.metadata import MetadataTable
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["key_files", "ranges_by_name"]

_KEY_COLUMN = "_hoodie_record_key"

_Range = tuple[str | None, str | None]
"""Smallest and largest key; None when unknown."""
_UNKNOWN: _Range = (None, None)


def key_files(snapshot: Snapshot, partitions: Sequence[str] | None, *, key_ranges: bool = False) -> dict[str, list[KeyFile]]:
    """The latest slices, by partition path.

    Args:
        snapshot: The table.
        partitions: Only these; None for all.
        key_ranges: With the smallest and largest key of each, which costs a look-up.
    """
    slices = snapshot.slices(partitions)
    ranges = _stated_ranges(snapshot.metadata, partitions) if key_ranges else {}
    busy = groups_in_plans(snapshot.timeline)
    found: dict[str, list[KeyFile]] = {}
    for one in slices_of(slices):
        names = [*([one.base_file] if one.base_file else []), *one.log_files]
        low, high = _united([ranges.get(name, _UNKNOWN) for name in names])
        is_busy = FileGroupId(one.partition_path, one.file_id) in busy
        files = (one.log_files, is_busy, one.log_sizes)
        file = KeyFile(one.partition_path, one.file_id, one.base_file or "", one.base_size, low, high, *files)
        found.setdefault(one.partition_path, []).append(file)
    return found


def _stated_ranges(metadata: MetadataTable | None, partitions: Sequence[str] | None) -> Mapping[str, _Range]:
    """Key range by name of file, as column statistics state it; none where there are no statistics."""
    import pyarrow as pa

    if metadata is None or column_stats.PARTITION not in metadata.ready:
        return {}
    found = answers.column_stats(metadata, {_KEY_COLUMN: pa.string()}, partitions)[_KEY_COLUMN]
    return ranges_by_name(found)


def ranges_by_name(stats: pa.Table) -> dict[str, _Range]:
    """Key range by name of file. Statistics say no partition: of several files with one name it is the range of them all.

    Apache Flink's writers name the files of a bucket alike in every partition.

    Args:
        stats: file_name, min and max, all string; None for a bound that is not known.
    """
    ranges: dict[str, _Range] = {}
    for name, low, high in zip(*(stats[c].to_pylist() for c in ("file_name", "min", "max")), strict=True):
        ranges[name] = _united([ranges[name], (low, high)]) if name in ranges else (low, high)
    return ranges


def _united(found: Sequence[_Range]) -> _Range:
    """Key range of several files, unknown when that of one is: so is that of a log file which only deletes."""
    lows, highs = [low for low, _ in found if low is not None], [high for _, high in found if high is not None]
    known = bool(found) and len(lows) == len(highs) == len(found)
    return (min(lows), max(highs)) if known else (None, None)
