"""The tables that histories begin with, each made once, and the locks under which they are written."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.testing.builders import SIMPLE_OPTIONS, simple_place, simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.testing.simulation.actors import Actor
from hudimeta.testing.simulation.faults import CALM
from hudimeta.testing.simulation.ledger import Named
from hudimeta.testing.simulation.scheduler import Scheduler
from hudimeta.testing.simulation.store import Files, StoreKind
from hudimeta.types import Action, Operation
from hudimeta.write.creation import create_table
from hudimeta.write.table_writer import write_rows

__all__ = ["Image", "Lock", "Manner", "TableKind", "image"]

_LEASE_S, _RENEW_S = 15, 5
_PACKAGE = "org.apache.hudi.client.transaction.lock."


class Lock(enum.Enum):
    """A lock that needs no server."""

    STORAGE = "StorageBasedLockProvider"
    FILE = "FileSystemBasedLockProvider"
    PROCESS = "InProcessLockProvider"

    @property
    def options(self) -> Mapping[str, str]:
        """With a lease and a life that a long stop outlasts."""
        return {
            "hoodie.write.lock.provider": _PACKAGE + self.value,
            "hoodie.write.lock.storage.validity.timeout.secs": str(_LEASE_S),
            "hoodie.write.lock.storage.renew.interval.secs": str(_RENEW_S),
            "hoodie.write.lock.filesystem.expire": "1",
        }

    @property
    def clocks_differ_ms(self) -> int:
        """By how much clocks may be wrong: a lease counts on clocks that differ by half a second at most."""
        return {Lock.STORAGE: 200, Lock.FILE: 10_000, Lock.PROCESS: 3_600_000}[self]


class Manner(enum.Enum):
    """How the writers of a history get along."""

    NOT_SAID = "by default"
    OPTIMISTIC = "optimistic"
    EARLY = "optimistic, conflicts seen early"
    NON_BLOCKING = "without blocking"

    @property
    def options(self) -> Mapping[str, str]:
        """Of all writes."""
        mode = "NON_BLOCKING" if self is Manner.NON_BLOCKING else "OPTIMISTIC"
        said = {} if self is Manner.NOT_SAID else {"hoodie.write.concurrency.mode": f"{mode}_CONCURRENCY_CONTROL"}
        early = {"hoodie.write.concurrency.early.conflict.detection.enable": str(self is Manner.EARLY).lower()}
        return said | early


_WINDOW = {"hudimeta.record.window.days": "3"}
"""An index of the keys of all partitions, since they name no days."""
_BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


class TableKind(enum.Enum):
    """A table to begin with."""

    COPY = "copy-on-write"
    COPY_INDEXED = "copy-on-write with a record index"
    MERGE = "merge-on-read"
    MERGE_INDEXED = "merge-on-read with a record index"
    COPY_CDC = "copy-on-write that captures changes, with a record window"
    MERGE_CDC = "merge-on-read that captures changes, with a record window"
    BUCKETS = "merge-on-read by buckets"
    BUCKETS_LATEST = "merge-on-read by buckets, where the last commit wins"
    BUCKETS_CDC = "merge-on-read by buckets that captures changes"
    COPY_MANY = "copy-on-write with many indexes"
    MERGE_MANY = "merge-on-read with many indexes"

    @property
    def is_mor(self) -> bool:
        """Whether there may be log files to compact."""
        return self not in (TableKind.COPY, TableKind.COPY_INDEXED, TableKind.COPY_CDC, TableKind.COPY_MANY)

    @property
    def has_buckets(self) -> bool:
        """Whether keys are placed by their hash."""
        return self in (TableKind.BUCKETS, TableKind.BUCKETS_LATEST, TableKind.BUCKETS_CDC)

    @property
    def has_many(self) -> bool:
        """Whether there are indexes of all kinds."""
        return self in (TableKind.COPY_MANY, TableKind.MERGE_MANY)

    @property
    def captures_changes(self) -> bool:
        """Whether there are changes to read."""
        return self in (TableKind.COPY_CDC, TableKind.MERGE_CDC, TableKind.BUCKETS_CDC)

    @property
    def options(self) -> Mapping[str, str]:
        """Of the table and of all writes: few indexes, and services that find something to do."""
        indexed = self.has_many or self in (TableKind.COPY_INDEXED, TableKind.MERGE_INDEXED)
        many = str(self.has_many).lower()
        return {
            **SIMPLE_OPTIONS,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.is_mor else "COPY_ON_WRITE",
            "hoodie.metadata.record.index.enable": str(indexed).lower(),
            "hoodie.metadata.record.index.min.filegroup.count": "1",
            "hoodie.metadata.index.column.stats.enable": many,
            "hoodie.metadata.index.partition.stats.enable": "false",
            "hoodie.metadata.index.column.stats.file.group.count": "1",
            "hoodie.metadata.index.expression.file.group.count": "1",
            "hoodie.metadata.index.bloom.filter.file.group.count": "1",
            "hoodie.metadata.compact.max.delta.commits": "5",
            "hoodie.clean.commits.retained": "1",
            "hoodie.log.compaction.blocks.threshold": "2",
            "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
            "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            **({"hoodie.metadata.index.secondary.column": "ts"} if self.has_many else {}),
            **({"hoodie.table.cdc.enabled": "true"} if self.captures_changes else {}),
            **(_WINDOW if self.captures_changes and not self.has_buckets else {}),
            **(_BUCKETS if self.has_buckets else {}),
            **({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"} if self is TableKind.BUCKETS_LATEST else {}),
        }


@dataclass(frozen=True)
class Image:
    """A table before a history: its files, what it held after each write, and the options of its writers."""

    files: Files
    moments: Mapping[Named, ModelTable]
    options: Mapping[str, str]


@cache
def image(kind: TableKind) -> Image:
    """A table of four commits; for every history of a process the same."""
    scheduler = Scheduler(100_000)
    scheduler.now -= 1_000_000
    files = Files(scheduler.now_ms)
    model = ModelTable(simple_place, None if kind is TableKind.BUCKETS_LATEST else "ts")
    written = Action.DELTA_COMMIT if kind.is_mor else Action.COMMIT
    moments: dict[Named, ModelTable] = {}
    steps = [
        (Operation.INSERT, simple_rows(range(6), 1)),
        (Operation.UPSERT, simple_rows([0, 1, 2], 1, 2.0)),
        (Operation.UPSERT, simple_rows([1, 3, 4], 1, 3.0)),
        (Operation.UPSERT, simple_rows([0, 5], 1, 4.0)),
    ]

    def make(me: Actor) -> None:
        options = OPTIONS.read(kind.options)
        create_table(me.storage, steps[0][1].schema, options)
        for operation, rows in steps:
            report = write_rows(WriteSession(me.storage, options, engine=LocalEngine(1)), operation, rows)
            model.write(operation, rows)
            moments[report.instant, written] = model.copy()

    scheduler.run([Actor("maker", kind.name, scheduler, files, StoreKind.OBJECT_STORE, CALM, [], make)])
    return Image(files, moments, kind.options)
