"""Options of reading: where, what and when, and how much memory it may take."""

from __future__ import annotations

from hudimeta.config.column_names import parse_column_names
from hudimeta.config.option import Option
from hudimeta.config.registry import OPTIONS
from hudimeta.types import QueryType

__all__ = [
    "AS_OF",
    "COLUMNS",
    "DATA_SKIPPING",
    "FILTER",
    "HOLES",
    "INCREMENTAL_BEGIN",
    "INCREMENTAL_END",
    "INCREMENTAL_FALLBACK",
    "INCREMENTAL_FORMAT",
    "INDEX_TRUST",
    "INDEX_USE",
    "LEARN",
    "LISTED_SLICES",
    "MERGER",
    "MERGE_MEMORY",
    "LISTING_RETURNED",
    "METADATA_ENABLE",
    "META_COLUMNS_SHOWN",
    "OF_READS",
    "PARTITIONS",
    "PATH",
    "PLAN_CACHE",
    "PLAN_CACHE_BYTES",
    "PLAN_CACHE_DIR",
    "PLAN_CACHE_FROM",
    "QUERY_TYPE",
    "READ_CORRUPT",
    "RETRY_ON_CLEAN",
    "SCHEMA_ON_READ",
    "SPILL_FOLDER",
    "SPLIT_BYTES",
    "VALIDATE",
]

