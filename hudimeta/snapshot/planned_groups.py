"""File groups that the plans of pending services take: who else may not plan with them, nor rewrite their base files."""

from __future__ import annotations

from hudimeta.table.clustering_plan import decode_clustering_plan
from hudimeta.table.compaction_plan import decode_compaction_plan
from hudimeta.timeline import Timeline
from hudimeta.types import Action, FileGroupId, Instant

__all__ = [
    "groups_in_plans",
    "groups_of_clustering",
    "groups_under_clustering",
    "groups_under_compaction",
    "plans_that_say_nothing",
]

_PLANNED = (Action.COMPACTION, Action.CLUSTERING, Action.LOG_COMPACTION)


def groups_in_plans(timeline: Timeline) -> set[FileGroupId]:
    """File groups that are in the plan of a pending service: no new row goes to their base files, no other plan takes them.

    What a log compaction takes are log files alone; what is appended to the log meanwhile does not mind.
    """
    merged = _in_operations(timeline, Action.LOG_COMPACTION)
    return groups_under_compaction(timeline) | groups_under_clustering(timeline) | merged


def plans_that_say_nothing(timeline: Timeline) -> list[Instant]:
    """Pending services whose plan is an empty file, as a crash of the store leaves it."""
    services = [i for i in timeline.pending if (i.pending_action or i.action) in _PLANNED]
    return [i for i in services if not timeline.plan(i)]


def groups_under_compaction(timeline: Timeline) -> set[FileGroupId]:
    """File groups that planned compactions are going to rewrite: their base files must not be rewritten by anybody else."""
    return _in_operations(timeline, Action.COMPACTION)


def groups_under_clustering(timeline: Timeline) -> set[FileGroupId]:
    """File groups that planned clusterings are going to replace."""
    pending = [i for i in timeline.pending if i.action is Action.CLUSTERING]
    return {group for instant in pending for group in groups_of_clustering(timeline, instant)}


def groups_of_clustering(timeline: Timeline, pending: Instant) -> set[FileGroupId]:
    """File groups that one planned clustering is going to replace."""
    groups = decode_clustering_plan(timeline.plan(pending)).groups
    return {FileGroupId(one.partition_path, one.file_id) for group in groups for one in group.slices}


def _in_operations(timeline: Timeline, action: Action) -> set[FileGroupId]:
    plans = [timeline.plan(i) for i in timeline.pending if (i.pending_action or i.action) is action]
    return {FileGroupId(one.partition_path, one.file_id) for plan in plans for one in decode_compaction_plan(plan)}
