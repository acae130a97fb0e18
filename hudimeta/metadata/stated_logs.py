"""Logs of the record index that need not be read for some keys: their commits state which keys are in them.

A commit of a few keys has a log in nearly as many file groups, so its own file is read first where that may spare several logs.

A log that no commit of ours stands for, such as one that merges others, may bend the order in which the rest counts: then all
logs of the file group are read.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.metadata import record_index
from hudimeta.metadata.group_files import FileGroup
from hudimeta.metadata.groups import GroupFinder
from hudimeta.table.stated_keys import Hashes, Stated, key_hashes, stated_hashes

__all__ = ["only_logs_of"]

_SMALL_BYTES = 64 << 10
"""So large is the file of a commit of some hundred keys; larger ones are not read for this."""
_MOST_KEYS = 2000
"""Of more keys than these some are in most logs, and to hash them costs more than it saves."""


def only_logs_of(
    finder: GroupFinder, partition: str, keys: pa.Array, groups: Sequence[FileGroup]
) -> Callable[[FileGroup], FileGroup] | None:
    """Takes from a file group the logs that hold none of some keys; None where that is not tried.

    Args:
        finder: Knows both timelines.
        partition: Metadata partition.
        keys: Strings.
        groups: All that are asked.
    """
    if partition != record_index.PARTITION or finder.logs_name_base or len(keys) > _MOST_KEYS:
        return None
    _read_commits(finder, groups)
    wanted = key_hashes([keys])
    holds: dict[str, bool | None] = {}

    def may_hold(instant: str) -> bool | None:
        if instant not in holds:
            holds[instant] = _may_hold(finder, instant, wanted)
        return holds[instant]

    def with_stated_logs(group: FileGroup) -> FileGroup:
        found = [may_hold(log.instant) for log in group.logs]
        if None in found:
            return group
        return replace(group, logs=tuple(log for log, there in zip(group.logs, found, strict=True) if there))

    return with_stated_logs


def _read_commits(finder: GroupFinder, groups: Sequence[FileGroup]) -> None:
    """Read the commits that have several logs in some file groups, at once; of one that is not there logs are read."""
    logs = Counter(log.instant for group in groups for log in group.logs)
    named = [finder.data_instant(instant) for instant, count in logs.items() if count > 1 and not finder.begins(instant)]
    small = [commit for commit in named if commit is not None and commit.size <= _SMALL_BYTES]
    commits = [commit for commit in small if not finder.data.is_read(commit)]
    with contextlib.suppress(NotFound):
        finder.data.prefetch(commits)
        for commit in commits[:1]:
            finder.data.read(commit)


def _may_hold(finder: GroupFinder, instant: str, wanted: Hashes) -> bool | None:
    """Whether the log of an instant may hold a key; None where no commit stands for it."""
    if finder.begins(instant):
        return True
    commit = finder.data_instant(instant)
    if commit is None:
        return None
    if not finder.data.is_read(commit):
        return True  # a log costs no more than its commit
    try:
        stated = stated_hashes(Stated.INDEXED, finder.data.metadata(commit))
    except CorruptFileError:
        return True  # who needs the commit itself tells of it
    return stated is None or bool(np.isin(wanted, stated).any())
