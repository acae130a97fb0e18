"""Names of properties that Hudi's tables have, to tell a damaged name from one that is only unknown."""

from __future__ import annotations

from hudimeta.formats.one_apart import one_apart

__all__ = ["KNOWN_PROPERTIES", "damaged_name"]

_TABLE = (
    "base.file.format|cdc.enabled|cdc.supplemental.logging.mode|checksum|create.schema|format|index.defs.path|initial.version|"
    "keygenerator.class|keygenerator.type|legacy.payload.class|log.file.format|metadata.partitions|metadata.partitions.inflight|"
    "multiple.base.file.formats.enable|name|ordering.fields|partial.update.mode|partition.fields|precombine.field|"
    "recordkey.fields|secondary.indexes.metadata|timeline.timezone|type|version"
)
_OTHERS = (
    "archivelog.folder|bootstrap.base.path|bootstrap.index.class|bootstrap.index.enable|bootstrap.index.type|"
    "compaction.payload.class|compaction.record.merger.strategy|database.name|datasource.write.drop.partition.columns|"
    "datasource.write.hive_style_partitioning|datasource.write.partitionpath.urlencode|partition.metafile.use.base.format|"
    "populate.meta.fields|record.merge.mode|record.merge.strategy.id|timeline.history.path|timeline.layout.version|timeline.path|"
    "write.complex.keygen.new.encoding|index.type|index.bucket.engine|bucket.index.num.buckets|bucket.index.hash.field"
)
_KEYGEN = (
    "input.dateformat|input.dateformat.list.delimiter.regex|input.timezone|output.dateformat|output.timezone|timestamp.type|"
    "timestamp.scalar.time.unit|timezone"
)

KNOWN_PROPERTIES = frozenset(
    (
        *(f"hoodie.table.{name}" for name in _TABLE.split("|")),
        *(f"hoodie.{name}" for name in _OTHERS.split("|")),
        *(f"hoodie.keygen.timebased.{name}" for name in _KEYGEN.split("|")),
        *(f"hoodie.deltastreamer.keygen.timebased.{name}" for name in _KEYGEN.split("|")),
    )
)
"""Properties that say what a table is; there are others, of users and of later releases."""


def damaged_name(key: str) -> str | None:
    """The known property whose name differs from an unknown one by a single character; None without such."""
    if key in KNOWN_PROPERTIES:
        return None
    return next((known for known in sorted(KNOWN_PROPERTIES) if one_apart(key, known)), None)
