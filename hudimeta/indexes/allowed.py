"""Which indexes a reader may use: what `hudimeta.index.use` names, and nothing that a merger of the user's makes untrue.

Statistics speak of the values in the files. A function that adds the older version of a row to the newer one makes values that
no file holds, so beneath a merge only the record keys tell what may be left out then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.config.options import DATA_SKIPPING, INDEX_USE, MERGER
from hudimeta.errors import ConfigError
from hudimeta.types import TableType

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot

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
_OF_VALUES = ("partition_stats", "column_stats", "expression_index", "secondary_index")
"""Kinds that speak of values as the files have them."""


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
    allowed = snapshot.options.get(DATA_SKIPPING) and (not given or kind in given or name in given)
    return allowed and not (kind in _OF_VALUES and _makes_values(snapshot))


def _makes_values(snapshot: Snapshot) -> bool:
    """True when rows may come out of merging with values that no file holds."""
    return snapshot.options.get(MERGER) is not None and snapshot.properties.type is TableType.MERGE_ON_READ


def why_forbidden(snapshot: Snapshot) -> str:
    """Which option forbids what `may_use` refuses."""
    if not snapshot.options.get(DATA_SKIPPING):
        return f"switched off by {DATA_SKIPPING.key}=false"
    if _makes_values(snapshot):
        return f"{MERGER.key} may make values that no file holds"
    return f"switched off by {INDEX_USE.key}"
