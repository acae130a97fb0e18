"""Which tables a write refuses, and why: before anything is read or written."""

from __future__ import annotations

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.indexes.registry import maintainer_of
from hudimeta.table.properties import TableProperties
from hudimeta.write.creation import contradictions

__all__ = ["check_supported"]


def check_supported(properties: TableProperties, options: Options) -> None:
    """Refuse tables that we would damage, by the name of what they use. See `WriteSession`."""
    properties.check_writable()
    unmaintained = [name for name in properties.metadata_partitions if maintainer_of(name) is None]
    unmaintained += [name for name in properties.metadata_partitions_inflight if name]
    refusals = (
        (bool(unmaintained), f"keeping the metadata partitions {', '.join(unmaintained)} up to date"),
        (properties.base_file_format != "PARQUET", f"writing {properties.base_file_format} base files"),
    )
    for applies, feature in refusals:
        if applies:
            raise UnsupportedFeature(feature, "Write to this table with Apache Hudi; reading it works.")
    least, most = options.get(keys.ARCHIVE_MIN), options.get(keys.ARCHIVE_MAX)
    if options.is_set(keys.ARCHIVE_MIN) and options.is_set(keys.ARCHIVE_MAX) and most <= least:
        raise ConfigError(keys.ARCHIVE_MAX.key, most, f"more than {keys.ARCHIVE_MIN.key}, which is {least}")
    for key, (have, given) in contradictions(properties, options).items():
        hint = f"Leave out {key}: what a table was created with cannot be changed by a write."
        raise ConfigError(key, given, f"what the table has: {have!r}", hint)
