"""Options of clustering: when it is due, what one plan takes, and in which order rows are stored."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = [
    "BUCKETS_LEAST",
    "BUCKETS_MOST",
    "BUCKET_MERGE",
    "BUCKET_SPLIT",
    "CLUSTER_AFTER",
    "CLUSTER_ANY_COLUMNS",
    "CLUSTER_ASYNC",
    "CLUSTER_ASYNC_AFTER",
    "CLUSTER_BEGIN",
    "CLUSTER_DAYS",
    "CLUSTER_EARLIEST",
    "CLUSTER_END",
    "CLUSTER_EXECUTOR",
    "CLUSTER_EXPIRES",
    "CLUSTER_EXPIRES_AFTER",
    "CLUSTER_FILTER",
    "CLUSTER_GROUP_BYTES",
    "CLUSTER_INLINE",
    "CLUSTER_MOST_GROUPS",
    "CLUSTER_PARTITIONS",
    "CLUSTER_REGEX",
    "CLUSTER_ROLLBACK",
    "CLUSTER_SCHEDULE",
    "CLUSTER_SINGLE",
    "CLUSTER_SKIPPED_DAYS",
    "CLUSTER_SLICES_BY",
    "CLUSTER_SMALL",
    "CLUSTER_SORT",
    "CLUSTER_STRATEGY",
    "CLUSTER_TARGET",
    "CLUSTER_UPDATES",
    "LAYOUT_CURVE",
    "LAYOUT_SAMPLE",
    "LAYOUT_STRATEGY",
]

CLUSTER_INLINE = OPTIONS.flag(
    "hoodie.clustering.inline",
    False,
    "Cluster the table after writes, when it is due.",
    aliases=("hoodie.datasource.clustering.inline.enable",),
)
CLUSTER_SCHEDULE = OPTIONS.flag(
    "hoodie.clustering.schedule.inline", False, "Plan a clustering after writes, when it is due, and leave it to be run."
)
CLUSTER_AFTER = OPTIONS.number(
    "hoodie.clustering.inline.max.commits", 4, "Commits since the last clustering after which an inline one is due."
)
CLUSTER_ASYNC = OPTIONS.flag(
    "hoodie.clustering.async.enabled",
    False,
    "Cluster the table after writes, when it is due, in a thread of the writer's process.",
    aliases=("hoodie.datasource.clustering.async.enable",),
)
CLUSTER_ASYNC_AFTER = OPTIONS.number(
    "hoodie.clustering.async.max.commits", 4, "Commits since the last clustering after which one in a thread is due."
)
CLUSTER_STRATEGY = OPTIONS.java_class(
    "hoodie.clustering.plan.strategy.class",
    "SparkSizeBasedClusteringPlanStrategy",
    [
        "SparkSizeBasedClusteringPlanStrategy",
        "SparkRecentDaysClusteringPlanStrategy",
        "SparkSelectedPartitionsClusteringPlanStrategy",
        "SparkSingleFileSortPlanStrategy",
        "SparkStreamCopyClusteringPlanStrategy",
        "CommitBasedClusteringPlanStrategy",
        "SparkConsistentBucketClusteringPlanStrategy",
    ],
    "What a plan takes, by the name of one of Hudi's own classes: small files of all partitions, of the newest ones or of a "
    "range of them; small files each by itself; small files of the same columns together, to be copied; or what commits wrote, "
    "in their order (Apache Hudi knows these two from 1.2 on). A table in consistent hashing buckets always has the last one, "
    "which splits and merges buckets, as no other table has.",
)
CLUSTER_EXECUTOR = OPTIONS.java_class(
    "hoodie.clustering.execution.strategy.class",
    "SparkSortAndSizeExecutionStrategy",
    [
        "SparkSortAndSizeExecutionStrategy",
        "SparkSingleFileSortExecutionStrategy",
        "SparkBinaryCopyClusteringExecutionStrategy",
        "SparkStreamCopyClusteringExecutionStrategy",
        "SparkConsistentBucketClusteringExecutionStrategy",
    ],
    "What a plan names for whoever executes it, by the name of one of Hudi's own classes. The one of binary copies puts files "
    "together without decoding them, where rows are not sorted, files have the same columns and no log; Apache Hudi knows it "
    "from 1.1 on.",
)
BUCKETS_MOST = OPTIONS.number(
    "hoodie.bucket.index.max.num.buckets",
    0,
    "Consistent hashing: a clustering splits no bucket of a partition that has so many; 0 for as many as it began with.",
)
BUCKETS_LEAST = OPTIONS.number(
    "hoodie.bucket.index.min.num.buckets",
    0,
    "Consistent hashing: a clustering merges no buckets of a partition that has so few; 0 for as many as it began with.",
)
BUCKET_SPLIT = OPTIONS.factor(
    "hoodie.bucket.index.split.threshold",
    2.0,
    "Consistent hashing: a clustering splits a bucket that is so many times as large as hoodie.parquet.max.file.size.",
)
BUCKET_MERGE = OPTIONS.factor(
    "hoodie.bucket.index.merge.threshold",
    0.2,
    "Consistent hashing: a clustering merges neighbours that are smaller than so much of hoodie.parquet.max.file.size.",
)
CLUSTER_FILTER = OPTIONS.choice(
    "hoodie.clustering.plan.partition.filter.mode",
    "NONE",
    ["NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"],
    "Which partitions a plan looks at: all, the newest, a range of them, or those whose place in the sorted list falls on this "
    "hour of the day.",
)
CLUSTER_DAYS = OPTIONS.number(
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions", 2, "How many of the newest partitions RECENT_DAYS takes."
)
CLUSTER_SKIPPED_DAYS = OPTIONS.number(
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions", 0, "How many of the newest ones it leaves out."
)
CLUSTER_BEGIN = OPTIONS.text(
    "hoodie.clustering.plan.strategy.cluster.begin.partition", None, "Where SELECTED_PARTITIONS begins, itself included."
)
CLUSTER_END = OPTIONS.text("hoodie.clustering.plan.strategy.cluster.end.partition", None, "Where it ends, itself included.")
CLUSTER_REGEX = OPTIONS.text(
    "hoodie.clustering.plan.strategy.partition.regex.pattern", None, "Only partitions that this pattern matches as a whole."
)
CLUSTER_PARTITIONS = OPTIONS.listing(
    "hoodie.clustering.plan.strategy.partition.selected", "Only these partitions, by their paths."
)
CLUSTER_SMALL = OPTIONS.number(
    "hoodie.clustering.plan.strategy.small.file.limit", 300 << 20, "Base files smaller than this, in bytes, are clustered."
)
CLUSTER_TARGET = OPTIONS.count(
    "hoodie.clustering.plan.strategy.target.file.max.bytes", 1 << 30, "Bytes that a file of a clustering shall have at most."
)
CLUSTER_GROUP_BYTES = OPTIONS.count(
    "hoodie.clustering.plan.strategy.max.bytes.per.group",
    2 << 30,
    "Bytes of base files that are sorted together, in the memory of one task.",
)
CLUSTER_MOST_GROUPS = OPTIONS.count(
    "hoodie.clustering.plan.strategy.max.num.groups", 30, "Groups of one plan; the rest is left to the next."
)
CLUSTER_SINGLE = OPTIONS.flag(
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
    True,
    "Take a file that is alone in its group, too. Where columns to sort by are named, it always is taken.",
)
CLUSTER_SORT = OPTIONS.listing(
    "hoodie.clustering.plan.strategy.sort.columns",
    "Columns to sort by; without any, rows are sorted as hoodie.bulkinsert.sort.mode says.",
)
CLUSTER_SLICES_BY = OPTIONS.listing(
    "hoodie.clustering.plan.strategy.file.slices.sort.by",
    "In which order slices come into groups: SIZE, the largest first, as when it is not set; INSTANT_TIME, the oldest first; "
    "or both, the first of which counts first.",
)
CLUSTER_EARLIEST = OPTIONS.text(
    "hoodie.clustering.plan.strategy.earliest.commit.to.cluster",
    None,
    "CommitBasedClusteringPlanStrategy: only what commits after this instant wrote; not set, what all of the active timeline "
    "did.",
)
CLUSTER_ANY_COLUMNS = OPTIONS.flag(
    "hoodie.clustering.plan.strategy.binary.copy.schema.evolution.enable",
    False,
    "SparkStreamCopyClusteringPlanStrategy: take files of other columns together, too; these groups are decoded.",
)
CLUSTER_EXPIRES = OPTIONS.flag(
    "hoodie.clustering.enable.expirations",
    False,
    "Cleans and clusterings take plans of clusterings back that are older than the next option says, and that nobody runs.",
)
CLUSTER_EXPIRES_AFTER = OPTIONS.number(
    "hoodie.clustering.expiration.threshold.mins", 60, "Minutes after which the plan of a clustering is so old."
)
CLUSTER_UPDATES = OPTIONS.java_class(
    "hoodie.clustering.updates.strategy",
    "SparkRejectUpdateStrategy",
    ["SparkRejectUpdateStrategy", "SparkAllowUpdateStrategy"],
    "What becomes of a write that changes rows which a pending clustering is going to move: it is refused, or goes first, for "
    "which hoodie.clustering.rollback.pending.replacecommit.on.conflict must be true.",
)
CLUSTER_ROLLBACK = OPTIONS.flag(
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
    False,
    "With SparkAllowUpdateStrategy: the write takes the pending clustering back, unless somebody is running it.",
)
LAYOUT_STRATEGY = OPTIONS.choice(
    "hoodie.layout.optimize.strategy",
    "LINEAR",
    ["LINEAR", "ZORDER", "Z-ORDER", "HILBERT"],
    "In which order rows stand by several columns: by the first one, then the next, or along a curve that keeps all together.",
)
LAYOUT_CURVE = OPTIONS.choice(
    "hoodie.layout.optimize.curve.build.method",
    "SAMPLE",
    ["DIRECT", "SAMPLE"],
    "How values become places on the curve: by their distance from the smallest one, or by their rank in a sample, which evens "
    "out values that are not spread evenly.",
)
LAYOUT_SAMPLE = OPTIONS.count("hoodie.layout.optimize.build.curve.sample.size", 200_000, "Rows of that sample.")
