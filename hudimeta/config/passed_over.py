"""Options of Apache Hudi that need nothing from hudimeta: known, so that nobody is warned of them."""

from __future__ import annotations

from hudimeta.config.registry import Registry

__all__ = ["pass_over"]

_READ_WHERE_USED = ("hudimeta.storage.", "hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")
_ALWAYS_KEPT = ("hoodie.metadata.index.expression.enable", "hoodie.metadata.index.secondary.enable")
_TUNING = (
    "hoodie.metadata.index.bloom.filter.parallelism",
    "hoodie.metadata.index.column.stats.parallelism",
    "hoodie.metadata.index.expression.parallelism",
    "hoodie.embed.timeline.",
    "hoodie.filesystem.view.",
    "hoodie.metrics.",
    "hoodie.datasource.hive_sync.",
    "hoodie.meta.sync.",
    "hoodie.memory.",
    "hoodie.finalize.write.",
    "hoodie.markers.",
    "hoodie.bucket.index.min.",
    "hoodie.bucket.index.max.",
    "hoodie.bucket.index.merge.",
    "hoodie.bucket.index.split.",
)
_VERBS = ("insert", "upsert", "bulkinsert", "delete", "rollback", "finalize.write")


def pass_over(registry: Registry) -> None:
    """Declare them, each with the reason."""
    parallelism = [f"hoodie.{verb}.{what}" for verb in _VERBS for what in ("shuffle.parallelism", "parallelism")]
    for prefixes, why in (
        (_READ_WHERE_USED, "read by name where it is used"),
        (_ALWAYS_KEPT, "indexes that a table has are always kept"),
        (_TUNING, "tunes Apache Hudi's own processes"),
        (parallelism, "Spark's own parallelism is used"),
    ):
        for prefix in prefixes:
            registry.ignore(prefix, why)
