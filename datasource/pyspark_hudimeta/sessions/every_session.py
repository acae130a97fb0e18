"""Every classic session that a program makes is attached as soon as it is there.

Spark itself has no means to that: its plugins and extensions are Java's, and of Python's side it configures workers alone.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

from pyspark_hudimeta.attached.attachment import attach, let_new_sessions_inherit
from pyspark_hudimeta.spark_version import is_connect

__all__ = ["attach_every_session"]

_OVER_CONNECT = "hudimeta: a session of Spark Connect is not attached; use pyspark_hudimeta.sql(spark, …) and HudiTable there"


def attach_every_session() -> None:
    """From now on `builder.getOrCreate()` returns attached sessions, and so does their `newSession()`.

    Threads share a session and with it that it is attached. Sessions made by `SparkSession(context)` are not attached.
    """
    kind: Any = SparkSession.Builder
    made = kind.getOrCreate

    def get_or_create(builder: Any) -> SparkSession:
        session: SparkSession = made(builder)
        if is_connect(session):
            print(_OVER_CONNECT, file=sys.stderr)
        else:
            attach(session)
        return session

    kind.getOrCreate = get_or_create
    let_new_sessions_inherit()
