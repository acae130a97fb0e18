"""Entries that an index would not show, because a write with a later instant removed them and was completed first.

Readers merge the records of a key in the order of instants, not of completions. A write that took long may add an entry that a
younger one has removed meanwhile: nothing of the two need touch the same file group, where rows are inserted without asking for
their keys.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import CommitConflict
from hudimeta.indexes.protocol import CommitChange

__all__ = ["check_not_removed_later"]


def check_not_removed_later(change: CommitChange, partition: str, added: pa.Array) -> None:
    """Refuse a commit whose entries would not be seen. It costs nothing where no younger write was completed first.

    Args:
        change: The commit.
        partition: Metadata partition.
        added: Keys of the records that it adds, string.

    Raises:
        CommitConflict: With the younger write; a write with a new instant can do it.
    """
    later = [i.time for i in change.timeline.writes if i.time > change.instant]
    if not later or not len(added):
        return
    hidden = added.filter(pc.is_in(added, value_set=change.table.removed_later(partition, change.instant, added)))
    if len(hidden):
        what = f"{hidden[0].as_py()!r} in {partition}"
        raise CommitConflict("write", (), max(later), what=what, did="removed meanwhile")
