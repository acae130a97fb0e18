"""The meter of a table: tells the registry, and exporters after each report."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hudimeta.config import HudiWarning
from hudimeta.config.options import METRICS_LOCK, METRICS_ON, METRICS_PREFIX, TABLE_NAME
from hudimeta.metering import Metric
from hudimeta.observability.exporters import Exporter, exporters_for
from hudimeta.observability.registry import REGISTRY, Registry
from hudimeta.storage import CountingStorage

if TYPE_CHECKING:
    from hudimeta.config import Options

__all__ = ["TableMeter", "metered"]


class TableMeter:
    """Tells a registry about one table.

    Args:
        registry: What keeps the figures.
        table: What the figures are filed under.
        locks: Metrics of locks and conflicts too.
        exporters: Who is shown the figures after each report.
    """

    def __init__(self, registry: Registry, table: str, locks: bool = False, exporters: Sequence[Exporter] = ()) -> None:
        self._registry, self._table, self._locks, self._exporters = registry, table, locks, tuple(exporters)

    def add(self, metric: Metric, amount: float = 1) -> None:
        """See `Meter.add`."""
        if self._locks or not metric.is_of_locks:
            self._registry.add(self._table, metric.value, amount)

    def reported(self, report: object, action: str) -> None:
        """See `Meter`."""
        from hudimeta.observability.from_reports import COUNTED, gauges_of

        for name, value in gauges_of(report, action):
            self._registry.set(self._table, name, value)
        if action in COUNTED:
            self._registry.add(self._table, COUNTED[action], 1)
        for exporter in self._exporters:
            try:
                exporter.show(self._registry, self._table)
            except Exception as error:  # of a library; what is reported here is done, and must not look as if it had failed
                text = f"{type(exporter).__name__} does not show metrics of {self._table}: {type(error).__name__}: {error}"
                warnings.warn(text, HudiWarning, stacklevel=2)


def metered(
    storage: CountingStorage, options: Options, name: str | None = None, registry: Registry = REGISTRY
) -> CountingStorage:
    """A storage whose work a registry counts, where `hoodie.metrics.on` asks for it.

    Args:
        storage: Rooted at a table.
        options: Of the table.
        name: The table's; where None, that of the options, or the last part of its path.
        registry: What keeps the figures.

    Returns:
        The same storage.
    """
    if options.get(METRICS_ON):
        named = name or options.get(TABLE_NAME) or storage.root.rstrip("/").rpartition("/")[2]
        prefix = options.get(METRICS_PREFIX) or named
        storage.log.meter = TableMeter(registry, prefix, options.get(METRICS_LOCK), exporters_for(options, prefix, registry))
    return storage
