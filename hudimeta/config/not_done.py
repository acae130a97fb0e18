"""Options of Apache Hudi, and of other formats, that change rows, layout or side effects, and that hudimeta does not do: given,
they are refused.

A value that asks for nothing else than what hudimeta does is fine. Values are compared in lower case; `*` in `fits` stands for
any text. Nothing fits where `fits` is empty: then the option as such is refused, except with an empty value.
"""

from __future__ import annotations

from hudimeta.config.registry import NotDone, OptionRegistry

__all__ = ["declare_not_done"]

_OFF = ("false",)
_ON = ("true",)
_CREATED = "What a table is made with is said by other options: see docs/options.md."
_LEAVE = "Leave it out."
_PARQUET = "hudimeta writes Parquet base files and Hudi's own log files. Leave it out, or write with Apache Hudi."
_MERGE = (
    "Set hoodie.record.merge.mode, one of Hudi's own classes in hoodie.datasource.write.payload.class, or for reads a function "
    "of yours in hudimeta.merger."
)
_CLUSTER = "Call Table.cluster(…), or set hoodie.clustering.inline=true."
_SYNC = "Register the table with CREATE TABLE … USING hudimeta LOCATION …, or sync with Apache Hudi's own tool."
_CLASS = "Java classes cannot be run here. Leave it out."
_BY_INDEX = "Leave it out and call table.metadata.create_index(…)."
_WATCH = "See docs/metrics.md for what is there; commits return a CommitReport, and reads a ScanReport."
_SCHEMA = "Leave it out: the rows' own schema is taken, with casts in the query where it has to be another."

_TABLE = (
    NotDone(
        "hoodie.table.base.file.format", ("parquet",), _PARQUET, ("hoodie.base.file.format", "hoodie.table.ro.file.format")
    ),
    NotDone("hoodie.table.log.file.format", ("hoodie_log",), _PARQUET, ("hoodie.table.rt.file.format",)),
    NotDone("hoodie.table.multiple.base.file.formats.enable", _OFF, _PARQUET),
    NotDone("hoodie.table.format", ("native",), "Only Hudi's own table format is done."),
    NotDone("hoodie.partition.metafile.use.base.format", _OFF, _LEAVE),
    NotDone(
        "hoodie.datasource.write.slash.separated.date.partitioning",
        _OFF,
        "Partition by a text column that holds yyyy/MM/dd, or by the TIMESTAMP key generator.",
    ),
    NotDone("hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", _OFF, "Partition by a text column."),
    NotDone("hoodie.bucket.index.partition.rule.type", ("regex",), _LEAVE),
    NotDone("hoodie.storage.layout.type", ("default", "bucket"), "hoodie.index.type=BUCKET lays a table out in buckets."),
    NotDone("hoodie.storage.layout.partitioner.class", ("*.sparkbucketindexpartitioner",), _CLASS),
    NotDone("hoodie.timeline.path", ("timeline",), _LEAVE),
    NotDone("hoodie.timeline.history.path", ("history",), _LEAVE),
    NotDone("hoodie.archivelog.folder", ("archived", "history"), _LEAVE),
    NotDone("hoodie.timeline.layout.version", ("2",), "hoodie.write.table.version decides about the timeline."),
    NotDone("hoodie.table.initial.version", (), _CREATED),
    NotDone("hoodie.table.checksum", (), _CREATED),
    NotDone("hoodie.table.create.schema", (), _CREATED),
    NotDone("hoodie.table.index.defs.path", (), _CREATED),
    NotDone("hoodie.table.legacy.payload.class", (), "Set hoodie.datasource.write.payload.class."),
    NotDone("hoodie.table.metadata.partitions", (), "Indexes are chosen by hoodie.metadata.index.* options."),
    NotDone("hoodie.table.metadata.partitions.inflight", (), "Indexes are chosen by hoodie.metadata.index.* options."),
    NotDone("hoodie.table.partial.update.mode", (), _MERGE),
    NotDone("hoodie.table.secondary.indexes.metadata", (), _BY_INDEX),
    NotDone("hoodie.write.auto.upgrade", _OFF, "No table is ever upgraded here: it keeps its version. Leave it out."),
    NotDone("hoodie.base.path", (), "Name the table's folder with path."),
    NotDone("hoodie.bootstrap.index.enable", _ON, _LEAVE),
    NotDone("hoodie.bootstrap.index.class", ("*.hfilebootstrapindex",), _CLASS),
    NotDone("hoodie.bootstrap.index.type", ("hfile",), _LEAVE),
    NotDone(
        "hoodie.bootstrap.partitionpath.translator.class",
        ("*.identitybootstrappartitionpathtranslator",),
        "Partitions have the paths of the source. Leave it out.",
    ),
    NotDone(
        "hoodie.bootstrap.full.input.provider",
        ("*.sparkparquetbootstrapdataprovider", "*.sparkfullbootstrapdataproviderbase"),
        "The source is read as Parquet. Leave it out.",
    ),
    NotDone("hoodie.bootstrap.base.path", (), "Name the dataset as hudimeta.bootstrap(source, path, …)."),
    NotDone("hoodie.metaserver.enabled", _OFF, _LEAVE),
    NotDone("hoodie.index.class", (), "Choose one of Hudi's own with hoodie.index.type."),
)

