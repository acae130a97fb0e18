"""The format of what names none: `spark.sql.sources.default` says it, and may say ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hudimeta.sql import BETWEEN_WORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_ours", "may_lack_format"]

_FORMAT = "hudimeta"
_DEFAULT = "spark.sql.sources.default"
_OF_HIVE = "spark.sql.legacy.createHiveTableByDefault"
_CREATES = re.compile(rf"{BETWEEN_WORDS}*(?:create|replace)\b.*?\btable\b", re.IGNORECASE | re.DOTALL)


def is_ours(spark: SparkSession, named: str | None) -> bool:
    """True for our format, and for none where the session takes ours for it.

    Args:
        spark: The session.
        named: The format that was named; None or "" for none.
    """
    return (named or str(spark.conf.get(_DEFAULT))).lower() == _FORMAT


def may_lack_format(spark: SparkSession, text: str) -> bool:
    """True for a statement that makes a table, in a session that takes ours for its format where none is named.

    Args:
        spark: The session.
        text: The statement.
    """
    if not _CREATES.match(text):
        return False
    return is_ours(spark, None) and str(spark.conf.get(_OF_HIVE)).lower() != "true"
