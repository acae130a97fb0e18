"""Options of how a write lays base files and log files out: compression, sizes, and what they tell of their keys."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = [
    "COMPRESSION",
    "DICTIONARIES",
    "LOG_BLOCK_BYTES",
    "LOG_BLOCK_FORMAT",
    "LOG_FILE_BYTES",
    "LOG_KEYS",
    "PAGE_BYTES",
    "ROW_GROUP_BYTES",
]

COMPRESSION = OPTIONS.choice(
    "hoodie.parquet.compression.codec",
    "zstd",
    ["zstd", "gzip", "snappy", "uncompressed"],
    "Compression of base files; Hudi's own default is gzip, which costs many times the CPU.",
)
ROW_GROUP_BYTES = OPTIONS.count(
    "hoodie.parquet.block.size",
    120 << 20,
    "Bytes of a row group of base files, about, as its rows take them in Arrow. Not set, it has 131,072 rows at most, too.",
)
PAGE_BYTES = OPTIONS.count(
    "hoodie.parquet.page.size",
    1 << 20,
    "Bytes of a page of base files, about, and 64 where it says less; a page has 8,192 rows at most.",
)
DICTIONARIES = OPTIONS.flag(
    "hoodie.parquet.dictionary.enabled", True, "Columns of base files whose values come again are written with dictionaries."
)
LOG_BLOCK_FORMAT = OPTIONS.choice(
    "hoodie.logfile.data.block.format",
    "parquet",
    ["parquet", "avro", "hfile"],
    "Form of the rows in log files of merge-on-read tables; Apache Hudi cannot read hfile in Spark. Not set, it is avro where "
    "columns were altered: Apache Hudi 1.2.0 finds no keys of a global index in slices with Parquet blocks then.",
)
LOG_BLOCK_BYTES = OPTIONS.number(
    "hoodie.logfile.data.block.max.size", 256 << 20, "Rows of one log block, in bytes of Arrow: more go to another block."
)
LOG_FILE_BYTES = OPTIONS.number(
    "hoodie.logfile.max.size", 1 << 30, "Bytes from which a commit goes on in another log file of the same file group."
)
LOG_KEYS = OPTIONS.flag(
    "hudimeta.log.keys",
    True,
    "Log files carry a bloom filter and the smallest and greatest of their keys, and what is known of the logs before them; "
    "look-ups and reads of single keys then pass over logs, and merges over blocks that later ones replace. False neither "
    "writes nor asks them.",
)
