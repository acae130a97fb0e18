"""Keys that other commits changed since a commit's own part of an index was made, before the table lock was taken.

What a commit changes in the record index follows from its own files and from what the index says of their keys. So it is the
same as long as no other commit has said anything of one of these keys. A commit that does not state its keys may have.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudimeta.indexes.protocol import CommitChange
from hudimeta.table.stated_keys import Stated, none_stated
from hudimeta.timeline import Timeline

__all__ = ["counts_still", "none_changed"]


def counts_still(change: CommitChange, timeline: Timeline) -> bool:
    """True when all that had been completed then is so still: nothing was taken back."""
    return set(change.timeline.completed) <= set(timeline.completed)


def none_changed(change: CommitChange, timeline: Timeline, keys: Sequence[pa.Array]) -> bool:
    """True when no commit that was completed since has written into the record index any of some keys.

    Args:
        change: A commit as the table was then.
        timeline: The table's, on which nothing but commits was completed since.
        keys: Strings.
    """
    return counts_still(change, timeline) and none_stated(Stated.INDEXED, keys, map(timeline.metadata, change.missed(timeline)))
