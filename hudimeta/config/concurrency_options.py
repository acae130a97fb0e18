"""Options of writers beside each other: how they share a table, who gives way, and when a conflict is noticed."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = [
    "CONCURRENCY_MODE",
    "CONFLICT_MAX_WAIT_MS",
    "CONFLICT_RETRIES",
    "CONFLICT_STRATEGY",
    "CONFLICT_WAIT_MS",
    "EARLY_CHECKS_COMMITS",
    "EARLY_DELAY_MS",
    "EARLY_DETECTION",
    "EARLY_PERIOD_MS",
    "EARLY_STRATEGY",
    "HEARTBEAT_MISSES",
    "HEARTBEAT_MS",
]

_STRATEGIES = (
    "SimpleConcurrentFileWritesConflictResolutionStrategy",
    "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
    "PreferWriterConflictResolutionStrategy",
)
_EARLY = (
    "SimpleDirectMarkerBasedDetectionStrategy",
    "SimpleTransactionDirectMarkerBasedDetectionStrategy",
    "AsyncTimelineServerBasedDetectionStrategy",
)

CONCURRENCY_MODE = OPTIONS.choice(
    "hoodie.write.concurrency.mode",
    None,
    ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"],
    "How writers share the table. Each takes the lock and checks for conflicts, whatever the mode; in the last two, as in "
    "Apache Hudi, what dead writers left is rolled back by the next clean. The last one lets writers of a merge-on-read table "
    "with a simple bucket index or a record index add to the same file groups without a conflict.",
)
CONFLICT_STRATEGY = OPTIONS.java_class(
    "hoodie.write.lock.conflict.resolution.strategy",
    _STRATEGIES[0],
    _STRATEGIES,
    "Who gives way: a write that meets another one at the same rows; with the last one also a compaction where a write is at "
    "work. The second one, for tables with a bucket index, is the first one there.",
)
CONFLICT_RETRIES = OPTIONS.number(
    "hoodie.write.num.retries.on.conflict.failures",
    2,
    "How often a write that met another one at the same rows is tried again from its input, which is kept or computed anew; "
    "Apache Hudi does not unless it is given. A stream that is read once, and needs more than one portion, is not.",
)
CONFLICT_WAIT_MS = OPTIONS.number(
    "hudimeta.write.conflict.wait.ms",
    50,
    "How long a write waits before it is tried again after a conflict, in milliseconds: half of it at least, the rest by "
    "chance, and twice as long each further time.",
)
CONFLICT_MAX_WAIT_MS = OPTIONS.number("hudimeta.write.conflict.max.wait.ms", 5_000, "The longest such wait, in milliseconds.")
EARLY_DETECTION = OPTIONS.flag(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    False,
    "Before a write rewrites or adds to a file group it looks whether an earlier one that is not finished has marked it, and "
    "gives way at once. Needs OPTIMISTIC_CONCURRENCY_CONTROL.",
)
EARLY_STRATEGY = OPTIONS.java_class(
    "hoodie.write.concurrency.early.conflict.detection.strategy",
    _EARLY[0],
    _EARLY,
    "When markers are looked at: before each file, as both of the first two mean, or with the last one from time to time.",
)
EARLY_CHECKS_COMMITS = OPTIONS.flag(
    "hoodie.write.concurrency.early.conflict.check.commit.conflict",
    False,
    "Early detection: look at the commits that were completed meanwhile, too.",
)
EARLY_DELAY_MS = OPTIONS.number(
    "hoodie.write.concurrency.async.conflict.detector.initial_delay_ms",
    0,
    "AsyncTimelineServerBasedDetectionStrategy: how long a process writes before it looks, in milliseconds.",
)
EARLY_PERIOD_MS = OPTIONS.number(
    "hoodie.write.concurrency.async.conflict.detector.period_ms",
    30_000,
    "AsyncTimelineServerBasedDetectionStrategy: how long it then writes between two looks, in milliseconds.",
)
HEARTBEAT_MS = OPTIONS.bounded(
    "hoodie.client.heartbeat.interval_in_ms",
    60_000,
    1000,
    3_600_000,
    "How often a writer says that it lives, where no lock of the operating system shows it, in milliseconds. Every writer of "
    "the table must give the same.",
)
HEARTBEAT_MISSES = OPTIONS.count(
    "hoodie.client.heartbeat.tolerable.misses",
    2,
    "A writer that has not said so for as many intervals is taken for dead, but none before two minutes are over.",
)
