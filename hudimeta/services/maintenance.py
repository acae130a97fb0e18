"""Maintenance: look at a table, say which services are due, why and what they cost, and run them in the order that saves most.

    1. what died, and what was planned and never run
    2. compaction: log files become base files, whose old slices a clean may take
    3. log compaction, where the options ask for it: many log blocks become one
    4. indexes that were planned and not built
    5. clustering, where the options ask for it: small files become few, the old ones a clean may take
    6. partitions that have outlived their time, where the options ask for it: a clean may take their files
    7. cleaning: files that no retained moment needs
    8. archival: instants that a clean no longer looks at

Each service is planned anew when its turn comes, since the one before it changed the table. Writers go on meanwhile: a service
holds the table lock to plan and to publish, never while it reads or writes rows.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hudimeta.commit.planned_runs import is_being_run
from hudimeta.commit.session import WriteSession
from hudimeta.config import HudiWarning, Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine
from hudimeta.engine.machine import monotonic, pause
from hudimeta.errors import CommitError, ConfigError, LockError, UnsupportedFeature
from hudimeta.redaction import hidden
from hudimeta.reports import Report
from hudimeta.services import archival, clean, clustering, compaction, log_compaction, ttl
from hudimeta.services.in_thread import warn_of
from hudimeta.services.indexing import beside_writers
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage
from hudimeta.types import Instant, TableType

__all__ = ["DueService", "MaintenancePlan", "MaintenanceReport", "maintain", "plan", "watch"]

_MEBIBYTE = 1 << 20
JITTER = 0.2
"""Of the pause between two looks, so that many watchers do not look at once."""


@dataclass(frozen=True, repr=False)
class DueService(Report):
    """One service that is due.

    Attributes:
        name: `recover`, `compaction`, `logs`, `indexing`, `clustering`, `ttl`, `clean` or `archival`.
        why: In words, with the option that decides.
        reads: About how many bytes it reads and writes anew; 0 for those that touch no rows.
        frees: Bytes that it deletes.
    """

    name: str
    why: str
    reads: int = 0
    frees: int = 0

    def __str__(self) -> str:
        cost = [f"{self.reads:,} bytes to merge"] if self.reads else []
        cost += [f"{self.frees:,} bytes to delete"] if self.frees else []
        return f"{self.name:<12}{self.why}" + (f" ({', '.join(cost)})" if cost else "")


@dataclass(frozen=True, repr=False)
class MaintenancePlan(Report):
    """What is due now, in the order in which it is done; what a service leaves to a later one shows when its turn comes."""

    due: tuple[DueService, ...]

    def __str__(self) -> str:
        return "\n".join(str(one) for one in self.due) or "nothing is due"


@dataclass(frozen=True, repr=False)
class MaintenanceReport(Report):
    """What maintenance did.

    Attributes:
        done: The services that ran, in order, with what they said.
        left: What was due and did not fit into the budget.
        seconds: What it took.
    """

    done: tuple[tuple[DueService, str], ...]
    left: tuple[DueService, ...]
    seconds: float

    def __str__(self) -> str:
        lines = [f"{service}\n  {said}" for service, said in self.done]
        lines += [f"left: {service}" for service in self.left]
        return "\n".join(lines) or "nothing was due"


@dataclass(frozen=True)
class _Step:
    """A service as maintenance sees it: whether it is due, and what runs it and says what it did."""

    look: Callable[[WriteSession, Snapshot], DueService | None]
    run: Callable[[WriteSession], str]


def plan(storage: Storage, options: Options) -> MaintenancePlan:
    """What is due now; nothing is changed.

    Args:
        storage: Rooted at the table.
        options: Of the services, `hoodie.compact.*`, `hoodie.clustering.*`, `hoodie.clean.*`, `hoodie.keep.*`.
    """
    session = WriteSession(storage, options)
    snapshot = session.snapshot_now()
    return MaintenancePlan(tuple(found for step in _STEPS if (found := _looked(step, session, snapshot)) is not None))


def _looked(step: _Step, session: WriteSession, snapshot: Snapshot) -> DueService | None:
    """What is due of a service; with a warning nothing of one that options ask for and that the table cannot have."""
    try:
        return step.look(session, snapshot)
    except UnsupportedFeature as error:
        warn_of(error, "maintenance leaves out a service that does not fit the table")
        return None


def maintain(
    storage: Storage,
    options: Options,
    *,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
    engine: Engine | None = None,
) -> MaintenanceReport:
    """Run what is due.

    Args:
        storage: Rooted at the table.
        options: See `plan`.
        max_bytes: A service that merges more than what is left of it waits for another call; a compaction takes as many file
            slices as fit. None for all.
        max_seconds: No service begins after so many. None for no end.
        engine: Where file groups are merged.

    Raises:
        ConfigError: A budget that is not positive, or options that one of the services refuses; nothing was run.
        HudiError: A service failed; those before it are done.
    """
    for name, budget in (("max_bytes", max_bytes), ("max_seconds", max_seconds)):
        if budget is not None and budget <= 0:
            raise ConfigError(name, budget, "a positive number")
    begin, left_bytes = monotonic(), max_bytes
    plan(storage, options)  # what a later service refuses is told before an earlier one changes anything
    done: list[tuple[DueService, str]] = []
    left: list[DueService] = []
    for step in _STEPS:
        session = WriteSession(storage, _within(options, left_bytes), engine=engine)
        due = _looked(step, session, session.snapshot_now())
        if due is None:
            continue
        late = max_seconds is not None and monotonic() - begin >= max_seconds
        if late or (left_bytes is not None and due.reads > left_bytes):
            left.append(due)
            continue
        done.append((due, step.run(session)))
        left_bytes = None if left_bytes is None else left_bytes - due.reads
    return MaintenanceReport(tuple(done), tuple(left), monotonic() - begin)


def watch(
    storage: Storage, options: Options, every: float, tell: Callable[[MaintenanceReport], object], engine: Engine | None = None
) -> None:
    """Maintain a table for ever: until the process ends, a service fails, or `tell` raises.

    Another process in the way is no failure: a warning says so, and the next look tries again.

    Args:
        storage: Rooted at the table.
        options: See `plan`.
        every: About so many seconds between two looks, more or less by a fifth.
        tell: Takes the report of each look that did anything.
        engine: See `maintain`.

    Raises:
        ConfigError: `every` is not positive.
        HudiError: A service failed.
    """
    if every <= 0:
        raise ConfigError("every", every, "a positive number of seconds")
    while True:
        try:
            report = maintain(storage, options, engine=engine)
        except (CommitError, LockError) as error:
            warnings.warn(f"maintenance gave way and looks again later: {hidden(str(error))}", HudiWarning, stacklevel=2)
        else:
            if report.done or report.left:
                tell(report)
        pause(every * random.uniform(1 - JITTER, 1 + JITTER))


def _within(options: Options, left_bytes: int | None) -> Options:
    """Options by which a compaction takes no more than what is left, unless they bound it more closely."""
    if left_bytes is None:
        return options
    mebibytes = max(1, left_bytes // _MEBIBYTE)
    return options.having({keys.COMPACT_TARGET_IO.key: str(min(mebibytes, options.get(keys.COMPACT_TARGET_IO)))})


def _waiting(session: WriteSession, snapshot: Snapshot, planned: Sequence[Instant]) -> tuple[list[Instant], bool]:
    """The plans that no process is running, and whether there are others: what another process does is not due here."""
    patience = session.concurrency.patience_s
    waiting = [one for one in planned if not is_being_run(session.storage, snapshot.timeline, one, patience)]
    return waiting, len(waiting) < len(planned)


def _look_recover(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    if session.concurrency.failed_writes == "NEVER":
        return None
    dead = session.coordinator.recovery.dead(snapshot.timeline)
    named = ", ".join(f"{one.action.value} {one.time}" for one in dead)
    return DueService("recover", f"{len(dead):,} writes or runs died: {named}") if dead else None


def _look_compaction(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    if session.properties.type is not TableType.MERGE_ON_READ:
        return None
    begun, running = _waiting(session, snapshot, compaction.pending(snapshot.timeline))
    if running and not begun:
        return None
    if begun:
        planned = [compaction.CompactionPlan.of(record) for _, record in snapshot.timeline.plans(begun)]
        named = ", ".join(one.time for one in begun)
        return DueService("compaction", f"planned at {named} and not run", sum(one.size for one in planned))
    if not compaction.is_due(session, snapshot.timeline):
        return None
    the_plan = compaction.plan(session, snapshot)
    logs = sum(len(one.log_files) for one in the_plan.slices)
    why = f"{logs:,} log files in {len(the_plan.slices):,} file slices ({keys.COMPACT_AFTER.key})"
    return DueService("compaction", why, sum(one.size for one in the_plan.slices)) if the_plan.slices else None


def _look_logs(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    if session.properties.type is not TableType.MERGE_ON_READ:
        return None
    begun, running = _waiting(session, snapshot, log_compaction.pending(snapshot.timeline))
    if running and not begun:
        return None
    if begun:
        sizes = [log_compaction.size_of(record) for _, record in snapshot.timeline.plans(begun)]
        return DueService("logs", f"planned at {', '.join(one.time for one in begun)} and not run", sum(sizes))
    asked = session.options.get(keys.LOG_COMPACT_INLINE) or session.options.get(keys.LOG_COMPACT_ENABLE)
    if not asked or not log_compaction.is_due(session, snapshot.timeline):
        return None
    the_plan = log_compaction.plan(session, snapshot)
    logs = sum(len(one.log_files) for one in the_plan.slices)
    why = f"{logs:,} log files in {len(the_plan.slices):,} file slices become one each ({keys.LOG_BLOCKS.key})"
    return DueService("logs", why, the_plan.size) if the_plan.slices else None


def _look_indexing(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    begun, _ = _waiting(session, snapshot, beside_writers.pending(snapshot.timeline))
    named = ", ".join(one.time for one in begun)
    return DueService("indexing", f"planned at {named} and not built") if begun else None


def _indexed(session: WriteSession) -> str:
    snapshot = session.snapshot_now()
    begun, _ = _waiting(session, snapshot, beside_writers.pending(snapshot.timeline))
    return _reported([beside_writers.execute(session, one.time) for one in begun])


def _look_clustering(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    begun, running = _waiting(session, snapshot, clustering.pending(snapshot.timeline))
    if running and not begun:
        return None
    if begun:
        plans = [clustering.ClusteringPlan.of(record, session.options) for _, record in snapshot.timeline.plans(begun)]
        named = ", ".join(one.time for one in begun)
        return DueService("clustering", f"planned at {named} and not run", _size_of(plans))
    asked = (keys.CLUSTER_INLINE, keys.CLUSTER_SCHEDULE, keys.CLUSTER_ASYNC)
    if not any(session.options.get(one) for one in asked) or not clustering.is_due(session, snapshot.timeline):
        return None
    the_plan = clustering.plan(session, snapshot)
    why = f"{len(the_plan.slices):,} file slices become {sum(n for _, n in the_plan.groups):,} ({keys.CLUSTER_AFTER.key})"
    return DueService("clustering", why, _size_of([the_plan])) if the_plan.groups else None


def _size_of(plans: Sequence[clustering.ClusteringPlan]) -> int:
    return sum(one.size for the_plan in plans for one in the_plan.slices)


def _look_ttl(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    if not ttl.is_due(session):
        return None
    found = ttl.plan(session, snapshot)
    return DueService("ttl", str(found).partition("\n")[0]) if found.expired else None


def _look_clean(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    found = clean.plan(session, snapshot)
    if not found.n_files:
        return None
    why = f"{found.n_files:,} files that no retained moment needs ({_clean_option(session.options)})"
    return DueService("clean", why, frees=_bytes_of(snapshot, found))


def _clean_option(options: Options) -> str:
    by_policy = {"KEEP_LATEST_BY_HOURS": keys.CLEAN_HOURS, "KEEP_LATEST_FILE_VERSIONS": keys.CLEAN_VERSIONS}
    return by_policy.get(options.get(keys.CLEAN_POLICY) or "", keys.CLEAN_COMMITS).key


def _bytes_of(snapshot: Snapshot, found: clean.CleanPlan) -> int:
    listing = snapshot.files(list(found.files))
    columns = (listing[name].to_pylist() for name in ("partition_path", "name", "size"))
    gone = {(partition, name) for partition, names in found.files.items() for name in names}
    return sum(size for partition, name, size in zip(*columns, strict=True) if (partition, name) in gone)


def _look_archival(session: WriteSession, snapshot: Snapshot) -> DueService | None:
    found = archival.plan(session, snapshot)
    count = len(found.instants)
    return DueService("archival", f"{count:,} instants that nobody asks any more ({keys.ARCHIVE_MAX.key})") if count else None


def _recovered(session: WriteSession) -> str:
    return f"rolled back {', '.join(session.coordinator.recover()) or 'nothing'}"


def _reported(reports: Iterator[object] | Sequence[object]) -> str:
    return "; ".join(str(one).partition("\n")[0] for one in reports) or "nothing"


_STEPS = (
    _Step(_look_recover, _recovered),
    _Step(_look_compaction, lambda session: _reported(compaction.compact(session))),
    _Step(_look_logs, lambda session: _reported(log_compaction.log_compact(session))),
    _Step(_look_indexing, _indexed),
    _Step(_look_clustering, lambda session: _reported(clustering.cluster(session))),
    _Step(_look_ttl, lambda session: str(ttl.expire(session)).partition("\n")[0]),
    _Step(_look_clean, lambda session: str(clean.clean(session))),
    _Step(_look_archival, lambda session: str(archival.archive(session))),
)
