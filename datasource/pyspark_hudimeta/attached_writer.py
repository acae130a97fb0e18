"""`df.write.format("hudimeta").save(path)` in an attached session: routed through Spark's executors.

Spark makes each DataFrame of its own class, whose `write` knows nothing of sessions. So while any session is attached, that
property asks whether the DataFrame's session is one of them; for all others it is what it was. Modes other than append and
overwrite, `insertInto`, `saveAsTable` and other formats are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from hudimeta.config import OPTIONS
from hudimeta.config.options import ROUTED_WRITES
from pyspark_hudimeta.routed_write import save_frame
from pyspark_hudimeta.target import write_target
from pyspark_hudimeta.writer import LOG, writer_options

__all__ = ["AttachedWriter", "route_writes", "stop_routing"]

_FORMAT = "hudimeta"
_MODES = {"append": False, "overwrite": True}
_lock = RLock()
_routes: dict[int, Callable[[SparkSession], bool]] = {}
_original: list[Any] = []


def route_writes(owner: int, is_attached: Callable[[SparkSession], bool]) -> None:
    """From now on writes of the DataFrames of some sessions are routed.

    Args:
        owner: Who asks, for `stop_routing`. is_attached: Whether a session is one of them.
    """
    with _lock:
        if not _original:
            _original.append(ClassicDataFrame.__dict__["write"])
            ClassicDataFrame.write = property(_write, doc=DataFrame.write.__doc__)
        _routes[owner] = is_attached


def stop_routing(owner: int) -> None:
    """Undo `route_writes`; when nobody is left, Spark's class is as it was."""
    with _lock:
        _routes.pop(owner, None)
        if not _routes and _original:
            ClassicDataFrame.write = _original.pop()


def _write(frame: DataFrame) -> DataFrameWriter:
    session = frame.sparkSession
    attached = any(is_attached(session) for is_attached in list(_routes.values()))
    return AttachedWriter(frame) if attached else DataFrameWriter(frame)


class AttachedWriter(DataFrameWriter):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's writer, which also remembers what it was told."""

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(frame)
        self._format: str | None = None
        self._mode: str | None = None
        self._told: dict[str, str] = {}
        self._layout = False

    def mode(self, saveMode: str | None) -> AttachedWriter:  # noqa: N803 - Spark's name
        self._mode = saveMode.lower() if saveMode is not None else self._mode
        super().mode(saveMode)
        return self

    def format(self, source: str) -> AttachedWriter:
        self._format = source
        super().format(source)
        return self

    def option(self, key: str, value: Any) -> AttachedWriter:
        self._remember(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> AttachedWriter:
        for key, value in options.items():
            self._remember(key, value)
        super().options(**options)
        return self

    def partitionBy(self, *cols: Any) -> AttachedWriter:  # noqa: N802 - Spark's name
        self._layout = True
        super().partitionBy(*cols)
        return self

    def bucketBy(self, *args: Any, **kwargs: Any) -> AttachedWriter:  # noqa: N802 - Spark's name
        self._layout = True
        super().bucketBy(*args, **kwargs)
        return self

    def _remember(self, key: str, value: Any) -> None:
        if value is not None:
            # As Spark spells them on their way to Java.
            self._told[key] = str(value).lower() if isinstance(value, bool) else str(value)

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - Spark's name
        **options: Any,
    ) -> None:
        """As Spark's; a write to a table of ours is routed."""
        self.mode(mode).options(**options)
        if format is not None:
            self.format(format)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if not self._saved(path):
            super().save(path)

    def _saved(self, path: str | None) -> bool:
        """Route the write, if it is one that is routed."""
        told = self._told if path is None else {**self._told, "path": path}
        if (self._format or "").lower() != _FORMAT or self._mode not in _MODES or self._layout:
            return False
        lower = {key.lower(): value for key, value in told.items()}
        if not OPTIONS.read(writer_options(lower)).get(ROUTED_WRITES):
            return False
        location = write_target(lower, self._df.schema).location
        report = save_frame(self._df.sparkSession, location, lower, self._df, overwrite=_MODES[self._mode])
        LOG.info("%s", report)
        return report is not None
