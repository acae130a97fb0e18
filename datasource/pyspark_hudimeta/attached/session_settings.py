"""What `SET hoodie.…` says of reads: Apache Hudi takes such a setting of the session for an option of each of its queries.

A setting that changes which files are looked at is taken so here too, where the read has no such option of its own. One that
changes what rows every query returns, those of UPDATE and MERGE among them, is refused: it belongs to one read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hudimeta.config import OPTIONS
from hudimeta.config.options import DATA_SKIPPING, METADATA_ENABLE, QUERY_TYPE, SCHEMA_ON_READ
from hudimeta.errors import ConfigError
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["with_settings"]

_TAKEN = (METADATA_ENABLE, DATA_SKIPPING, SCHEMA_ON_READ, QUERY_TYPE)
_NOT_DONE = ("hoodie.datasource.merge.type", "hoodie.realtime.merge.skip", "hoodie.query.as.ro.table")
"""Of Hudi's other options of reads, those that change rows: the registry knows what to say of their values."""


def with_settings(spark: SparkSession, options: Mapping[str, str]) -> Mapping[str, str]:
    """The options of a read with those that the session has for all reads.

    Args:
        spark: The session.
        options: Of the read, which count before the session's.

    Raises:
        ConfigError: A setting that would change what rows queries return.
        UnsupportedFeature: One that no read has.
    """
    given, found = {key.lower() for key in options}, dict[str, str]()
    for names in (*((option.key, *option.aliases) for option in _TAKEN), *((name,) for name in _NOT_DONE)):
        if given.isdisjoint(names):
            values = ((name, spark.conf.get(name, spark.conf.get(f"spark.{name}", None))) for name in names)
            found |= {name: value for name, value in values if value is not None}
    if not found:
        return options
    kind = OPTIONS.read(found).get(QUERY_TYPE)
    if kind != QueryType.SNAPSHOT.value:
        hint = f"Unset it, and give it to a read: spark.read.format('hudimeta').option('{QUERY_TYPE.key}', '{kind}')."
        raise ConfigError(QUERY_TYPE.key, kind, "snapshot for a whole session", hint)
    return {**options, **found}
