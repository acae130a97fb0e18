"""Every option that hudimeta knows, those of other modules among them, with its default: the source of docs/options.md."""

from __future__ import annotations

from hudimeta.config.bootstrap_options import *  # noqa: F403
from hudimeta.config.clustering_options import *  # noqa: F403
from hudimeta.config.concurrency_options import *  # noqa: F403
from hudimeta.config.ignored import declare_ignored
from hudimeta.config.lock_options import *  # noqa: F403
from hudimeta.config.look_up_options import *  # noqa: F403
from hudimeta.config.metrics_options import *  # noqa: F403
from hudimeta.config.not_done import declare_not_done
from hudimeta.config.passed_over import pass_over
from hudimeta.config.read_options import *  # noqa: F403
from hudimeta.config.registry import OPTIONS, Option
from hudimeta.config.service_options import *  # noqa: F403
from hudimeta.config.sql_options import *  # noqa: F403
from hudimeta.config.stream_options import *  # noqa: F403
from hudimeta.config.texts import parse_number
from hudimeta.config.window_options import *  # noqa: F403
from hudimeta.config.write_options import *  # noqa: F403
from hudimeta.types import MOST_GROUPS, MergeMode, TableType

__all__ = ["OPTIONS"]

# --- the table to create ----------------------------------------------------------------------------------------------

