"""How the writers of one table get along, as their options say it; contradictions are refused before anything is written.

    mode (`hoodie.write.concurrency.mode`)    not set, SINGLE_WRITER    the lock is taken and conflicts are checked all the same
                                              OPTIMISTIC_…              and dead writers are left to the next clean, instants
                                                                        are chosen under the lock
                                              NON_BLOCKING_…            and log files of the same file group are no conflict

As Apache Hudi 1.0.2 to 1.2.0: a mode for several writers sets the policy of failed writes to LAZY, whatever is given; early
detection needs the optimistic mode; the non-blocking one needs a merge-on-read table with simple buckets. Ours takes a record
index as well.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.no_blocking import NonBlocking
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import machine
from hudimeta.errors import ConfigError
from hudimeta.indexes.choice import named_index
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.table.properties import TableProperties
from hudimeta.types import TableType

__all__ = ["Concurrency", "EarlyDetection", "ConcurrencyMode", "beat_s"]

_INDEXES = ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX")
_BUCKET = "BUCKET"
_TICK_S = 0.001
"""Instants are milliseconds: the next one to read the clock under the lock reads a later one."""


class ConcurrencyMode(enum.Enum):
    """See the module; the value is the option's."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"


@dataclass(frozen=True)
class EarlyDetection:
    """When a write looks for others at the same file groups.

    Attributes:
        checks_commits: It looks at completed commits, too.
        delay_s: Seconds after which it looks first; 0 for at once.
        period_s: Seconds between two looks; 0 for before each file.
        patience_s: Seconds that others may be silent, if they are more than is usual.
    """

    checks_commits: bool
    delay_s: float = 0.0
    period_s: float = 0.0
    patience_s: float = 0.0


@dataclass(frozen=True)
class Concurrency:
    """What the options of a write say.

    Attributes:
        mode: See the module.
        failed_writes: EAGER, LAZY or NEVER: who rolls back what dead writers left.
        prefers_writers: Services give way to writers.
        early: None for no early detection.
        non_blocking: What is a conflict where log files of the same file group are none; None for another mode.
        beat_s: Seconds between two beats of a writer; None for what is usual.
        patience_s: Seconds that a writer may be silent, if they are more than is usual.
    """

    mode: ConcurrencyMode = ConcurrencyMode.SINGLE_WRITER
    failed_writes: str = "EAGER"
    prefers_writers: bool = False
    early: EarlyDetection | None = None
    non_blocking: NonBlocking | None = None
    beat_s: float | None = None
    patience_s: float = 0.0

    @contextlib.contextmanager
    def choosing_an_instant(self, lock: TableLock) -> Iterator[None]:
        """Around the choice of a write's instant, until its requested file is there.

        Apache Hudi reads the clock under the lock and makes the file later, and its write fails where that is there already. A
        mode for several writers keeps its turn and ours apart; without one our own writers settle it among themselves.

        Args:
            lock: Of the table.
        """
        if self.mode is ConcurrencyMode.SINGLE_WRITER:
            with lock.alone_here():
                yield
            return
        with lock.held():
            yield
            machine.pause(_TICK_S)

    @classmethod
    def of(cls, options: Options, properties: TableProperties) -> Concurrency:
        """What the options mean for a table.

        Raises:
            ConfigError: They contradict each other or the table.
        """
        mode = ConcurrencyMode(options.get(keys.CONCURRENCY_MODE) or ConcurrencyMode.SINGLE_WRITER.value)
        several = mode is not ConcurrencyMode.SINGLE_WRITER
        bucketed = named_index(options, properties) == _BUCKET
        strategy = options.get(keys.CONFLICT_STRATEGY)
        if strategy.startswith("BucketIndex") and not bucketed:
            allowed = "a strategy that fits the table's index"
            raise ConfigError(keys.CONFLICT_STRATEGY.key, strategy, allowed, "Leave it out: the table has no bucket index.")
        return cls(
            mode,
            "LAZY" if several else options.get(keys.FAILED_WRITES) or "EAGER",
            strategy.startswith("PreferWriter"),
            _early(options, mode),
            _non_blocking(options, properties) if mode is ConcurrencyMode.NON_BLOCKING else None,
            beat_s(options),
            _patience_s(options),
        )


def beat_s(options: Options) -> float | None:
    """Seconds between two beats of a writer, where the options say it."""
    return options.get(keys.HEARTBEAT_MS) / 1000 if keys.HEARTBEAT_MS.key in options.texts else None


def _patience_s(options: Options) -> float:
    given = {keys.HEARTBEAT_MS.key, keys.HEARTBEAT_MISSES.key} & options.texts.keys()
    return options.get(keys.HEARTBEAT_MS) / 1000 * options.get(keys.HEARTBEAT_MISSES) if given else 0.0


def _early(options: Options, mode: ConcurrencyMode) -> EarlyDetection | None:
    if not options.get(keys.EARLY_DETECTION):
        return None
    if mode is not ConcurrencyMode.OPTIMISTIC:
        given = options.get(keys.CONCURRENCY_MODE)
        hint = f"{keys.EARLY_DETECTION.key} needs it."
        raise ConfigError(keys.CONCURRENCY_MODE.key, given, ConcurrencyMode.OPTIMISTIC.value, hint)
    checks_commits = options.get(keys.EARLY_CHECKS_COMMITS)
    if not options.get(keys.EARLY_STRATEGY).startswith("Async"):
        return EarlyDetection(checks_commits, patience_s=_patience_s(options))
    delay_s, period_s = options.get(keys.EARLY_DELAY_MS) / 1000, options.get(keys.EARLY_PERIOD_MS) / 1000
    return EarlyDetection(checks_commits, delay_s, period_s, _patience_s(options))


def _non_blocking(options: Options, properties: TableProperties) -> NonBlocking:
    """Refuses tables in which the files of two writers would not go together."""

    def refuse(found: object, allowed: str, hint: str) -> None:
        raise ConfigError(keys.CONCURRENCY_MODE.key, f"{ConcurrencyMode.NON_BLOCKING.value} with {found}", allowed, hint)

    other = f"Use {ConcurrencyMode.OPTIMISTIC.value}."
    if properties.type is not TableType.MERGE_ON_READ:
        refuse(f"a {properties.type.value} table", "a MERGE_ON_READ table", other)
    index = named_index(options, properties)
    if not index and "record_index" in properties.metadata_partitions:
        index = _INDEXES[0]
    if index != _BUCKET and index not in _INDEXES:
        refuse(f"index {index or 'SIMPLE'}", "a simple bucket index or a record index", other)
    engine = options.get(keys.BUCKET_ENGINE) if options.is_set(keys.BUCKET_ENGINE) else properties.get(keys.BUCKET_ENGINE.key)
    if index == _BUCKET and engine == "CONSISTENT_HASHING":
        refuse("consistent hashing", "a simple bucket index or a record index", other)
    kept = [name for name in properties.metadata_partitions if name.startswith("secondary_index_")]
    if kept:
        # What a write tells it is the difference from what the row was before, as that write saw it.
        refuse(", ".join(kept), "a table without a secondary index", f"{other[:-1]}, or drop the index.")
    rules = MergeRules.from_properties(properties, options.texts)
    return NonBlocking.of(properties, rules, places_keys=index == _BUCKET)
