"""Options of Apache Hudi that ask for what hudimeta does otherwise, and is none the worse for: whoever gives one is told.

What would change rows, or have a side effect that somebody waits for, is refused instead (`not_done`); what nobody could see at
all is passed over (`passed_over`).
"""

from __future__ import annotations

from hudimeta.config.registry import Ignored, OptionRegistry

__all__ = ["declare_ignored"]

_ON = ("true",)
_OFF = ("false",)
_KEPT = "every write keeps all indexes that a table has in step, and t.indexes.drop(…) alone drops one"
_PUBLISHED = "a write that is published is no error: what fails after that is a warning, and a later write makes up for it"

_IGNORED = (
    Ignored("hoodie.metadata.auto.delete.partitions", _OFF, _KEPT),
    Ignored("hoodie.metadata.index.secondary.enable", _ON, _KEPT),
    Ignored("hoodie.metadata.index.expression.enable", _ON, _KEPT),
    Ignored(
        "hoodie.metadata.index.async",
        _OFF,
        "indexes that options ask for are built by the write that finds them missing; create_index(…, mode='async') builds one "
        "beside writers",
    ),
    Ignored(
        "hoodie.metadata.record.level.index.defer.init",
        _OFF,
        "the record index is there from the first commit on",
    ),
    Ignored(
        "hoodie.metadata.compact.trigger.strategy",
        ("num_commits",),
        "the metadata table is compacted by hoodie.metadata.compact.max.delta.commits",
    ),
    Ignored(
        "hoodie.metadata.log.compaction.enable", _OFF, "the metadata table is compacted, and its logs are not merged before"
    ),
    Ignored("hoodie.metadata.bloom.filter.enable", _OFF, "base files of the metadata table have no bloom filters"),
    Ignored("hoodie.hfile.compression.algorithm", ("gz",), "base files of the metadata table are compressed by gzip"),
    Ignored("hoodie.fail.writes.on.inline.table.service.exception", _OFF, _PUBLISHED),
    Ignored("hoodie.fail.on.timeline.archiving", _OFF, _PUBLISHED),
    Ignored("hoodie.metadata.write.fail.on.table.service.failures", _OFF, _PUBLISHED),
    Ignored("hoodie.write.can.ignore.post.commit.failures", _ON, _PUBLISHED, ("hoodie.post.commit.failures.ignored",)),
    Ignored("hoodie.write.ignore.failed", _OFF, "a row that cannot be written fails the write, which then changes nothing"),
    Ignored(
        "hoodie.write.record.positions",
        _OFF,
        "log files say which rows they change by the keys alone; readers that would go by positions go by keys then",
    ),
    Ignored(
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        _ON,
        "a write whose columns do not fit those of a write that was first is refused",
    ),
    Ignored(
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
        _OFF,
        "a clustering and a write that meet at the same rows are settled when the later of the two is published",
    ),
    Ignored(
        "hoodie.record.size.estimator.class",
        ("org.apache.hudi.*",),
        "the bytes of a row are those that the newest commit shows, else hoodie.copyonwrite.record.size.estimate",
    ),
    Ignored(
        "hoodie.datasource.read.file.index.list.partitions.from.catalog",
        _OFF,
        "partitions are those of the table, whatever a catalog lists",
    ),
    Ignored("hoodie.bootstrap.data.queries.only", _OFF, "the _hoodie_* columns of bootstrapped tables are always there"),
)


def declare_ignored(registry: OptionRegistry) -> None:
    """Declare them."""
    for option in _IGNORED:
        registry.ignore(option)
