"""Metrics: RFC-15's about the metadata table, and Hudi's about commits, services, indexes and locks, by their names.

registry.py      the figures of this process
from_reports.py  which figures a report holds
meters.py        the meter of a table: what tells the registry
exporters.py     where figures go: Prometheus, OpenTelemetry, JSON lines, logging
"""

from __future__ import annotations

from hudimeta.observability.meters import metered
from hudimeta.observability.registry import REGISTRY, FigureKind, Registry, Sample

__all__ = ["REGISTRY", "FigureKind", "Registry", "Sample", "metered"]
