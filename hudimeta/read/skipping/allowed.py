"""Which indexes a reader may use (`hudimeta.index.use`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.config.options import DATA_SKIPPING, INDEX_USE
from hudimeta.errors import ConfigError

if TYPE_CHECKING:
    from hudimeta.read.snapshot import Snapshot

__all__ = ["FOOTERS", "KINDS", "check_allowed", "may_use", "why_forbidden"]

FOOTERS = "footers"
KINDS = (
    "partition_stats",
    "column_stats",
    "expression_index",
    "record_index",
    "secondary_index",
    "bloom_filters",
    FOOTERS,
)
_NONE = "none"


def check_allowed(snapshot: Snapshot) -> None:
    """Refuse names of indexes that there are not.

    Raises:
        ConfigError: A name that is neither a kind nor an index of this table.
    """
    known = {*KINDS, _NONE, *(snapshot.metadata.ready if snapshot.metadata is not None else ())}
    unknown = [name for name in snapshot.options.get(INDEX_USE) if name not in known]
    if unknown and snapshot.metadata is not None:
        raise ConfigError(INDEX_USE.key, unknown[0], f"{', '.join(KINDS)}, {_NONE}, or an index of the table")


def may_use(snapshot: Snapshot, kind: str, name: str = "") -> bool:
    """True when the options allow an index; `name` is its metadata partition."""
    given = snapshot.options.get(INDEX_USE)
    return snapshot.options.get(DATA_SKIPPING) and (not given or kind in given or name in given)


def why_forbidden(snapshot: Snapshot) -> str:
    """Which option forbids what `may_use` refuses."""
    skipping = snapshot.options.get(DATA_SKIPPING)
    return f"switched off by {INDEX_USE.key}" if skipping else f"switched off by {DATA_SKIPPING.key}=false"
