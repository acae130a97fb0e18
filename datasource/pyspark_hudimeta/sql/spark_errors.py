"""Errors of Spark in a statement that it runs for us, as those of PySpark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import SparkRuntimeException

if TYPE_CHECKING:
    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["raised_by_pyspark"]


@contextmanager
def raised_by_pyspark(jvm: Jvm | None) -> Iterator[None]:
    """Raise what has an error condition of Spark's as PySpark's exception, with that alone in its text.

    PySpark leaves errors of some of Java's classes, a sub-query of several rows for one, as py4j's, whose text is a stack of
    calls in the JVM, and which nobody who looks for Spark's errors catches. Through Connect they are PySpark's already.

    Args:
        jvm: Of the session; None through Connect.

    Raises:
        SparkRuntimeException: The statement failed so.
    """
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception
        if jvm is None or not is_instance_of(jvm.gateway, cause, "org.apache.spark.SparkThrowable") or not cause.getCondition():
            raise
        raise SparkRuntimeException(origin=cause) from None
