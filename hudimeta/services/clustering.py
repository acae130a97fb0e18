"""Clustering: small files become fewer and larger ones, in which rows lie sorted so that filters leave most files out.

A plan names groups of file slices; it is stored on the timeline before anything is written. A run reads each group whole, logs
merged, sorts its rows and cuts them into new file groups, which take the place of the old ones in one commit. No row changes:
each keeps its commit time and sequence number, so that incremental readers see nothing new. From the plan to the end of the run
nobody changes the file groups that it names; a run that died is run again from its plan, after what it left was deleted.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from functools import partial

from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.early_conflicts import give_way_to_writers
from hudimeta.commit.planned_runs import cancel as cancel_plan
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import HudiWarning, Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine, LocalEngine
from hudimeta.errors import CommitConflict, CommitError, ConfigError, StorageError, UnsupportedFeature
from hudimeta.indexes.bucket.consistent_hashing import HashRing, HashRings
from hudimeta.indexes.bucket.ring_changes import (
    RingChange,
    changed_ring,
    mark_committed,
    put_ring,
)
from hudimeta.indexes.choice import BucketSettings
from hudimeta.redaction import without_user
from hudimeta.reports import Reports
from hudimeta.schema import with_meta_columns
from hudimeta.services.bucket_resizing import EXECUTOR, choose_buckets
from hudimeta.services.clustering_by_commits import BY_COMMITS, choose_by_commits
from hudimeta.services.clustering_plan import COPYING, COPYING_STREAMS, ClusteringPlan
from hudimeta.services.clustering_report import ClusteringReport, GroupLayout, shares_skipped
from hudimeta.services.clustering_rows import ClusterGroup, GroupWork, RowOrder, WrittenGroup
from hudimeta.services.clustering_strategy import STREAM_COPY, choose
from hudimeta.services.plan_runs import put_plan, run_plans
from hudimeta.services.planned_slices import columns_at, reading, remove_leftovers, report_of, stored_columns, with_sizes
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import is_on_disk
from hudimeta.storage.at_once import engine_of_files
from hudimeta.table.file_names import new_file_id
from hudimeta.timeline import Timeline, TimelineWriter, format_instant
from hudimeta.types import Action, FileGroupId, Instant, Operation, State
from hudimeta.write.table_files import TableFiles

__all__ = [
    "ClusteringPlan",
    "ClusteringReport",
    "cancel",
    "cluster",
    "execute",
    "expire",
    "is_due",
    "may_be_due",
    "pending",
    "plan",
    "schedule",
]

_LARGE_FILE = 4 << 20
"""Of such a file to copy the bytes, and to look at their checksums, takes longer than to find out where they lie."""
_STALE = "Take the plan back with t.services.clustering.cancel(…), and plan again."


def pending(timeline: Timeline) -> list[Instant]:
    """Clusterings that were planned and not completed, oldest first."""
    return [i for i in timeline.pending if i.action is Action.CLUSTERING]


def plan(session: WriteSession, snapshot: Snapshot) -> ClusteringPlan:
    """What the strategy takes of the table; file groups in the plan of a pending service are left out.

    Raises:
        UnsupportedFeature: The table's rows have fixed places.
        ConfigError: A column that rows cannot be sorted by, or a pattern that is none.
    """
    options = session.options
    lookup = TableFiles(session, snapshot).lookup
    buckets = lookup.choice.buckets if lookup.fixes_places else None
    if buckets is not None and not buckets.consistent:
        hint = "Its files are as many as its buckets: t.rescale_buckets(…) gives partitions another number of them."
        raise UnsupportedFeature("clustering a table that is laid out in buckets", hint)
    order = RowOrder.asked(options, copies=_executor(options) in COPYING)
    order.check(with_meta_columns(snapshot.file_schema), keys.CLUSTER_SORT.key)
    taken = groups_in_plans(snapshot.timeline)
    slices = [one for one in slices_of(snapshot.slices()) if FileGroupId(one.partition_path, one.file_id) not in taken]
    hour = int(session.times.next(snapshot.timeline.last_time)[8:10])
    if buckets is not None:
        return _resizing(session, snapshot, buckets, slices, order, hour)
    return _chosen(snapshot, slices, options, order, hour)


def _chosen(snapshot: Snapshot, slices: Sequence[FileSlice], options: Options, order: RowOrder, hour: int) -> ClusteringPlan:
    """What the strategy of the options takes."""
    strategy, executor = options.get(keys.CLUSTER_STRATEGY), _executor(options)
    if strategy == BY_COMMITS:
        chosen = choose_by_commits(slices, snapshot.timeline, options, hour)
        return ClusteringPlan(chosen.groups, order, executor, checkpoint=chosen.checkpoint)
    if strategy != STREAM_COPY:
        return ClusteringPlan(tuple(choose(slices, options, hour)), order, executor)
    columns_of = None if options.get(keys.CLUSTER_ANY_COLUMNS) else partial(stored_columns, snapshot.storage)
    return ClusteringPlan(tuple(choose(slices, options, hour, columns_of)), order, executor)


def _executor(options: Options) -> str:
    """Who executes a plan: for some strategies nobody else."""
    return COPYING_STREAMS if options.get(keys.CLUSTER_STRATEGY) == STREAM_COPY else options.get(keys.CLUSTER_EXECUTOR)


def _resizing(
    session: WriteSession, snapshot: Snapshot, buckets: BucketSettings, slices: Sequence[FileSlice], order: RowOrder, hour: int
) -> ClusteringPlan:
    """Splitting and merging of buckets; none while a write is at work, which chose its buckets before."""
    if snapshot.timeline.pending_writes:
        return ClusteringPlan((), order, EXECUTOR)
    busy = {one.partition_path for one in groups_in_plans(snapshot.timeline)}
    free = [one for one in slices if one.partition_path not in busy]
    rings = HashRings(session.storage, snapshot.timeline, buckets.count, buckets.fields)
    chosen = choose_buckets(free, rings.ring, session.options, hour, buckets.count)
    return ClusteringPlan(tuple(group for group, _ in chosen), order, EXECUTOR, tuple(change for _, change in chosen))


def schedule(session: WriteSession, *, to_run: bool = False) -> str | None:
    """Put a clustering on the timeline; returns its instant, None when there is nothing to cluster.

    Args:
        session: The table.
        to_run: It is run next, see `Coordinator.plan`.
    """

    def encoded(snapshot: Snapshot) -> bytes | None:
        the_plan = plan(session, snapshot)
        return the_plan.encode(without_user(session.storage.root)) if the_plan.groups else None

    return put_plan(session, Action.CLUSTERING, encoded, to_run=to_run)


def cancel(session: WriteSession, instant: str) -> None:
    """Take a clustering that is on the timeline back: what it wrote goes, and its plan.

    Raises:
        CommitError: No such pending clustering, or a process is running it.
    """
    patience = session.concurrency.patience_s
    cancel_plan(session.fenced, session.properties, session.lock, session.times, instant, Action.CLUSTERING, patience)


def expire(session: WriteSession) -> tuple[str, ...]:
    """Take plans back that are older than options allow, where these say so; returns their instants.

    A plan whose process died is run by the next clustering. Where none comes, it would hold its file groups for ever.
    """
    if not session.options.get(keys.CLUSTER_EXPIRES):
        return ()
    minutes = session.options.get(keys.CLUSTER_EXPIRES_AFTER)
    oldest = format_instant(session.times.now_ms() - minutes * 60_000, session.times.zone)
    expired = []
    for planned in pending(session.snapshot_now().timeline):
        with contextlib.suppress(CommitError):  # somebody is running it, or was first
            if planned.time < oldest:
                cancel(session, planned.time)
                expired.append(planned.time)
    for one in expired:
        text = f"the clustering planned at {one} was taken back: it is over {minutes:,} minutes old"
        warnings.warn(text, HudiWarning, stacklevel=2)
    return tuple(expired)


def execute(session: WriteSession, instant: str) -> ClusteringReport:
    """Run a clustering that is on the timeline.

    Raises:
        CommitError: No such pending clustering, or another process is running it.
        CommitConflict: What it names was changed since it was planned.
    """
    with session.coordinator.running(instant, Action.CLUSTERING) as (timeline, found):
        return _run(session, timeline, found)


def _run(session: WriteSession, timeline: Timeline, found: Instant) -> ClusteringReport:
    instant, timings, mark = found.time, Timings(), session.request_mark()
    snapshot = session.snapshot_at(timeline)
    planned = ClusteringPlan.of(timeline.plan(found), session.options)
    planned.order.check(with_meta_columns(snapshot.file_schema), keys.CLUSTER_SORT.key)
    _refuse_stale(snapshot, planned)
    _begin(session, timeline, found, planned)
    schema, history = columns_at(session, snapshot, instant)
    rings = _new_rings(session, snapshot, planned, instant)
    works, table = _works(snapshot, planned, rings), TableFiles(session, snapshot)
    with timings.phase("rewrite"):
        copies = planned.executor in COPYING
        run = ClusterGroup(
            session.storage,
            reading(session, snapshot, schema, history),
            table.writer(instant, schema),
            planned.order,
            None if session.properties.populate_meta else table.generator(),
            session.engine.workers if isinstance(session.engine, LocalEngine) else None,
            copies,
        )
        written = _engine_for(session, works, copies).map(run, works)
    for ring, _ in rings.values():
        put_ring(session.storage, ring)
    files, replaced = [file for group in written for file in group.files], _by_partition(planned)
    write = OpenWrite.of_plan(timeline, instant, Action.CLUSTERING, Operation.CLUSTER)
    stated = published_schema(schema, session.properties.name, history, instant)
    publication = Publication(
        files, schema, stated.avro, replaced, stated.extra, known=snapshot.metadata, history=stated.history
    )
    with timings.phase("publish"):
        completion = session.coordinator.publish(write, publication)
        table.window.add(files)
    for partition in rings:
        with contextlib.suppress(StorageError):  # the next write to the partition says it, while the timeline tells
            mark_committed(session.storage, partition, instant)
    counts = {"file_groups_added": len(files), "file_groups_replaced": len(planned.slices)}
    commit = report_of(session, write, completion, files, timings, requests=session.requests_since(mark), **counts)
    return session.reported(_report(commit, works, written, planned), write.action)


def _begin(session: WriteSession, timeline: Timeline, found: Instant, planned: ClusteringPlan) -> None:
    """Give way to writers where they come first, remove what an earlier run left, and say that the plan is being run."""
    if session.concurrency.prefers_writers:
        groups = [FileGroupId(one.partition_path, one.file_id) for one in planned.slices]
        patience = session.concurrency.patience_s
        give_way_to_writers(session.storage, timeline, Operation.CLUSTER.value, groups, alone=False, patience_s=patience)
    remove_leftovers(session, found.time)
    if found.state is State.REQUESTED:
        TimelineWriter(session.storage, timeline.folder).begin_planned(found.time, Action.CLUSTERING)


def _by_partition(planned: ClusteringPlan) -> dict[str, list[str]]:
    """The file ids that the plan replaces."""
    replaced: dict[str, list[str]] = {}
    for one in planned.slices:
        replaced.setdefault(one.partition_path, []).append(one.file_id)
    return replaced


def _engine_for(session: WriteSession, works: Sequence[GroupWork], copies: bool) -> Engine:
    """Where groups are put together.

    To copy a small file is work of Python's own, which threads hand to and fro, unless they wait for an object store.
    """
    sizes, files = [sum(one.size for one in work.slices) for work in works], sum(len(work.slices) for work in works)
    engine = engine_of_files(session.engine, session.storage, sizes)
    if copies and isinstance(engine, LocalEngine) and is_on_disk(session.storage) and sum(sizes) < _LARGE_FILE * files:
        return LocalEngine(1)
    return engine


def _report(
    commit: CommitReport, works: Sequence[GroupWork], written: Sequence[WrittenGroup], planned: ClusteringPlan
) -> ClusteringReport:
    slices = [one for work in works for one in work.slices]
    layouts = [GroupLayout(g.read, len(work.slices), len(g.files)) for work, g in zip(works, written, strict=True)]
    return ClusteringReport(
        commit,
        sum((one.base_file is not None) + len(one.log_files) for one in slices),
        sum(one.size for one in slices),
        commit.files_written,
        commit.bytes_written,
        shares_skipped(planned.order.columns, layouts),
        None if planned.executor not in COPYING else sum(not group.decoded for group in written),
        tuple(dict.fromkeys(group.decoded for group in written if group.decoded)),
    )


def _refuse_stale(snapshot: Snapshot, planned: ClusteringPlan) -> None:
    """Refuse to copy slices that are not what their file groups hold any more: rows would be lost."""
    partitions = sorted({one.partition_path for one in planned.slices})
    now = {
        FileGroupId(one.partition_path, one.file_id): (one.base_file, frozenset(one.log_files))
        for one in slices_of(snapshot.slices(partitions))
    }
    changed = [
        (one.partition_path, one.file_id)
        for one in planned.slices
        if now.get(FileGroupId(one.partition_path, one.file_id)) != (one.base_file, frozenset(one.log_files))
    ]
    if changed:
        raise CommitConflict(Operation.CLUSTER.value, changed, "a write after the plan", _STALE, did="changed")


Rings = Mapping[str, tuple[HashRing, tuple[str, ...]]]
"""Of each partition its ring as it will be, and the hashed columns."""


def _new_rings(session: WriteSession, snapshot: Snapshot, planned: ClusteringPlan, instant: str) -> Rings:
    """The hash rings as they will be.

    Raises:
        CommitConflict: A ring was changed since the plan.
        ConfigError: The options of the run do not say that the table is in such buckets.
    """
    if not planned.rings:
        return {}
    lookup = TableFiles(session, snapshot).lookup
    buckets = lookup.choice.buckets if lookup.fixes_places else None
    if buckets is None or not buckets.consistent:
        allowed = "CONSISTENT_HASHING, and hoodie.index.type=BUCKET: the plan splits or merges buckets"
        raise ConfigError(keys.BUCKET_ENGINE.key, session.options.get(keys.BUCKET_ENGINE), allowed)
    rings = HashRings(session.storage, snapshot.timeline, buckets.count, buckets.fields)
    by_partition: dict[str, list[RingChange]] = {}
    for change in planned.rings:
        by_partition.setdefault(change.partition, []).append(change)
    return {path: (changed_ring(rings.ring(path), changes, instant), buckets.fields) for path, changes in by_partition.items()}


def _works(snapshot: Snapshot, planned: ClusteringPlan, rings: Rings) -> list[GroupWork]:
    works = []
    for number, (slices, outputs) in enumerate(planned.groups):
        if planned.rings:
            change = planned.rings[number]
            works.append(GroupWork(number, tuple(with_sizes(snapshot, slices)), change.file_ids, rings[change.partition]))
            continue
        stem = new_file_id().removesuffix("0")
        works.append(GroupWork(number, tuple(with_sizes(snapshot, slices)), tuple(f"{stem}{at}" for at in range(outputs))))
    return works


def cluster(session: WriteSession, *, after_a_write: bool = False) -> Reports[ClusteringReport]:
    """Roll dead writes back, run what is pending, then plan and run a clustering. Plans that are too old are not run.

    Args:
        session: The table.
        after_a_write: The session's write has just been published, and rolled dead ones back as it began.
    """
    expire(session)
    return run_plans(session, pending, schedule, execute, after_a_write=after_a_write)


def may_be_due(session: WriteSession, timeline: Timeline) -> bool:
    """False when `is_due` would say no on the timeline after one more commit: then that need not be listed."""
    return _fresh(timeline) + 1 >= _after(session)


def is_due(session: WriteSession, timeline: Timeline) -> bool:
    """True when enough commits were completed since the last clustering was planned."""
    return _fresh(timeline) >= max(1, _after(session))


def _after(session: WriteSession) -> int:
    """As Hudi counts: what runs in a thread has an option of its own."""
    options = session.options
    beside = options.get(keys.CLUSTER_ASYNC) and not options.get(keys.CLUSTER_INLINE)
    return options.get(keys.CLUSTER_ASYNC_AFTER if beside else keys.CLUSTER_AFTER)


def _fresh(timeline: Timeline) -> int:
    """Commits since the last clustering was planned."""
    count = 0
    last = max((i.time for i in pending(timeline)), default="")
    for instant in reversed(timeline.writes):
        if instant.time <= last or (instant.action is Action.REPLACE_COMMIT and _is_clustering(timeline, instant)):
            break
        count += 1
    return count


def _is_clustering(timeline: Timeline, instant: Instant) -> bool:
    return timeline.metadata(instant).get("operationType") == Operation.CLUSTER.value
