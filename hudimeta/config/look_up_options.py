"""Options of how rows that are there are found by their keys."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = [
    "BLOOM_FPP",
    "BLOOM_IN_FILES",
    "BLOOM_MOST_KEYS",
    "BLOOM_MOVES",
    "BLOOM_TYPE",
    "BUCKET_COUNT",
    "BUCKET_ENGINE",
    "BUCKET_FIELDS",
    "BUCKET_RULES",
    "INDEX_ALLOW_FALLBACK",
    "INDEX_TYPE",
    "RECORD_INDEX_MOVES",
    "SIMPLE_MOVES",
]

INDEX_TYPE = OPTIONS.choice(
    "hoodie.index.type",
    None,
    [
        "SIMPLE",
        "GLOBAL_SIMPLE",
        "BLOOM",
        "GLOBAL_BLOOM",
        "RECORD_INDEX",
        "GLOBAL_RECORD_LEVEL_INDEX",
        "RECORD_LEVEL_INDEX",
        "RECORD_WINDOW",
        "BUCKET",
    ],
    "How existing rows are found by key; by default by the record index where the table has one that is proven complete, by "
    "the record window where it has that, else SIMPLE. Global ones and the record index look in every partition. A new table "
    "whose options ask for a record index gets one (Apache Hudi looks in the files instead, until "
    "`hoodie.metadata.record.index.enable` makes one).",
)
INDEX_ALLOW_FALLBACK = OPTIONS.flag(
    "hudimeta.index.allow.fallback",
    False,
    "Look keys up in the files when the index that was asked for cannot be used, and say so in the report, instead of failing.",
)
SIMPLE_MOVES = OPTIONS.flag(
    "hoodie.simple.index.update.partition.path",
    True,
    "GLOBAL_SIMPLE: a row whose partition changed leaves its old partition; false: it stays there and is updated.",
)
BLOOM_MOVES = OPTIONS.flag("hoodie.bloom.index.update.partition.path", True, "GLOBAL_BLOOM: the same.")
RECORD_INDEX_MOVES = OPTIONS.flag(
    "hoodie.record.index.update.partition.path",
    False,
    "Record index and record window: the same.",
    aliases=("hoodie.global.record.level.index.update.partition.path",),
)
BUCKET_ENGINE = OPTIONS.choice(
    "hoodie.index.bucket.engine",
    "SIMPLE",
    ["SIMPLE", "CONSISTENT_HASHING"],
    "BUCKET: a fixed number of buckets, or buckets written down for each partition of a merge-on-read table.",
)
BUCKET_COUNT = OPTIONS.bounded(
    "hoodie.bucket.index.num.buckets",
    256,
    1,
    100_000_000,
    "BUCKET: buckets of a partition. Every writer of the table must give the same number; it cannot be changed later.",
)
BUCKET_RULES = OPTIONS.text(
    "hoodie.bucket.index.partition.expressions",
    None,
    "BUCKET: other numbers of buckets for some partitions, as `<regular expression>,<buckets>;…`; the first that is found in a "
    "partition's path counts. Tables that are created with it keep it; Table.rescale_buckets changes it.",
)
BUCKET_FIELDS = OPTIONS.listing(
    "hoodie.bucket.index.hash.field", "BUCKET: key columns that decide about the bucket; all when not set."
)
BLOOM_IN_FILES = OPTIONS.flag(
    "hoodie.parquet.bloom.filter.enabled",
    True,
    "Base files carry a bloom filter over their keys; false counts where neither the index type (BLOOM, GLOBAL_BLOOM, "
    "RECORD_WINDOW) nor the metadata table needs it.",
)
BLOOM_FPP = OPTIONS.share("hoodie.index.bloom.fpp", 1e-9, "False positive rate of the bloom filter in base files.")
BLOOM_TYPE = OPTIONS.choice(
    "hoodie.bloom.index.filter.type", "DYNAMIC_V0", ["DYNAMIC_V0", "SIMPLE"], "Form of the bloom filter in base files."
)
BLOOM_MOST_KEYS = OPTIONS.count(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    100_000,
    "Keys that the bloom filter of a base file is sized for at most; beyond it more foreign keys pass.",
)
