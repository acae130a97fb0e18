"""Cleaning: delete what no retained moment of the table needs any more.

    KEEP_LATEST_COMMITS         every moment of the newest N commits stays readable (`hoodie.clean.commits.retained`)
    KEEP_LATEST_BY_HOURS        the same for the commits of the last hours (`hoodie.clean.hours.retained`)
    KEEP_LATEST_FILE_VERSIONS   of each file group the newest N slices stay (`hoodie.clean.fileversions.retained`)

The newest slice of a file group always stays, unless the group was replaced before everything that is retained. Savepointed
moments and pending compactions and clusterings keep what they need. A plan is stored first; files go; the metadata table and
then the timeline say so. A clean that died is finished by the next one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError
from hudimeta.redaction import without_user
from hudimeta.reports import Report
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.table.file_names import parse_base_file
from hudimeta.table.slices import place_files
from hudimeta.table.text_arrays import instant_number
from hudimeta.timeline import Timeline, format_instant, parse_instant
from hudimeta.timeline.clean_record import CleanPlan, encode_plan, is_partial, savepoints_of
from hudimeta.types import Action, Instant, TableType

__all__ = ["CleanPlan", "CleanReport", "clean", "execute", "is_due", "looked_at", "plan", "schedule"]

_COMMITS, _HOURS, _VERSIONS = "KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS"
_MS_AN_HOUR = 3_600_000
_COMPACTIONS_AMONG = 10
"""So many commits are looked through for compactions; each write looks, but not each at the same number of them."""


@dataclass(frozen=True, repr=False)
class CleanReport(Report):
    """What a clean did: its instant (None when there was nothing to do), and how many files are gone."""

    instant: str | None
    deleted: int
    plan: CleanPlan

    def __str__(self) -> str:
        return "nothing to clean" if self.instant is None else f"CLEAN at {self.instant}: {self.deleted:,} files deleted"


def plan(session: WriteSession, snapshot: Snapshot) -> CleanPlan:
    """Find the files that nothing retained needs."""
    timeline = snapshot.timeline
    policy = session.options.get(keys.CLEAN_POLICY) or _COMMITS
    earliest = _bounded(session, timeline, _earliest(session, timeline)) if policy in (_COMMITS, _HOURS) else None
    last = timeline.writes[-1].time if timeline.writes else ""
    saved = tuple(sorted(timeline.savepoints))
    if policy in (_COMMITS, _HOURS) and earliest is None:
        return CleanPlan(policy, None, {}, (), last, saved)
    chosen = _partitions_chosen(session, snapshot)
    touched = _partitions_touched(session, timeline, earliest, saved) if chosen is None else chosen
    if touched is not None and not touched:
        return CleanPlan(policy, earliest, {}, (), last, saved, chosen is not None)
    placed = place_files(snapshot.files(touched), snapshot.visibility)
    gone = _obsolete(session, placed, timeline, earliest)
    gone &= ~_protected(placed, timeline)
    files = _by_partition(placed.filter(pa.array(gone)))
    left = set(placed.filter(pa.array(~gone))["partition_path"].unique().to_pylist())
    return CleanPlan(policy, earliest, files, tuple(sorted(set(files) - left)), last, saved, chosen is not None)


def _bounded(session: WriteSession, timeline: Timeline, found: Instant | None) -> Instant | None:
    """The earliest commit to retain, no more commits after that of the last clean than one clean may take."""
    most = session.options.get(keys.CLEAN_MOST_COMMITS)
    if found is None or most >= len(timeline.writes):
        return found
    passed = [i for i in timeline.writes if _retained_before(timeline) <= i.time <= found.time]
    return passed[min(most, len(passed) - 1)] if passed else found


def _retained_before(timeline: Timeline) -> str:
    """The earliest commit that the last clean retained; "" where there was none, or it retained none."""
    cleans = [i for i in timeline.completed if i.action is Action.CLEAN]
    return timeline.metadata(cleans[-1]).get("earliestCommitToRetain") or "" if cleans else ""


def _partitions_chosen(session: WriteSession, snapshot: Snapshot) -> list[str] | None:
    """The partitions that options name; None where they name none.

    Raises:
        ConfigError: A pattern that is none, or cleaning goes on from the last clean, which knows of no choice.
    """
    options = session.options
    pattern, selected = options.get(keys.CLEAN_PATTERN), options.get(keys.CLEAN_PARTITIONS)
    if not pattern and not selected:
        return None
    if options.get(keys.CLEAN_INCREMENTAL):
        hint = "A clean of some partitions looks at all of their files."
        raise ConfigError(keys.CLEAN_INCREMENTAL.key, True, "false beside a filter of partitions", hint)
    if selected:
        return sorted(selected)
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise ConfigError(keys.CLEAN_PATTERN.key, pattern, f"a regular expression ({error})") from error
    paths = snapshot.files()["partition_path"].unique().to_pylist()
    return sorted(path for path in paths if wanted.fullmatch(path))


def is_due(session: WriteSession, timeline: Timeline) -> bool:
    """True when a clean is likely to find something: a commit that superseded files has come to the end of its time.

    Only as many commits are read as may have come since the last look; one request each. Compactions, of which several may
    have come, are known by their action.
    """
    if _empty_is_due(session, timeline, None):
        return True
    fresh = max(1, session.options.get(keys.CLEAN_AFTER))
    last = max((i.time for i in timeline.completed if i.action is Action.CLEAN), default="")
    if sum(i.time > last for i in timeline.writes) < fresh:
        return False
    if session.options.get(keys.CLEAN_POLICY) == _VERSIONS:
        candidates = timeline.writes[-fresh:]
    else:
        earliest = _earliest(session, timeline)
        passed = () if earliest is None else tuple(i for i in timeline.writes if i.time < earliest.time)
        candidates = passed[-fresh:]
        if session.properties.type is TableType.MERGE_ON_READ and _compacted_since(session, timeline, passed, last):
            return True
    return any(i in timeline.empty_writes or _supersedes(timeline.metadata(i)) for i in candidates)


def looked_at(session: WriteSession, timeline: Timeline) -> int:
    """How many of the newest writes automatic cleaning must find on the active timeline to see that others may be cleaned."""
    policy = session.options.get(keys.CLEAN_POLICY)
    if not session.options.get(keys.CLEAN_AUTOMATIC) or policy == _VERSIONS:
        return 0
    if policy == _HOURS:
        limit = _since(session)
        return sum(i.time >= limit for i in timeline.writes) + 1
    return max(1, session.options.get(keys.CLEAN_COMMITS)) + 1


def _since(session: WriteSession) -> str:
    """Writes from this time on stay readable by hours."""
    zone = session.properties.zone
    return format_instant(session.times.now_ms() - session.options.get(keys.CLEAN_HOURS) * _MS_AN_HOUR, zone)


def _compacted_since(session: WriteSession, timeline: Timeline, passed: Sequence[Instant], last: str) -> bool:
    """True when one of the newest commits that have come to the end of their time is a compaction, and the last clean came
    too early for it."""
    if session.options.get(keys.CLEAN_POLICY) == _HOURS:  # what had passed when the last clean came is not known
        return any(i.action is Action.COMMIT for i in passed[-2:])
    then = [i.time for i in timeline.writes if i.time < last][: -max(1, session.options.get(keys.CLEAN_COMMITS))]
    seen = then[-1] if then else ""
    return any(i.action is Action.COMMIT and i.time > seen for i in passed[-_COMPACTIONS_AMONG:])


def _empty_is_due(session: WriteSession, timeline: Timeline, earliest: Instant | None) -> bool:
    """True when a clean is to be recorded even if it deletes nothing.

    Args:
        session: The table.
        timeline: Of the table.
        earliest: That it would retain; None finds it out.
    """
    hours = session.options.get(keys.CLEAN_EMPTY_HOURS)
    policy = session.options.get(keys.CLEAN_POLICY) or _COMMITS
    if hours <= 0 or policy == _VERSIONS or not timeline.writes:
        return False
    found = earliest or _bounded(session, timeline, _earliest(session, timeline))
    if found is None or found.time <= _retained_before(timeline):
        return False
    since = max((i.time for i in timeline.completed if i.action is Action.CLEAN), default=timeline.writes[0].time)
    zone = session.properties.zone
    now = parse_instant(session.times.next(timeline.last_time), zone)
    return now - parse_instant(since, zone) >= hours * _MS_AN_HOUR


def _supersedes(commit: Mapping[str, Any]) -> bool:
    """True when a commit replaced file groups, or wrote base files on top of others; logs supersede nothing."""
    if commit.get("partitionToReplaceFileIds"):
        return True
    stats = (stat for part in commit["partitionToWriteStats"].values() for stat in part)
    bases = (stat for stat in stats if parse_base_file((stat["path"] or "").rpartition("/")[2]) is not None)
    return any(stat["prevCommit"] not in (None, "", "null") for stat in bases)


def _partitions_touched(
    session: WriteSession, timeline: Timeline, earliest: Instant | None, saved: tuple[str, ...]
) -> list[str] | None:
    """Partitions that can hold what the last clean had to leave; None for all.

    That clean kept what its earliest commit needed. What has become unneeded since was superseded or replaced by a commit
    between that one and the new earliest, or was kept for a compaction that was pending then and is completed now; none of
    them may have left the active timeline, nor a savepoint have been given up.
    """
    cleans = [i for i in timeline.completed if i.action is Action.CLEAN]
    if earliest is None or not cleans or not session.options.get(keys.CLEAN_INCREMENTAL):
        return None
    record = timeline.metadata(cleans[-1])
    begin = record.get("earliestCommitToRetain") or ""
    given_up = set(savepoints_of(record)) - set(saved)
    if not begin or given_up or is_partial(record) or begin < (timeline.first_active_write or ""):
        return None
    last = cleans[-1].time
    between = [i for i in timeline.writes if i.time < earliest.time and (begin <= i.time or (i.completion or "") > last)]
    if any(i in timeline.empty_writes for i in between):
        return None
    timeline.prefetch(between)
    found: set[str] = set()
    for instant in between:
        metadata = timeline.metadata(instant)
        found.update(metadata["partitionToWriteStats"])
        found.update(metadata.get("partitionToReplaceFileIds") or ())
    return sorted(found)


def _earliest(session: WriteSession, timeline: Timeline) -> Instant | None:
    """The earliest commit whose moment stays readable; None when all stay. Never after a pending write."""
    writes = list(timeline.writes)
    if session.options.get(keys.CLEAN_POLICY) == _HOURS:
        limit = _since(session)
        found = next((i for i in writes if i.time >= limit), writes[-1] if writes else None)
    else:
        retained = max(1, session.options.get(keys.CLEAN_COMMITS))
        found = writes[-retained] if len(writes) > retained else None
    pending = [i.time for i in timeline.pending_writes if i.action not in (Action.COMPACTION, Action.LOG_COMPACTION)]
    if found is not None and pending and min(pending) < found.time:
        found = next((i for i in reversed(writes) if i.time < min(pending)), None)
    return found if found is not None and found is not writes[0] else None


def _obsolete(session: WriteSession, placed: pa.Table, timeline: Timeline, earliest: Instant | None) -> np.ndarray[Any, Any]:
    """Which files belong to slices that no retained moment shows."""
    pairs = pc.binary_join_element_wise(placed["partition_path"], placed["file_id"], "\0")
    group = pairs.combine_chunks().dictionary_encode().indices.to_numpy()
    at = placed["slice"].to_numpy()
    replaced = placed["replaced"].to_numpy(zero_copy_only=False)
    if earliest is None:
        old: np.ndarray[Any, Any] = _older_versions(group, at, max(1, session.options.get(keys.CLEAN_VERSIONS))) | replaced
        return old
    limit = instant_number(earliest.time)
    # What was there just before the earliest retained commit stays, as in Hudi: queries that began then can finish, and
    # the changes of that commit can still be known.
    newest = np.full(int(group.max()) + 1 if len(group) else 0, -1, dtype=np.int64)
    before = at < limit
    np.maximum.at(newest, group[before], at[before])
    gone: np.ndarray[Any, Any] = (at < newest[group]) | (replaced & _replaced_before(placed, timeline, earliest))
    return gone


def _older_versions(group: np.ndarray[Any, Any], at: np.ndarray[Any, Any], versions: int) -> np.ndarray[Any, Any]:
    """Which rows belong to a slice that is not among the newest `versions` of its group."""
    slices = np.unique(np.stack([group, at], axis=1), axis=0)
    order = np.lexsort((-slices[:, 1], slices[:, 0]))
    slices = slices[order]
    starts = np.flatnonzero(np.r_[True, slices[1:, 0] != slices[:-1, 0]]) if len(slices) else np.zeros(0, np.int64)
    rank = np.arange(len(slices)) - np.repeat(starts, np.diff(np.r_[starts, len(slices)]))
    oldest_kept = np.zeros(int(group.max()) + 1 if len(group) else 0, dtype=np.int64)
    last = rank == versions - 1
    oldest_kept[slices[last, 0]] = slices[last, 1]
    result: np.ndarray[Any, Any] = at < oldest_kept[group]
    return result


def _replaced_before(placed: pa.Table, timeline: Timeline, earliest: Instant) -> np.ndarray[Any, Any]:
    """Which rows belong to file groups that were replaced before the earliest retained commit.

    Not those that it replaced itself: they were there just before it.
    """
    early = timeline.replaced_file_groups()
    early = early.filter(pc.less(early["instant"], earliest.time))
    own = pc.binary_join_element_wise(placed["partition_path"], placed["file_id"], "\0")
    gone = pc.binary_join_element_wise(early["partition_path"], early["file_id"], "\0")
    found: np.ndarray[Any, Any] = pc.is_in(own, value_set=gone.combine_chunks()).to_numpy(zero_copy_only=False)
    return found


def _protected(placed: pa.Table, timeline: Timeline) -> np.ndarray[Any, Any]:
    """Which files savepoints and pending services need."""
    saved: set[tuple[str, str]] = set()
    for instant in timeline.completed:
        if instant.action is Action.SAVEPOINT:
            for partition, part in timeline.metadata(instant)["partitionMetadata"].items():
                saved.update((partition, name) for name in part["savepointDataFile"])
    busy = groups_in_plans(timeline)
    result = np.zeros(len(placed), dtype=bool)
    if saved:
        own = pc.binary_join_element_wise(placed["partition_path"], placed["name"], "\0")
        result |= pc.is_in(own, value_set=pa.array([f"{p}\0{n}" for p, n in saved])).to_numpy(zero_copy_only=False)
    if busy:
        own = pc.binary_join_element_wise(placed["partition_path"], placed["file_id"], "\0")
        taken = pa.array([f"{g.partition_path}\0{g.file_id}" for g in busy])
        result |= pc.is_in(own, value_set=taken).to_numpy(zero_copy_only=False)
    return result


def _by_partition(rows: pa.Table) -> dict[str, tuple[str, ...]]:
    grouped = rows.group_by("partition_path", use_threads=False).aggregate([("name", "list")])
    return {
        partition: tuple(sorted(names))
        for partition, names in zip(grouped["partition_path"].to_pylist(), grouped["name_list"].to_pylist(), strict=True)
    }


def clean(session: WriteSession, *, after_a_write: bool = False) -> CleanReport:
    """Roll dead writes back and finish a clean that died, then plan and run one.

    Args:
        session: The table.
        after_a_write: The session's write has just been published; where writers roll dead ones back, it did so as it began.

    Raises:
        CommitError: Another process is running a clean.
    """
    policy = session.concurrency.failed_writes
    if policy == "LAZY" or (policy == "EAGER" and not after_a_write):
        session.coordinator.recover()
    if session.options.get(keys.CLUSTER_EXPIRES):
        from hudimeta.services.clustering import expire

        expire(session)
    while True:
        found: CleanPlan | None = None

        def planned(timeline: Timeline) -> tuple[str, bool] | None:
            """What died goes first; else a new plan."""
            nonlocal found
            died = _waiting(timeline)
            if died is not None:
                return died, False
            found = plan(session, session.snapshot_at(timeline))
            instant = _put(session, timeline, found)
            return None if instant is None else (instant, True)

        ran = session.coordinator.cleans.run_new(planned, session.engine)
        report = None if ran is None else session.reported(CleanReport(ran[0], ran[2], ran[1]), Action.CLEAN)
        if found is not None:
            return report or CleanReport(None, 0, found)


def schedule(session: WriteSession) -> str | None:
    """Plan a clean and leave it on the timeline; its instant, None for nothing to delete. One that waits there is it."""
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        return _waiting(timeline) or _put(session, timeline, plan(session, session.snapshot_at(timeline)))


def execute(session: WriteSession, instant: str) -> CleanReport:
    """Run a clean that is on the timeline, whoever planned it.

    Raises:
        CommitError: There is no such plan, or another process is running it.
    """
    found, deleted = session.coordinator.cleans.run(instant, session.engine)
    return session.reported(CleanReport(instant, deleted, found), Action.CLEAN)


def _waiting(timeline: Timeline) -> str | None:
    return next((i.time for i in timeline.pending if i.action is Action.CLEAN), None)


def _put(session: WriteSession, timeline: Timeline, found: CleanPlan) -> str | None:
    """Leave a plan on the timeline, where there is anything to delete or to say; under the lock."""
    if not found.n_files and not _empty_is_due(session, timeline, found.earliest):
        return None
    return session.coordinator.plan(timeline, Action.CLEAN, encode_plan(without_user(session.storage.root), found))