TABLE_NAME = OPTIONS.text(
    "hoodie.table.name",
    None,
    "Name of the table; needed when a write creates it.",
    aliases=("hoodie.datasource.write.table.name",),
)
DATABASE_NAME = OPTIONS.text("hoodie.database.name", None, "Database that the table belongs to.")
TABLE_TYPE = OPTIONS.choice(
    "hoodie.datasource.write.table.type",
    TableType.COPY_ON_WRITE.value,
    [t.value for t in TableType],
    "How updates are stored.",
    aliases=("hoodie.table.type", "hoodie.datasource.write.storage.type"),
)
TABLE_VERSION = OPTIONS.choice(
    "hoodie.write.table.version",
    "8",
    ["8", "9"],
    "Format version of a table that is created.",
    aliases=("hoodie.table.version",),
)
RECORD_KEY = OPTIONS.listing(
    "hoodie.datasource.write.recordkey.field",
    "Columns that identify a row; none gives generated keys.",
    aliases=("hoodie.table.recordkey.fields",),
)
PARTITION_PATH = OPTIONS.listing(
    "hoodie.datasource.write.partitionpath.field",
    "Columns that the table is partitioned by.",
    aliases=("hoodie.table.partition.fields",),
)
ORDERING = OPTIONS.listing(
    "hoodie.datasource.write.precombine.field",
    "Columns that decide which of two versions of a row is newer.",
    aliases=(
        "hoodie.table.ordering.fields",
        "hoodie.table.precombine.field",
        "hoodie.datasource.write.ordering.fields",
        "hoodie.payload.ordering.field",
    ),
)
MERGE_MODE = OPTIONS.choice(
    "hoodie.record.merge.mode",
    None,
    [mode.value for mode in MergeMode],
    "Which version wins; by default event time when there are ordering columns, else commit time. CUSTOM is what the payload "
    "class says.",
    aliases=("hoodie.write.record.merge.mode",),
)
PAYLOAD_CLASS = OPTIONS.text(
    "hoodie.datasource.write.payload.class",
    None,
    "How rows are merged, by the name of one of Hudi's own payload classes: DefaultHoodieRecordPayload, EventTimeAvroPayload, "
    "OverwriteWithLatestAvroPayload, PartialUpdateAvroPayload, OverwriteNonDefaultsWithLatestAvroPayload or AWSDmsAvroPayload.",
    aliases=("hoodie.compaction.payload.class",),
)
DELETE_FIELD = OPTIONS.text(
    "hoodie.payload.delete.field",
    None,
    "Column that marks rows as deletes, beside _hoodie_is_deleted. A table of version 9 keeps it from its creation or upgrade.",
)
DELETE_MARKER = OPTIONS.text("hoodie.payload.delete.marker", None, "What that column holds in a delete.")
KEY_GENERATOR = OPTIONS.text(
    "hoodie.datasource.write.keygenerator.type",
    None,
    "SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP, or CUSTOM with partition columns as column:SIMPLE or column:TIMESTAMP; found "
    "from the columns when not set.",
    aliases=("hoodie.table.keygenerator.type",),
)
KEY_GENERATOR_CLASS = OPTIONS.text(
    "hoodie.datasource.write.keygenerator.class",
    None,
    "The same by Java class name.",
    aliases=("hoodie.table.keygenerator.class",),
)
COMPLEX_KEY_ENCODING = OPTIONS.flag(
    "hoodie.write.complex.keygen.new.encoding",
    True,
    "A version 8 table with one key column and the key generator COMPLEX: keys are bare values, not column:value.",
)
TIMEZONE = OPTIONS.choice(
    "hoodie.table.timeline.timezone", None, ["UTC", "LOCAL"], "Zone of a table's instants: UTC where hudimeta creates it."
)
HIVE_STYLE = OPTIONS.flag("hoodie.datasource.write.hive_style_partitioning", False, "Partition folders are named column=value.")
URL_ENCODE = OPTIONS.flag(
    "hoodie.datasource.write.partitionpath.urlencode", False, "Escape special characters in partition folders."
)
DROP_PARTITION_COLUMNS = OPTIONS.flag(
    "hoodie.datasource.write.drop.partition.columns",
    False,
    "Leave partition columns out of the files: their values are taken from partition paths.",
)
POPULATE_META_FIELDS = OPTIONS.flag(
    "hoodie.populate.meta.fields",
    True,
    "Fill the _hoodie_* columns; false (virtual keys) computes keys when they are needed, and no incremental query tells rows.",
)
COLUMN_STATS = OPTIONS.flag("hoodie.metadata.index.column.stats.enable", True, "Keep column statistics in the metadata table.")
COLUMN_STATS_LIST = OPTIONS.listing(
    "hoodie.metadata.index.column.stats.column.list",
    "Columns to keep statistics of, dotted paths allowed; the first 32 when not set.",
)
COLUMN_STATS_MAX = OPTIONS.number(
    "hoodie.metadata.index.column.stats.max.columns.to.index", 32, "How many columns get statistics when no list is given."
)
COLUMN_STATS_GROUPS = OPTIONS.bounded(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    1,
    MOST_GROUPS,
    "File groups of the column statistics; fixed at creation.",
)
PARTITION_STATS = OPTIONS.flag(
    "hoodie.metadata.index.partition.stats.enable", True, "Keep statistics of whole partitions in the metadata table."
)
RECORD_INDEX = OPTIONS.flag(
    "hoodie.metadata.record.index.enable",
    False,
    "Keep a record index: which file group each record key lives in.",
    aliases=("hoodie.metadata.global.record.level.index.enable",),
)
RECORD_INDEX_BY_PARTITION = OPTIONS.flag(
    "hoodie.metadata.record.level.index.enable",
    False,
    "Keep a record index for each partition, where the same key in two partitions is two rows; from table version 9 on.",
)
RECORD_INDEX_MIN_GROUPS = OPTIONS.bounded(
    "hoodie.metadata.record.index.min.filegroup.count",
    10,
    0,
    MOST_GROUPS,
    "Fewest file groups of the record index and of a secondary index; fixed when the index is made.",
    aliases=("hoodie.metadata.global.record.level.index.min.filegroup.count",),
)
RECORD_INDEX_MAX_GROUPS = OPTIONS.bounded(
    "hoodie.metadata.record.index.max.filegroup.count",
    10_000,
    0,
    MOST_GROUPS,
    "Most file groups of the record index and of a secondary index.",
    aliases=("hoodie.metadata.global.record.level.index.max.filegroup.count",),
)
RECORD_INDEX_LEAST_OF_PARTITION = OPTIONS.bounded(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    1,
    1,
    MOST_GROUPS,
    "Fewest file groups of each partition in a record index by partition; one that a write begins gets so many, for good.",
    aliases=("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
)
RECORD_INDEX_MOST_OF_PARTITION = OPTIONS.bounded(
    "hoodie.metadata.record.level.index.max.filegroup.count",
    10,
    1,
    MOST_GROUPS,
    "Most file groups of each partition in a record index by partition, where it is built over rows that are there.",
    aliases=("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
)
RECORD_INDEX_GROWTH = OPTIONS.factor(
    "hoodie.metadata.record.index.growth.factor", 2.0, "So many times as many keys are planned for when the index is made."
)
RECORD_INDEX_GROUP_BYTES = OPTIONS.number(
    "hoodie.metadata.record.index.max.filegroup.size", 1 << 30, "Planned bytes of one file group of the record index."
)
SECONDARY_INDEX_COLUMNS = OPTIONS.listing(
    "hoodie.metadata.index.secondary.column",
    "Columns that get a secondary index each, which tells the rows that have a value; it needs the record index.",
)
INDEX_NAME = OPTIONS.text(
    "hoodie.index.name", None, "Name of the secondary index to make, where one column is named; the column's name when not set."
)
INDEX_PROOF_KEYS = OPTIONS.number(
    "hudimeta.index.proof.max.keys",
    1_000_000,
    "Of so many keys that a write inserts it is asked whether the record index knows them; beyond, it counts as unproven.",
)
BLOOM_FILTERS = OPTIONS.flag(
    "hoodie.metadata.index.bloom.filter.enable", False, "Keep the bloom filters of base files in the metadata table."
)
BLOOM_COLUMNS = OPTIONS.listing(
    "hoodie.metadata.index.bloom.filter.column.list",
    "Columns with bloom filters: only those of the record key have one. Other columns get one by an expression index.",
)
BLOOM_GROUPS = OPTIONS.bounded(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    1,
    MOST_GROUPS,
    "File groups of the bloom filters; fixed when they are built.",
)
EXPRESSION_GROUPS = OPTIONS.bounded(
    "hoodie.metadata.index.expression.file.group.count",
    2,
    1,
    MOST_GROUPS,
    "File groups of an expression index; fixed when it is built.",
)
INDEX_TIMEZONE = OPTIONS.text(
    "hudimeta.index.timezone",
    None,
    "Time zone in which expression indexes look at moments; when not given that in which the table's first one was built.",
)
SESSION_TIMEZONE = OPTIONS.text(
    "hudimeta.session.timezone",
    None,
    "That zone where nothing else names it; `HudiTable`, SQL and attached sessions give that of their session, as Hudi does.",
)
CDC_ENABLED = OPTIONS.flag("hoodie.table.cdc.enabled", False, "Write change files, for CDC queries; fixed at creation.")
CDC_MODE = OPTIONS.choice(
    "hoodie.table.cdc.supplemental.logging.mode",
    "DATA_BEFORE_AFTER",
    ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"],
    "What a change file keeps of a change: the less, the more a CDC query looks up in files, which a clean may have removed.",
)

# --- the write --------------------------------------------------------------------------------------------------------

OPERATION = OPTIONS.choice(
    "hoodie.datasource.write.operation",
    "upsert",
    ["insert", "upsert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition"],
    "What a write does with its rows.",
)
PARTITIONS_TO_DELETE = OPTIONS.listing(
    "hoodie.datasource.write.partitions.to.delete",
    "Partitions that a delete_partition drops, `*` stands for any text; those of the rows when not set.",
)
OVERWRITTEN_PARTITIONS = OPTIONS.listing(
    "hoodie.static.overwrite.partition.paths",
    "Partitions that an insert_overwrite replaces, also where it brings no row for them; those of the rows when not set.",
)
SCHEMA_WIDEN = OPTIONS.choice(
    "hudimeta.schema.widen",
    "safe",
    ["safe", "any"],
    "Which types a column may take from rows: wider ones of its kind, or text too, as hoodie.schema.on.read.enable=true says.",
)
NULL_FOR_MISSING = OPTIONS.flag(
    "hoodie.write.set.null.for.missing.columns",
    True,
    "Fill columns that the rows lack with null; false refuses such rows.",
)
COMBINE_BEFORE_INSERT = OPTIONS.flag("hoodie.combine.before.insert", False, "Keep one row a key among the rows of an insert.")
COMBINE_BEFORE_UPSERT = OPTIONS.flag("hoodie.combine.before.upsert", True, "Keep one row a key among the rows of an upsert.")
INSERT_DROP_DUPLICATES = OPTIONS.flag(
    "hoodie.datasource.write.insert.drop.duplicates",
    False,
    "Keep one row a key among inserted rows and drop those whose key the table has; an upsert with it is an insert.",
)
INSERT_DUPLICATES = OPTIONS.choice(
    "hoodie.datasource.insert.dup.policy",
    "none",
    ["none", "drop", "fail"],
    "What an insert does with rows whose key the table has: store them beside the others, drop them, or fail. "
    "With drop or fail a DataFrame's upsert is an insert.",
)
BULK_SORT_MODE = OPTIONS.choice(
    "hoodie.bulkinsert.sort.mode",
    "NONE",
    ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"],
    "Order of a bulk insert's rows: as given, or by partition and record key. Files never mix partitions in any mode. A "
    "clustering without columns of its own sorts so, too.",
)
BULK_SORT_COLUMNS = OPTIONS.listing(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    "Columns by which a bulk insert, or a clustering without columns of its own, sorts the rows of each partition, instead of "
    "the sort mode.",
)
MAX_FILE_SIZE = OPTIONS.number("hoodie.parquet.max.file.size", 120 << 20, "Target size of a base file, in bytes.")
SMALL_FILE_LIMIT = OPTIONS.number(
    "hoodie.parquet.small.file.limit",
    100 << 20,
    "Base files smaller than this receive new rows before new files are made; 0 for never.",
)
SMALL_CANDIDATES: Option[int | None] = OPTIONS.add(
    Option(
        "hoodie.merge.small.file.group.candidates.limit",
        parse_number,
        None,
        "a whole number, 0 or more",
        "Merge-on-read tables: how many small base files of a partition, the smallest first, receive new rows in one write; "
        "all when not set, where Apache Hudi takes one. Of no meaning where new rows go to log files.",
    )
)
PORTION_BYTES = OPTIONS.number(
    "hudimeta.write.portion.bytes",
    256 << 20,
    "How much of a stream of batches a write takes into memory at a time, in bytes of Arrow; the rest waits on local disk.",
)
ROUTED_WRITES = OPTIONS.flag(
    "hudimeta.write.routed",
    True,
    "In an attached session df.write.save goes through Spark's executors; false leaves it to the Python data source.",
)
ROUTED_NEARBY_BYTES = OPTIONS.number(
    "hudimeta.write.routed.driver.bytes",
    8 << 20,
    "What is left of a routed write is done on the driver when it is about fewer bytes of Arrow rows and of files than this: a "
    "Spark job costs more. 0 leaves all of it to the executors.",
)
ROUTED_READ_FILES = OPTIONS.flag(
    "hudimeta.write.routed.read.files",
    True,
    "Tasks of a routed write read Parquet files themselves where a DataFrame of a classic session is nothing but their rows; "
    "false brings all rows through Spark.",
)
RECORD_SIZE_ESTIMATE = OPTIONS.count(
    "hoodie.copyonwrite.record.size.estimate", 1024, "Bytes a row, until files of the table tell."
)
SPLIT_BY_SIZE = OPTIONS.flag(
    "hoodie.copyonwrite.insert.auto.split",
    True,
    "New files of inserts and upserts have as many rows as their size allows; false counts the rows by the next option.",
)
SPLIT_ROWS = OPTIONS.count("hoodie.copyonwrite.insert.split.size", 500_000, "Rows of such a file, about.")
LOG_INSERTS = OPTIONS.flag(
    "hudimeta.log.inserts",
    False,
    "New rows of upserts and inserts go to the log files of small file groups, and new file groups begin with log files: no "
    "base file is written before a compaction. Apache Hudi's writers find such rows with a record or bucket index only.",
)
PARTIAL_UPDATES = OPTIONS.flag(
    "hoodie.spark.sql.merge.into.partial.updates",
    False,
    "Updates of merge-on-read tables, and merges without inserts, log only the columns that they set (Hudi's default: true), "
    "in version 8 by event time only.",
)
METADATA_COMPACT_AFTER = OPTIONS.number(
    "hoodie.metadata.compact.max.delta.commits", 10, "Compact the metadata table after so many of its delta commits."
)
FAILED_WRITES = OPTIONS.choice(
    "hoodie.clean.failed.writes.policy",
    "EAGER",
    ["EAGER", "LAZY", "NEVER"],
    "Who rolls back what dead writers left: the next write, the next clean, or only recover().",
    aliases=("hoodie.cleaner.policy.failed.writes",),
)
EMPTY_COMMIT = OPTIONS.flag(
    "hoodie.allow.empty.commit",
    False,
    "A write of no rows that overwrites nothing is a commit, too, as it is by default in Apache Hudi; else it leaves nothing "
    "on the timeline.",
)
EXTRA_METADATA_PREFIX = OPTIONS.text(
    "hoodie.datasource.write.commitmeta.key.prefix", "_", "Options with this prefix are stored in the commit's metadata."
)
ROLLING_KEYS = OPTIONS.listing(
    "hoodie.write.rolling.metadata.keys",
    "Entries of the commit's metadata that go from commit to commit: one that a write does not bring is that of the newest "
    "commit which has it.",
)
ROLLING_LOOKBACK = OPTIONS.count(
    "hoodie.write.rolling.metadata.timeline.lookback.commits", 10, "How many commits are looked at for them."
)

declare_not_done(OPTIONS)
declare_ignored(OPTIONS)
pass_over(OPTIONS)
