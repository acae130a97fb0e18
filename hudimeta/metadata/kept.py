"""What a storage keeps of a metadata table for whoever opens the table by it again, as the next write does.

Only small things, because a table may be open for days: base files that are in memory whole, log files of instants that counted
when they were read, and what base files of `files` say of a few partitions. Files of a metadata table are never written anew,
unless it, or a partition of it, is laid out anew: then nothing that was kept counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from hudimeta.storage import kept_by

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.formats.hfile import HFileReader
    from hudimeta.metadata.log_entries import LogEntry
    from hudimeta.types import Instant

__all__ = ["MOST_LOGS", "SMALL_BYTES", "SMALL_LOG_BYTES", "SMALL_ROWS", "Kept", "keep", "kept_for"]

SMALL_BYTES, SMALL_ROWS = 1 << 16, 1 << 10
"""Of a base file, and of the entries of a partition in a base file of `files`; of several in one look-up, their mean."""
SMALL_LOG_BYTES, MOST_LOGS = 1 << 14, 512
"""Of a log file, and how many of them: a small commit writes one into each file group of the record index."""
_MOST = 64
"""Of each other kind."""
_NAME = "metadata table"

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Kept:
    """See the module.

    Attributes:
        laid_out: The partitions, and the instants that laid them out.
        bases: Base files by path.
        logs: Log files by path.
        rows: Records of a base file of `files`, by its path, its size and the key of a partition.
    """

    laid_out: tuple[tuple[str, ...], tuple[Instant, ...]]
    bases: dict[str, HFileReader] = field(default_factory=dict)
    logs: dict[str, list[LogEntry]] = field(default_factory=dict)
    rows: dict[tuple[str, int, str], pa.Table] = field(default_factory=dict)


def kept_for(storage: object, ready: tuple[str, ...], initialisers: tuple[Instant, ...]) -> Kept:
    """What a storage keeps of a metadata table.

    Args:
        storage: Rooted at the data table.
        ready: Names of the partitions that are complete.
        initialisers: Delta commits that laid partitions out.
    """
    by_storage, laid_out = kept_by(storage), (ready, initialisers)
    found = by_storage.get(_NAME)
    if not isinstance(found, Kept) or found.laid_out != laid_out:
        found = by_storage[_NAME] = Kept(laid_out)
    return found


def keep(kept: dict[K, V], key: K, value: V, most: int = _MOST) -> None:
    """Keep one more, and not too many: what was kept first goes first."""
    for oldest in list(kept)[: max(0, len(kept) + 1 - most)]:
        kept.pop(oldest, None)
    kept[key] = value
