"""The seam of metrics: what is measured, by which name, and who counts it. Nobody does, unless metrics are switched on.

A meter travels with the request log of a table's storage, as counted requests do: whatever works on the storage can tell it.
Exporters and the figures themselves are in `hudimeta.observability`, which nothing below the doors imports.
"""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Iterator
from typing import Protocol

__all__ = ["NO_METER", "Meter", "Metric", "meter_of", "timed"]


class Metric(enum.Enum):
    """What is counted while it happens. Figures of whole commits and services are taken from their reports."""

    INITIALIZE_DURATION = "HoodieMetadata.initialize.duration"
    INITIALIZE_COUNT = "HoodieMetadata.initialize.count"
    SYNC_DURATION = "HoodieMetadata.sync.duration"
    SYNC_COUNT = "HoodieMetadata.sync.count"
    VALIDATE_ERRORS_COUNT = "HoodieMetadata.validate_errors.count"
    VALIDATE_PARTITIONS_DURATION = "HoodieMetadata.validate_partitions.duration"
    LOOKUP_PARTITIONS_COUNT = "HoodieMetadata.lookup_partitions.count"
    VALIDATE_FILES_DURATION = "HoodieMetadata.validate_files.duration"
    LOOKUP_FILES_COUNT = "HoodieMetadata.lookup_files.count"
    SCAN_DURATION = "HoodieMetadata.scan.duration"
    SCAN_COUNT = "HoodieMetadata.scan.count"
    COMPACTION_REQUESTED = "compaction.compaction.requested.counter"
    LOCK_ATTEMPTS = "lock.acquire.attempts"
    LOCK_SUCCESS = "lock.acquire.success"
    LOCK_FAILURE = "lock.acquire.failure"
    LOCK_LATENCY = "lock.request.latency"
    LOCK_HELD = "lock.acquire.duration"
    CONFLICT_SUCCESS = "conflict_resolution.success.counter"
    CONFLICT_FAILURE = "conflict_resolution.failure.counter"

    @property
    def is_of_locks(self) -> bool:
        """Whether it is counted only where metrics of locks are switched on too, as Hudi has it."""
        return self.value.startswith(("lock.", "conflict_resolution."))


class Meter(Protocol):
    """What takes the figures."""

    def add(self, metric: Metric, amount: float = 1) -> None:
        """Something was counted, or took so many milliseconds."""

    def reported(self, report: object, action: str) -> None:
        """A commit or service is done.

        Args:
            report: Its report.
            action: Hudi's word for what it did, such as `deltacommit` or `clean`.
        """


class _NoMeter:
    def add(self, metric: Metric, amount: float = 1) -> None:
        """Nothing."""

    def reported(self, report: object, action: str) -> None:
        """Nothing."""


NO_METER: Meter = _NoMeter()
"""Where metrics are off."""


def meter_of(storage: object) -> Meter:
    """The meter of a storage, whatever is wrapped around it; `NO_METER` where nobody set one."""
    while storage is not None:
        log = getattr(storage, "log", None)
        if log is not None:
            found: Meter = getattr(log, "meter", NO_METER)
            return found
        storage = getattr(storage, "inner", None)
    return NO_METER


@contextlib.contextmanager
def timed(meter: Meter, duration: Metric, count: Metric | None = None) -> Iterator[None]:
    """Tell the milliseconds of the with block, and that it ran."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        if meter is not NO_METER:
            meter.add(duration, (time.perf_counter() - begin) * 1000)
            if count is not None:
                meter.add(count)