PATH = OPTIONS.text("path", None, "The table's folder: an absolute path or a URI.")
AS_OF = OPTIONS.text(
    "as.of.instant",
    None,
    "Time travel: an instant, or a date or time in the timeline's zone. Queries of changes refuse it.",
)
QUERY_TYPE = OPTIONS.choice(
    "hoodie.datasource.query.type",
    QueryType.SNAPSHOT.value,
    [q.value for q in QueryType],
    "What a read returns.",
    aliases=("hoodie.datasource.view.type",),
)
METADATA_ENABLE = OPTIONS.flag(
    "hoodie.metadata.enable", True, "Read: plan from the metadata table. Write: create the table with a metadata table."
)
FILTER = OPTIONS.text(
    "hudimeta.filter", None, "A SQL predicate in Spark's dialect: skips files and drops rows, as where would."
)
_COLUMNS_DOC = "Columns to read, in this order; all when not set. Names may stand between backticks, as in SQL."
_ALL: tuple[str, ...] = ()
COLUMNS = OPTIONS.add(Option("hudimeta.columns", parse_column_names, _ALL, "names separated by commas", _COLUMNS_DOC))
PARTITIONS = OPTIONS.text(
    "hudimeta.partitions",
    None,
    "Read only these partitions: their paths, or patterns of paths such as month=2026-* and {a,b}, separated by commas; a "
    "backslash takes the meaning from the next character.",
)
INCREMENTAL_BEGIN = OPTIONS.text(
    "hoodie.datasource.read.begin.instanttime",
    None,
    "Beginning of an incremental range, excluded: a completion time, or earliest.",
    aliases=("hoodie.datasource.read.start.timestamp",),
)
INCREMENTAL_END = OPTIONS.text(
    "hoodie.datasource.read.end.instanttime",
    None,
    "End of an incremental range, included; now when not set.",
    aliases=("hoodie.datasource.read.end.timestamp",),
)
INCREMENTAL_FORMAT = OPTIONS.choice(
    "hoodie.datasource.query.incremental.format",
    "latest_state",
    ["latest_state", "cdc"],
    "Rows that changed, or the changes themselves with their images.",
)
INCREMENTAL_FALLBACK = OPTIONS.flag(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    False,
    "An incremental range whose files are cleaned reads what today's table still has of it, instead of failing, and "
    "a query of changes those that are still known. Apache Hudi does so by default, in tables of version 8 and later.",
)
HOLES = OPTIONS.choice(
    "hoodie.read.timeline.holes.resolution.policy",
    "FAIL",
    ["FAIL", "BLOCK"],
    "An incremental range of a table of version 6 that reaches past a write which is still going on: refuse it, or let it end "
    "before that write. In later versions ranges are of completion times, where there are no such holes.",
)
META_COLUMNS_SHOWN = OPTIONS.flag(
    "hudimeta.meta.columns",
    False,
    "A registered table shows the _hoodie_* columns (then INSERT needs a column list). What Spark loads, and a temporary view, "
    "shows them unless this is given as false.",
)
INDEX_TRUST = OPTIONS.flag(
    "hudimeta.index.trust",
    False,
    "Let record and secondary indexes exclude rows though they are unproven, and believe that expression indexes over moments "
    "were built in the reader's time zone.",
)
INDEX_USE = OPTIONS.listing(
    "hudimeta.index.use",
    "Indexes that a read may skip files by: partition_stats, column_stats, expression_index, record_index, secondary_index, "
    "bloom_filters, footers, or one by its name; none for no index; all when not set.",
)
READ_CORRUPT = OPTIONS.choice(
    "hudimeta.read.corrupt",
    "fail",
    ["fail", "skip"],
    "What a read makes of a damaged file: an error, or without the rows of its file slice, which a warning and the ScanReport "
    "name. Writes and services always fail.",
)
RETRY_ON_CLEAN = OPTIONS.flag(
    "hudimeta.read.retry.on.clean",
    False,
    "A read of Table.scan whose file a cleaner removes plans again, as of then, while it has handed out no row; the ScanReport "
    "says so.",
)
MERGER = OPTIONS.text(
    "hudimeta.merger",
    None,
    "A function package.module:function that merges versions of rows in place of the table's own rule: two Arrow tables in, "
    "the older and the newer rows of the same keys, one out.",
)
VALIDATE = OPTIONS.flag(
    "hudimeta.metadata.validate",
    False,
    "A read lists storage too, and fails when that is not what the metadata table lists.",
)
LISTING_RETURNED = OPTIONS.flag(
    "hoodie.metadata.validate",
    False,
    "A read plans from a listing of storage, and only compares it with the metadata table: a difference is a warning, and "
    "stands in the ScanReport.",
)
MERGE_MEMORY = OPTIONS.number(
    "hudimeta.merge.memory.bytes",
    256 << 20,
    "Log records of a file slice that are merged in memory, in bytes as Arrow has them; what is more goes to temporary files.",
)
SPILL_FOLDER = OPTIONS.local_path(
    "hudimeta.spill.folder", "Where these temporary files are made; the system's folder for them when not set."
)
SPLIT_BYTES = OPTIONS.number("hudimeta.split.bytes", 128 << 20, "Target size of one task's share of a read, in bytes.")
LISTED_SLICES = OPTIONS.text(
    "hudimeta.read.slices", None, "Set by HudiTable: the file slices that a read of Spark's Python source is limited to."
)
SCHEMA_ON_READ = OPTIONS.flag(
    "hoodie.schema.on.read.enable",
    True,
    "Read files older than an ALTER through the table's schema history; false finds columns by name alone.",
)
LEARN = OPTIONS.flag(
    "hudimeta.learn",
    True,
    "Note what reads filter by, and what skipping gave, for Table.advise: in memory, and at most once a minute in "
    ".hoodie/.aux/hudimeta of the table. Predicates are noted with their constants.",
)
PLAN_CACHE = OPTIONS.choice(
    "hudimeta.plan.cache",
    "off",
    ["off", "local", "table"],
    "Keep plans of large tables in memory-mapped files, which take the place of the metadata table's base files for the next "
    "plan: off, local (in a folder of this machine), or table (in .hoodie/.aux/hudimeta of a table on a mounted disk).",
)
PLAN_CACHE_DIR = OPTIONS.local_path(
    "hudimeta.plan.cache.dir",
    "Folder for hudimeta.plan.cache=local, which only trusted users may write to; hudimeta/plans in the user's cache folder "
    "when not set.",
)
PLAN_CACHE_FROM = OPTIONS.number(
    "hudimeta.plan.cache.min.files", 20_000, "Tables of fewer file slices are planned without such a cache."
)
PLAN_CACHE_BYTES = OPTIONS.number(
    "hudimeta.plan.cache.bytes",
    4 << 30,
    "What the files of plans may take together, in bytes: the oldest are removed. Of a table the two newest plans are kept.",
)
DATA_SKIPPING = OPTIONS.flag("hoodie.enable.data.skipping", True, "Skip files by the statistics in the metadata table.")

OF_READS = (AS_OF, QUERY_TYPE, FILTER, COLUMNS, PARTITIONS, INCREMENTAL_BEGIN, INCREMENTAL_END, INCREMENTAL_FORMAT, MERGER)
"""Options that say what a read returns."""
