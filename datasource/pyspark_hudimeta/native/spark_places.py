"""Whether Spark's own reader can open files of a place: s3:// needs a jar that a plain installation lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["why_spark_cannot_open"]

_PROBED = ".hoodie/hoodie.properties"
"""A file that every table has."""
_NO_FILE_SYSTEM = ("No FileSystem for scheme", "UnsupportedFileSystemException", "ClassNotFoundException")
"""What Hadoop says of a scheme that it has no class for; through Connect only the text arrives."""


def why_spark_cannot_open(spark: SparkSession, root: str) -> str:
    """Why a table's files have to be read by the Python source; "" where Spark has a file system for them.

    A classic session asks Hadoop for the class, without any request. Through Connect, Spark is asked to look at one file.

    Args:
        spark: The session.
        root: Of the table's storage, an absolute path or a URI.
    """
    scheme, colon, _ = root.partition("://")
    if not colon or scheme == "file":
        return ""
    has_class = _has_class if getattr(spark, "_jsparkSession", None) is not None else _opens_a_file
    return "" if has_class(spark, scheme, root) else f"Spark has no file system for {scheme}:// (its jar is not there)"


def _has_class(spark: SparkSession, scheme: str, root: str) -> bool:
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, spark._jsparkSession.sessionState().newHadoopConf())
    except Py4JJavaError as error:
        if any(text in str(error) for text in _NO_FILE_SYSTEM):
            return False
        raise
    return True


def _opens_a_file(spark: SparkSession, scheme: str, root: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        _ = spark.read.text(f"{scheme}://{quote(root.partition('://')[2])}/{_PROBED}").schema
    except PySparkException as error:
        # Anything else that is wrong is met again, and said, where the files are read.
        return not any(text in str(error) for text in _NO_FILE_SYSTEM)
    return True
