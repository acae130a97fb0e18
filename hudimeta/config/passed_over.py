"""Options of Apache Hudi that need nothing from hudimeta: known, so that nobody is warned of them and a misspelt one is found.

None of them changes rows, layout or side effects here: they tune Java's own processes, belong to something that is refused when
it is switched on, or ask for what always holds. Names are without their `hoodie.`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.config.registry import OptionRegistry

__all__ = ["PASSED_OVER", "PassedOver", "pass_over"]

_TUNING = """
    archive.delete.parallelism bloom.index.bucketized.checking
    bloom.index.bucketized.checking.enable.dynamic.parallelism bloom.index.fileid.key.sorting.enable
    bloom.index.input.storage.level
    bloom.index.keys.per.bucket bloom.index.parallelism bloom.index.prune.by.ranges bloom.index.use.caching
    bloom.index.use.metadata bloom.index.use.treebased.filter
    bucket.index.query.pruning bucket.index.remote.partitioner.enable
    bulkinsert.parallelism bulkinsert.shuffle.parallelism
    cdc.file.group.iterator.memory.spill.bytes clean.optimize.using.local.engine.context
    clean.parallelism cleaner.parallelism commits.archival.batch common.diskmap.compression.enabled
    common.spillable.diskmap.type compaction.lazy.block.read compaction.reverse.log.read
    datasource.read.file.index.listing.mode datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
    datasource.read.file.index.optimize.listing.using.path.filter datasource.read.use.new.parquet.file.format
    datasource.write.row.writer.enable delete.parallelism
    delete.shuffle.parallelism embed.timeline.server embed.timeline.server.async embed.timeline.server.gzip
    embed.timeline.server.port embed.timeline.server.reuse.enabled embed.timeline.server.threads
    expression.index.range.metadata.storage.level file.group.reader.enabled file.index.cache.spillable.mem
    file.index.cache.use.spillable.map file.index.enable file.listing.parallelism filesystem.operation.retry.enable
    filesystem.operation.retry.exceptions filesystem.operation.retry.initial_interval_ms
    filesystem.operation.retry.max_interval_ms filesystem.operation.retry.max_numbers filesystem.remote.backup.view.enable
    filesystem.view.incr.timeline.sync.enable filesystem.view.remote.host filesystem.view.remote.port
    filesystem.view.remote.retry.enable filesystem.view.remote.retry.exceptions
    filesystem.view.remote.retry.initial_interval_ms filesystem.view.remote.retry.max_interval_ms
    filesystem.view.remote.retry.max_numbers filesystem.view.remote.timeout.secs filesystem.view.rocksdb.base.path
    filesystem.view.secondary.type filesystem.view.spillable.bootstrap.base.file.mem.fraction
    filesystem.view.spillable.clustering.mem.fraction filesystem.view.spillable.compaction.mem.fraction
    filesystem.view.spillable.dir filesystem.view.spillable.log.compaction.mem.fraction filesystem.view.spillable.mem
    filesystem.view.spillable.replaced.mem.fraction filesystem.view.type finalize.write.parallelism
    finalize.write.shuffle.parallelism global.index.reconcile.parallelism global.simple.index.parallelism
    hbase.index.update.partition.path index.bloom.num_entries insert.parallelism insert.shuffle.parallelism
    instant_state.timeline_server_based.enabled instant_state.timeline_server_based.force_refresh.request.number
    keygen.datetime.parser.class logfile.to.parquet.compression.ratio markers.delete.parallelism
    markers.timeline_server_based.batch.interval_ms markers.timeline_server_based.batch.num_threads
    memory.compaction.fraction memory.compaction.max.size memory.dfs.buffer.max.size memory.merge.fraction
    memory.merge.max.size memory.spillable.map.path memory.writestatus.failure.fraction
    merge.use.record.positions metadata.bloom.filter.dynamic.max.entries
    metadata.bloom.filter.fpp metadata.bloom.filter.num.entries metadata.bloom.filter.type
    metadata.compact.max.delta.seconds metadata.derive.from.datatable.clean.policy
    metadata.file.cache.max.size.mb metadata.index.bloom.filter.parallelism
    metadata.index.check.timeout.seconds metadata.index.column.stats.inmemory.projection.threshold
    metadata.index.column.stats.parallelism metadata.index.column.stats.processing.mode.override
    metadata.index.expression.parallelism metadata.index.partition.stats.parallelism metadata.index.secondary.parallelism
    metadata.log.compaction.blocks.threshold
    metadata.max.deltacommits.when_pending metadata.max.init.parallelism metadata.max.logfile.size
    metadata.max.reader.buffer.size metadata.max.reader.memory metadata.optimized.log.blocks.scan.enable
    metadata.range.repartition.random.seed metadata.range.repartition.sampling.fraction
    metadata.range.repartition.target.records.per.partition
    metadata.record.preparation.parallelism metadata.repartition.default.partitions
    metadata.repartition.min.partitions.threshold metadata.spillable.map.path
    metadata.streaming.write.datatable.write.statuses.coalesce.divisor metadata.streaming.write.enabled
    metadata.write.concurrency.mode optimistic.consistency.guard.sleep_time_ms optimized.log.blocks.scan.enable
    parquet.compression.ratio parquet.field_id.write.enabled
    record.index.input.storage.level record.index.use.caching
    record.size.estimation.threshold record.size.estimator.average.metadata.size
    release.resource.on.completion.enable rollback.parallelism rollback.shuffle.parallelism sensitive.config.keys
    simple.index.input.storage.level simple.index.parallelism simple.index.use.caching spark.polaris.catalog.class
    spark.sql.optimized.writes.enable time.generator.max_expected_clock_skew_ms time.generator.type
    timeline.compaction.batch.size timeline.compaction.target.file.max.bytes timeline.manifest.retained.versions
    upsert.parallelism upsert.shuffle.parallelism write.application.id write.buffer.limit.bytes
    write.buffer.record.cache.limit write.buffer.record.sampling.rate write.executor.disruptor.buffer.limit.bytes
    write.executor.disruptor.wait.strategy write.executor.type write.status.storage.level
    write.tagged.record.storage.level
