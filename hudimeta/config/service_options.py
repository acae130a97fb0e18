"""Options of compaction, cleaning and archival."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS, Option
from hudimeta.config.texts import parse_whole

__all__ = [
    "ARCHIVE_ASYNC",
    "ARCHIVE_AUTOMATIC",
    "ARCHIVE_BEYOND_SAVEPOINT",
    "ARCHIVE_MAX",
    "ARCHIVE_MIN",
    "CLEAN_AFTER",
    "CLEAN_ASYNC",
    "CLEAN_AUTOMATIC",
    "CLEAN_COMMITS",
    "CLEAN_HOURS",
    "CLEAN_EMPTY_HOURS",
    "CLEAN_INCREMENTAL",
    "CLEAN_MOST_COMMITS",
    "CLEAN_PARTITIONS",
    "CLEAN_PATTERN",
    "CLEAN_POLICY",
    "CLEAN_VERSIONS",
    "COMPACT_AFTER",
    "COMPACT_ASYNC",
    "COMPACT_AFTER_S",
    "COMPACT_DAYS",
    "COMPACT_INLINE",
    "COMPACT_LEAST_LOGS",
    "COMPACT_LEAST_LOG_BYTES",
    "COMPACT_SCHEDULE",
    "COMPACT_REGEX",
    "COMPACT_STRATEGY",
    "COMPACT_TARGET_IO",
    "COMPACT_TRIGGER",
    "LOG_BLOCKS",
    "LOG_COMPACT_ENABLE",
    "LOG_COMPACT_INLINE",
    "SERVICES",
    "TTL_DAYS",
    "TTL_INLINE",
    "TTL_MAX",
    "TTL_RULES",
    "TTL_SELECTED",
    "TTL_STRATEGY",
]

SERVICES = OPTIONS.flag(
    "hoodie.table.services.enabled", True, "Run the services below after writes; false leaves all of them to be called."
)
COMPACT_INLINE = OPTIONS.flag("hoodie.compact.inline", False, "Compact a merge-on-read table after writes, when it is due.")
COMPACT_ASYNC = OPTIONS.flag(
    "hoodie.datasource.compaction.async.enable",
    False,
    "Compact a merge-on-read table after writes, when it is due, in a thread of its writer; Hudi's streams do unasked.",
)
COMPACT_AFTER = OPTIONS.number(
    "hoodie.compact.inline.max.delta.commits", 5, "Delta commits after which an inline compaction is due."
)
COMPACT_TRIGGER = OPTIONS.choice(
    "hoodie.compact.inline.trigger.strategy",
    "NUM_COMMITS",
    ["NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"],
    "When an inline compaction is due: by delta commits since the last one (or since the last plan), by time, or by both.",
)
COMPACT_AFTER_S = OPTIONS.number(
    "hoodie.compact.inline.max.delta.seconds", 3600, "Seconds since the last compaction after which one is due by time."
)
COMPACT_SCHEDULE = OPTIONS.flag(
    "hoodie.compact.schedule.inline", False, "Plan a compaction after writes, when it is due, and leave it to be run."
)
COMPACT_STRATEGY = OPTIONS.java_classes(
    "hoodie.compaction.strategy",
    "LogFileSizeBasedCompactionStrategy",
    [
        "LogFileSizeBasedCompactionStrategy",
        "LogFileNumBasedCompactionStrategy",
        "BoundedIOCompactionStrategy",
        "UnBoundedCompactionStrategy",
        "DayBasedCompactionStrategy",
        "BoundedPartitionAwareCompactionStrategy",
        "UnBoundedPartitionAwareCompactionStrategy",
        "PartitionRegexBasedCompactionStrategy",
    ],
    "Which slices a compaction takes, by the name of one of Hudi's own classes, with or without its package; of several, "
    "separated by commas, each takes of what the one before leaves.",
)
COMPACT_REGEX = OPTIONS.text(
    "hoodie.compaction.partition.path.regex",
    None,
    "PartitionRegexBasedCompactionStrategy: only partitions in whose paths this pattern is found.",
)
COMPACT_TARGET_IO = OPTIONS.number(
    "hoodie.compaction.target.io", 512_000, "What one compaction may read and write, in MB; a single slice may exceed it."
)
COMPACT_LEAST_LOG_BYTES = OPTIONS.number(
    "hoodie.compaction.logfile.size.threshold", 0, "Log bytes below which a slice is not compacted."
)
COMPACT_LEAST_LOGS = OPTIONS.number(
    "hoodie.compaction.logfile.num.threshold", 0, "Log files below which a slice is not compacted, by number of log files."
)
COMPACT_DAYS = OPTIONS.number(
    "hoodie.compaction.daybased.target.partitions",
    10,
    "Newest partitions that a compaction by days takes; days before today that one aware of partitions does.",
)
LOG_COMPACT_ENABLE = OPTIONS.flag(
    "hoodie.log.compaction.enable", False, "Maintenance merges the logs of slices that have many blocks, when it is due."
)
LOG_COMPACT_INLINE = OPTIONS.flag(
    "hoodie.log.compaction.inline", False, "Merge the logs of slices that have many blocks after writes, when it is due."
)
LOG_BLOCKS = OPTIONS.count(
    "hoodie.log.compaction.blocks.threshold", 5, "Log blocks from which a log compaction merges those of a slice."
)
CLEAN_POLICY = OPTIONS.choice(
    "hoodie.clean.policy",
    "KEEP_LATEST_COMMITS",
    ["KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS"],
    "What cleaning keeps.",
    aliases=("hoodie.cleaner.policy",),
)
CLEAN_COMMITS = OPTIONS.number(
    "hoodie.clean.commits.retained", 10, "Commits whose moments stay readable.", aliases=("hoodie.cleaner.commits.retained",)
)
CLEAN_HOURS = OPTIONS.number(
    "hoodie.clean.hours.retained", 24, "Hours whose commits stay readable.", aliases=("hoodie.cleaner.hours.retained",)
)
CLEAN_VERSIONS = OPTIONS.number(
    "hoodie.clean.fileversions.retained",
    3,
    "Slices of each file group that stay.",
    aliases=("hoodie.cleaner.fileversions.retained",),
)
CLEAN_AUTOMATIC = OPTIONS.flag("hoodie.clean.automatic", True, "Clean after writes, when commits have come to be unneeded.")
CLEAN_ASYNC = OPTIONS.flag(
    "hoodie.clean.async.enabled",
    False,
    "Automatic cleans run in a thread of the writer's process.",
    aliases=("hoodie.clean.async",),
)
CLEAN_AFTER = OPTIONS.number(
    "hoodie.clean.trigger.max.commits",
    1,
    "Commits since the last clean after which an automatic clean looks again.",
    aliases=("hoodie.clean.max.commits",),
)
CLEAN_INCREMENTAL = OPTIONS.flag(
    "hoodie.clean.incremental.enabled",
    True,
    "A clean looks only at partitions that were written to since the last one.",
    aliases=("hoodie.cleaner.incremental.mode",),
)
CLEAN_MOST_COMMITS = OPTIONS.count(
    "hoodie.clean.max.commits.to.clean",
    (1 << 63) - 1,
    "So many commits at most leave the readable past by one clean, which bounds what a clean after a long time does.",
    aliases=("hoodie.cleaner.max.commits.clean",),
)
CLEAN_PARTITIONS = OPTIONS.listing(
    "hoodie.clean.partition.filter.selected",
    "Clean only these partitions, by their paths; needs hoodie.clean.incremental.enabled=false.",
    aliases=("hoodie.cleaner.partition.filter.selected",),
)
CLEAN_PATTERN = OPTIONS.text(
    "hoodie.clean.partition.filter.regex",
    None,
    "Clean only partitions that this pattern matches as a whole; needs hoodie.clean.incremental.enabled=false.",
    aliases=("hoodie.cleaner.partition.filter.regex",),
)
CLEAN_EMPTY_HOURS = OPTIONS.add(
    Option(
        "hoodie.write.empty.clean.interval.hours",
        parse_whole,
        -1,
        "a whole number",
        "Hours after which a clean that deletes nothing is recorded, so that the next one begins there; never with 0 and less.",
    )
)
TTL_INLINE = OPTIONS.flag(
    "hoodie.partition.ttl.inline", False, "Take partitions that have outlived their time out of the table after writes."
)
TTL_STRATEGY = OPTIONS.choice(
    "hoodie.partition.ttl.management.strategy.type",
    "KEEP_BY_TIME",
    ["KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"],
    "From when a partition's time runs: from the last write to it, or from its first one.",
)
TTL_DAYS = OPTIONS.add(
    Option(
        "hoodie.partition.ttl.strategy.days.retain",
        parse_whole,
        -1,
        "a whole number",
        "Days for which partitions are kept; for ever with 0 and less.",
    )
)
TTL_SELECTED = OPTIONS.listing(
    "hoodie.partition.ttl.strategy.partition.selected", "Partitions whose time runs, by their paths; all when not set."
)
TTL_RULES = OPTIONS.text(
    "hudimeta.partition.ttl.rules",
    None,
    "Other days for some partitions, as `<regular expression>,<days>[,<strategy>];…`; the first that is found in a partition's "
    "path counts, and 0 days keep it for ever.",
)
TTL_MAX = OPTIONS.count(
    "hoodie.partition.ttl.strategy.max.delete.partitions",
    1000,
    "Partitions that one expiry takes out, the oldest first.",
)
ARCHIVE_AUTOMATIC = OPTIONS.flag(
    "hoodie.archive.automatic", True, "After writes, move old instants from the active timeline to its history, when it is due."
)
ARCHIVE_ASYNC = OPTIONS.flag("hoodie.archive.async", False, "Automatic archivals run in a thread of the writer's process.")
ARCHIVE_BEYOND_SAVEPOINT = OPTIONS.flag(
    "hoodie.archive.beyond.savepoint",
    False,
    "Archival steps over savepointed commits instead of stopping at the first; then the table cannot be restored.",
)
ARCHIVE_MAX = OPTIONS.number("hoodie.keep.max.commits", 30, "More commits than this on the active timeline start an archival.")
ARCHIVE_MIN = OPTIONS.number(
    "hoodie.keep.min.commits",
    20,
    "Commits that an archival leaves on the active timeline. It and the maximum rise where automatic cleaning retains more.",
)
