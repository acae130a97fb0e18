"""Instants of what the metadata table does by itself: compactions and cleans, which no action of the data table stands for.

Everything else on its timeline bears the instant of an action of the data table. New ones of those lie after all times on the
data table's timeline, so a time of its own that is not after the last of them can never be given to one, however the clocks of
writers jump. Each write leaves such times: its completion, and the millisecond before it.
"""

from __future__ import annotations

from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.timeline import InstantGenerator, one_earlier

__all__ = ["clean_instant", "compaction_instant"]


def compaction_instant(table: MetadataTable, times: InstantGenerator) -> str:
    """For a compaction: after all that it merges, and not after the data table's last action.

    Args:
        table: The metadata table, opened under the lock.
        times: Makes instants where the data table leaves none.
    """
    last = _last_completion(table)
    free = last is not None and last > table.timeline.last_time and not _is_taken(table, last)
    return last if free and last is not None else _fresh(table, times)


def clean_instant(table: MetadataTable, times: InstantGenerator) -> str:
    """For a clean, see `compaction_instant`; the order of the two does not matter."""
    last = _last_completion(table)
    before = None if last is None else one_earlier(last)
    return before if before is not None and not _is_taken(table, before) else _fresh(table, times)


def _last_completion(table: MetadataTable) -> str | None:
    return max((i.completion for i in table.data_timeline.completed if i.completion), default=None)


def _is_taken(table: MetadataTable, instant: str) -> bool:
    return table.timeline.get(instant) is not None or table.data_timeline.get(instant) is not None


def _fresh(table: MetadataTable, times: InstantGenerator) -> str:
    return times.next(table.timeline.last_time, table.data_timeline.last_time)
