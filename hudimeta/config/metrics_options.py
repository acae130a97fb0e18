"""Options of metrics."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = [
    "METRICS_FILE",
    "METRICS_LOCK",
    "METRICS_ON",
    "METRICS_PREFIX",
    "METRICS_REPORTER",
    "PROMETHEUS_PORT",
    "PUSHGATEWAY_DELETE",
    "PUSHGATEWAY_HOST",
    "PUSHGATEWAY_JOB",
    "PUSHGATEWAY_PORT",
]

METRICS_ON = OPTIONS.flag("hoodie.metrics.on", False, "Count and time what is done, see docs/metrics.md.")
METRICS_LOCK = OPTIONS.flag("hoodie.metrics.lock.enable", False, "With metrics on: those of locks and conflicts too.")
METRICS_REPORTER = OPTIONS.choice(
    "hoodie.metrics.reporter.type",
    "INMEMORY",
    ["INMEMORY", "PROMETHEUS", "PROMETHEUS_PUSHGATEWAY", "SLF4J", "OPENTELEMETRY", "JSON_LINES"],
    "Where metrics go: INMEMORY keeps them in hudimeta.observability.REGISTRY, as all do; SLF4J is Python's logging.",
)
METRICS_PREFIX = OPTIONS.text(
    "hoodie.metrics.reporter.metricsname.prefix",
    None,
    "What figures are filed under; the table's name when not set.",
)
METRICS_FILE = OPTIONS.local_path("hudimeta.metrics.file", "Of the reporter JSON_LINES: the file that lines are appended to.")
PROMETHEUS_PORT = OPTIONS.number("hoodie.metrics.prometheus.port", 9090, "Of the reporter PROMETHEUS: where it is asked.")
PUSHGATEWAY_HOST = OPTIONS.text("hoodie.metrics.pushgateway.host", "localhost", "Of the reporter PROMETHEUS_PUSHGATEWAY.")
PUSHGATEWAY_PORT = OPTIONS.number("hoodie.metrics.pushgateway.port", 9091, "Of the reporter PROMETHEUS_PUSHGATEWAY.")
PUSHGATEWAY_JOB = OPTIONS.text(
    "hoodie.metrics.pushgateway.job.name", None, "Of the reporter PROMETHEUS_PUSHGATEWAY; hudimeta-TABLE when not set."
)
PUSHGATEWAY_DELETE = OPTIONS.flag(
    "hoodie.metrics.pushgateway.delete.on.shutdown", True, "The gateway forgets the job when the process ends."
)
