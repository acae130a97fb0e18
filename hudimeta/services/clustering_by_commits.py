"""Clustering what commits wrote, commit by commit (`CommitBasedClusteringPlanStrategy` of Apache Hudi 1.2).

File groups come in the order of the commits that wrote to them, whatever their size; those that a replacement made are left
out, so that no clustering takes what an earlier one put together. The plan says up to which commit it got, by Hudi's name:
whoever gives that as `hoodie.clustering.plan.strategy.earliest.commit.to.cluster` goes on after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.services.clustering_strategy import Group, bytes_of, groups_of, looked_at
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.timeline import Timeline, normalise_instant
from hudimeta.types import Action, FileGroupId, Instant

__all__ = ["BY_COMMITS", "CHECKPOINT", "CommitChoice", "choose_by_commits"]

BY_COMMITS = "CommitBasedClusteringPlanStrategy"
CHECKPOINT = "clustering.commit.checkpoint"
"""Entry of a plan's extra metadata."""


@dataclass(frozen=True)
class CommitChoice:
    """What a plan by commits takes.

    Attributes:
        groups: Those of the plan.
        checkpoint: Requested time of the last commit all of whose file groups are in this plan, or in none; "" without any.
    """

    groups: tuple[Group, ...]
    checkpoint: str


@dataclass
class _Gathered:
    """File slices of one partition that make no group yet, and the commit that wrote the first of them."""

    first: int
    slices: list[FileSlice] = field(default_factory=list)
    size: int = 0


def choose_by_commits(slices: Sequence[FileSlice], timeline: Timeline, options: Options, hour: int) -> CommitChoice:
    """The groups of a plan.

    Args:
        slices: Those that may be clustered.
        timeline: Of the table.
        options: Say where to begin, and limit the groups.
        hour: Of the day, for DAY_ROLLING.

    Raises:
        ConfigError: A commit to begin after that is no instant; a pattern or an order of slices that is none.
    """
    most = options.get(keys.CLUSTER_MOST_GROUPS)
    free = {FileGroupId(one.partition_path, one.file_id): one for one in slices}
    paths = frozenset(looked_at(sorted({one.partition_path for one in slices}), options, hour))
    commits = list(_commits(timeline, options))
    timeline.prefetch(commits)
    gathered: dict[str, _Gathered] = {}
    found: list[Group] = []
    looked = 0
    for looked, commit in enumerate(commits, 1):
        for group in _written(timeline, commit):
            one = free.pop(group, None)
            if one is None or group.partition_path not in paths:
                continue
            own = gathered.setdefault(group.partition_path, _Gathered(looked))
            own.slices.append(one)
            own.size += bytes_of(one, options)
            if own.size >= options.get(keys.CLUSTER_GROUP_BYTES):
                found += groups_of(gathered.pop(group.partition_path).slices, options)
        if len(found) >= most:
            break
    for path in sorted(gathered):
        if len(found) >= most:
            break
        found += groups_of(gathered.pop(path).slices, options)
    # What was not taken is left to the next plan, with the commits that wrote it.
    done = min([looked, *(own.first - 1 for own in gathered.values())])
    return CommitChoice(tuple(found), commits[done - 1].time if done else "")


def _commits(timeline: Timeline, options: Options) -> Iterable[Instant]:
    """Commits that wrote rows, oldest first, after the one that the options name."""
    begin = options.get(keys.CLUSTER_EARLIEST)
    after = "" if begin is None else normalise_instant(begin, timeline.zone)
    return (i for i in timeline.writes if i.action is not Action.REPLACE_COMMIT and i.time > after)


def _written(timeline: Timeline, commit: Instant) -> Iterator[FileGroupId]:
    for partition, stats in (timeline.metadata(commit).get("partitionToWriteStats") or {}).items():
        for stat in stats:
            if stat.get("path") and stat.get("fileId"):
                yield FileGroupId(partition, stat["fileId"])
