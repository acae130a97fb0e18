"""Which Spark this package works with, said in one sentence where it is another, and which kind of session it has.

Data sources in Python came with Spark 4.0, what is needed of them with 4.1. Spark 4.0 imports this package whenever it meets a
format that it does not know, and an exception would keep it from *every* such format: there the source refuses to be made.
"""

from __future__ import annotations

import re

import pyspark

from hudimeta.errors import UnsupportedFeature

__all__ = ["LEAST", "check_spark", "has_data_sources", "has_read_limits", "is_connect", "too_old"]

LEAST = (4, 1)
_FIRST_WITH_SOURCES = (4, 0)
_FIRST_WITH_LIMITS = (4, 2)


def check_spark(version: str = pyspark.__version__) -> None:
    """Raise UnsupportedFeature where PySpark is older than `LEAST`."""
    if _numbers(version) < LEAST:
        raise too_old(version)


def too_old(version: str = pyspark.__version__) -> UnsupportedFeature:
    """The sentence for a PySpark that is older."""
    hint = "Use Spark 4.1 or later; without Spark, hudimeta.Table(path) reads and writes the same tables."
    return UnsupportedFeature(f"PySpark {version}", hint)


def has_data_sources(version: str = pyspark.__version__) -> bool:
    """True where Spark knows data sources in Python."""
    return _numbers(version) >= _FIRST_WITH_SOURCES


def has_read_limits(version: str = pyspark.__version__) -> bool:
    """True where Spark asks streams in Python for as much as a batch may take."""
    return _numbers(version) >= _FIRST_WITH_LIMITS


def is_connect(spark: object) -> bool:
    """True for a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