"""
_ALWAYS = """
    auto.adjust.lock.configs avro.schema.external.transformation avro.schema.externaltransformation avro.schema.validate
    block.writes.on.speculative.execution clean.allow.multiple clean.multiple.enabled
    combine.before.delete consistency.check.enabled consistency.check.initial_interval_ms
    consistency.check.max_checks consistency.check.max_interval_ms datasource.read.incr.skip_cluster
    datasource.read.incr.skip_compact datasource.write.reconcile.schema fail.job.on.duplicate.data.file.detection
    fileIndex.dataSkippingFailureMode fs.atomic_creation.support
    merge.data.validation.enabled
    metadata.record.index.enable.validation.on.initialization
    rollback.avoid.duplicate.plan
    rollback.using.markers skip.default.partition.validation table.services.incremental.enabled
    write.complex.keygen.validation.enable


    write.markers.type write.merge.handle.fallback
"""
_OFF = """
    bootstrap.parallelism
    clustering.group.read.parallelism
    clustering.max.parallelism clustering.plan.generation.use.local.engine.context
    datasource.hive_sync.auto_create_database datasource.hive_sync.base_file_format datasource.hive_sync.batch_num
    datasource.hive_sync.bucket_sync datasource.hive_sync.bucket_sync_spec datasource.hive_sync.create_managed_table
    datasource.hive_sync.database datasource.hive_sync.filter_pushdown_enabled
    datasource.hive_sync.filter_pushdown_max_size datasource.hive_sync.ignore_exceptions datasource.hive_sync.jdbcurl
    datasource.hive_sync.metastore.uris datasource.hive_sync.mode datasource.hive_sync.omit_metadata_fields
    datasource.hive_sync.partition_extractor_class datasource.hive_sync.partition_fields datasource.hive_sync.password
    datasource.hive_sync.recreate_table_on_error datasource.hive_sync.schema_string_length_thresh
    datasource.hive_sync.serde_properties datasource.hive_sync.skip_ro_suffix datasource.hive_sync.support_timestamp
    datasource.hive_sync.sync_as_datasource datasource.hive_sync.sync_comment datasource.hive_sync.table
    datasource.hive_sync.table.strategy datasource.hive_sync.table_properties datasource.hive_sync.use_jdbc
    datasource.hive_sync.use_pre_apache_input_format datasource.hive_sync.use_spark_catalog
    datasource.hive_sync.username datasource.meta.sync.base.path datasource.meta_sync.condition.sync
    datasource.partition_extractor_class datasource.read.table.valued.function.filesystem.relation.subpath
    errortable.base.path errortable.insert.shuffle.parallelism
    errortable.source.rdd.persist errortable.target.table.name errortable.upsert.shuffle.parallelism
    errortable.validate.recordcreation.enable errortable.validate.targetschema.enable errortable.write.class
    errortable.write.failure.strategy errortable.write.union.enable expression.index.type
    layout.optimize.data.skipping.enable meta.sync.client.tool.class
    meta.sync.decode_partition meta.sync.incremental meta.sync.metadata_file_listing meta.sync.no_partition_metadata
    meta.sync.sync_snapshot_with_table_name meta.sync.touch.partitions.enabled meta_sync.global.replicate.timestamp
    meta_sync.spark.version
    metadata.table.service.manager.actions metaserver.connect.retries metaserver.connect.retry.delay metaserver.uris
    metrics.cloudwatch.maxdatumsperrequest metrics.cloudwatch.metric.prefix metrics.cloudwatch.namespace
    metrics.cloudwatch.report.period.seconds metrics.configs.properties metrics.datadog.api.key
    metrics.datadog.api.key.skip.validation metrics.datadog.api.key.supplier metrics.datadog.api.site
    metrics.datadog.api.timeout.seconds metrics.datadog.metric.host metrics.datadog.metric.prefix
    metrics.datadog.metric.tags metrics.datadog.report.period.seconds metrics.graphite.host
    metrics.graphite.metric.prefix metrics.graphite.port metrics.graphite.report.period.seconds metrics.jmx.host
    metrics.jmx.port metrics.m3.env metrics.m3.host metrics.m3.port metrics.m3.service metrics.m3.tags
    metrics.pushgateway.random.job.name.suffix metrics.pushgateway.report.labels
    metrics.pushgateway.report.period.seconds metrics.reporter.class
    payload.event.time.field precommit.validators.failure.policy
    precommit.validators.streaming.offset.tolerance.percentage rollback.instant.backup.dir
    table.partition_extractor_class table.service.manager.actions table.service.manager.connection.retries
    table.service.manager.connection.retry.delay.sec table.service.manager.connection.timeout.sec
    table.service.manager.deploy.extra.params table.service.manager.deploy.parallelism
    table.service.manager.deploy.queue table.service.manager.deploy.resources table.service.manager.deploy.username
    table.service.manager.execution.engine table.service.manager.uris write.commit.callback.class
    write.commit.callback.http.api.key write.commit.callback.http.custom.headers
    write.commit.callback.http.timeout.seconds write.commit.callback.http.url