_MERGING = (
    NotDone(
        "hoodie.write.record.merge.custom.implementation.classes",
        (
            "org.apache.hudi.common.model.hoodieavrorecordmerger",
            "org.apache.hudi.defaultsparkrecordmerger",
            "org.apache.hudi.hoodiesparkrecordmerger",
            "org.apache.hudi.overwritewithlatestsparkrecordmerger",
            "org.apache.hudi.common.model.overwritewithlatestmerger",
        ),
        _MERGE,
        ("hoodie.datasource.write.record.merger.impls",),
    ),
    NotDone(
        "hoodie.record.merge.strategy.id",
        (),
        "Leave it out: hoodie.record.merge.mode says the same.",
        (
            "hoodie.compaction.record.merger.strategy",
            "hoodie.write.record.merge.strategy.id",
            "hoodie.datasource.write.record.merger.strategy",
        ),
    ),
    NotDone("hoodie.payload.update.on.same.ordering.field", _ON, "Of rows with one ordering value the later written one wins."),
    NotDone("hoodie.write.partial.update.schema", (), _LEAVE),
    NotDone("hoodie.write.partial.update.unavailable.value", (), _MERGE),
    NotDone("hoodie.record.merge.property.", (), "Set hoodie.payload.delete.field and hoodie.payload.delete.marker."),
    NotDone("hoodie.merge.allow.duplicate.on.inserts", _ON, "Upsert, or set hoodie.datasource.insert.dup.policy=drop or fail."),
    NotDone("hoodie.allow.operation.metadata.field", _OFF, "Set hoodie.table.cdc.enabled=true when the table is created."),
)

