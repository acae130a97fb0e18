"""Whether an index may be believed about rows that it does not know.

Statistics of a file speak of that file. A record index or a secondary index speaks of the whole table; see
`hudimeta.metadata.completeness` for what proves that it lacks no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.config.options import INDEX_TRUST
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.types import Action, QueryType

if TYPE_CHECKING:
    from hudimeta.indexes.question import Question
    from hudimeta.metadata import MetadataTable

__all__ = ["runs_ahead", "why_unproven"]

_CREATION = "1"
"""Instants that create partitions of the metadata table begin with 0."""


def why_unproven(question: Question, names: tuple[str, ...]) -> str | None:
    """Why indexes that know the newest state of rows may not exclude any; None when they may."""
    snapshot = question.snapshot
    if question.query_type is QueryType.READ_OPTIMIZED:
        return "it knows the newest rows, a read-optimized query returns those of base files"
    if not snapshot.is_latest:
        return f"it knows the newest rows only, not those as of {snapshot.as_of}"
    if runs_ahead(question.metadata):
        return "the metadata table holds a write that this snapshot does not show"
    if snapshot.options.get(INDEX_TRUST):
        return None
    missing = set(names) - proven_indexes(question.metadata, names)
    if not missing:
        return None
    return (
        f"nothing proves that {' and '.join(sorted(missing))} is complete, and rows that it lacks would be lost; "
        f"set {INDEX_TRUST.key}=true if every writer of the table is known to keep it"
    )


def runs_ahead(metadata: MetadataTable) -> bool:
    """True when the metadata table knows a write that the data timeline, which was listed before, does not show.

    One that is pending in the data timeline is passed over while its records lie in log files of their own, but no more once
    a compaction of the metadata table has folded them into its base files.
    """
    data, writes = metadata.data_timeline, metadata.timeline.writes
    since = max(data.first_active_write or "", _CREATION)
    pending = {i.time for i in data.pending_writes}
    folded = max((i.time for i in writes if i.action is Action.COMMIT), default="")
    return any(
        i.action is Action.DELTA_COMMIT
        and i.time >= since
        and (data.get(i.time) is None or (i.time in pending and i.completion_order <= (folded,)))
        for i in writes
    )