"""
_FORMATS = """
    hfile.block.cache.enabled hfile.block.cache.size hfile.block.cache.ttl.minutes hfile.block.size
    hfile.max.file.size hfile.writes.allow.duplicates lance.max.file.size
    lance.read.allocator.size.bytes lance.read.metadata.allocator.size.bytes lance.write.allocator.size.bytes
    lance.write.flush.byte.watermark orc.block.size orc.compression.codec orc.max.file.size orc.stripe.size
"""
_LOCKS = """
    write.lock.client.num_retries write.lock.client.wait_time_ms_between_retry write.lock.heartbeat_interval_ms
    write.lock.hivemetastore.database write.lock.hivemetastore.table write.lock.hivemetastore.uris
    write.lock.max_wait_time_ms_between_retry write.lock.num_retries write.lock.wait_time_ms_between_retry
"""
_TIMES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.", "hoodie.streamer.keygen.timebased.")
_ELSEWHERE = ("hudimeta.storage.", *_TIMES)
_OTHERS = ("hoodie.streamer.", "hoodie.deltastreamer.", "hoodie.index.hbase.", "hoodie.aws.", "hoodie.gcp.", "_hoodie.")


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Options that are passed over.

    Attributes:
        why: Ends the sentence "passed over, because it …".
        names: Whole keys.
        prefixes: Beginnings of keys.
    """

    why: str
    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


def _named(why: str, names: str) -> PassedOver:
    return PassedOver(why, tuple(f"hoodie.{name}" for name in names.split()))


PASSED_OVER = (
    _named("tunes the speed, the memory or the caches of Apache Hudi's own processes", _TUNING),
    _named("belongs to something that is refused when it is switched on", _OFF),
    _named("is about formats in which base files of tables are not written here", _FORMATS),
    _named("tunes the waiting for locks, or a lock that is refused", _LOCKS),
    _named("asks for a check or a care that is always taken here, or is not needed", _ALWAYS),
    PassedOver("is read by name where it is used", prefixes=_ELSEWHERE),
    PassedOver("is of other tools, or Apache Hudi's own and internal", prefixes=_OTHERS),
)


def pass_over(registry: OptionRegistry) -> None:
    """Declare them."""
    for group in PASSED_OVER:
        for name in group.names:
            registry.pass_over(name)
        for prefix in group.prefixes:
            registry.pass_over_prefix(prefix)