_WRITING = (
    NotDone(
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
        _OFF,
        "A write never drops columns: those that its rows lack are null. Table.alter(drop=[…]) drops one.",
    ),
    NotDone("hoodie.avro.schema", (), _SCHEMA),
    NotDone("hoodie.write.schema", (), _SCHEMA),
    NotDone("hoodie.bulkinsert.schema.ddl", (), _SCHEMA),
    NotDone("hoodie.internal.schema", (), _SCHEMA),
    NotDone("hoodie.bulkinsert.overwrite.operation.type", (), "Set hoodie.datasource.write.operation."),
    NotDone(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        ("*.rowcustomcolumnssortpartitioner", "*.rddcustomcolumnssortpartitioner"),
        "Name the columns to sort by in hoodie.bulkinsert.user.defined.partitioner.sort.columns.",
    ),
    NotDone(
        "hoodie.bulkinsert.sort.suffix.record_key",
        _OFF,
        "Name the key columns last in hoodie.bulkinsert.user.defined.partitioner.sort.columns.",
    ),
    NotDone("hoodie.fileid.prefix.provider.class", ("org.apache.hudi.table.randomfileidprefixprovider",), _CLASS),
    NotDone("hoodie.parquet.outputtimestamptype", ("timestamp_micros",), "Timestamps are stored as the column's type says."),
    NotDone("hoodie.parquet.writelegacyformat.enabled", _OFF, _LEAVE),
    NotDone("hoodie.parquet.write.utc-timezone.enabled", _ON, _LEAVE),
    NotDone("hoodie.parquet.write.config.injector.class", (), _CLASS),
    NotDone("hoodie.parquet.spark.row.write.support.class", ("org.apache.hudi.*",), _CLASS),
    NotDone("hoodie.parquet.flink.rowdata.write.support.class", ("org.apache.hudi.*",), _CLASS),
    NotDone("hoodie.avro.write.support.class", ("org.apache.hudi.*",), _CLASS),
    NotDone("hoodie.write.merge.handle.class", ("org.apache.hudi.io.*",), _CLASS),
    NotDone("hoodie.write.concat.handle.class", ("org.apache.hudi.io.*",), _CLASS),
    NotDone("hoodie.compact.merge.handle.class", ("org.apache.hudi.io.*",), _CLASS),
    NotDone("hoodie.writestatus.class", ("org.apache.hudi.*",), _CLASS),
    NotDone("hoodie.storage.class", ("org.apache.hudi.*",), "Stores are opened by fsspec: see hudimeta.storage.* options."),
    NotDone("hoodie.io.factory.class", ("org.apache.hudi.*",), _CLASS),
    NotDone("hoodie.auto.commit", _ON, "Every write commits by itself."),
    NotDone("hoodie.write.track.event.time.watermark", _OFF, _LEAVE),
    NotDone("hoodie.precommit.validators", (), "Read the table after the write and restore or roll back what is not right."),
    NotDone("hoodie.precommit.validators.equality.sql.queries", (), _LEAVE),
    NotDone("hoodie.precommit.validators.inequality.sql.queries", (), _LEAVE),
    NotDone("hoodie.precommit.validators.single.value.sql.queries", (), _LEAVE),
    NotDone("hoodie.prewrite.validators", (), "Check the rows before you hand them to the write."),
    NotDone("hoodie.errortable.enable", _OFF, "A row that cannot be written fails the write, which then changes nothing."),
    NotDone("hoodie.prewrite.cleaner.policy", ("none", "rollback_failed_writes"), "Call Table.clean() before the write."),
    NotDone("hoodie.metadata.dir.filter.regex", (), "Every folder that has .hoodie_partition_metadata belongs to the table."),
    NotDone("hoodie.metadata.auto.initialize", _ON, "hoodie.metadata.enable=false writes a table without a metadata table."),
)

_SERVICES = (
    NotDone("hoodie.layout.optimize.enable", _OFF, _CLUSTER),
    NotDone("hoodie.clustering.preserve.commit.metadata", _ON, "Clustered rows keep their commit times. Leave it out."),
    NotDone(
        "hoodie.partition.ttl.strategy.class",
        ("*.keepbytimestrategy",),
        "Name one of Hudi's own by hoodie.partition.ttl.management.strategy.type.",
    ),
    NotDone("hoodie.archive.block.on.latest.clean.ectr", _OFF, _LEAVE),
    NotDone("hoodie.clean.delete.bootstrap.base.file", _OFF, _LEAVE, ("hoodie.cleaner.delete.bootstrap.base.file",)),
    NotDone("hoodie.clean.trigger.strategy", ("num_commits",), _LEAVE),
    NotDone("hoodie.compaction.plan.generator", ("*.hoodiecompactionplangenerator",), _CLASS),
    NotDone("hoodie.rollback.instant.backup.enabled", _OFF, _LEAVE),
    NotDone("hoodie.table.service.manager.enabled", _OFF, "Call Table.compact() and Table.clean() where you want them to run."),
    NotDone("hoodie.metadata.table.service.manager.enabled", _OFF, _LEAVE),
    NotDone("hoodie.metadata.index.partition.stats.file.group.count", ("1",), _LEAVE),
    NotDone("hoodie.metadata.index.drop", (), "Leave it out and call table.metadata.drop_index(…)."),
    NotDone("hoodie.metadata.index.expression.column", (), _BY_INDEX),
    NotDone("hoodie.metadata.index.expression.options", (), _BY_INDEX),
    NotDone("hoodie.expression.index.function", (), _BY_INDEX),
    NotDone("hoodie.datasource.write.secondarykey.column", (), "Set hoodie.metadata.index.secondary.column."),
)

