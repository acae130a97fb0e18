"""Time to live: partitions that nobody has written to for long, or that are old, leave the table by a `delete_partition`.

    KEEP_BY_TIME            the time of a partition runs from the newest file of its newest slices
    KEEP_BY_CREATION_TIME   it runs from the write that made the partition, which its metafile names

The days are those of `hoodie.partition.ttl.strategy.days.retain`, or of a rule of the partition's own (`ttl_rules`). Apache
Hudi goes by base files alone; here a log file that was just written keeps its partition as well, and so does a metafile that
does not tell. Files stay until a clean. A partition of which a planned compaction or clustering takes file groups waits for
that, as whoever runs it needs their files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.engine.machine import pool
from hudimeta.errors import ConfigError, CorruptFileError, NotFound
from hudimeta.formats.properties import decode_properties
from hudimeta.reports import Report
from hudimeta.services.ttl_rules import BY_CREATION, TtlRules
from hudimeta.snapshot.planned_groups import groups_in_plans, plans_that_say_nothing
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.table.file_names import parse_log_file
from hudimeta.timeline import OF_BOOTSTRAPS, parse_instant
from hudimeta.write.table_writer import delete_chosen_partitions

__all__ = ["TtlPlan", "TtlReport", "expire", "is_due", "plan"]

_MS_A_DAY = 86_400_000
_AT_ONCE = 16
_CREATED = "commitTime"
_SHOWN = 10


@dataclass(frozen=True, repr=False)
class TtlPlan(Report):
    """Which partitions have outlived their time.

    Attributes:
        rules: For how long partitions are kept, and from when that counts.
        expired: The instant from which the time of each ran, by partition path; the oldest first.
        left: How many more have, beyond `hoodie.partition.ttl.strategy.max.delete.partitions`.
        unknown: How many partitions do not tell when they were made, and stay.
        busy: How many have expired, but wait for a planned service.
        silent: The instant of a planned service that does not say what it takes, so that every partition waits; "" for none.
    """

    rules: TtlRules
    expired: Mapping[str, str]
    left: int = 0
    unknown: int = 0
    busy: int = 0
    silent: str = ""

    def __str__(self) -> str:
        rule = str(self.rules)
        untold = [f"  {self.unknown:,} do not tell when they were made, and stay"] if self.unknown else []
        waits = f"wait, since the plan {self.silent} is empty: t.rollback({self.silent!r}) takes it back"
        until = waits if self.silent else "wait until a planned service has run"
        untold += [f"  {self.busy:,} {until}"] if self.busy else []
        if not self.expired:
            return "\n".join([f"no partition has expired ({rule})", *untold])
        lines = [f"{len(self.expired):,} partitions have expired ({rule})"]
        lines += [f"  {partition}: since {instant}" for partition, instant in list(self.expired.items())[:_SHOWN]]
        more = len(self.expired) - _SHOWN
        lines += [f"  and {more:,} more"] if more > 0 else []
        lines += [f"  {self.left:,} others are left to the next expiry"] if self.left else []
        return "\n".join([*lines, *untold])


@dataclass(frozen=True, repr=False)
class TtlReport(Report):
    """What an expiry did.

    Attributes:
        plan: Which partitions went, or would go.
        commit: The `delete_partition`; None where there was nothing to do, or it was only to be planned.
    """

    plan: TtlPlan
    commit: CommitReport | None = None

    def __str__(self) -> str:
        if self.commit is None:
            return str(self.plan)
        return f"EXPIRED at {self.commit.instant}: {len(self.plan.expired):,} partitions are taken out"


def is_due(session: WriteSession) -> bool:
    """True when partitions are looked at after each write, as Apache Hudi does."""
    options = session.options
    return options.get(keys.TTL_INLINE) and session.properties.is_partitioned and not TtlRules.of(options).expire_nothing


def plan(session: WriteSession, snapshot: Snapshot) -> TtlPlan:
    """Find the partitions that have outlived their time.

    One look at the newest slices; for KEEP_BY_CREATION_TIME one request a partition besides.

    Raises:
        ConfigError: See `TtlRules.of`.
    """
    options, zone = session.options, session.properties.zone
    rules = TtlRules.of(options)
    if rules.expire_nothing or not session.properties.is_partitioned:
        return TtlPlan(rules, {})
    written = _last_written(snapshot, options.get(keys.TTL_SELECTED))
    rule_of = rules.of_partitions(written)
    of_creation = {path: time for path, time in written.items() if rule_of[path].days and rule_of[path].strategy == BY_CREATION}
    created = _created(session.storage, of_creation)
    begun = {
        path: created.get(path, "") if path in of_creation else time for path, time in written.items() if rule_of[path].days
    }
    now = session.times.now_ms()
    over = sorted(
        (instant, path)
        for path, instant in begun.items()
        if instant and parse_instant(instant, zone) < now - rule_of[path].days * _MS_A_DAY
    )
    busy = {group.partition_path for group in groups_in_plans(snapshot.timeline)}
    silent = plans_that_say_nothing(snapshot.timeline)  # nobody knows what they take: then every partition waits
    gone = [] if silent else [(instant, partition) for instant, partition in over if partition not in busy]
    most = options.get(keys.TTL_MAX)
    expired = {partition: instant for instant, partition in gone[:most]}
    unknown = len(of_creation) - len(created)
    first = silent[0].time if silent else ""
    return TtlPlan(rules, expired, max(0, len(gone) - most), unknown, len(over) - len(gone), first)


def _last_written(snapshot: Snapshot, selected: Iterable[str]) -> dict[str, str]:
    """The newest instant among the files of each partition's newest slices; partitions without rows have none."""
    chosen = [name.strip().strip("/") for name in selected] or None
    slices = snapshot.slices(chosen)
    found: dict[str, str] = {}
    columns = (slices[name].to_pylist() for name in ("partition_path", "base_instant", "log_files"))
    for partition, base, logs in zip(*columns, strict=True):
        if chosen is None or partition in chosen:
            parsed = [parse_log_file(name) for name in logs]
            times = [base, *(one.instant for one in parsed if one is not None)]
            found[partition] = max([found.get(partition, ""), *times])
    return {partition: time for partition, time in found.items() if time not in OF_BOOTSTRAPS}


def _created(storage: Storage, partitions: Iterable[str]) -> dict[str, str]:
    """The write that made each partition, as far as its metafile tells."""
    names = list(partitions)
    with pool(_AT_ONCE, "metafile") as threads:
        times = list(threads.map(lambda partition: _created_at(storage, partition), names))
    return {partition: time for partition, time in zip(names, times, strict=True) if time}


def _created_at(storage: Storage, partition: str) -> str:
    try:
        found = decode_properties(storage.read(join(partition, PARTITION_METAFILE))).get(_CREATED, "")
        parse_instant(found, None)
    except (NotFound, ConfigError, CorruptFileError):  # one in another format, or of another tool: it is not known to be old
        return ""
    return found


def expire(session: WriteSession, *, dry_run: bool = False) -> TtlReport:
    """Take the partitions that have outlived their time out of the table.

    Args:
        session: The table.
        dry_run: Only plan.

    Raises:
        CommitConflict: Other writers were first, several times.
    """
    if dry_run:
        return TtlReport(plan(session, session.snapshot_now()))
    plans: list[TtlPlan] = []

    def choose(snapshot: Snapshot) -> list[str]:
        plans.append(plan(session, snapshot))
        return sorted(plans[-1].expired)

    report = delete_chosen_partitions(session, choose)
    return TtlReport(plans[-1], report if plans[-1].expired else None)