_SIDE_EFFECTS = (
    NotDone("hoodie.datasource.hive_sync.enable", _OFF, _SYNC),
    NotDone("hoodie.datasource.meta.sync.enable", _OFF, _SYNC),
    NotDone(
        "hoodie.write.commit.callback.on", _OFF, "The write returns its report when it is published: call what you like then."
    ),
    NotDone("hoodie.client.init.callback.classes", (), _CLASS),
    NotDone("hoodie.metrics.executor.enable", _OFF, _WATCH),
    NotDone("hoodie.metricscompaction.log.blocks.on", _OFF, _WATCH),
    NotDone("hoodie.metadata.metrics.enable", _OFF, _WATCH),
)

_READING = (
    NotDone(
        "hoodie.datasource.merge.type",
        ("payload_combine",),
        "Log files are always merged; hoodie.datasource.query.type=read_optimized leaves them out.",
    ),
    NotDone("hoodie.realtime.merge.skip", _OFF, "hoodie.datasource.query.type=read_optimized leaves log files out."),
    NotDone("hoodie.query.as.ro.table", _OFF, "Set hoodie.datasource.query.type=read_optimized."),
    NotDone("hoodie.datasource.read.paths", (), "It belongs to spark.read. Here, set hudimeta.partitions."),
    NotDone("hoodie.datasource.read.incr.filters", (), "Set hudimeta.filter, or filter the DataFrame."),
    NotDone("hoodie.datasource.read.incr.path.glob", (), "Set hudimeta.partitions, to patterns relative to the table."),
    NotDone("hoodie.datasource.read.incr.table.version", ("8", "9"), "Ranges are of completion times. Leave it out."),
    NotDone("hoodie.datasource.read.streaming.table.version", ("8", "9"), "Ranges are of completion times. Leave it out."),
    NotDone(
        "hoodie.datasource.write.streaming.ignore.failed.batch",
        _OFF,
        "It would lose the rows of a batch that fails. Leave it out: the query stops, and repeats the batch when it goes on.",
    ),
    NotDone("hoodie.datasource.read.schema.use.end.instanttime", _OFF, "Select the columns that you want."),
    NotDone("hoodie.datasource.read.extract.partition.values.from.path", _OFF, "Partition columns are read from the files."),
    NotDone("hoodie.datasource.read.partition.value.extractor.enabled", _OFF, "Partition columns are read from the files."),
    NotDone(
        "hoodie.datasource.read.create.filesystem.relation", _OFF, "Use Table.file_slices() or the table functions of SQL."
    ),
    NotDone("hoodie.datasource.read.table.valued.function.timeline.relation", _OFF, "Use Table.timeline."),
    NotDone("hoodie.datasource.read.table.valued.function.timeline.relation.archived", _OFF, "Use Table.timeline."),
    NotDone("hoodie.read.blob.inline.mode", (), "Leave it out."),
)

_WORDS_OF_OTHERS = (
    NotDone(
        "overwriteschema",
        _OFF,
        "Rows that replace a table keep its columns. Call Table.alter(…), or replace the table as such: "
        "df.writeTo(name).createOrReplace() in an attached session.",
    ),
    NotDone(
        "txnappid",
        (),
        "A write that is repeated is a write of its own. Give rows a key and upsert them, or write them by a stream, whose "
        "batches are committed once.",
        ("txnversion",),
    ),
    NotDone(
        "ignorechanges",
        _OFF,
        "A stream hands over the rows of every commit. Filter the rows, or see docs/streams.md for where a stream begins.",
        ("ignoredeletes", "skipchangecommits"),
    ),
    NotDone(
        "branch", (), "A table has no branches. Name an instant in as.of.instant; a savepoint keeps it readable.", ("tag",)
    ),
)
"""What users of other formats ask for: passed over, it would change what is written or read."""


def declare_not_done(registry: OptionRegistry) -> None:
    """Declare them."""
    for group in (_TABLE, _MERGING, _WRITING, _SERVICES, _SIDE_EFFECTS, _READING, _WORDS_OF_OTHERS):
        for option in group:
            registry.refuse(option)
